"""Merging output folders, without Spark: replicas that come late, are damaged, mended, wiped, added and left out."""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock.errors import CheckpointError, LeaseError, MergeError, SourceError, StorageError
from penstock.flow.outputs import PATIENCE, FolderMerge, merge_outputs
from penstock.model.schema import schema_of
from penstock.operators.merge.divergence import Divergence
from penstock.storage.files import place_of
from penstock.storage.folders import OutputFolder, Owner, Staging, describe
from penstock.storage.lease import Lease
from tests.flow.played_replicas import Pipeline, Row, expected, found, merged, pipeline


@pytest.fixture(autouse=True)
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing gives signs of life after its test."""
    monkeypatch.setattr(Lease, "keep", lambda *_: None)


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


def test_a_damaged_replica_of_which_nothing_was_looked_at_is_not_called_read(tmp_path: Path) -> None:
    rows = [(t, "k", 0) for t in range(40)]
    a, b = pipeline(tmp_path / "a", rows, disorder=0), pipeline(tmp_path / "b", rows, disorder=0)
    a.write(30)
    b.write(10)
    (file,) = (p for p in (tmp_path / "b").glob("*.parquet") if "empty" not in p.name)
    file.write_bytes(file.read_bytes()[:20])
    merge = merged(tmp_path, "a", "b")
    merge.take_all()
    assert [r.state for r in merge.replicas] == ["read", "not needed"]
    assert merge.status()[1] == f"{tmp_path / 'b'}: not needed"
    while not b.ended:
        b.write(20)
    merge.take_all()
    assert [r.state for r in merge.replicas] == ["read", "read"]


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


def test_a_merge_that_was_begun_with_another_key_is_told(tmp_path: Path) -> None:
    pipeline(tmp_path / "a", [(1, "k", 0)]).write(1)
    merged(tmp_path, "a", "b").close()
    with pytest.raises(CheckpointError, match="begun otherwise") as error:
        merged(tmp_path, "a", "b", key=["k"])
    assert error.value.got == "key k"


def test_a_replica_that_drove_is_left_out_and_another_rule_followed(tmp_path: Path) -> None:
    rows = [(t, "k", 0) for t in range(40)]
    a, b = (pipeline(tmp_path / name, rows, disorder=0) for name in "ab")
    a.write(10)
    b.write(30)
    first = merged(tmp_path, "a", "b", driver=str(tmp_path / "a"))
    first.take_all()
    assert first.progress["bound"] == "9"
    first.close()
    c = pipeline(tmp_path / "c", rows, disorder=0)
    for each in (b, c):
        while not each.ended:
            each.write(7)
    second = merged(tmp_path, "b", "c", driver="majority")
    second.take_all()
    second.close()
    assert second.ended
    assert found(place_of(tmp_path / "out")) == Counter(rows)
    assert merged(tmp_path, "b", "c").ended  # again another rule, after the end


def test_a_replica_that_drives_may_be_left_out_and_come_back(tmp_path: Path) -> None:
    rows = [(t, "k", 0) for t in range(40)]
    a, b, c = (pipeline(tmp_path / name, rows, disorder=0) for name in "abc")
    driver = str(tmp_path / "a")
    for names, bound in ((("a", "b", "c"), "9"), (("b", "c"), "29"), (("b", "c"), "35"), (("a", "b", "c"), "35")):
        if bound == "9":
            a.write(10)
            b.write(30)
        elif bound == "35":
            c.write(36)
        merge = merged(tmp_path, *names, driver=driver)
        merge.take_all()
        assert merge.progress["bound"] == bound
        merge.close()
    with pytest.raises(MergeError, match="no such driver"):
        merged(tmp_path, "b", "c", driver=str(tmp_path / "x"))


def test_a_row_that_all_replicas_have_is_there_whatever_its_values(tmp_path: Path) -> None:
    for number, name in enumerate("abc"):
        each = pipeline(tmp_path / name, [(t, "k", number if t % 5 == 0 else 0) for t in range(40)], disorder=0)
        while not each.ended:
            each.write(7)
    merge = merged(tmp_path, "a", "b", "c", key=["k"], driver="majority")
    merge.take_all()
    merge.close()
    assert found(place_of(tmp_path / "out")) == Counter((t, "k", 0) for t in range(40))
    assert len(aside(merge)) == 8 * 4  # b and c lack the row of a, and have another one


def aside(merge: FolderMerge) -> list[str]:
    assert merge.log is not None
    place = merge.home.place / "dead"
    tables = [pq.ParquetFile(f"{place.path}/{n}").read() for n in place.files() if n.endswith(".parquet")]
    return [str(reason) for table in tables for reason in table["reason"].to_pylist()]


def test_every_divergence_of_a_round_is_put_aside(tmp_path: Path) -> None:
    a = pipeline(tmp_path / "a", [(t, "k", 0) for t in range(2500)])
    b = pipeline(tmp_path / "b", [])
    for each in (a, b):
        while not each.ended:
            each.write(2500)
    merge = merged(tmp_path, "a", "b")
    merge.take_all()
    assert merge.progress["aside"] == len(aside(merge)) == 2500


@pytest.mark.parametrize("third", [False, True])
def test_what_one_replica_need_not_bring_excuses_no_other(tmp_path: Path, third: bool) -> None:
    """A third replica's rows lie wholly before the output and are skipped; the second one is wrong about them."""
    a = pipeline(tmp_path / "a", [(5, "x", 1), (30, "y", 1)], disorder=0)
    b = pipeline(tmp_path / "b", [(5, "x", 2), (30, "y", 1)], disorder=20)
    c = pipeline(tmp_path / "c", [(5, "x", 1), (30, "y", 1)], disorder=0)
    a.write(1)
    a.newest = 20
    a.write(0)
    merge = merged(tmp_path, *("abc" if third else "ab"))
    merge.take_all()
    c.newest = 8
    c.write(1)
    b.write(2)
    merge.take_all()
    for each in (a, b, c):
        while not each.ended:
            each.write(2)
    merge.take_all()
    assert sorted(aside(merge)) == sorted(
        [
            "diverged: " + str(Divergence(b.place.uri, (5, "x", 1), 5, 6, None)),
            "diverged: " + str(Divergence(b.place.uri, (5, "x", 2), 5, None, 6)),
        ]
    )


def test_the_alarm_keeps_as_little_after_it_was_opened_again(tmp_path: Path) -> None:
    a = pipeline(tmp_path / "a", [(t, "k", 0) for t in range(PATIENCE + 1000)])
    pipeline(tmp_path / "b", [])
    a.write(10)
    first = merged(tmp_path, "a", "b")
    first.take_all()
    first.close()
    a.write(PATIENCE + 1000)
    second = merged(tmp_path, "a", "b")
    second.take_all()
    assert second.merge is not None
    assert second.merge.unchecked >= 900


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
