"""Reading an output folder as a stream: what its log names, in order, each micro-batch once.

A position is the run that wrote and the number of the last micro-batch that was read. A folder that was wiped and
written anew has another run: it is read from its beginning, and that is said (`restarted`), since to whoever reads it
the input begins again. The same holds if the position is no longer in the log.

A folder that is not there, or not yet, has nothing to read. A damaged one raises `StorageError`, and can be read again
when it has been mended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from penstock.errors import StorageError
from penstock.storage.files import Place
from penstock.storage.folder_log import Entry, FolderLog
from penstock.storage.folders import META, OutputStream, owner_of, read_file

BEGINNING = -1


@dataclass(frozen=True)
class Position:
    """What has been read: everything of a run up to a number."""

    run: str
    number: int = BEGINNING


@dataclass(frozen=True)
class Portion:
    """An entry, without the rows that were read before."""

    run: str
    entry: Entry
    skip: int = 0

    @property
    def position(self) -> Position:
        """The position after it."""
        return Position(self.run, self.entry.last)


@dataclass(frozen=True)
class Found:
    """What there is to read."""

    run: str | None
    """None: the folder is not there, or nobody has begun to write it."""
    portions: tuple[Portion, ...] = ()
    restarted: bool = False
    """Whether the input begins again: nothing that was read of it before binds it."""


class FolderReader:
    """Reads one output folder."""

    def __init__(self, place: Place) -> None:
        """The folder need not be there yet."""
        self.place = place

    def stream(self) -> OutputStream | None:
        """What the folder tells of its rows; None if it does not yet."""
        file = self.place / META / "stream.json"
        try:
            found = file.read_json()
            key = None if found["key"] is None else tuple(found["key"])
            return OutputStream(tuple((n, t) for n, t in found["columns"]), found["time"], key)
        except FileNotFoundError:
            return None
        except (KeyError, TypeError, ValueError) as error:
            raise StorageError(
                "A file is damaged.", where=str(file), got=repr(error), hint="restore it from a copy"
            ) from error

    def run(self) -> str | None:
        """The run that writes the folder."""
        owner = owner_of(self.place)
        return None if owner is None else owner.run

    def after(self, position: Position | None) -> Found:
        """What came after a position; from the beginning without one."""
        run = self.run()
        if run is None:
            return Found(None)
        log = FolderLog(self.place / META / "log", run)
        if position is None:
            return Found(run, _whole(run, log.entries()))
        if position.run == run:
            last = log.last
            found = log.entries(position.number)
            portions = _from(run, found, position.number)
            lost = (BEGINNING if last is None else last) < position.number
            if portions is not None and not lost:
                return Found(run, portions)
        return Found(run, _whole(run, log.entries()), restarted=True)

    def rows(self, portion: Portion) -> pa.Table:
        """The rows of a portion, in the order in which they were written."""
        arrow = self._arrow()
        entry, skip, take = portion.entry, portion.skip, portion.entry.rows - portion.skip
        for _ in range(3):
            try:
                tables = list(self._tables(entry, arrow))
            except (FileNotFoundError, pa.ArrowException, OSError) as error:
                moved = self._again(portion)
                if moved is None or moved[0] == entry:
                    raise StorageError(
                        "Rows that an output folder names cannot be read.",
                        where=str(self.place),
                        got=f"{type(error).__name__}: {str(error).splitlines()[0]}",
                        hint="was the folder emptied, or is its query being started over?",
                    ) from error
                entry, skip = moved  # the files were written together in the meantime
                continue
            return pa.concat_tables([*tables, arrow.empty_table()]).slice(skip, take)
        raise StorageError("An output folder changes too fast to be read.", where=str(self.place), hint="try again")

    def _arrow(self) -> pa.Schema:
        stream = self.stream()
        if stream is None:
            raise StorageError(
                "An output folder is gone.", where=str(self.place), hint="is its query being started over?"
            )
        return stream.schema.arrow

    def _tables(self, entry: Entry, arrow: pa.Schema) -> Iterator[pa.Table]:
        for file in entry.files:
            table = read_file(self.place, file).select(arrow.names).cast(arrow)
            if table.num_rows != file.rows:
                raise pa.ArrowInvalid(f"{file.name} has {table.num_rows} rows, the log says {file.rows}")
            yield table

    def _again(self, portion: Portion) -> tuple[Entry, int] | None:
        """Where the log has the same rows now, if a compaction has moved them: the entry, and how many rows precede."""
        run = self.run()
        if run != portion.run:
            return None
        first, last = portion.entry.first, portion.entry.last
        for entry in FolderLog(self.place / META / "log", run).entries(first - 1):
            if not (entry.first <= first and last <= entry.last):
                continue
            if (entry.first, entry.last) == (first, last):
                return entry, portion.skip
            numbers = [number for number, _, _ in entry.parts]
            if last in numbers and (first == entry.first or any(entry.first <= n < first for n in numbers)):
                return entry, portion.skip + sum(rows for number, rows, _ in entry.parts if number < first)
        return None


def _whole(run: str, entries: list[Entry]) -> tuple[Portion, ...]:
    return tuple(Portion(run, e) for e in entries)


def _from(run: str, entries: list[Entry], number: int) -> tuple[Portion, ...] | None:
    """What follows a number; None if that is in the middle of something of which only the whole is known."""
    portions = []
    for entry in entries:
        if number < entry.first:
            portions.append(Portion(run, entry))
            continue
        if number not in [n for n, _, _ in entry.parts]:
            return None
        portions.append(Portion(run, entry, sum(rows for n, rows, _ in entry.parts if n <= number)))
    return tuple(portions)
