"""Snapshots that a flow's run keeps while it goes on, so that it can be killed at any point.

A snapshot is of one moment: the state of the graph, where its sources are, and where its sinks are. It is taken by the
run's own thread between two items, when all that came of the first has been handed to the sinks: once before anything
is read, then whenever so much time has passed and something has come, and at the end. So of everything that a sink with
positions holds behind the newest snapshot it is known that it comes again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, cast

from penstock.engines.local.opening import Given, Item, Opener
from penstock.errors import PenstockError, StreamError
from penstock.flow.destinations import Destination
from penstock.io.elements import LocalSource
from penstock.model.time import Domain, length_ticks
from penstock.runtime.kept_positions import sinks_in
from penstock.runtime.positions import Counted, ResumableItems
from penstock.storage.files import place_of
from penstock.storage.kept_snapshots import KeptSnapshots


class Keeping:
    """Where the snapshots of a run are kept, and how often."""

    def __init__(self, folder: str | os.PathLike[str], every: Any) -> None:
        """`every` is a length of time."""
        if not isinstance(folder, str | os.PathLike):
            raise StreamError(
                "Snapshots are kept in a folder.", got=repr(folder)[:200], hint="snapshots='kept/talkers'"
            )
        self.every = _length(every)
        self.folder = KeptSnapshots(place_of(folder))
        self.begun_from = None
        """The snapshot that the run went on from, if there was one."""
        self._last: int | None = None
        self._taken: object = None
        try:
            self.begun_from = self.folder.newest()
        except BaseException:
            self.folder.release()
            raise

    def resume(self, sinks: Mapping[str, Destination]) -> None:
        """Put sinks back to where they were when the snapshot was taken, or let them begin."""
        known = {} if self.begun_from is None else sinks_in(self.begun_from)
        for name, sink in sinks.items():
            sink.resume(known.get(name))

    def is_due(self, now: int, taken: object) -> bool:
        """Whether it is time for the next one, and `taken`, what has come, is other than with the last one."""
        if self._last is None:
            return True
        return taken != self._taken and not 0 <= now - self._last < self.every

    def keep(self, snapshot: bytes, now: int, taken: object) -> None:
        """Keep a snapshot of what has come by now."""
        self.folder.keep(snapshot)
        self._last, self._taken = now, taken


def positions_of(sinks: Mapping[str, Destination]) -> dict[str, Any]:
    """Where sinks are, of those that know."""
    found = {name: sink.position() for name, sink in sinks.items()}
    return {name: position for name, position in found.items() if position is not None}


def kept_opener(name: str, source: LocalSource) -> Opener:
    """How a stream is opened whose position is kept; one whose source cannot be gone on with is refused."""
    if source.is_resumable:
        return source.open
    if source.is_polled or source.ahead is not None:
        raise StreamError(
            "A stream cannot be gone on with from a snapshot.",
            where=f"stream {name}",
            got="a source without position() and seek(position)",
            hint="give the source both, read from pk.kafka or pk.redis, or leave out snapshots=",
        )
    return partial(_counted, source.open)


def _counted(opener: Opener) -> Iterator[Given]:
    """A list, a frame or files: they give the same items again."""
    counted = Counted(cast(Callable[[], Iterator[Item]], opener))
    return ResumableItems(counted, lambda: iter(counted), lambda item: (item,))


def _length(every: Any) -> int:
    try:
        return length_ticks(every, Domain.TIMESTAMP)
    except PenstockError as error:
        raise StreamError(
            "How often snapshots are kept is a length of time.",
            got=f"every={every!r}"[:200],
            hint="every='1 second', a timedelta, or 0 for after every item",
        ) from error
