"""The log of a run: the last record is the state, a number is put once, old records go."""

from __future__ import annotations

import json

import pytest

from penstock.errors import LeaseError, StorageError
from penstock.storage.log import DataFile, Record, RecordLog
from tests.storage.conftest import Places


def record(number: int) -> Record:
    return Record(
        "run1",
        number,
        number + 7,
        files={"results": (DataFile(f"part-{number}", 3, 1, 9, "staged"),)},
        frontier=number * 10,
        counts={"read": 3},
        totals={"read": 3 * number + 3},
        trackers={"main": [5, [1, 2]]},
        greatest={"main": 12},
        positions={"main": {"offset": number}},
        at=1.5,
    )


def test_the_last_record_is_the_state_of_a_run(places: Places) -> None:
    log = RecordLog(places("log"))
    assert log.last() is None
    for number in range(3):
        log.put(record(number))
    assert log.last() == record(2)
    assert RecordLog(places("log")).last() == record(2)
    assert log.read(1) == record(1)


def test_a_number_is_put_once(places: Places) -> None:
    RecordLog(places("log")).put(record(0))
    with pytest.raises(LeaseError, match="Another driver has put this record") as error:
        RecordLog(places("log")).put(record(0))
    assert "record 0 of run run1" in error.value.got


def test_old_records_go_and_the_log_stays_small(places: Places) -> None:
    log = RecordLog(places("log"), keep=5)
    for number in range(12):
        log.put(record(number))
    assert log.numbers() == [7, 8, 9, 10, 11]
    again = RecordLog(places("log"), keep=3)
    again.put(record(12))
    assert again.numbers() == [10, 11, 12]


def test_a_record_of_the_release_before_is_read(places: Places) -> None:
    """It knew nothing of promises of groups."""
    log = RecordLog(places("log"))
    log.put(record(4))
    file = places("log") / "000000000004.json"
    old = file.read_json()
    assert (old.pop("format"), old.pop("promises")) == (2, {})
    file.delete()
    file.write(json.dumps({"format": 1, **old}).encode())
    assert RecordLog(places("log")).last() == record(4)


@pytest.mark.parametrize("text", ['{"format": 1}', "[]", '{"format": 1, "files": {"results": [{"odd": 1}]}}'])
def test_a_damaged_record_is_told(text: str, places: Places) -> None:
    (places("log") / "000000000004.json").write(text.encode())
    with pytest.raises(StorageError, match="record of the log is damaged") as error:
        RecordLog(places("log")).last()
    assert error.value.where.endswith("000000000004.json")


def test_a_record_of_another_format_is_told(places: Places) -> None:
    (places("log") / "000000000004.json").write(json.dumps({"format": 99}).encode())
    with pytest.raises(StorageError, match="another format") as error:
        RecordLog(places("log")).last()
    assert error.value.got == "format 99"


def test_a_log_that_is_trimmed_while_it_is_read_is_never_taken_for_an_empty_one(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, reader = RecordLog(places("log"), keep=2), RecordLog(places("log"))
    log.put(record(0))
    listed = reader.numbers
    put = iter(range(1, 100))
    overtaken = [3]

    def numbers() -> list[int]:
        """Records come and go between the listing and the reading, for some time."""
        found = listed()
        if overtaken[0] > 0:
            overtaken[0] -= 1
            for _ in range(2):
                log.put(record(next(put)))
        return found

    monkeypatch.setattr(reader, "numbers", numbers)
    assert reader.last() == record(6)
    overtaken[0] = 1000
    with pytest.raises(StorageError, match="changes too fast to be read") as error:
        reader.last()
    assert error.value.got == "record 24 was gone each time that it was to be read"
