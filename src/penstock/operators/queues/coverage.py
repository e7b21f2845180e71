"""Which windows of a key have rows and are still open: runs of windows one after the other.

A row adds the windows that hold it, a promise takes away those that it closes. Rows near one another hold the same
windows, so runs are few; a row that comes in order changes the last one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from penstock.operators.queues.extents import Interval


class Coverage:
    """The open windows of a key that have rows."""

    __slots__ = ("runs",)

    def __init__(self, runs: Sequence[Interval] = ()) -> None:
        """`runs` are ascending, with gaps between them."""
        self.runs: list[Interval] = list(runs)

    def add(self, low: int, high: int) -> None:
        """These windows have a row."""
        runs = self.runs
        if not runs or low > runs[-1][1] + 1:
            runs.append((low, high))
            return
        if low >= runs[-1][0]:
            if high > runs[-1][1]:
                runs[-1] = (runs[-1][0], high)
            return
        first = bisect_left(runs, low - 1, key=lambda run: run[1])
        last = first
        while last < len(runs) and runs[last][0] <= high + 1:
            low, high = min(low, runs[last][0]), max(high, runs[last][1])
            last += 1
        runs[first:last] = [(low, high)]

    def close(self, wid: int) -> list[Interval]:
        """The windows up to this one, which are no longer open."""
        runs = self.runs
        closed: list[Interval] = []
        while runs and runs[0][0] <= wid:
            low, high = runs[0]
            if high > wid:
                closed.append((low, wid))
                runs[0] = (wid + 1, high)
                break
            closed.append(runs.pop(0))
        return closed

    @property
    def first(self) -> int | None:
        """The first open window that has a row."""
        return self.runs[0][0] if self.runs else None
