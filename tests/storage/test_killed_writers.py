"""Two writers and a merge of what they write are killed at random moments, without Spark: every row is there once.

`PENSTOCK_KILLS` says how often, `PENSTOCK_SEED` when. While they are killed, a reader follows one of the folders, whose
files are written together all the time.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from penstock.storage.files import place_of
from penstock.storage.log import RecordLog
from penstock.storage.reader import FolderReader, Position
from tests.processes import Processes, kill, wait
from tests.storage.test_folders import read, seen

KILLS = int(os.environ.get("PENSTOCK_KILLS", "40"))
SEED = int(os.environ.get("PENSTOCK_SEED", "1"))
WRITERS = {"a": 3, "b": 7}


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.end_all()


class Following:
    """A reader of one folder, from the beginning and for as long as it is written."""

    def __init__(self, folder: Path) -> None:
        self.reader = FolderReader(place_of(folder))
        self.position: Position | None = None
        self.rows: Counter[int] = Counter()

    def step(self) -> None:
        rows, self.position, restarted = read(self.reader, self.position)
        assert not restarted
        self.rows.update(rows)


def homes(home: Path) -> dict[str, Path]:
    return {**{name: home / f"home_{name}" for name in WRITERS}, "merge": home / "merged_merge"}


def rounds(home: Path) -> int:
    """How many records there are."""
    last = RecordLog(place_of(home / "log")).last()
    return 0 if last is None else last.number + 1


def rows_written(home: Path) -> int:
    last = RecordLog(place_of(home / "log")).last()
    return 0 if last is None else last.totals["read"]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_row_is_there_once(processes: Processes, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    for name, size in WRITERS.items():
        processes.start(name, "-m", "tests.storage.killed_writer", str(tmp_path), name, str(size))
    folders = [str(tmp_path / name) for name in WRITERS]
    processes.start("merge", "-m", "penstock", "merge", *folders, "--into", str(tmp_path / "merged"))
    following = Following(tmp_path / "a")

    def go_on() -> None:
        processes.revive()
        following.step()

    places = homes(tmp_path)
    for _ in range(KILLS):
        name = rng.choice(list(places))
        before = rounds(places[name])
        wait(f"work of {name}", lambda n=name, b=before: rounds(places[n]) > b, go_on, 60)  # type: ignore[misc]
        until = time.monotonic() + rng.expovariate(3)
        while time.monotonic() < until:
            go_on()
        kill([processes.running[name].pid])
    total = max(rows_written(places[name]) for name in WRITERS) + 1000
    (tmp_path / ".finish").write_text(str(total))
    (tmp_path / ".finish").rename(tmp_path / "finish")
    wait("the end", lambda: all(p.poll() == 0 for p in processes.running.values()), go_on, 300)
    following.step()
    batches = {name: rounds(place) for name, place in places.items()}
    print(f"{KILLS} kills; {total} rows in {batches} micro-batches")
    for name in (*WRITERS, "merged"):
        assert seen(place_of(tmp_path / name)) == list(range(total)), name
    assert following.rows == Counter(range(total))
    merged = RecordLog(place_of(places["merge"] / "log")).last()
    assert merged is not None
    assert merged.totals["read"] >= total
    assert merged.totals.get("restarts", 0) == 0  # killed and started again, a writer goes on
    for name in WRITERS:
        late = seen(place_of(places[name] / "late"))
        assert len(late) == len(set(late))
    assert pq.read_table(places["merge"] / "dead").num_rows == 0
