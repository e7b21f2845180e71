"""How near the times of two rows must be to meet, and what bounds on them mean to a join.

`Within` is a band, `low <= right - left <= high`; `InWindow` one of the windows that neither overlap nor leave gaps.
Each says for some times of one side which times of the other are near (`partners`), and from a bound on one side, below
which no row of the other can be met any more (`settled`). A bound of all time stays that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.model.time import END_OF_TIME, MIN_TICK, Domain, usable

LEFT, RIGHT = 0, 1
_ROOM = (END_OF_TIME - usable(Domain.INTEGER)[1]) // 2
"""By so much any time can be moved, also that of a window's result."""


def moved(bound: int, by: int) -> int:
    """A bound moved by some ticks; what says nothing, or everything, stays."""
    return bound if bound in (MIN_TICK, END_OF_TIME) else max(MIN_TICK, min(bound + by, END_OF_TIME))


def times_moved(times: np.ndarray, by: int) -> np.ndarray:
    """Times moved by some ticks, no further than to the ends of 64 bits."""
    if abs(by) <= _ROOM:
        return times + by
    sums = times + ((by - MIN_TICK) % (1 << 64) + MIN_TICK)  # those that run over are not looked at
    return np.where(times > END_OF_TIME - by, END_OF_TIME, np.where(times < MIN_TICK - by, MIN_TICK, sums))


@dataclass(frozen=True)
class Within:
    """`low <= right - left <= high`."""

    low: int
    high: int

    @property
    def width(self) -> int:
        """How far apart the times of partners of one row can be."""
        return self.high - self.low

    def partners(self, side: int, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last time of the other side that rows of one side can meet."""
        if side == LEFT:
            return times + self.low, times + self.high
        return times - self.high, times - self.low

    def settled(self, side: int, other: int) -> int:
        """Below this, no row of a side meets a row of the other that comes after its bound."""
        return moved(other, -self.high if side == LEFT else self.low)

    def together(self, left: int, right: int) -> tuple[int, int]:
        """The bounds of both sides, no further than pairs below them can be."""
        return min(left, moved(right, -self.low)), min(right, moved(left, self.high))


@dataclass(frozen=True)
class InWindow:
    """In one window of `width`, counted from `origin`."""

    width: int
    origin: int = 0

    def partners(self, side: int, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last time of the window of each row."""
        first = times - (times - self.origin) % self.width
        return first, first + (self.width - 1)

    def settled(self, side: int, other: int) -> int:
        """The start of the window that the other side's bound is in."""
        return moved(other, -((other - self.origin) % self.width))

    def together(self, left: int, right: int) -> tuple[int, int]:
        """The bounds of both sides, no further than to the end of the window that the other is in."""
        return min(left, self._end(right)), min(right, self._end(left))

    def _end(self, bound: int) -> int:
        return moved(bound, -(bound - self.origin) % self.width)


Nearness = Within | InWindow
