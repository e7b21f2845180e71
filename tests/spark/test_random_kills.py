"""Drivers, Python workers, JVMs and merges are killed at random moments; then everything equals what the oracle says.

Two replicas, each a process that runs a query with windows and one that passes rows through, and two merges, one for
each query. `PENSTOCK_KILLS` says how many kills (`make test-slow` asks for 60), `PENSTOCK_SEED` which.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.errors import StorageError
from penstock.storage.files import place_of
from penstock.storage.log import RecordLog
from tests.spark import modes, scenario
from tests.spark.kill_driver import QUERIES

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(modes.chosen() != "local", reason="the processes start sessions of their own"),
]
ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("PENSTOCK_KILLS", "6"))
SEED = int(os.environ.get("PENSTOCK_SEED", "1"))
FILES = KILLS + 4


class Processes:
    """What should be running; whoever is found dead is started again."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.commands: dict[str, list[str]] = {}

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        self.commands[name] = list(command)
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
        with (self.home / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, *command], cwd=ROOT, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        return self.running[name]

    def replica(self, name: str) -> None:
        self.start(name, "-m", "tests.spark.kill_driver", str(self.home), name)

    def revive(self) -> None:
        for name, process in list(self.running.items()):
            if process.poll() is not None:
                self.end(name)
                self.start(name, *self.commands[name])

    def end(self, name: str) -> None:
        """With all that belongs to it."""
        process = self.running.pop(name)
        for pid in [process.pid, *descendants(process.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def strike(self, rng: random.Random) -> str:
        """Kill one process at random; what it was."""
        name = rng.choice([n for n in self.running if "merge" not in n] * 2 + list(self.running))
        process = self.running[name]
        kind = "driver" if "merge" in name else rng.choice(["driver", "JVM", "worker", "whole"])
        below = descendants(process.pid)
        victims = {
            "driver": [process.pid],
            "whole": [process.pid, *below],
            "JVM": [p for p in below if "java" in command_of(p).split("\0")[0]],
            "worker": [p for p in below if "pyspark" in command_of(p) and "daemon" in command_of(p)],
        }[kind]
        if kind == "worker" and len(victims) > 1:
            victims = [rng.choice(victims)]
        for pid in victims or [process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return f"{kind if victims else 'driver'} of {name}"


def descendants(pid: int) -> list[int]:
    """The processes below one, of which there may be several generations."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, layer = [], [pid]
    while layer:
        layer = [child for each in layer for child in parents.get(each, [])]
        found += layer
    return found


def command_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    for name in list(made.running):
        made.end(name)


def wait(what: str, done: Callable[[], bool], each: Callable[[], None], seconds: float = 600) -> None:
    until = time.monotonic() + seconds
    while not done():
        each()
        assert time.monotonic() < until, f"{what} did not come about"
        time.sleep(0.3)


def batches(home: Path, replica: str, query: str) -> int:
    try:
        last = RecordLog(place_of(home / f"flow_{replica}" / query / "log")).last()
    except StorageError:
        return 0
    return 0 if last is None else last.number + 1


def write_last(folder: Path) -> None:
    """One row from the far future moves the bound past every window of the others."""
    text = json.dumps({"ts": "2027-01-01T00:00:00", "srcIP": "10.0.0.9", "len": 0})
    partial = folder / ".last.json"
    partial.write_text(text + "\n")
    os.utime(partial, (10_000, 10_000))
    partial.rename(folder / "last.json")


def merge_command(home: Path, query: str, *more: str) -> list[str]:
    folders = [str(home / f"{query}_{name}") for name in "ab"]
    command = ["merge", *folders, "--into", str(home / f"merged_{query}"), *more]
    return ["-c", "from penstock.cli import main; main()", *command]


def test_killed_at_random(processes: Processes, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    scenario.write_files(tmp_path / "in", range(2))
    for name in "ab":
        processes.replica(name)
    for query in QUERIES:
        processes.start(f"merge_{query}", *merge_command(tmp_path, query))
    wait("output", lambda: all(batches(tmp_path, n, q) for n in "ab" for q in QUERIES), processes.revive)
    struck: Counter[str] = Counter()
    for kill in range(KILLS):
        scenario.write_files(tmp_path / "in", range(2 + kill, 3 + kill))
        until = time.monotonic() + rng.uniform(0.5, 9)
        while time.monotonic() < until:
            processes.revive()
            time.sleep(0.1)
        struck[processes.strike(rng)] += 1
    scenario.write_files(tmp_path / "in", range(2 + KILLS, FILES))
    write_last(tmp_path / "in")
    done = FILES + 1
    wait("the end", lambda: all(batches(tmp_path, n, q) >= done for n in "ab" for q in QUERIES), processes.revive)
    for name in list(processes.running):
        processes.end(name)
    print(f"{KILLS} kills: {dict(struck)}")
    judge(tmp_path)


def judge(home: Path) -> None:
    fate = scenario.judged(FILES)
    expected = scenario.expected(FILES)
    passing = Counter(fate.on_time)
    for query in QUERIES:
        done = subprocess.run(
            [sys.executable, *merge_command(home, query, "--once")],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        wanted = passing if query == "passing" else expected["results"]
        for name in "ab":
            flow = home / f"flow_{name}" / query
            found = scenario.output_of(home / f"{query}_{name}", flow)
            own = found["results"] - wanted
            assert wanted - found["results"] == Counter()
            assert all("10.0.0.9" in row and 0 in row for row in own), own  # the last row, where it is passed through
            assert sum(own.values()) == (query == "passing")
            assert found["late"] == expected["late"]
            assert found["dead"] == expected["dead"]
        assert Counter(scenario.rows_in(home / f"merged_{query}")) == wanted


def test_a_second_driver_is_refused_and_takes_over_when_the_first_is_killed(
    processes: Processes, tmp_path: Path
) -> None:
    scenario.write_files(tmp_path / "in", range(2))
    first = processes.start("first", "-m", "tests.spark.kill_driver", str(tmp_path), "a")
    wait("output", lambda: batches(tmp_path, "a", "passing") == 2, lambda: None)
    second = processes.start("second", "-m", "tests.spark.kill_driver", str(tmp_path), "a")
    assert second.wait(300) != 0
    told = (tmp_path / "second.log").read_text()
    assert "LeaseError: Another driver is running here." in told
    assert f"process {first.pid} on " in told
    processes.end("first")
    scenario.write_files(tmp_path / "in", range(2, 3))
    processes.start("third", "-m", "tests.spark.kill_driver", str(tmp_path), "a")
    wait("output of the third", lambda: batches(tmp_path, "a", "passing") == 3, lambda: None)
    found = Counter(scenario.rows_in(tmp_path / "passing_a"))
    assert found == Counter(scenario.judged(3).on_time)
