"""Drivers, Python workers, JVMs and merges are killed at random moments; then everything equals what is due, by hand.

Two replicas, each a process that runs a query with windows, one with windows of windows and one that passes rows
through, and a merge for each query. `PENSTOCK_KILLS` says how many kills (`make test-slow` asks for 60),
`PENSTOCK_SEED` which.

Every third kill is of a replica whose query in stages is caught by a trap (`tests.spark.traps`): where it reads rows,
in its first stage or in its last, in turn. Most others of a replica let some micro-batches pass, wait until one is in
the middle of the next (for a worker: until there is one), and then for a moment drawn at random; the rest strike
whatever is there, often a driver that has just been started again. A killed driver is replaced at once, while its JVM
may still be there. Files are given as fast as the slower replica takes them. How many micro-batches were interrupted,
before their record was put and after, and in which stages, is printed, and the test fails if they are few, or if a kind
of process was never killed.

A driver that is killed after Spark's source has noted a file, and before the micro-batch with it is planned, leaves two
files to the next micro-batch. So late rows are so far behind that they are late however files come together, and the
bound that condemned each, which does depend on that, is only held to be above its time.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from penstock.storage.files import place_of
from penstock.storage.log import RecordLog
from tests.processes import ROOT, Processes, kill, wait
from tests.spark import modes, scenario
from tests.spark.by_hand import stacked
from tests.spark.kill_driver import POINTS, QUERIES
from tests.spark.traps import Traps

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(modes.chosen() != "local", reason="the processes start sessions of their own"),
]
KILLS = int(os.environ.get("PENSTOCK_KILLS", "6"))
SEED = int(os.environ.get("PENSTOCK_SEED", "1"))
BEHIND = 115
"""Seconds by which late rows are behind: five files may come together."""
AHEAD = 20
"""So many files lie ready for the replica that is further behind."""
REPLICAS = "ab"


class Pipelines:
    """Two replicas with three queries each, and the three merges."""

    def __init__(self, home: Path, processes: Processes, rng: random.Random) -> None:
        self.home, self.processes, self.rng = home, processes, rng
        self.files = 0
        self.struck: Counter[str] = Counter()
        self.interrupted: Counter[str] = Counter()
        self.caught: Counter[str] = Counter()

    def start(self) -> None:
        self.feed()
        for name in REPLICAS:
            self.processes.start(name, "-m", "tests.spark.kill_driver", str(self.home), name)
        for query in QUERIES:
            self.processes.start(f"merge_{query}", *merge_command(self.home, query))

    def feed(self) -> None:
        """One more file, if there is need of one; and whoever has ended is started again."""
        self.processes.revive()
        if self.files < self.behind + AHEAD:
            scenario.write_files(self.home / "in", range(self.files, self.files + 1), BEHIND)
            self.files += 1

    @property
    def behind(self) -> int:
        """How many files the slowest query has taken."""
        return min(taken(self.home, name, query) for name in REPLICAS for query in QUERIES)

    @property
    def recorded(self) -> int:
        return sum(batches(self.home, name, query) for name in REPLICAS for query in QUERIES)

    # Killing

    def strike(self) -> None:
        """Kill one process, chosen at random, at a random moment."""
        name = self.rng.choice([*REPLICAS, *REPLICAS, *self.processes.running])
        kind = "driver" if "merge" in name else self.rng.choice(["driver", "JVM", "worker", "worker", "whole"])
        if "merge" not in name and self.rng.random() < 0.8:
            self.let_pass(self.rng.choice((0, 0, 1, 2, 3)))
            wait("a micro-batch", lambda: bool(self.busy(kind)), self.feed)
            name = self.rng.choice(self.busy(kind) or [name])
            self.pause(self.rng.expovariate(3))
        else:
            self.pause(self.rng.uniform(0, 6))
        self.kill(name, kind)

    def strike_at(self, point: str) -> None:
        """Kill a process of a replica whose query in stages has come to a point."""
        name, kind = self.rng.choice(REPLICAS), self.rng.choice(["driver", "JVM", "worker", "whole"])
        traps = Traps(self.home / f"traps_{name}")
        traps.arm(point)
        wait(f"a task at {point}", lambda: traps.caught(point) is not None, self.feed)
        caught = traps.caught(point)
        assert caught is not None
        self.pause(self.rng.uniform(0, 0.3))
        assert last_of(self.home, name, "stacked", "offsets") > last_of(self.home, name, "stacked", "commits")
        self.kill(name, kind, caught)
        self.caught[point] += 1
        traps.clear()

    def kill(self, name: str, kind: str, worker: int | None = None) -> None:
        """Kill a kind of process of somebody, and note what it was in the middle of."""
        victims = self.processes.parts(name)[kind]
        if kind == "worker" and victims:
            victims = [worker or self.rng.choice(victims)]
        open_before = self.open_batches(name)
        kill(victims or self.processes.parts(name)["driver"])
        self.struck[f"{kind if victims else 'driver'} of {name}"] += 1
        interrupted = open_before & self.open_batches(name)
        for query in interrupted:
            recorded = last_of(self.home, name, query, "offsets") < batches(self.home, name, query)
            self.interrupted["after the record" if recorded else "before the record"] += 1
        print(
            f"{self.struck.total()}: {kind} of {name}, in a micro-batch of {sorted(interrupted) or 'none'}", flush=True
        )
        if kind == "JVM" and victims:
            process = self.processes.running[name]
            wait(f"the end of {name} without its JVM", lambda: process.poll() is not None, lambda: None, 120)

    def let_pass(self, micro_batches: int) -> None:
        """Until so many more have their record."""
        wanted = self.recorded + micro_batches
        wait("micro-batches", lambda: self.recorded >= wanted, self.feed)

    def busy(self, kind: str) -> list[str]:
        """The replicas that are in a micro-batch, and have what is to be killed."""
        return [name for name in REPLICAS if self.open_batches(name) and self.processes.parts(name)[kind]]

    def pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.feed()
            time.sleep(0.05)

    def open_batches(self, name: str) -> set[str]:
        """The queries of a replica that are in a micro-batch; none before it has started them."""
        ready = self.home / f"ready_{name}"
        if not ready.exists() or ready.read_text() != str(self.processes.running[name].pid):
            return set()
        return {
            query
            for query in QUERIES
            if last_of(self.home, name, query, "offsets") > last_of(self.home, name, query, "commits")
        }


def last_of(home: Path, replica: str, query: str, log: str) -> int:
    """The last micro-batch in one of a checkpoint's logs."""
    folder = home / f"flow_{replica}" / query / "checkpoint" / log
    return max((int(f.name) for f in folder.iterdir() if f.name.isdigit()), default=-1) if folder.exists() else -1


def batches(home: Path, replica: str, query: str) -> int:
    """How many micro-batches have a record."""
    last = RecordLog(place_of(home / f"flow_{replica}" / query / "log")).last()
    return 0 if last is None else last.number + 1


def taken(home: Path, replica: str, query: str) -> int:
    """How many files are in the micro-batches that have a record: the source counts them one by one."""
    last = RecordLog(place_of(home / f"flow_{replica}" / query / "log")).last()
    offsets = [] if last is None else [json.loads(p) for p in last.positions if p.startswith('{"logOffset"')]
    return max((offset["logOffset"] + 1 for offset in offsets), default=0)


def write_last(folder: Path) -> None:
    """One row from the far future moves the bound past every window of the others."""
    text = json.dumps({"ts": "2027-01-01T00:00:00", "srcIP": "10.0.0.9", "len": 0})
    partial = folder / ".last.json"
    partial.write_text(text + "\n")
    os.utime(partial, (10_000, 10_000))
    partial.rename(folder / "last.json")


def merge_command(home: Path, query: str, *more: str) -> list[str]:
    folders = [str(home / f"{query}_{name}") for name in REPLICAS]
    command = ["merge", *folders, "--into", str(home / f"merged_{query}"), *more]
    return ["-m", "penstock", *command]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.end_all()


def test_killed_at_random(processes: Processes, tmp_path: Path) -> None:
    pipelines = Pipelines(tmp_path, processes, random.Random(SEED))
    begin = time.monotonic()
    pipelines.start()
    wait("output", lambda: pipelines.behind > 0, pipelines.feed)
    points = cycle(POINTS)
    for number in range(KILLS):
        if number % 3 == 0:
            pipelines.strike_at(next(points))
        else:
            pipelines.strike()
    write_last(tmp_path / "in")
    wait("the end", lambda: pipelines.behind > pipelines.files, processes.revive)
    wait("the end of orphans", lambda: not processes.left, processes.revive, 60)
    processes.end_all()
    print(
        f"{KILLS} kills in {time.monotonic() - begin:.0f} s: {dict(pipelines.struck)}; {pipelines.files} files; "
        f"micro-batches interrupted: {dict(pipelines.interrupted)}; stages: {dict(pipelines.caught)}"
    )
    judge(tmp_path, pipelines.files)
    of_replicas = sum(n for what, n in pipelines.struck.items() if "merge" not in what)
    assert pipelines.interrupted.total() >= of_replicas // 2
    if KILLS >= 30:
        assert {what.partition(" of ")[0] for what in pipelines.struck} == {"driver", "JVM", "worker", "whole"}


def judge(home: Path, files: int) -> None:
    """Every output of both replicas and of the merges, as bags of rows."""
    expected = scenario.expected(files, BEHIND)
    passing: Counter[tuple[object, ...]] = Counter(scenario.judged(files, BEHIND)[0])
    late = without_bounds(expected["late"])
    assert late  # there is something to find
    final = (scenario.ticks(dt.datetime(2027, 1, 1)), "10.0.0.9", 0)
    for query in QUERIES:
        merged = subprocess.run(
            [sys.executable, *merge_command(home, query, "--once")],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert merged.returncode == 0, merged.stderr
        wanted = {"passing": passing, "windowed": expected["results"]}.get(
            query, stacked(expected["results"], 20 * scenario.SECOND, scenario.SLIDE)
        )
        for name in REPLICAS:
            found = scenario.output_of(home / f"{query}_{name}", home / f"flow_{name}" / query)
            assert found["results"] == wanted + Counter({final: 1} if query == "passing" else {})
            assert without_bounds(found["late"]) == late
            assert all(bound > time for _, bound, time, *_ in found["late"])  # type: ignore[operator]
            assert found["dead"] == expected["dead"]
        # The last row lies above the bound, so it is not settled which rows of its time there are.
        assert Counter(scenario.rows_in(home / f"merged_{query}")) == wanted
        assert scenario.rows_in(home / f"merged_{query}_merge" / "dead") == []
        last = RecordLog(place_of(home / f"merged_{query}_merge" / "log")).last()
        assert last is not None
        assert last.totals.get("restarts", 0) == 0  # killed and started again, a replica goes on


def without_bounds(late: Counter[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    rows: Counter[tuple[object, ...]] = Counter()
    for (stream, _, *row), count in late.items():
        rows[stream, *row] += count
    return rows


def test_a_second_driver_is_refused_and_takes_over_when_the_first_is_killed(
    processes: Processes, tmp_path: Path
) -> None:
    driver = ("-m", "tests.spark.kill_driver", str(tmp_path), "a")
    scenario.write_files(tmp_path / "in", range(2))
    first = processes.start("first", *driver)
    wait("output", lambda: batches(tmp_path, "a", "passing") == 2, lambda: None)
    second = processes.start("second", *driver)
    assert second.wait(300) != 0
    told = processes.log_of("second").read_text()
    assert "LeaseError: Another driver is running here." in told
    assert f"process {first.pid} on " in told
    assert first.poll() is None
    processes.end("first")
    scenario.write_files(tmp_path / "in", range(2, 3))
    processes.start("third", *driver)
    wait("output of the third", lambda: batches(tmp_path, "a", "passing") == 3, lambda: None)
    assert Counter(scenario.rows_in(tmp_path / "passing_a")) == Counter(scenario.judged(3)[0])
