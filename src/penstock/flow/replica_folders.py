"""A replica that is read through its output folder: where it stands, and how it is.

It may not be there yet, be damaged or half-written, have other columns than the others, be wiped and written anew. None
of that stops a merge: such a replica says nothing until it can be read again, and its state is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from penstock.errors import StorageError
from penstock.storage.files import Place
from penstock.storage.folders import OutputStream
from penstock.storage.reader import FolderReader, Portion, Position

WAITING, READING, DAMAGED, REFUSED = "not there yet", "read", "damaged", "has other columns"
NOT_NEEDED = "not needed"
"""All that it has lies before what the output has reached, so none of it was looked at."""
PORTIONS = 64
"""As much of the log as is taken in one round."""


@dataclass(frozen=True)
class Portions:
    """What a replica brings in one round."""

    restarted: bool
    run: str
    portions: tuple[Portion, ...]


class ReplicaFolder:
    """One input folder of a merge."""

    def __init__(self, place: Place, position: Position | None = None) -> None:
        """`position` is what has been merged of it."""
        self.place, self.position = place, position
        self.reader = FolderReader(place)
        self.state, self.detail = WAITING, ""
        self.rows = self.skipped = self.restarts = self.failures = 0

    @property
    def name(self) -> str:
        """What the merge calls it."""
        return self.place.uri

    def __str__(self) -> str:
        """For people."""
        told = f"{self.place}: {self.state}" + (f" ({self.detail})" if self.detail else "")
        return told + (f", began again {self.restarts} times" if self.restarts else "")

    def describe(self) -> OutputStream | None:
        """What it is a stream of, if it can be told."""
        try:
            return self.reader.stream()
        except StorageError as error:
            self.fail(error)
            return None

    def begin_again(self) -> None:
        """Forget what was taken of it; the last record says where it stands."""
        self.position = None
        self.rows = self.skipped = self.restarts = 0

    def poll(self, expected: OutputStream) -> Portions | None:
        """What has come; None if there is nothing, or nothing that can be read."""
        try:
            stream = self.reader.stream()
            if stream is None:
                self._is(WAITING)
                return None
            if (stream.columns, stream.time) != (expected.columns, expected.time):
                self._is(REFUSED, f"{stream.ddl}; the merge has {expected.ddl}")
                return None
            found = self.reader.after(self.position)
        except StorageError as error:
            self.fail(error)
            return None
        if found.run is None:
            self._is(WAITING)
            return None
        if self.state != DAMAGED or not found.portions:
            self._is_read()
        if found.restarted:
            self.restarts += 1
            self.position = Position(found.run)
        if not found.restarted and not found.portions:
            return None
        return Portions(found.restarted, found.run, found.portions[:PORTIONS])

    def tables(self, portions: tuple[Portion, ...], needed_from: int) -> Iterator[tuple[Portion, pa.Table | None]]:
        """The rows of each portion; None of one in which everything starts before what is needed."""
        for portion in portions:
            table = None
            if portion.rows and (portion.greatest is None or portion.greatest >= needed_from):
                try:
                    table = self.reader.rows(portion)
                except StorageError as error:
                    self.fail(error)
                    return
                self.rows += table.num_rows
            else:
                self.skipped += portion.rows
            self._is_read()
            self.position = portion.position
            yield portion, table

    def fail(self, error: StorageError) -> None:
        """It cannot be read now."""
        if self.state != DAMAGED:
            self.failures += 1
        self._is(DAMAGED, f"{error.what} {error.got}".strip())

    def _is_read(self) -> None:
        self._is(NOT_NEEDED if self.skipped and not self.rows else READING)

    def _is(self, state: str, detail: str = "") -> None:
        self.state, self.detail = state, detail
