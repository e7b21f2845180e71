"""A queue of windows and the one who processes its rows, on a clock that is given.

What arrives at a time is in the queue before what is done at that time is taken from it. Processing a row takes `cost`
ticks; a result is there when the last row of its window is processed. Everything that happens is in a log that the
oracle can judge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.operators.queues.marks import OPEN, MarkedRows
from penstock.operators.queues.queue import Key, Staleness

Arriving = tuple[int, Row | Punctuation]
"""When, and what."""


class WindowQueue(Protocol):
    """What is asked of a queue of windows."""

    schema: Schema

    def ready(self, now: int) -> int:
        """How much can be taken."""

    def enqueue(self, batch: Batch, now: int) -> None:
        """Rows arrive."""

    def punctuate(self, punctuation: Punctuation, now: int) -> None:
        """A promise arrives."""

    def dequeue(self, now: int, most: int) -> MarkedRows:
        """Take rows."""

    def delivered(self, now: int, most: int | None = None) -> None:
        """Rows were processed."""

    def key_of(self, number: int) -> Key:
        """The values of a key."""

    def staleness(self, now: int, key: Key | None = None) -> Staleness:
        """How stale keys are."""


@dataclass(frozen=True)
class Done:
    """A window was committed to, or its result was there; with its rows."""

    key: Key
    window: int
    at: int
    rows: tuple[Row, ...] = ()


@dataclass
class Service:
    """One who takes a row at a time."""

    queue: WindowQueue
    cost: int
    commits: list[Done] = field(default_factory=list)
    results: list[Done] = field(default_factory=list)
    now: int = 0
    _busy_until: int | None = None
    _taken: MarkedRows | None = None
    _open: dict[tuple[int, int], list[Row]] = field(default_factory=dict)

    def run(self, arriving: Iterable[Arriving], until: int | None = None) -> None:
        """Let everything arrive, and go on until a time, or until nothing is left to do."""
        for at, what in arriving:
            self._work_until(at)
            self.now = at
            if isinstance(what, Punctuation):
                self.queue.punctuate(what, at)
            else:
                self.queue.enqueue(Batch(self.queue.schema, [what]), at)
        self._work_until(until)
        if until is not None:
            self.now = until

    def _work_until(self, at: int | None) -> None:
        """Everything that is done before a time; what arrives at the time comes first."""
        while True:
            if self._busy_until is None and (at is None or self.now < at):
                self._take()
            if self._busy_until is None or (at is not None and self._busy_until >= at):
                return
            self.now = self._busy_until
            self._finish()

    def settle(self) -> None:
        """What is done at this very time, after all that arrives at it."""
        if self._busy_until is not None and self._busy_until <= self.now:
            self._finish()
        if self._busy_until is None:
            self._take()

    def _take(self) -> None:
        while self.queue.ready(self.now):
            taken = self.queue.dequeue(self.now, 1)
            self._close(taken, 0)
            self.queue.delivered(self.now, 0)
            if len(taken):
                key = taken.keys[0], taken.windows[0]
                if taken.marks[0] == OPEN:
                    self._open[key] = []
                    self.commits.append(Done(self.queue.key_of(key[0]), key[1], self.now))
                self._open[key].append(taken.rows[0])
                self._taken, self._busy_until = taken, self.now + self.cost
                return

    def _finish(self) -> None:
        assert self._taken is not None
        self.queue.delivered(self.now, 1)
        self._close(self._taken, 1)
        self._taken = self._busy_until = None

    def _close(self, taken: MarkedRows, place: int) -> None:
        for closed in taken.closed:
            if closed.place == place:
                rows = tuple(self._open.pop((closed.key, closed.window)))
                self.results.append(Done(self.queue.key_of(closed.key), closed.window, self.now, rows))
