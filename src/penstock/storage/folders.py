"""An output folder: immutable parquet files in its root, and beside them, in `_penstock`, who owns it and its log.

```
out/
  part-<run>-<number>-<i>.parquet   rows of micro-batch `number`, and one file without rows, there from the first moment
  _penstock/
    owner.json    which run of which query writes here; there is only one
    stream.json   columns, time and key
    log/          which files belong to the folder, in which order
    staging/      files that no record names yet
```

A file is written to staging, then a record names it, then it is moved to its final name, which follows from the record:
so plain readers of the root see a row once or, for a moment, not yet, and never twice; a reader of the log sees exactly
what was recorded. After a crash the moves of the last record are done again and what nobody names is removed.

An owner is a run: the identity that a query's home was given when it was first used. A folder with another owner, with
rows but without an owner, or that is not where its owner's records left it, is refused.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.errors import StorageError
from penstock.model.schema import Field, Schema, parse_type
from penstock.storage.files import Place
from penstock.storage.folder_log import Entry, FolderLog
from penstock.storage.log import DataFile

META = "_penstock"
COMPACT_ROWS = 1_000_000
"""Compaction writes files of at most about so many rows."""
SAMPLE = 4096
"""By so many rows it is told whether the values of a column repeat."""


@dataclass(frozen=True)
class Owner:
    """Who writes to a folder."""

    run: str
    home: str
    query: str
    output: str

    def __str__(self) -> str:
        """For messages."""
        return f"{self.output} of {self.query}, run {self.run[:8]}, from {self.home}"


@dataclass(frozen=True)
class OutputStream:
    """What a folder tells of its rows."""

    columns: tuple[tuple[str, str], ...]
    time: str | None = None
    key: tuple[str, ...] | None = None

    @property
    def schema(self) -> Schema:
        """The columns as a schema."""
        return Schema(tuple(Field(n, parse_type(t)) for n, t in self.columns), self.time)

    @property
    def ddl(self) -> str:
        """The columns for people and for Spark."""
        return ", ".join(f"`{n}` {t}" for n, t in self.columns)


def describe(schema: Schema, key: Iterable[str] | None = None) -> OutputStream:
    """What a folder of such rows tells; rows that do not show their time have none."""
    names = [f.name for f in schema.visible]
    kept = None if key is None else tuple(sorted(key))
    return OutputStream(
        tuple((f.name, str(f.type)) for f in schema.visible),
        schema.time if schema.time in names else None,
        kept if kept is not None and set(kept) <= set(names) else None,
    )


@dataclass(frozen=True)
class Staging:
    """Writes files of rows that do not count until a record names them; small enough to be sent to workers."""

    folder: Place
    stream: OutputStream

    def write(self, tables: Iterable[pa.Table]) -> DataFile:
        """Write one file."""
        schema = self.stream.schema
        file = self.folder / uuid.uuid4().hex
        rows, starts = 0, []
        file.folder.make_folder()
        given = iter(tables)
        first = list(islice(given, 1))
        with (
            file.told("write"),
            file.fs.open_output_stream(file.path) as sink,
            pq.ParquetWriter(sink, schema.arrow, use_dictionary=_repeating(first)) as writer,
        ):
            for table in chain(first, given):
                rows += table.num_rows
                writer.write_table(table.cast(schema.arrow))
                if self.stream.time is not None and table.num_rows:
                    starts.append(pc.min_max(ticks_of(table.column(self.stream.time))).as_py())
            writer.close()
            size = sink.tell()
        least = min((s["min"] for s in starts if s["min"] is not None), default=None)
        greatest = max((s["max"] for s in starts if s["max"] is not None), default=None)
        return DataFile("", rows, least, greatest, file.name, size)


def _repeating(tables: Sequence[pa.Table]) -> bool | list[str]:
    """The columns that a dictionary makes smaller, by a sample; for others it would be made and thrown away."""
    if not tables or any(pa.types.is_nested(field.type) for field in tables[0].schema):  # which go by paths
        return True
    sample = tables[0].slice(0, SAMPLE)
    return [name for name in sample.column_names if 2 * len(pc.unique(sample[name])) <= sample.num_rows]


def ticks_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of times as ticks."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz))
    return column.cast(pa.int64())


class OutputFolder:
    """A folder that this process writes to; its driver holds the lease of the owner's home."""

    def __init__(
        self,
        place: Place,
        owner: Owner,
        stream: OutputStream,
        *,
        compact: bool = False,
        keep: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`compact`: write small files together when the log is folded; `keep`: forget rows after so many seconds."""
        self.place, self.owner, self.stream, self.keep, self.clock = place, owner, stream, keep, clock
        self.staging = Staging(place / META / "staging", stream)
        self.log = FolderLog(place / META / "log", owner.run)
        self.compaction = Together(self) if compact else None

    # Owning

    def claim(self) -> None:
        """Make the folder this run's own, or raise and say whose it is."""
        if not (self.place / META / "owner.json").exists():
            rows = [n for n in self.place.files() if n.endswith(".parquet")]
            rows += [f"{n}/" for n in self.place.folders() if n.startswith("batch=")]
            if rows:
                raise StorageError(
                    "There are rows in this folder that no running query owns.",
                    where=str(self.place),
                    got=f"{rows[0]} and {len(rows) - 1} more" if len(rows) > 1 else rows[0],
                    hint="give the query a folder of its own, or move these files away",
                )
        if not (self.place / META / "owner.json").put_json(asdict(self.owner)):
            found = owner_of(self.place)
            assert found is not None
            if (found.run, found.output) != (self.owner.run, self.owner.output):
                raise StorageError(
                    "This folder belongs to another run.",
                    where=str(self.place),
                    got=str(found),
                    hint="give this query a folder of its own; if the rows in it are no longer needed, delete it",
                )
        (self.place / META / "stream.json").put_json(asdict(self.stream))
        first = self.place / f"part-{self.owner.run[:8]}-empty.parquet"
        if not first.exists():
            sink = pa.BufferOutputStream()
            pq.write_table(self.stream.schema.arrow.empty_table(), sink)
            first.put(sink.getvalue().to_pybytes())

    # Writing

    def final_name(self, number: int, index: int) -> str:
        """The name of a file of a micro-batch."""
        return f"part-{self.owner.run[:8]}-{number:012d}-{index}.parquet"

    def named(self, number: int, staged: Sequence[DataFile]) -> tuple[DataFile, ...]:
        """Staged files with their final names."""
        return tuple(replace(f, name=self.final_name(number, i)) for i, f in enumerate(staged))

    def publish(self, number: int, files: Sequence[DataFile], frontier: int | None, at: float) -> None:
        """Move the files of a record to their names, then tell readers; doing it again does no harm."""
        if number > self.log.written:
            self.move(files)
            bare = tuple(replace(f, staged="") for f in files)
            self.log.put(Entry(number, number, bare, frontier, at))
        if self.log.fold(self.compaction, widen=self.keep is None):
            for name in self.staging.folder.files():  # of tasks that failed; all that counts has been moved
                (self.staging.folder / name).delete()
        if self.keep is not None:
            self.forget(self.clock() - self.keep)

    def move(self, files: Iterable[DataFile]) -> None:
        """Give staged files their names."""
        for file in files:
            staged, final = self.staging.folder / file.staged, self.place / file.name
            try:
                staged.move(final)
            except FileNotFoundError:
                if not final.exists():
                    raise StorageError(
                        "A file that a record names is gone.",
                        where=str(final),
                        got=f"neither there nor in {self.staging.folder}",
                        hint="restore the folder from a copy, or start the query over, with a new path and folder",
                    ) from None

    # Putting in order

    def check(self, *shown: int | None) -> None:
        """Whether the folder is where the log of its run left it: one of these is the last number it was told."""
        last = self.log.last
        if last not in shown:
            told, expected = ("nothing" if n is None else f"micro-batches up to {n}" for n in (last, shown[0]))
            raise StorageError(
                "The folder is not as the query left it.",
                where=str(self.place),
                got=f"it has {told}, the log of the query has {expected}",
                hint="it was emptied, or one of the two was restored from a copy; restore the other as well, or start "
                f"over: delete this folder and {self.owner.home}",
            )

    def tidy(self, number: int = -1, pending: Sequence[DataFile] = ()) -> list[DataFile]:
        """Remove what no record names: files of tasks that failed, of a driver that was killed, of compactions.

        `number` and `pending` are of the last record, which may not have been published. What the log names is given
        back: that is what should be there now.
        """
        pending = pending if number > self.log.written else ()
        files = [f for e in self.log.entries() for f in e.files]
        named, staged = {f.name for f in (*files, *pending)}, {f.staged for f in (*files, *pending)}
        waiting = self.staging.folder.files()
        for name in waiting:
            if name not in staged:
                (self.staging.folder / name).delete()
        for name in self.place.files():
            if name.startswith(f"part-{self.owner.run[:8]}-") and name not in named and "-empty" not in name:
                (self.place / name).delete()
        self.move([f for f in files if f.staged in waiting])
        return files

    def delete(self, files: Iterable[DataFile]) -> None:
        """Delete files of rows."""
        for file in files:
            (self.place / file.name).delete()

    def is_forgotten(self, at: float) -> bool:
        """Whether rows of that time are no longer kept."""
        return self.keep is not None and at < self.clock() - self.keep

    def forget(self, before: float) -> int:
        """Delete the rows of micro-batches that are older than a time; how many rows."""
        gone = self.log.drop(before)
        self.delete(f for e in gone for f in e.files)
        return sum(e.rows for e in gone)


class Together:
    """Compaction: the rows of neighbouring entries in one file, in order."""

    def __init__(self, folder: OutputFolder) -> None:
        """`folder` is the one whose files are written together."""
        self.folder = folder
        self._old: list[DataFile] = []
        self._new: list[DataFile] = []

    def rewrite(self, entries: Sequence[Entry]) -> list[Entry]:
        """One entry for each group of neighbours that are small enough."""
        self._old, self._new = [], []
        return [self._entry(group) if len(group) > 1 else group[0] for group in _groups(entries)]

    def _entry(self, group: Sequence[Entry]) -> Entry:
        files = [f for e in group for f in e.files]
        if len(files) > 1:
            written = self.folder.staging.write(read_file(self.folder.place, f) for f in files)
            first, last = group[0].first, group[-1].last
            name = f"part-{self.folder.owner.run[:8]}-{first:012d}-{last:012d}.parquet"
            self._old += files
            files = [replace(written, name=name)]
            self._new += files
        parts = tuple(p for e in group for p in (e.parts or ((e.last, e.rows, e.frontier),)))
        frontier = next((e.frontier for e in reversed(group) if e.frontier is not None), None)
        return Entry(group[0].first, group[-1].last, tuple(files), frontier, group[-1].at, parts, group[0].before)

    def settle(self) -> None:
        """The old files go before the new ones come: a listing in between misses rows, and none sees a row twice."""
        self.folder.delete(self._old)
        self.folder.move(self._new)


def _groups(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Neighbours that together are not too large."""
    held: list[Entry] = []
    for entry in entries:
        if held and sum(e.rows for e in held) + entry.rows > COMPACT_ROWS:
            yield held
            held = []
        held.append(entry)
    if held:
        yield held


def read_file(place: Place, file: DataFile) -> pa.Table:
    """The rows of a file, under its final name or, just before it has got it, where it is staged."""
    final, staged = place / file.name, place / META / "staging" / file.staged
    for each in (final, staged, final) if file.staged else (final,):  # it may be moved between the first two looks
        with contextlib.suppress(FileNotFoundError):
            return pq.read_table(each.path, filesystem=place.fs, partitioning=None)
    raise FileNotFoundError(final.path)


def owner_of(place: Place) -> Owner | None:
    """Whose folder it is; None if it is nobody's."""
    file = place / META / "owner.json"
    try:
        return Owner(**file.read_json())
    except FileNotFoundError:
        return None
    except TypeError as error:
        raise StorageError(
            "A file is damaged.", where=str(file), got=str(error), hint="restore it from a copy"
        ) from error
