"""A folder is listed while its log is folded: the listing shows a state that never was, and no reader is misled by it.

A file system reads the names and looks at each file in turn. What is folded in between is missing in its old form, and
what it was folded into may not be among the names:

```
names read     0 1 2 3
               folded into 0-3, then 4 is put
looked at      . . . .      neither 0-3 nor 4: nothing is there
```
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import StorageError
from penstock.storage import folder_log
from penstock.storage.files import Place, place_of
from penstock.storage.folder_log import FolderLog
from penstock.storage.folders import META, OutputFolder
from penstock.storage.reader import FolderReader, Position
from tests.storage.test_folders import folder, read, write

WRITTEN = 60


class Writer:
    """Writes micro-batches, some of them while somebody else lists the folder."""

    def __init__(self, out: OutputFolder, rng: random.Random) -> None:
        self.out, self.rng, self.number = out, rng, 0
        self.rows: Counter[int] = Counter()
        self.busy = False

    def step(self) -> None:
        if self.number < WRITTEN:
            rows = [self.number * 10 + i for i in range(self.rng.choice([0, 1, 3]))]
            write(self.out, self.number, rows, self.number)
            self.rows.update(rows)
            self.number += self.rng.choice([1, 1, 2])  # a folder is not told of every micro-batch

    def torn(self, names: Iterator[list[str]]) -> list[str]:
        """What was there at the beginning and still is at the end, with some of what came in between."""
        if self.busy or self.rng.random() < 0.5:
            return next(names)
        self.busy = True
        before = set(next(names))
        for _ in range(self.rng.choice([1, 1, 2, 5])):
            self.step()
        after = set(next(names))
        self.busy = False
        return sorted((before & after) | {name for name in after - before if self.rng.random() < 0.3})


@given(st.integers(0, 10**6), st.booleans())
def test_a_reader_has_every_row_once_and_in_order(tmp_path_factory: object, seed: int, compact: bool) -> None:
    rng = random.Random(seed)
    place = place_of(tmp_path_factory.mktemp("x"))  # type: ignore[attr-defined]
    patch = pytest.MonkeyPatch()
    patch.setattr(folder_log, "LOOSE", 3)
    patch.setattr(folder_log, "FAN", 2)
    writer = Writer(folder(place, compact=compact), rng)
    writer.out.claim()
    listed = Place.files

    def files(self: Place) -> list[str]:
        return writer.torn(listed(self) for _ in range(2)) if self.name == "log" else listed(self)

    reader, position, found = FolderReader(place), None, list[int]()
    try:
        patch.setattr(Place, "files", files)
        while writer.number < WRITTEN:
            writer.busy = True
            writer.step()
            writer.busy = False
            rows, position, restarted = read(reader, position)
            assert not restarted
            found += rows
    finally:
        patch.undo()
    rows, position, restarted = read(reader, position)
    assert not restarted
    assert found + rows == sorted(writer.rows.elements())


def test_a_log_that_lacks_an_entry_is_told(tmp_path: object) -> None:
    place = place_of(str(tmp_path))
    out = folder(place)
    out.claim()
    for number in range(4):
        write(out, number, [number], number)
    (place / META / "log" / "000000000002.json").delete()
    with pytest.raises(StorageError, match="An entry is missing in the log of an output folder") as error:
        FolderReader(place).after(None)
    assert error.value.got == "an entry follows 2, which is not there; the last one before it is 1"
    assert [p.last for p in FolderReader(place).after(Position("0123456789", 2)).portions] == [3]


def test_entries_of_an_earlier_release_do_not_say_what_is_before_them(tmp_path: object) -> None:
    place = place_of(str(tmp_path))
    out = folder(place)
    out.claim()
    for number in (0, 3):
        write(out, number, [number], number)
        file = place / META / "log" / f"{number:012d}.json"
        value = file.read_json()
        assert value["entry"].pop("before") == (-1 if number == 0 else 0)
        file.write_json(value)
    assert [e.before for e in FolderLog(place / META / "log", "0123456789").entries()] == [None, None]
    assert read(FolderReader(place), None)[0] == [0, 3]
