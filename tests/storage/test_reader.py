"""Readers of an output folder: wiped, damaged, absent, compacted while they read."""

from __future__ import annotations

import pytest

from penstock.errors import StorageError
from penstock.storage import folder_log
from penstock.storage.reader import FolderReader, Position
from tests.storage.conftest import Places
from tests.storage.test_folders import folder, read, write


def test_a_folder_that_is_not_there_has_nothing(places: Places) -> None:
    reader = FolderReader(places("none"))
    assert (reader.stream(), reader.run()) == (None, None)
    assert reader.after(None).run is None
    assert reader.after(Position("x", 3)).portions == ()


def test_a_folder_written_anew_is_read_from_its_start_and_says_so(places: Places) -> None:
    out = folder(places("out"), run="first00000")
    out.claim()
    for number in range(5):
        write(out, number, [number])
    reader = FolderReader(out.place)
    rows, position, _ = read(reader, None)
    assert rows == [0, 1, 2, 3, 4]
    out.place.fs.delete_dir(out.place.path)
    assert reader.after(position).portions == ()
    again = folder(out.place, run="second0000")
    again.claim()
    write(again, 0, [7])
    assert read(reader, position) == ([7], Position("second0000", 0), True)


def test_a_log_that_went_back_is_read_from_its_start(places: Places) -> None:
    out = folder(places("out"))
    out.claim()
    for number in range(3):
        write(out, number, [number])
    assert read(FolderReader(out.place), Position("0123456789", 9)) == ([0, 1, 2], Position("0123456789", 2), True)


def test_who_is_too_far_behind_starts_over(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_log, "LOOSE", 4)
    monkeypatch.setattr(folder_log, "FAN", 2)
    monkeypatch.setattr(folder_log, "HISTORY", 0)
    out = folder(places("out"), compact=True)
    out.claim()
    for number in range(12):
        write(out, number, [number])
    reader = FolderReader(out.place)
    assert read(reader, Position("0123456789", 1)) == (list(range(12)), Position("0123456789", 11), True)
    assert read(reader, Position("0123456789", 7)) == ([8, 9, 10, 11], Position("0123456789", 11), False)


def test_rows_that_are_written_together_while_they_are_read_are_found(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_log, "LOOSE", 6)
    out = folder(places("out"), compact=True)
    out.claim()
    for number in range(5):
        write(out, number, [10 * number, 10 * number + 1])
    reader = FolderReader(out.place)
    portions = reader.after(None).portions
    write(out, 5, [50])
    assert [reader.rows(p)["t"].to_pylist() for p in portions] == [[10 * n, 10 * n + 1] for n in range(5)]


@pytest.mark.parametrize("damage", ["deleted", "truncated", "another"])
def test_a_damaged_file_is_told(damage: str, places: Places) -> None:
    out = folder(places("out"))
    out.claim()
    write(out, 0, [1, 2])
    write(out, 1, [3])
    file = out.place / out.final_name(0, 0)
    match damage:
        case "deleted":
            file.delete()
        case "truncated":
            file.write(file.read()[:100])
        case _:
            file.write((out.place / out.final_name(1, 0)).read())
    reader = FolderReader(out.place)
    first, second = reader.after(None).portions
    with pytest.raises(StorageError, match="Rows that an output folder names cannot be read") as error:
        reader.rows(first)
    assert error.value.where == str(out.place)
    assert reader.rows(second)["t"].to_pylist() == [3]


@pytest.mark.parametrize("name", ["owner.json", "stream.json", "log/000000000000.json"])
@pytest.mark.parametrize("text", ["", "{}", '{"odd": 1}'])
def test_damaged_descriptions_are_told(name: str, text: str, places: Places) -> None:
    out = folder(places("out"))
    out.claim()
    write(out, 0, [1])
    (out.place / "_penstock" / name).write(text.encode())
    reader = FolderReader(out.place)
    with pytest.raises(StorageError, match="damaged"):
        (reader.stream() if name == "stream.json" else reader.after(None))
