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
from penstock.storage.run_log import RunLog
from tests.profiles import examples
from tests.storage.conftest import Places
from tests.storage.killing import FOREVER, Killed, mortal
from tests.storage.test_folders import STREAM, seen, table


def opened(home: Place, out: Place, late: Place) -> RunLog:
    held = open_home(home)
    folders = {
        name: OutputFolder(place, Owner(held.run, str(home), "q", name), STREAM, compact=True)
        for name, place in (("results", out), ("late", late))
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
    staged = {n: [log.folders[n].staging.write([table(r)])] for n, r in given.items() if r}
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


def test_results_go_to_another_folder_with_what_was_pending_where_it_belongs(tmp_path: Path) -> None:
    home, out, late = (place_of(tmp_path / n) for n in ("home", "out", "late"))
    log = opened(home, out, late)
    commit(log, 0, [1], [], 1)
    patch = pytest.MonkeyPatch()
    patch.setattr(RunLog, "publish", lambda *_: None)
    commit(log, 1, [2], [], 2)
    patch.undo()
    log.home.lease.release()
    log = opened(home, place_of(tmp_path / "next"), late)
    commit(log, 2, [3], [], 3)
    assert (seen(out), seen(place_of(tmp_path / "next"))) == ([1, 2], [3])


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
    home, out, late = base / "home", base / "out", base / "late"
    batches = [([b * 10 + i for i in range(rng.choice([0, 1, 2]))], [b] * rng.choice([0, 0, 1])) for b in range(12)]
    log: RunLog | None = None
    batch = 0
    with mortal() as life:
        while batch < len(batches):
            life.left = rng.choice([1, 2, 3, 5, 8, 13, FOREVER])
            try:
                if log is None:
                    log = opened(home, out, late)
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
    opened(home, out, late)
    assert seen(out) == sorted(t for rows, _ in batches for t in rows)
    assert Counter(seen(late)) == Counter(t for _, rows in batches for t in rows)
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
