"""What a queue of windows knows of its keys, of what is under way, and of what became of rows and windows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from penstock.model.time import MIN_TICK
from penstock.operators.queues.coverage import Coverage
from penstock.operators.queues.marks import Closed
from penstock.operators.queues.queue import QueueCounts
from penstock.operators.queues.window_buffer import WindowBuffer


class Promise(Enum):
    """What a row says of those of its key that come after it."""

    NOTHING = "nothing"
    ORDERED = "ordered"
    """They are not before it."""
    STRICTLY = "strictly"
    """They are after it."""


@dataclass
class WindowCounts(QueueCounts):
    """What became of rows, each counted once, and of windows.

    A row that windows share may be handed on for several: it is `dequeued` once, and `given` as often as that.
    """

    outside: int = 0
    """Rows that lie in no window."""
    given: int = 0
    windows_committed: int = 0
    windows_closed: int = 0
    windows_superseded: int = 0
    """Windows that waited, and a more recent one took their place."""


class KeyCell:
    """What is known of a key."""

    __slots__ = ("bound", "buffer", "committed", "coverage", "is_open", "last", "started", "waiting")

    def __init__(self, buffer: WindowBuffer) -> None:
        """Nothing of it has come."""
        self.buffer = buffer
        self.coverage = Coverage()
        self.bound = MIN_TICK
        """What was promised of this key alone."""
        self.waiting: int | None = None
        self.committed: int | None = None
        self.is_open = False
        """Whether a row of the committed window was given."""
        self.last = self.started = MIN_TICK
        """The last window that was committed to, and the last that has started."""

    def to_plain(self) -> Any:
        """As plain data, but for what the memory manager and the key states hold."""
        windows = (self.waiting, self.committed, self.is_open, self.last, self.started)
        return (self.bound, windows, list(self.coverage.runs), self.buffer.to_plain())

    def from_plain(self, data: Any) -> None:
        """The same."""
        self.bound, windows, runs, buffer = data
        self.waiting, self.committed, self.is_open, self.last, self.started = windows
        self.coverage = Coverage([(low, high) for low, high in runs])
        self.buffer.from_plain(buffer)


class UnderWay:
    """Rows that were dequeued together and are not all processed, and the windows that end among them."""

    __slots__ = ("at", "closed", "done", "rows")

    def __init__(self, rows: int, closed: Iterable[Closed], at: int, done: int = 0) -> None:
        """So many rows at a time, of which some may be processed."""
        self.rows, self.closed, self.at, self.done = rows, deque(closed), at, done

    def process(self, rows: int) -> list[Closed]:
        """So many more were processed; the windows that have ended by it."""
        self.done += rows
        found = []
        while self.closed and self.closed[0].place <= self.done:
            found.append(self.closed.popleft())
        return found

    def to_plain(self) -> Any:
        """As plain data."""
        return (self.rows, [tuple(each) for each in self.closed], self.at, self.done)

    @classmethod
    def from_plain(cls, data: Any) -> UnderWay:
        """The same."""
        rows, closed, at, done = data
        return cls(rows, [Closed(*each) for each in closed], at, done)
