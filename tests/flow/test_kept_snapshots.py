"""Snapshots that a run keeps while it goes on: whatever stops it, its files hold every result once."""

from __future__ import annotations

import csv
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local import hosting
from penstock.errors import CheckpointError, PenstockError, SourceError, StorageError, StorageWarning, StreamError
from penstock.storage.files import place_of
from penstock.storage.kept_snapshots import KeptSnapshots
from tests.flow.test_positions import COLUMNS, TOTAL, Numbered, by_hand, rows, told
from tests.profiles import examples

ITEMS = rows(60)


class Breaking(Numbered):
    """Fails when it comes to an item, and was well until then."""

    def __init__(self, items: list[Any], breaks: int | None) -> None:
        super().__init__(items)
        self.breaks = breaks

    def poll(self) -> Any:
        if self.at == self.breaks:
            raise OSError("the network is gone")
        return super().poll()


def run_once(home: Path, source: Any, every: Any = 0, sink: str = "out.jsonl", **options: Any) -> Any:
    """Started with the same words each time, as a supervisor does."""
    flow = pk.Flow().stream("s", source, time="t", schema=COLUMNS)
    query = flow.query(TOTAL, name="total")
    return flow.start({query: home / sink}, snapshots=home / "kept", every=every, **options)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@examples(6)
@given(st.lists(st.integers(0, 60), max_size=3), st.integers(4, 40))
def test_each_result_is_in_the_file_once(
    tmp_path_factory: pytest.TempPathFactory, breaks: list[int], seconds: int
) -> None:
    """By a clock that goes on by a second whenever it is asked."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hosting, "wall_clock", (n * 1_000_000 for n in itertools.count()).__next__)
        for at in sorted(breaks):
            run = run_once(home, Breaking(ITEMS, at), f"{seconds} seconds")
            with pytest.raises(SourceError, match="source of a stream failed"):
                run.wait()
            assert not (home / "out.jsonl").exists()
        run_once(home, Breaking(ITEMS, None), f"{seconds} seconds").wait()
    assert told(lines(home / "out.jsonl")) == by_hand(ITEMS)


def test_late_rows_and_dead_letters_are_once_in_their_files_too(tmp_path: Path) -> None:
    given_rows = [{"t": t, "k": 0, "v": 1} for t in (1, 12, 3, 25, 4, 26)]
    given_rows.insert(3, {"t": None, "k": 7, "v": 7})  # type: ignore[dict-item]
    sides = {"late": tmp_path / "late.csv", "dead_letters": tmp_path / "dead.jsonl"}
    for breaks in (5, 6, None):
        run = run_once(tmp_path, Breaking(given_rows, breaks), "1 hour" if breaks == 6 else 0, **sides)
        if breaks is None:
            run.wait()
        else:
            with pytest.raises(SourceError):
                run.wait()
    with (tmp_path / "late.csv").open() as file:
        found = list(csv.DictReader(file))
    assert [json.loads(row["row"])["t"] for row in found] == [3, 4]
    assert [json.loads(row["row"])["k"] for row in lines(tmp_path / "dead.jsonl")] == [7]


def test_a_run_that_was_stopped_goes_on_and_one_that_is_over_stays_as_it_is(tmp_path: Path) -> None:
    for until in (13, 14, 41):
        with run_once(tmp_path, Numbered(ITEMS, until), "1 hour", "out.csv") as run:
            run.process_available()
    whole = []
    for _ in range(2):
        run_once(tmp_path, Numbered(ITEMS), "1 hour", "out.csv").wait()
        whole.append((tmp_path / "out.csv").read_text())
    assert whole[0] == whole[1]
    found = [{k: int(v) for k, v in row.items()} for row in csv.DictReader(whole[0].splitlines())]
    assert told(found) == by_hand(ITEMS)
    assert not (tmp_path / "out.csv.partial").exists()


def test_several_streams_at_rest_go_on_by_what_was_taken_of_them(tmp_path: Path) -> None:
    """A list comes again from its beginning, and is passed over as far as it was taken."""
    union = TOTAL.replace("FROM s", "FROM s UNION z")
    for breaks in (7, 31, None):
        flow = pk.Flow().stream("s", Breaking(ITEMS, breaks), time="t", schema=COLUMNS).stream("z", ITEMS, time="t")
        run = flow.start({flow.query(union, name="u"): tmp_path / "out.jsonl"}, snapshots=tmp_path / "kept", every=0)
        if breaks is None:
            run.wait()
        else:
            with pytest.raises(SourceError):
                run.wait()
    assert told(lines(tmp_path / "out.jsonl")) == by_hand(ITEMS + ITEMS)


def test_a_function_is_given_again_what_came_after_the_snapshot(tmp_path: Path) -> None:
    found: list[Any] = []
    for breaks in (35, None):
        flow = pk.Flow().stream("s", Breaking(ITEMS, breaks), time="t", schema=COLUMNS)
        query = flow.query(TOTAL, name="total")
        run = flow.start({query: found}, snapshots=tmp_path, every="1 hour")
        with pytest.raises(SourceError) if breaks else pytest.MonkeyPatch.context():
            run.wait()
    again = by_hand([row for row in ITEMS if row["t"] < 30])
    assert told(found) == by_hand(ITEMS) + again


def test_a_query_that_fails_fails_the_run_that_keeps_snapshots(tmp_path: Path) -> None:
    def refuse(table: Any) -> None:
        raise OSError("full")

    for sink in (refuse, tmp_path / "other.jsonl"):
        flow = pk.Flow().stream("s", Numbered(ITEMS), time="t", schema=COLUMNS)
        queries = {flow.query(TOTAL, name="total"): tmp_path / "out.jsonl", flow.query(TOTAL, name="other"): sink}
        run = flow.start(queries, snapshots=tmp_path / "kept", every=0, max_held=3)
        with pytest.raises(PenstockError, match="sink of the results failed") if sink is refuse else run:
            run.wait()
    for name in ("out", "other"):
        assert told(lines(tmp_path / f"{name}.jsonl")) == by_hand(ITEMS)


def test_two_snapshots_are_kept_and_the_older_one_serves_when_the_newest_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        run_once(tmp_path, Breaking(ITEMS, 35)).wait()
    kept = sorted((tmp_path / "kept").glob("snapshot-*"))
    assert len(kept) == 2
    kept[1].write_bytes(kept[1].read_bytes()[:-1])
    with pytest.warns(StorageWarning, match="the one before it is taken"):
        run = run_once(tmp_path, Numbered(ITEMS))
    run.wait()
    assert told(lines(tmp_path / "out.jsonl")) == by_hand(ITEMS)
    for file in (tmp_path / "kept").glob("snapshot-*"):
        file.write_bytes(b"")
    with pytest.raises(CheckpointError, match="No snapshot in the folder can be opened"):
        run_once(tmp_path, Numbered(ITEMS))
    with pytest.raises(CheckpointError, match="No snapshot in the folder can be opened"):
        run_once(tmp_path, Numbered(ITEMS))  # and nobody holds it


def test_a_file_that_was_cut_short_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        run_once(tmp_path, Breaking(ITEMS, 35)).wait()
    part = tmp_path / "out.jsonl.partial"
    part.write_bytes(part.read_bytes()[:10])
    with pytest.raises(CheckpointError, match="shorter than it was when the snapshot was taken") as found:
        run_once(tmp_path, Numbered(ITEMS))
    assert found.value.got.startswith("10 bytes of ")


def test_a_folder_has_one_run(tmp_path: Path) -> None:
    with (
        run_once(tmp_path, Numbered(ITEMS, 20)),
        pytest.raises(StorageError, match="A folder of snapshots is being written by another run") as refused,
    ):
        run_once(tmp_path, Numbered(ITEMS), sink="other.jsonl")
    assert (refused.value.where, refused.value.got) == (str(tmp_path / "kept"), "another run of this process")
    assert "give each run a folder of its own" in refused.value.hint


def test_a_folder_whose_lock_is_taken_away_fails_the_run(tmp_path: Path) -> None:
    source = Numbered(ITEMS, 20)
    run = run_once(tmp_path, source, every=0)
    run.process_available()
    (tmp_path / "kept" / ".lock").unlink()
    source.until = 60
    with pytest.raises(StorageError, match="The lock of a folder of snapshots was taken away") as told:
        run.wait()
    assert told.value.where == str(tmp_path / "kept" / ".lock")


def test_a_folder_that_cannot_be_written_fails_the_run(tmp_path: Path) -> None:
    source = Numbered(ITEMS, 20)
    run = run_once(tmp_path, source, every=0)
    run.process_available()
    run._keeping.folder.place = place_of(tmp_path / "gone")  # as if it had been unmounted
    source.until = 60
    with pytest.raises(StorageError, match="A snapshot cannot be kept"):
        run.wait()


def test_what_cannot_be_gone_on_with_is_refused(tmp_path: Path) -> None:
    def endless() -> Any:
        yield from ITEMS

    with pytest.raises(StreamError, match="A stream cannot be gone on with from a snapshot"):
        run_once(tmp_path, endless())
    with pytest.raises(SourceError, match="This file cannot be gone on with"):
        run_once(tmp_path, Numbered(ITEMS), sink="out.parquet")
    with pytest.raises(StreamError, match="How often snapshots are kept is a length of time"):
        run_once(tmp_path, Numbered(ITEMS), every="often")
    with pytest.raises(StreamError, match="from a snapshot that is given, or from the last in a folder"):
        run_once(tmp_path, Numbered(ITEMS), snapshot=b"")
    run_once(tmp_path, Numbered(ITEMS)).wait()  # nothing of it is held


def test_snapshots_of_other_queries_are_told(tmp_path: Path) -> None:
    run_once(tmp_path, Numbered(ITEMS)).wait()
    flow = pk.Flow().stream("s", Numbered(ITEMS), time="t", schema=COLUMNS)
    with pytest.raises(CheckpointError, match="The snapshot is of other queries"):
        flow.start({flow.query(TOTAL, name="else"): tmp_path / "else.jsonl"}, snapshots=tmp_path / "kept")


def test_a_query_that_was_changed_is_told_by_what_was_changed(tmp_path: Path) -> None:
    run_once(tmp_path, Numbered(ITEMS)).wait()
    flow = pk.Flow().stream("s", Numbered(ITEMS), time="t", schema=COLUMNS)
    query = flow.query(TOTAL.replace("sum(v)", "max(v)"), name="total")
    with pytest.raises(CheckpointError, match="The snapshot was made by another query") as refused:
        flow.start({query: tmp_path / "out.jsonl"}, snapshots=tmp_path / "kept", every=0)
    assert "max(v)" in refused.value.got


def test_a_start_that_is_refused_gives_its_files_back(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        run_once(tmp_path, Breaking(ITEMS, 40)).wait()
    (tmp_path / "out.jsonl.partial").unlink()
    for _ in range(2):
        with pytest.raises(CheckpointError, match="shorter than it was"):
            run_once(tmp_path, Numbered(ITEMS))
    for kept in (tmp_path / "kept").iterdir():
        kept.unlink()
    run_once(tmp_path, Numbered(ITEMS)).wait()
    assert told(lines(tmp_path / "out.jsonl")) == by_hand(ITEMS)


def test_nothing_new_is_nothing_kept(tmp_path: Path) -> None:
    source = Numbered(ITEMS, 20)
    with run_once(tmp_path, source) as run:
        run.process_available()
        before = sorted(file.name for file in (tmp_path / "kept").iterdir())
        run.process_available()
        assert sorted(file.name for file in (tmp_path / "kept").iterdir()) == before


def test_a_file_beside_the_snapshots_is_not_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "snapshot-1.txt").write_text("notes")
    (tmp_path / ".snapshot.tmp").write_text("a part of one that was being written")
    kept = KeptSnapshots(place_of(tmp_path))
    assert kept.newest() is None
    kept.release()
    assert Counter(file.name for file in tmp_path.iterdir())["snapshot-1.txt"] == 1


def test_a_run_that_was_finished_goes_on_with_what_comes_later(tmp_path: Path) -> None:
    """The windows were closed up to the last row's: rows from there on are on time, and the file grows."""
    for until in (40, 60):
        run = run_once(tmp_path, Numbered(ITEMS, until), "1 hour", "out.csv")
        run.process_available()
        run.finish()
    with (tmp_path / "out.csv").open() as file:
        found = [{k: int(v) for k, v in row.items()} for row in csv.DictReader(file)]
    assert told(found) == by_hand(ITEMS)


def test_what_waits_in_an_update_queue_is_kept_too(tmp_path: Path) -> None:
    """The last value of every key comes out, whether it waited when the run failed or not."""
    updates = [{"t": t, "k": t % 3, "v": t} for t in range(60)]
    for breaks in (20, 41, None):
        flow = pk.Flow().stream("s", Breaking(updates, breaks), time="t", schema=COLUMNS)
        flow.conflate("latest", "s", key="k")
        query = flow.query("SELECT * FROM latest", name="q")
        run = flow.start({query: tmp_path / "out.jsonl"}, snapshots=tmp_path / "kept", every=0)
        if breaks is None:
            run.wait()
        else:
            with pytest.raises(SourceError):
                run.wait()
    found = lines(tmp_path / "out.jsonl")
    assert {row["k"]: row["v"] for row in found} == {0: 57, 1: 58, 2: 59}
    assert len({row["t"] for row in found}) == len(found)


def test_queries_that_come_and_go_are_in_the_snapshots(tmp_path: Path) -> None:
    """Whoever starts the run again says which there were."""
    flow = pk.Flow().stream("s", Numbered(ITEMS, 30), time="t", schema=COLUMNS)
    first, second = (flow.query(TOTAL, name=name) for name in ("first", "second"))
    run = flow.start({first: tmp_path / "first.jsonl"}, snapshots=tmp_path / "kept", every=0)
    run.process_available()
    run.add(second, tmp_path / "second.jsonl")
    run.remove("first")
    run.stop()
    flow = pk.Flow().stream("s", Numbered(ITEMS), time="t", schema=COLUMNS)
    flow.start({flow.query(TOTAL, name="second"): tmp_path / "second.jsonl"}, snapshots=tmp_path / "kept").wait()
    later = by_hand([row for row in ITEMS if row["t"] >= 30])
    assert told(lines(tmp_path / "second.jsonl")) == later + by_hand([r for r in ITEMS if 20 <= r["t"] < 30])


def test_a_file_that_grows_is_followed_from_where_it_was(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    for first, last in ((0, 25), (25, 41), (41, 60)):
        with log.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in ITEMS[first:last])
        run = run_once(tmp_path, pk.follow(str(log), start="beginning"), "1 hour")
        run.process_available()
        run.stop() if last < 60 else run.finish(for_good=True)
    assert told(lines(tmp_path / "out.jsonl")) == by_hand(ITEMS)
