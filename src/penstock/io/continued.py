"""A file of results that a run goes on with where its last snapshot was, so that each result is in it once.

The position of the file is its length, asked for when everything is on the disk. A run that goes on from a snapshot
cuts the file to the length that it had then: what was written after it comes again, from the sources. Until the run is
over the file is called `….partial`. If it was whole already, because the run was killed between its last act and its
last word, or is started once more, it is copied from its name.

Only text can be gone on with: a Parquet file has its index at its end. And only on a disk: an object cannot be cut.
"""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

from penstock.errors import CheckpointError, SourceError
from penstock.io.sinks import CSVTables, FileSink

COPIED = 1 << 20
"""So many bytes are copied together."""


class ContinuedFile(FileSink):
    """A csv or jsonl file on a disk that can be gone on with."""

    def __init__(self, path: str, schema: pa.Schema | None = None) -> None:
        """The ending says the kind; `resume` says where it begins."""
        super().__init__(path, schema)
        if self.kind == "parquet" or not self.place.is_local:
            self.hold.release()
            raise SourceError(
                "This file cannot be gone on with from a snapshot.",
                where=str(self.place),
                got="a Parquet file" if self.kind == "parquet" else "an object store",
                hint="with snapshots= results go to .jsonl or .csv on a disk, to Redis, to Kafka, or to a function",
            )
        self._kept = 0
        """How long it was when all of it was on the disk."""

    def resume(self, position: Any) -> None:
        """Go on from a position; from None anew."""
        length = 0 if position is None else int(position)
        if length:
            with self._told():
                self._cut_to(length)

    def _cut_to(self, length: int) -> None:
        part = self.partial.path
        if os.path.getsize(part) < length and os.path.exists(self.place.path):
            _copy(self.place.path, part, length)
        if (found := os.path.getsize(part)) < length:
            raise CheckpointError(
                "A file of results is shorter than it was when the snapshot was taken.",
                where=str(self.partial),
                got=f"{found} bytes of {length}",
                hint="restore it from a copy, or start over with another folder of snapshots and another file",
            )
        self.stream = open(part, "r+b")  # noqa: SIM115 - it is open as long as the run
        self.stream.truncate(length)
        self.stream.seek(length)
        self._kept = self._length = length
        if self.kind == "csv":
            self.writer = CSVTables(self.stream)

    def _open(self, schema: pa.Schema) -> None:
        with self._told():
            self.stream = open(self.partial.path, "wb")  # noqa: SIM115 - likewise
            if self.kind == "csv":
                self.writer = CSVTables(self.stream, schema)

    def position(self) -> int:
        """How long the file is; all of it is on the disk."""
        if self.stream is None:
            return 0
        with self._told():
            self.stream.flush()
            if self.stream.tell() != self._kept:
                os.fsync(self.stream.fileno())
                self._kept = self.stream.tell()
        self.hold.check(self._kept)
        return self._kept

    def _written(self) -> int:
        """What waits in this process is not there yet."""
        return self._kept

    def _end(self) -> bool:
        self.position()
        return super()._end()


def _copy(source: str, target: str, length: int) -> None:
    """The beginning of a file into another one that is there."""
    with open(source, "rb") as given, open(target, "r+b") as made:
        while length > 0 and (part := given.read(min(length, COPIED))):
            made.write(part)
            length -= len(part)
