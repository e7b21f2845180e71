"""What a window costs (UpStream, section 6.1.2).

With one row per tick, a window of range w costs w updates where only it is open: that is what a queue of windows makes
of it, which commits to one window of a key at a time, and what its load is counted by. Where every window is processed,
o = ceil(w / d) windows overlap, and by the time a window ends the ones that started after it have taken w - d, w - 2d,
... updates: C_W = C_t * sum of (w - i d) for i from 0 to o - 1, which is C_t * o * (w - (o - 1) d / 2). It is an
equality, and the upper bound of what a window can cost. (The paper prints (o + 1)(w - o d / 2), which is less than the
sum it bounds where d does not divide w: 3 instead of 4 for w = 3, d = 2.)

For aggregates over one another the cost of an update is that of all windows that make it up.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from penstock.operators.queues.extents import SEARCHED, Extents
from penstock.operators.windows.sliding import Sliding


def overlap(window: Sliding) -> int:
    """How many windows are open at a time: o."""
    return -(-window.range // window.slide)


def least_cost(window: Sliding, per_row: int = 1) -> int:
    """Of a window alone: w C_t."""
    return per_row * window.range


def greatest_cost(window: Sliding, per_row: int = 1) -> int:
    """Of a window together with what those that overlap it have taken when it ends: the sum of 6.1.2."""
    o = overlap(window)
    return per_row * (2 * o * window.range - o * (o - 1) * window.slide) // 2


@dataclass(frozen=True)
class PlanCost:
    """What one update of a plan costs, in updates of windows, and how many updates come."""

    updates: int
    """Of windows, at all levels: rows into windows of the first, results into windows of the next."""
    slide: int
    """An update comes every so many ticks."""

    def load(self, per_update: Fraction | int = 1, keys: int = 1) -> Fraction:
        """The load factor: how much work comes in a tick, of what can be done in one; above 1 windows are dropped."""
        return Fraction(self.updates * keys, self.slide) * per_update

    def budget(self, period: int, per_update: Fraction | int = 1) -> int:
        """How many updates can be processed within so many ticks."""
        return int(Fraction(period) / (self.updates * per_update)) if self.updates else 0

    def least_staleness(self, keys: int, per_update: Fraction | int = 1) -> Fraction:
        """The least time in which every key is served once, which no schedule can beat."""
        return Fraction(self.updates * keys) * per_update


def plan_cost(extents: Extents, rows_per_tick: int = 1) -> PlanCost:
    """The cost of one window of a plan, with so many rows of a key in every tick.

    A level has at most as many windows in an update as `parts` says; where their number varies from window to window
    (where a slide does not divide the next one's), it is the greatest of a period, of windows that need something.
    """
    period = max(-(-level.slide // extents.levels[-1].slide) for level in extents.levels)
    greatest, wid = 0, extents.following(0)
    for _ in range(min(period, SEARCHED) + 1):
        if wid is None:
            break
        greatest = max(greatest, _updates(extents, wid, rows_per_tick))
        wid = extents.following(wid + 1)
    return PlanCost(greatest, extents.levels[-1].slide)


def _updates(extents: Extents, wid: int, rows_per_tick: int) -> int:
    parts, total, rows_each = extents.parts(wid), 0, rows_per_tick * extents.levels[0].range
    for at, (low, high) in enumerate(parts):
        windows = max(high - low + 1, 0)
        if at:
            below = parts[at - 1]
            inner, outer = extents.levels[at - 1], extents.levels[at]
            rows_each = max(min(-(-outer.range // inner.slide), below[1] - below[0] + 1), 0)
        total += windows * rows_each
    return total
