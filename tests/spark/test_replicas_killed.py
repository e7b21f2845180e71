"""Two replicas and a merge, each in a process of its own; one replica after the other is killed and started again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from penstock.storage.files import place_of
from penstock.storage.folder_log import FolderLog
from penstock.storage.folders import META, owner_of
from tests.processes import Processes
from tests.processes import wait as wait_for
from tests.spark import modes
from tests.spark.test_merge import ROWS, disordered, expected, output, write_files

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(modes.chosen() != "local", reason="the processes start sessions of their own"),
]
SIZE = 5
PARTS = len(ROWS) // SIZE


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.end_all()


def advances(folder: Path) -> list[float]:
    """When the output of a folder came further, in order."""
    owner = owner_of(place_of(folder))
    if owner is None:
        return []
    return [entry.at for entry in FolderLog(place_of(folder) / META / "log", owner.run).entries()]


def start_replica(processes: Processes, name: str, files: int) -> None:
    processes.start(name, "-m", "tests.spark.replica_driver", str(processes.home), name, str(files))


def check(processes: Processes) -> None:
    """Nobody has failed."""
    for name, process in processes.running.items():
        assert process.poll() in (None, 0), processes.log_of(name).read_text()[-3000:]


def wait(processes: Processes, what: str, done: Callable[[], bool]) -> None:
    wait_for(what, done, lambda: check(processes), 240)


def longest(times: list[float], begin: float, end: float) -> float:
    inside = [begin, *[t for t in times if begin < t < end], end]
    return max(b - a for a, b in pairwise(inside))


def test_the_merged_output_is_exact_and_hardly_notices(processes: Processes, tmp_path: Path) -> None:
    rows = {"a": disordered(3, 10), "b": disordered(4, 3)}
    for name, own in rows.items():
        write_files(tmp_path / name, own, SIZE, range(2))
    fed = threading.Event()

    def taken() -> int:
        return sum(len(advances(tmp_path / f"out_{name}")) for name in rows)

    def feed() -> None:
        """The next file for each replica when one of them has taken something: there is always something to say."""
        for part in range(2, PARTS):
            before = taken()
            for name, own in rows.items():
                write_files(tmp_path / name, own, SIZE, range(part, part + 1))
            if fed.wait(1.5):
                return
            while taken() == before:
                if fed.wait(0.2):
                    return

    start_replica(processes, "a", 1)
    start_replica(processes, "b", 2)
    wait(processes, "the first output", lambda: all(advances(tmp_path / f"out_{n}") for n in "ab"))
    merge = [str(tmp_path / "out_a"), str(tmp_path / "out_b"), "--into", str(tmp_path / "out")]
    processes.start("merge", "-m", "penstock", "merge", *merge)
    wait(processes, "the first merged output", lambda: bool(advances(tmp_path / "out")))
    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    outages = []
    for name, files in (("a", 1), ("b", 2)):
        before = len(advances(tmp_path / "out"))
        wait(processes, "merged output", lambda before=before: len(advances(tmp_path / "out")) > before)  # type: ignore[misc]
        killed = time.time()
        processes.end(name)
        start_replica(processes, name, files)
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
    check(processes)
    assert output(tmp_path) == expected()
    for outage, gap in outages:
        assert gap < outage / 2, f"a restart took {outage:.1f} s, the longest silence of the merged output {gap:.1f} s"
