"""Reading an output folder as a stream: what its log names, in order, each micro-batch once.

A position is the run that wrote, the number of the last micro-batch that was read, and, if whoever reads keeps count,
how many rows of the run precede. A folder that was wiped and written anew has another run: it is read from its
beginning, and that is said (`restarted`), since to whoever reads it the input begins again. The same holds if the
position is no longer in the log. Where micro-batches were written together long ago, the log does not know any more
which rows are of which: there a position is found by its rows, and without them it is not found.

A folder that is not there, or not yet, has nothing to read. A damaged one raises `StorageError`, and can be read again
when it has been mended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

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
    rows: int | None = field(default=None, compare=False)
    """How many rows that is; None if nobody has counted."""

    @property
    def count(self) -> int | None:
        """How many rows precede, if that is known."""
        return 0 if self.number == BEGINNING else self.rows


@dataclass(frozen=True)
class Portion:
    """Micro-batches that lie together in the log, without those that were read before."""

    run: str
    entry: Entry
    after: int
    """The number after which it begins."""
    skip: int
    """Rows that precede it in the entry's files."""
    rows: int
    last: int
    """The number of its last micro-batch."""
    frontier: int | None
    preceding: int | None = None
    """How many rows of the run come before it, if that is known."""

    @property
    def position(self) -> Position:
        """The position after it."""
        return Position(self.run, self.last, None if self.preceding is None else self.preceding + self.rows)

    @property
    def greatest(self) -> int | None:
        """No row of it starts after this, if that is known."""
        return self.entry.greatest


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

    def after(self, position: Position | None, until: Position | None = None) -> Found:
        """What came after a position, from the beginning without one, and up to another if one is given."""
        run = self.run()
        if run is None:
            return Found(None)
        log = FolderLog(self.place / META / "log", run)
        start = Position(run) if position is None else position
        if start.run == run:
            portions = _portions(log.entries(start.number), start, until)
            if portions is None:
                portions = _by_rows(log.entries(), start, until)
            if portions is not None and (portions or start.number == BEGINNING or log.has(start.number)):
                return Found(run, portions)
        return Found(run, _portions(log.entries(), Position(run), None) or (), restarted=True)

    def rows(self, portion: Portion) -> pa.Table:
        """The rows of a portion, in the order in which they were written."""
        arrow = self._arrow()
        entry, skip = portion.entry, portion.skip
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
            return pa.concat_tables([*tables, arrow.empty_table()]).slice(skip, portion.rows)
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
        found = self.after(Position(run, portion.after, portion.preceding), portion.position)
        if found.restarted or len(found.portions) != 1:
            return None
        return found.portions[0].entry, found.portions[0].skip


def _portions(entries: list[Entry], start: Position, until: Position | None) -> tuple[Portion, ...] | None:
    """What follows a position, up to another; None if one is in the middle of what is only known as a whole."""
    portions: list[Portion] = []
    after, count = start.number, start.count
    for entry in entries:
        parts = entry.parts or ((entry.last, entry.rows, entry.frontier),)
        numbers = [n for n, _, _ in parts]
        end = entry.last if until is None else min(until.number, entry.last)
        if (after >= entry.first and after not in numbers) or (end >= entry.first and end not in numbers):
            return None
        wanted = [p for p in parts if after < p[0] <= end]
        if wanted:
            skip, rows = sum(r for n, r, _ in parts if n <= after), sum(p[1] for p in wanted)
            frontier = next((f for _, _, f in reversed(wanted) if f is not None), None)
            begin = portions[-1].last if portions else after
            portions.append(Portion(start.run, entry, begin, skip, rows, wanted[-1][0], frontier, count))
            count = None if count is None else count + rows
    return tuple(portions)


def _by_rows(entries: list[Entry], start: Position, until: Position | None) -> tuple[Portion, ...] | None:
    """The same over all entries, by how many rows precede; None if that is not known, or the oldest were forgotten."""
    first, last = start.count, None if until is None else until.count
    if (
        first is None
        or (until is not None and last is None)
        or (entries and entries[0].before not in (None, BEGINNING))
    ):
        return None
    portions: list[Portion] = []
    count = 0
    for entry in entries:
        begin, count = count, count + entry.rows
        if entry.last <= start.number or (until is not None and entry.first > until.number):
            continue
        is_whole = until is None or entry.last <= until.number
        skip = max(first - begin, 0)
        rows = (count if last is None else min(count, last)) - begin - skip
        end = entry.last if is_whole or until is None else until.number
        # Of a part of what was written together it is not known any more how far it had come; the rest will tell.
        frontier = entry.frontier if is_whole else None
        after = portions[-1].last if portions else start.number
        portions.append(Portion(start.run, entry, after, skip, rows, end, frontier, begin + skip))
    return tuple(portions)
