"""The home of a query: names that stay in it, an identity of its own, one driver."""

from __future__ import annotations

import pickle

import pytest

from penstock.errors import LeaseError, StorageError, StreamError
from penstock.storage.home import checked_name, open_home
from penstock.storage.log import Record
from tests.storage.conftest import Places


@pytest.mark.parametrize(
    "name", ["../x", "..", "", "/etc", "a/b", "a\\b", "_x", ".x", "x.", "x ", "a..b", "x\n", "q" * 201]
)
def test_a_name_cannot_leave_its_path(name: str) -> None:
    with pytest.raises(StreamError, match="usable as a folder's") as error:
        checked_name(name)
    assert error.value.got == repr(name)


@pytest.mark.parametrize("name", ["talkers", "Q1-1", "query 7", "v1.2", "größte"])
def test_ordinary_names(name: str) -> None:
    assert checked_name(name) == name


def test_an_identity_is_given_once(places: Places) -> None:
    home = open_home(places("home"))
    home.put(Record(home.run, 0, 0))
    home.lease.release()
    assert open_home(places("home")).run == home.run
    assert open_home(places("other")).run != home.run


def test_who_has_lost_the_home_puts_no_record(places: Places) -> None:
    home = open_home(places("home"))
    home.lease.file.delete()
    other = open_home(places("home"))
    with pytest.raises(LeaseError, match="has taken over"):
        home.put(Record(home.run, 0, 0))
    other.put(Record(home.run, 0, 0))


def test_a_damaged_identity_is_told(places: Places) -> None:
    (places("home") / "run.json").write(b"[]")
    with pytest.raises(StorageError, match="damaged"):
        open_home(places("home"))


def test_an_identity_that_is_gone_is_told_with_what_it_was(places: Places) -> None:
    home = open_home(places("home"))
    home.put(Record(home.run, 0, 0))
    home.lease.release()
    (places("home") / "run.json").delete()
    with pytest.raises(
        StorageError, match=r"has lost its identity\.\n.*where: .*run.json\n.*no run.json, beside log"
    ) as told:
        open_home(places("home"))
    assert not (places("home") / "run.json").exists()
    (places("home") / "run.json").write(f'{{"run": "{home.run}"}}'.encode())
    assert f'write {{"run": "{home.run}"}} into it' in told.value.hint
    assert open_home(places("home")).run == home.run


def test_a_home_whose_log_is_gone_too_says_what_is_left(places: Places) -> None:
    (places("home") / "checkpoint" / "metadata").write(b"{}")
    with pytest.raises(StorageError, match=r"no run\.json, beside checkpoint of a run") as told:
        open_home(places("home"))
    assert told.value.hint.startswith("restore it from a copy, or start over")


def test_a_home_travels_to_where_its_records_are_put(places: Places) -> None:
    home = open_home(places("home"))
    copy = pickle.loads(pickle.dumps(home))
    copy.put(Record(home.run, 0, 0))
    assert home.log.last() == Record(home.run, 0, 0)
    home.lease.release()
    with pytest.raises(LeaseError, match="has taken over"):
        copy.put(Record(home.run, 1, 1))
