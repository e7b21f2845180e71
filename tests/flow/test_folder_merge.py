"""Merging output folders, without Spark: replicas that write in their own batches, are wiped and begin again; a merge
that is killed between any two operations on files. What comes out is compared with the rows that went in.

A replica is played here, from its definition: rows arrive up to `disorder` late, the bound is the greatest time less
that, a query that passes rows through writes them at once, and one with windows writes a window when the bound passes
its end.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import CheckpointError, LeaseError, MergeError, SourceError, StorageError
from penstock.flow.outputs import FolderMerge, merge_outputs
from penstock.model.schema import schema_of
from penstock.model.time import END_OF_TIME
from penstock.storage import folder_log
from penstock.storage.files import Place, place_of
from penstock.storage.folders import OutputFolder, OutputStream, Owner, Staging, describe
from penstock.storage.lease import Lease
from tests.storage.test_folders import Killed

Row = tuple[int, str, float]
SLIDE = 10
STREAM = describe(schema_of([("t", "bigint"), ("k", "string"), ("v", "bigint")], "t"))
KEYED = OutputStream(STREAM.columns, STREAM.time, ("k",))
MEASURED = describe(schema_of([("t", "bigint"), ("k", "string"), ("v", "double")], "t"), ["k"])


def window_counts(rows: list[Row]) -> dict[tuple[int, str], int]:
    return Counter(((t // SLIDE + 1) * SLIDE, k) for t, k, _ in rows)


class Pipeline:
    """A replica: its own arrival order, its own batches, its own lives."""

    def __init__(
        self,
        place: Place,
        rows: list[Row],
        rng: random.Random,
        windowed: bool,
        disorder: int,
        *,
        measured: bool = False,
    ) -> None:
        """`measured`: what a window says is a float, which differs in its last bits from replica to replica."""
        self.place, self.rows, self.rng, self.windowed, self.disorder = place, rows, rng, windowed, disorder
        self.life = 0
        self.stream = (MEASURED if measured else KEYED) if windowed else STREAM
        self.begin()

    def begin(self) -> None:
        """A life from the beginning."""
        self.life += 1
        rng = self.rng
        self.arrivals = sorted(self.rows, key=lambda r: r[0] + rng.randint(0, self.disorder))
        self.seen: list[Row] = []
        self.put_out: set[tuple[int, str]] = set()
        self.number, self.newest, self.ended = 0, -(10**6), False
        owner = Owner(f"{self.life:04d}{rng.getrandbits(64):016x}", "home", "q", "results")
        self.out = OutputFolder(self.place, owner, self.stream, compact=rng.random() < 0.5)
        self.out.claim()

    def wipe(self) -> None:
        """All that it wrote is gone, and it begins again."""
        shutil.rmtree(self.place.path)
        self.begin()

    def write(self, rows: int) -> None:
        """One micro-batch."""
        arrived, self.arrivals = self.arrivals[:rows], self.arrivals[rows:]
        self.seen += arrived
        self.newest = max([self.newest, *(t for t, _, _ in arrived)])
        bound = self.newest - self.disorder
        if not self.arrivals and self.rng.random() < 0.5:
            bound, self.ended = END_OF_TIME, True
        shown: list[Row] = arrived
        frontier = bound
        if self.windowed:
            ready = {w: n for w, n in window_counts(self.seen).items() if w[0] <= bound and w not in self.put_out}
            self.put_out |= set(ready)
            noise = 1e-12 if self.stream is MEASURED else 0
            shown = [(end, k, n + noise * self.rng.randrange(9)) for (end, k), n in ready.items()]
            frontier = bound if self.ended else bound // SLIDE * SLIDE + SLIDE
        files = ()
        if shown:
            table = pa.table({n: pa.array(c) for n, c in zip("tkv", zip(*shown, strict=True), strict=True)})
            files = self.out.named(self.number, [self.out.staging.write([table])])  # type: ignore[assignment]
        self.out.publish(self.number, files, frontier, 0.0)
        self.number += 1


def expected(rows: list[Row], windowed: bool) -> Counter[Row]:
    return Counter((end, k, n) for (end, k), n in window_counts(rows).items()) if windowed else Counter(rows)


def found(place: Place) -> Counter[Row]:
    tables = [pq.read_table(f"{place.path}/{n}") for n in place.files() if n.endswith(".parquet")]
    return Counter((r["t"], r["k"], round(r["v"], 6)) for t in tables for r in t.to_pylist())


class Merger:
    """A merge that is killed and started again."""

    def __init__(self, base: Place, replicas: list[Pipeline], driver: str) -> None:
        self.base, self.driver = base, driver
        self.folders = [r.place.path for r in replicas]
        self.left = 10**9
        self.merge: FolderMerge | None = None
        self.patch = pytest.MonkeyPatch()
        for name in ("write", "put", "move", "delete"):
            original = getattr(Place, name)

            def step(place: Place, *arguments: Any, original: Any = original) -> Any:
                self.left -= 1
                if self.left < 0:
                    raise Killed
                return original(place, *arguments)

            self.patch.setattr(Place, name, step)

    def step(self, steps: int = 10**9) -> None:
        """One round, or its beginning."""
        self.left = steps
        try:
            if self.merge is None:
                self.merge = merge_outputs(
                    self.folders, f"{self.base.path}/out", f"{self.base.path}/m", driver=self.driver
                )
            self.merge.step()
        except Killed:
            self.kill()
        self.left = 10**9

    def kill(self) -> None:
        """Nothing of it is left but its files."""
        self.left = 10**9
        (self.base / "m" / "lease.json").delete()
        self.merge = None


def play(seed: int, base: Place) -> None:
    rng = random.Random(seed)
    windowed = rng.random() < 0.5
    times = sorted(rng.randrange(200) for _ in range(rng.choice([5, 30, 60])))
    rows = [(t, rng.choice("ab"), rng.randrange(2)) for t in times]
    measured = rng.random() < 0.4
    replicas = [
        Pipeline(base / name, rows, rng, windowed, rng.choice([0, 5, 40]), measured=measured)
        for name in "abc"[: rng.choice([2, 2, 3])]
    ]
    driver = rng.choice(["leading", "leading", "majority", replicas[0].place.path])
    patch = pytest.MonkeyPatch()
    patch.setattr(folder_log, "LOOSE", rng.choice([2, 4, 32]))
    patch.setattr(folder_log, "FAN", 2)
    patch.setattr(folder_log, "HISTORY", rng.choice([0, 3, 1000]))
    merger = Merger(base, replicas, driver)
    wanted = expected(rows, windowed)
    wipes = 2
    try:
        for _ in range(1000):
            if all(r.ended for r in replicas):
                break
            action = rng.random()
            replica = rng.choice(replicas)
            if action < 0.6:
                if not replica.ended:
                    replica.write(rng.choice([0, 1, 3, 10]))
            elif action < 0.65 and wipes:
                wipes -= 1
                replica.wipe()
            elif action < 0.7:
                merger.kill()
            else:
                merger.step(rng.choice([1, 2, 3, 5, 8, 12, 10**9, 10**9]))
                extra = found(base / "out") - wanted if (base / "out").exists() else Counter()
                assert not extra, f"{extra} is too much"
        for _ in range(40):
            merger.step()
        assert merger.merge is not None
        assert merger.merge.ended
        assert merger.merge.progress["aside"] == 0, "there is nothing to contradict"
    finally:
        merger.patch.undo()
        patch.undo()
        merger.kill()
    assert found(base / "out") == wanted


@given(st.integers(0, 10**9))
def test_every_row_once_whatever_happens(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    base = tmp_path_factory.mktemp("x")
    play(seed, place_of(base))
    shutil.rmtree(base)


@pytest.fixture(autouse=True)
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing gives signs of life after its test."""
    monkeypatch.setattr(Lease, "keep", lambda *_: None)


def pipeline(place: Path, rows: list[Row], windowed: bool = False, disorder: int = 10) -> Pipeline:
    return Pipeline(place_of(place), rows, random.Random(1), windowed, disorder)


def merged(tmp_path: Path, *names: str, **options: Any) -> FolderMerge:
    return merge_outputs([str(tmp_path / n) for n in names], str(tmp_path / "out"), str(tmp_path / "m"), **options)


def test_rows_above_the_bound_of_their_micro_batch_are_not_skipped(tmp_path: Path) -> None:
    """A passes 1-95, then 96-105, and its bound is 95; B, behind, writes 1-100 with a bound of 90, then the rest."""
    rows = [(t, "k", 0) for t in range(1, 151)]
    a, b = pipeline(tmp_path / "a", rows), pipeline(tmp_path / "b", rows)
    for each in (a, b):
        each.arrivals = list(rows)
    a.write(95)
    a.write(10)
    merge = merged(tmp_path, "a", "b")
    merge.take_all()
    b.write(100)
    merge.take_all()
    b.write(50)
    while not b.ended:
        b.write(0)
    merge.take_all()
    assert merge.ended
    assert found(place_of(tmp_path / "out")) == Counter(rows)


def test_what_lies_wholly_before_the_output_is_not_read(tmp_path: Path) -> None:
    rows = [(t, "k", 0) for t in range(100)]
    a, b = pipeline(tmp_path / "a", rows, disorder=0), pipeline(tmp_path / "b", rows, disorder=0)
    a.write(90)
    merge = merged(tmp_path, "a", "b")
    merge.take_all()
    for _ in range(9):
        b.write(10)
    merge.take_all()
    assert (merge.progress["read"], merge.progress["skipped"]) == (100, 80)
    assert merge.progress["bound"] == "89"


def test_a_replica_that_is_not_there_is_waited_for_and_its_rows_count_when_it_comes(tmp_path: Path) -> None:
    rows = [(t, "k", 0) for t in range(20)]
    merge = merged(tmp_path, "a", "b")
    assert not merge.step()
    assert merge.status() == [f"{tmp_path / 'a'}: not there yet", f"{tmp_path / 'b'}: not there yet"]
    b = pipeline(tmp_path / "b", rows)
    b.write(15)
    assert merge.step()
    assert merge.status() == [f"{tmp_path / 'a'}: not there yet", f"{tmp_path / 'b'}: read"]
    a = pipeline(tmp_path / "a", rows)
    while not a.ended:
        a.write(20)
    merge.run(lambda: False)
    assert found(place_of(tmp_path / "out")) == Counter(rows)


def test_none_at_all_is_told_where_one_does_not_wait(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="None of these is the output folder"):
        merged(tmp_path, "a", "b").take_all()


@pytest.mark.parametrize("damage", ["a file is gone", "a file is cut", "the log is garbage", "half a folder"])
def test_a_damaged_replica_is_told_and_the_other_goes_on(damage: str, tmp_path: Path) -> None:
    rows = [(t, "k", 0) for t in range(40)]
    a, b = pipeline(tmp_path / "a", rows), pipeline(tmp_path / "b", rows)
    a.write(20)
    b.write(10)
    (file,) = (p for p in (tmp_path / "b").glob("*.parquet") if "empty" not in p.name)
    log = tmp_path / "b" / "_penstock" / "log" / "000000000000.json"
    target = log if damage == "the log is garbage" else file
    saved = target.read_bytes()
    match damage:
        case "a file is gone":
            target.unlink()
        case "half a folder":
            shutil.rmtree(tmp_path / "b" / "_penstock" / "log")
            (tmp_path / "b" / "_penstock" / "owner.json").write_text("")
        case _:
            target.write_bytes(saved[:20])
    merge = merged(tmp_path, "a", "b")
    merge.take_all()
    assert [r.state for r in merge.replicas] == ["read", "damaged"]
    assert [str(r.place) for r in merge.unreadable] == [str(tmp_path / "b")]
    assert "damaged (" in merge.status()[1]
    while not a.ended:
        a.write(20)
    merge.run(lambda: False)
    assert found(place_of(tmp_path / "out")) == Counter(rows)


def test_a_replica_that_was_mended_is_read_again(tmp_path: Path) -> None:
    rows = [(t, "k", 0) for t in range(40)]
    a, b = pipeline(tmp_path / "a", rows), pipeline(tmp_path / "b", rows)
    a.write(5)
    b.write(30)
    (file,) = (p for p in (tmp_path / "b").glob("*.parquet") if "empty" not in p.name)
    os.rename(file, tmp_path / "aside")
    merge = merged(tmp_path, "a", "b")
    merge.take_all()
    assert merge.replicas[1].state == "damaged"
    os.rename(tmp_path / "aside", file)
    merge.take_all()
    assert (merge.replicas[1].state, merge.replicas[1].failures) == ("read", 1)
    assert not merge.unreadable
    assert merge.progress["bound"] == str(max(t for t, _, _ in b.seen) - 10)


def test_a_replica_of_other_columns_is_refused_and_told(tmp_path: Path) -> None:
    rows = [(t, "k", 0) for t in range(20)]
    a = pipeline(tmp_path / "a", rows)
    other = describe(schema_of([("t", "bigint"), ("v", "string")], "t"))
    OutputFolder(place_of(tmp_path / "b"), Owner("run", "home", "q", "results"), other).claim()
    while not a.ended:
        a.write(20)
    merge = merged(tmp_path, "a", "b")
    merge.take_all()
    assert merge.replicas[1].state == "has other columns"
    assert "`t` bigint, `v` string; the merge has `t` bigint, `k` string, `v` bigint" in merge.status()[1]
    assert found(place_of(tmp_path / "out")) == Counter(rows)


def test_a_replica_that_was_wiped_begins_again(tmp_path: Path) -> None:
    rows = [(t, "k", 0) for t in range(40)]
    a, b = pipeline(tmp_path / "a", rows), pipeline(tmp_path / "b", rows)
    a.write(30)
    b.write(10)
    merge = merged(tmp_path, "a", "b")
    merge.take_all()
    a.wipe()
    merge.take_all()
    while not a.ended:
        a.write(7)
    merge.take_all()
    assert merge.progress["restarts"] == 1
    assert "began again 1 times" in merge.status()[0]
    assert found(place_of(tmp_path / "out")) == Counter(rows)


def test_a_second_merge_is_refused_and_an_old_output_belongs_to_the_old_one(tmp_path: Path) -> None:
    pipeline(tmp_path / "a", [(1, "k", 0)]).write(1)
    pipeline(tmp_path / "b", [(1, "k", 0)]).write(1)
    merge = merged(tmp_path, "a", "b")
    merge.take_all()
    with pytest.raises(LeaseError, match="Another driver is running here"):
        merged(tmp_path, "a", "b")
    merge.close()
    with pytest.raises(StorageError, match="belongs to another run") as error:
        merge_outputs([str(tmp_path / "a"), str(tmp_path / "b")], str(tmp_path / "out"), str(tmp_path / "new"))
    assert "results of a merge" in error.value.got
    merged(tmp_path, "b", "a").close()


def test_replicas_are_added_and_left_out_between_two_starts(tmp_path: Path) -> None:
    rows = [(t, "k", 0) for t in range(40)]
    a, b, c = (pipeline(tmp_path / n, rows) for n in "abc")
    a.write(30)
    b.write(5)
    first = merged(tmp_path, "a", "b")
    first.take_all()
    first.close()
    while not c.ended:
        c.write(6)
    second = merged(tmp_path, "b", "c")
    second.take_all()
    assert second.ended
    assert found(place_of(tmp_path / "out")) == Counter(rows)


def test_a_merge_that_was_begun_otherwise_is_told(tmp_path: Path) -> None:
    pipeline(tmp_path / "a", [(1, "k", 0)]).write(1)
    merged(tmp_path, "a", "b").close()
    with pytest.raises(CheckpointError, match="begun otherwise") as error:
        merged(tmp_path, "a", "b", driver="majority")
    assert error.value.got == "driver majority, key as it is"
    with pytest.raises(CheckpointError, match="begun otherwise"):
        merged(tmp_path, "a", "b", key=["k"])


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["a"], {}, "at least two folders"),
        (["a", "a"], {}, "given twice"),
        (["a", "b"], {"driver": "majorty"}, "no such driver"),
        (["a", "b"], {"key": ["nope"]}, "unknown column"),
    ],
)
def test_what_cannot_be_merged_is_told(names: list[str], options: Any, message: str, tmp_path: Path) -> None:
    pipeline(tmp_path / "a", [(1, "k", 0)])
    with pytest.raises(MergeError, match=message):
        merged(tmp_path, *names, **options)


def test_a_step_that_fails_is_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Row] = [(t, "k", t) for t in range(20)]
    places = [place_of(tmp_path / n) for n in ("a", "b")]
    for place in places:
        pipeline = Pipeline(place, rows, random.Random(1), windowed=False, disorder=0)
        while not pipeline.ended:
            pipeline.write(7)
    merge = FolderMerge([str(p) for p in places], str(tmp_path / "into"), str(tmp_path / "path"))
    write = Staging.write

    def full(*_: object) -> None:
        raise StorageError("It was not possible to write a file.", got="No space left on device")

    monkeypatch.setattr(Staging, "write", full)
    with pytest.raises(StorageError, match="not possible to write"):
        merge.step()
    monkeypatch.setattr(Staging, "write", write)
    while merge.step():
        pass
    merge.close()
    assert found(place_of(tmp_path / "into")) == expected(rows, windowed=False)
