"""Two replicas and a merge, each in a process of its own; one replica after the other is killed and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.spark import modes
from tests.spark.test_merge import ROWS, disordered, expected, output, write_files

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(modes.chosen() != "local", reason="the processes start sessions of their own"),
]
ROOT = Path(__file__).parents[2]
SIZE = 5
PARTS = len(ROWS) // SIZE


class Processes:
    """What runs, so that nothing outlives the test."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *command: str) -> None:
        log = (self.home / f"{name}.log").open("ab")
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
        self.running[name] = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, stdout=log, stderr=log, env=environment, start_new_session=True
        )

    def replica(self, name: str, files: int) -> None:
        self.start(name, "tests/spark/replica_driver.py", str(self.home), name, str(files))

    def kill(self, name: str) -> None:
        """With the Java process and the Python workers that belong to it."""
        os.killpg(self.running.pop(name).pid, signal.SIGKILL)

    def check(self) -> None:
        for name, process in self.running.items():
            assert process.poll() in (None, 0), (self.home / f"{name}.log").read_text()[-3000:]

    def end(self) -> None:
        for process in self.running.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.end()


def advances(folder: Path) -> list[float]:
    """When the output of a folder came further."""
    return sorted(p.stat().st_mtime for p in (folder / "_penstock" / "log").glob("0*.json"))


def wait(processes: Processes, what: str, done: Callable[[], bool], seconds: float = 240) -> None:
    until = time.monotonic() + seconds
    while not done():
        processes.check()
        assert time.monotonic() < until, f"{what} did not come about"
        time.sleep(0.2)


def longest(times: list[float], begin: float, end: float) -> float:
    inside = [begin, *[t for t in times if begin < t < end], end]
    return max(b - a for a, b in pairwise(inside))


def test_the_merged_output_is_exact_and_hardly_notices(processes: Processes, tmp_path: Path) -> None:
    rows = {"a": disordered(3, 10), "b": disordered(4, 3)}
    for name, own in rows.items():
        write_files(tmp_path / name, own, SIZE, range(2))
    fed = threading.Event()

    def feed() -> None:
        """A file a second for each replica, so that there is always something to say."""
        for part in range(2, PARTS):
            for name, own in rows.items():
                write_files(tmp_path / name, own, SIZE, range(part, part + 1))
            if fed.wait(1.5):
                return

    processes.replica("a", 1)
    processes.replica("b", 2)
    wait(processes, "the first output", lambda: all(advances(tmp_path / f"out_{n}") for n in "ab"))
    merge = [str(tmp_path / "out_a"), str(tmp_path / "out_b"), "--into", str(tmp_path / "out")]
    processes.start("merge", "-c", "from penstock.cli import main; main()", "merge", *merge)
    wait(processes, "the first merged output", lambda: bool(advances(tmp_path / "out")))
    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    outages = []
    for name, files in (("a", 1), ("b", 2)):
        before = len(advances(tmp_path / "out"))
        wait(processes, "merged output", lambda before=before: len(advances(tmp_path / "out")) > before)  # type: ignore[misc]
        killed = time.time()
        processes.kill(name)
        processes.replica(name, files)
        folder = tmp_path / f"out_{name}"
        wait(processes, f"output of {name}", lambda folder=folder, killed=killed: advances(folder)[-1] > killed)  # type: ignore[misc]
        back = advances(folder)
        resumed = min(t for t in back if t > killed)
        outages.append((resumed - killed, longest(advances(tmp_path / "out"), killed, resumed)))
    fed.set()
    feeder.join()
    for name, own in rows.items():
        written = len(list((tmp_path / name).glob("*.parquet")))
        write_files(tmp_path / name, own, SIZE, range(written, PARTS))
    (tmp_path / "finish").touch()
    wait(processes, "the end", lambda: processes.running["merge"].poll() is not None)
    processes.check()
    assert output(tmp_path) == expected()
    for outage, gap in outages:
        assert gap < outage / 2, f"a restart took {outage:.1f} s, the longest silence of the merged output {gap:.1f} s"
