"""Lazy and eager windows: what the most recent window of a key is (UpStream, sections 6.2.1 and 6.2.2, Fig. 11).

Lazily it is the last window that is whole (MRU_L). A key waits from when a window of it is whole, its window is read
without a pause, and it never idles. What is kept reaches from the start of the window that waits to the newest row.

Eagerly it is the last window that has started (MRU_E), by the first row of it that comes. A window is committed to
before it is whole and read as its rows come; the key idles while nothing of it is there, and others are served. What is
kept of windows to come is the last that has started: a row that starts another one erases it.
"""

from __future__ import annotations

from penstock.model.time import END_OF_TIME
from penstock.operators.queues.extents import Interval
from penstock.operators.queues.window_cells import KeyCell
from penstock.operators.queues.windowed import WindowedQueue


class LazyWindows(WindowedQueue):
    """Of every key the last window that is whole waits."""

    kind = "lazy windows"

    def _arrived(self, number: int, cell: KeyCell, holding: list[Interval], now: int) -> None:
        """No row is an update: only a promise makes a window whole."""

    def _closed(self, number: int, cell: KeyCell, whole: list[Interval], now: int) -> None:
        """The last of them is the most recent window."""
        for run in whole:
            self.queue_ages.add(number, run, now)
        self._update(number, cell, whole[-1][1], now)

    def _keep_from(self, cell: KeyCell) -> int:
        """The window that waits, or else the first that is not whole yet."""
        if cell.waiting is not None:
            return self.extents.start(cell.waiting)
        whole = self._last_whole(cell)
        return END_OF_TIME if whole == END_OF_TIME else self.extents.start(max(cell.last, whole) + 1)


class EagerWindows(WindowedQueue):
    """Of every key the last window that has started waits."""

    kind = "eager windows"

    def _arrived(self, number: int, cell: KeyCell, holding: list[Interval], now: int) -> None:
        """A row that starts a later window than any before is an update."""
        latest = holding[-1][1]
        if latest <= cell.started:
            return
        for low, high in holding:
            if high > cell.started:
                self.queue_ages.add(number, (max(low, cell.started + 1), high), now)
        self._update(number, cell, latest, now)

    def _closed(self, number: int, cell: KeyCell, whole: list[Interval], now: int) -> None:
        """A window that was committed to and of which nothing more comes has ended, whether or not a row follows."""
        if cell.committed is not None and number in self.states.idle and self._last_whole(cell) >= cell.committed:
            self.states.end(number)

    def _keep_from(self, cell: KeyCell) -> int:
        """The window that waits; what comes after it starts another one."""
        return END_OF_TIME if cell.waiting is None else self.extents.start(cell.waiting)
