"""A run's records and folders, killed between any two steps: rows once, totals right, folders as they were left."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import StorageError
from penstock.storage.files import Place, place_of
from penstock.storage.folders import OutputFolder, Owner
from penstock.storage.home import open_home
from penstock.storage.log import RecordLog
from penstock.storage.reader import FolderReader
from penstock.storage.run_log import RunLog
from tests.profiles import examples
from tests.storage.conftest import Places
from tests.storage.killing import FOREVER, Killed, mortal
from tests.storage.test_folders import STREAM, seen, table


def opened(home: Place, out: Place | None, late: Place | None) -> RunLog:
    """A run that goes on; an output without a folder goes to a function."""
    held = open_home(home)
    folders = {
        name: OutputFolder(place, Owner(held.run, str(home), "q", name), STREAM, compact=True)
        for name, place in (("results", out), ("late", late))
        if place is not None
    }
    for folder in folders.values():
        folder.claim()
    log = RunLog(held, folders)
    log.repair()
    return log


def commit(log: RunLog, batch: int, rows: list[int], late: list[int], frontier: int | None) -> None:
    """One micro-batch, as a host does it: a replay finds its record."""
    last = log.last()
    if last is not None and last.batch == batch:
        return
    given = {"results": rows, "late": late}
    staged = {n: [log.folders[n].staging.write([table(r)])] for n, r in given.items() if r and n in log.folders}
    log.commit(batch, staged, frontier=frontier, counts={"read": len(rows) + len(late)}, positions=batch)


def test_records_carry_totals_the_frontier_and_greatest_starts(places: Places) -> None:
    log = opened(places("home"), places("out"), places("late"))
    commit(log, 0, [5, 9], [1], 4)
    commit(log, 1, [], [], None)
    commit(log, 2, [7], [], 6)
    last = RecordLog(places("home") / "log").last()
    assert last is not None
    assert (last.number, last.totals, last.counts, last.frontier) == (2, {"read": 4}, {"read": 1}, 6)
    assert (last.greatest, last.positions) == ({"": 9}, 2)
    assert last.state["shown"] == {"results": 2, "late": 0}


def killed_before_it_was_seen(log: RunLog, batch: int, rows: list[int], late: list[int]) -> None:
    """The driver dies between the record and its publication."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunLog, "publish", lambda *_: None)
        commit(log, batch, rows, late, batch)
    log.home.lease.release()


@pytest.mark.parametrize("then", ["next", None])
@pytest.mark.parametrize("before", [0, 1])
def test_what_is_promised_is_seen_where_it_was_promised(then: str | None, before: int, places: Places) -> None:
    log = opened(places("home"), places("out"), places("late"))
    for batch in range(before):
        commit(log, batch, [batch], [batch], batch)
    killed_before_it_was_seen(log, before, [7], [8])
    outputs = (places(then), places(f"{then}-late")) if then else (None, None)
    opened(places("home"), *outputs).home.lease.release()
    commit(opened(places("home"), *outputs), before + 1, [9], [10], 9)  # to have started once more does no harm
    assert (seen(places("out")), seen(places("late"))) == ([*range(before), 7], [*range(before), 8])
    reader = FolderReader(places("out"))
    assert [t for p in reader.after(None).portions for t in reader.rows(p)["t"].to_pylist()] == [*range(before), 7]
    if then:
        assert (seen(places(then)), seen(places(f"{then}-late"))) == ([9], [10])


@pytest.mark.parametrize("between", ["next", None])
def test_outputs_come_back_to_a_folder_of_earlier(between: str | None, places: Places) -> None:
    homes = [places("out"), places(between) if between else None] * 2
    lates = [places("late"), places("late-2") if between else None] * 2
    for batch, (out, late) in enumerate(zip(homes, lates, strict=True)):
        log = opened(places("home"), out, late)
        killed_before_it_was_seen(log, 2 * batch, [2 * batch], [2 * batch])
        log = opened(places("home"), out, late)
        commit(log, 2 * batch + 1, [2 * batch + 1], [], 2 * batch + 1)
        log.home.lease.release()
    opened(places("home"), places("out"), places("late")).home.lease.release()
    assert (seen(places("out")), seen(places("late"))) == ([0, 1, 4, 5], [0, 4])
    if between:
        assert (seen(places(between)), seen(places("late-2"))) == ([2, 3, 6, 7], [2, 6])


def test_a_new_folder_that_has_been_told_nothing_yet_goes_on(places: Places) -> None:
    log = opened(places("home"), places("out"), places("late"))
    commit(log, 0, [1], [], 1)
    log.home.lease.release()
    for batch in (1, 2):
        log = opened(places("home"), places("next"), places("late"))
        commit(log, batch, [], [], None)
        log.home.lease.release()
    commit(opened(places("home"), places("next"), places("late")), 3, [2], [], 2)
    assert seen(places("next")) == [2]


def test_a_folder_of_earlier_that_is_not_as_it_was_left_is_told(tmp_path: Path) -> None:
    home, out, late = (place_of(tmp_path / n) for n in ("home", "out", "late"))
    for batch, into in enumerate((out, out, place_of(tmp_path / "next"))):
        if batch == 1:
            shutil.copytree(tmp_path / "out", tmp_path / "copy")
        log = opened(home, into, late)
        commit(log, batch, [batch], [], batch)
        log.home.lease.release()
    shutil.rmtree(tmp_path / "out")
    shutil.move(tmp_path / "copy", tmp_path / "out")
    with pytest.raises(StorageError, match="not as the query left it") as error:
        opened(home, out, late)
    assert error.value.got == "it has micro-batches up to 0, the log of the query has micro-batches up to 1"


@pytest.mark.parametrize("then", ["next", None])
def test_a_folder_that_is_gone_with_what_was_promised_is_told(then: str | None, tmp_path: Path) -> None:
    home, out, late = (place_of(tmp_path / n) for n in ("home", "out", "late"))
    killed_before_it_was_seen(opened(home, out, late), 0, [1, 2], [])
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(StorageError, match="The folder is gone in which the last micro-batch was to be seen") as error:
        opened(home, place_of(tmp_path / then) if then else None, late)
    assert (error.value.where, error.value.got) == (str(out), "2 rows of results in micro-batch 0")
    assert "put it back" in error.value.hint


def test_a_copy_of_a_home_lets_the_folders_of_the_first_alone(tmp_path: Path) -> None:
    home, out, late = (place_of(tmp_path / n) for n in ("home", "out", "late"))
    log = opened(home, out, late)
    commit(log, 0, [1], [2], 1)
    shutil.copytree(tmp_path / "home", tmp_path / "copy")
    (place_of(tmp_path / "copy") / "lease.json").delete()
    working = log.folders["results"].staging.write([table([3])])
    copy = opened(place_of(tmp_path / "copy"), place_of(tmp_path / "next"), place_of(tmp_path / "late 2"))
    commit(copy, 1, [9], [], 9)
    log.commit(1, {"results": [working]}, frontier=3, counts={})
    assert (seen(out), seen(place_of(tmp_path / "next"))) == ([1, 3], [9])


def test_a_folder_is_moved_with_what_was_pending(tmp_path: Path) -> None:
    home, out, late = (place_of(tmp_path / n) for n in ("home", "out", "late"))
    log = opened(home, out, late)
    commit(log, 0, [1], [], 1)
    killed_before_it_was_seen(log, 1, [2], [3])
    shutil.move(tmp_path / "out", tmp_path / "moved")
    log = opened(home, place_of(tmp_path / "moved"), late)
    commit(log, 2, [4], [], 4)
    assert (seen(place_of(tmp_path / "moved")), seen(late)) == ([1, 2, 4], [3])


def test_a_folder_that_was_moved_goes_on(tmp_path: Path) -> None:
    home, out, late = (place_of(tmp_path / n) for n in ("home", "out", "late"))
    log = opened(home, out, late)
    commit(log, 0, [1], [], 1)
    log.home.lease.release()
    shutil.move(tmp_path / "out", tmp_path / "moved")
    commit(opened(home, place_of(tmp_path / "moved"), late), 1, [2], [], 2)
    assert seen(place_of(tmp_path / "moved")) == [1, 2]


@pytest.mark.parametrize("batches", [1, 4])
def test_a_folder_that_was_emptied_is_told(batches: int, tmp_path: Path) -> None:
    home, out, late = (place_of(tmp_path / n) for n in ("home", "out", "late"))
    log = opened(home, out, late)
    for batch in range(batches):
        commit(log, batch, [batch], [], None)
    log.home.lease.release()
    shutil.rmtree(tmp_path / "out")
    if batches == 1:  # only the one record, which may not have been published: its file is missing
        with pytest.raises(StorageError, match="A file that a record names is gone"):
            opened(home, out, late)
    else:
        with pytest.raises(StorageError, match="not as the query left it") as error:
            opened(home, out, late)
        assert error.value.got == "it has nothing, the log of the query has micro-batches up to 3"


@examples(30)
@given(st.integers(0, 10**6))
def test_killed_between_any_two_steps(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = random.Random(seed)
    base = place_of(tmp_path_factory.mktemp("x"))
    home, outs, lates = base / "home", [base / "out", base / "out 2", None], [base / "late", base / "late 2"]
    wander = rng.random() < 0.5  # outputs go elsewhere at every start
    out, late = outs[0], lates[0]
    called: dict[int, list[int]] = {}  # by a function as a sink: the rows of each micro-batch
    batches = [([b * 10 + i for i in range(rng.choice([0, 1, 2]))], [b] * rng.choice([0, 0, 1])) for b in range(12)]
    log: RunLog | None = None
    batch = 0
    with mortal() as life:
        while batch < len(batches):
            life.left = rng.choice([1, 2, 3, 5, 8, 13, FOREVER])
            try:
                if log is None:
                    if wander:
                        out, late = rng.choice(outs), rng.choice(lates)
                    log = opened(home, out, late)
                last = log.last()
                if out is None and (last is None or last.batch != batch):
                    called[batch] = batches[batch][0]
                life.left = rng.choice([1, 2, 3, 5, 8, 13, FOREVER, FOREVER])
                commit(log, batch, *batches[batch], frontier=batch)
                batch += rng.random() < 0.9  # otherwise the host dies before it has noted that it is done
                if rng.random() < 0.2:
                    raise Killed
            except Killed:
                life.left = FOREVER
                (home / "lease.json").delete()
                log = None
    (home / "lease.json").delete()
    opened(home, outs[0], lates[0])
    begun = [p for p in (*outs, *lates) if p is not None and any(n.endswith(".parquet") for n in p.files())]
    kept = [t for place in begun if place in outs for t in seen(place)]
    # A function is called again if its micro-batch was not recorded, and by then a folder may have taken its place.
    assert len(kept) == len(set(kept))
    assert {*kept, *(t for rows in called.values() for t in rows)} == {t for rows, _ in batches for t in rows}
    assert called or sorted(kept) == sorted(t for rows, _ in batches for t in rows)
    kept_late = [t for place in begun if place in lates for t in seen(place)]
    assert Counter(kept_late) == Counter(t for _, rows in batches for t in rows)
    last = RecordLog(home / "log").last()
    assert last is not None
    assert last.totals["read"] == sum(len(r) + len(t) for r, t in batches)


def test_a_home_that_lost_its_records_does_not_write_into_what_they_told(places: Places) -> None:
    log = opened(places("home"), places("out"), places("late"))
    for number in range(3):
        commit(log, number, [number], [], None)
    log.home.lease.release()
    folder = log.home.place / "log"
    folder.fs.delete_dir(folder.path)
    with pytest.raises(StorageError, match="not as the query left it"):
        opened(places("home"), places("out"), places("late"))


def test_rows_that_are_no_longer_kept_do_not_keep_a_query_from_starting(places: Places) -> None:
    now = 0.0

    def started() -> RunLog:
        held = open_home(places("home"))
        owner = Owner(held.run, str(held.place), "q", "late")
        late = OutputFolder(places("late"), owner, STREAM, keep=3600.0, clock=lambda: now)
        late.claim()
        log = RunLog(held, {"late": late}, clock=lambda: now)
        log.repair()
        return log

    log = started()
    commit(log, 0, [], [7], None)
    log.home.lease.release()
    now = 2 * 3600.0
    for _ in range(2):
        log = started()
        log.home.lease.release()
    assert log.next_number == 1
