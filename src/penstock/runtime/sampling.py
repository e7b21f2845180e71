"""How long operators take and elements wait, of a sample of the elements, so that it is always known at little cost.

Of every operator about one in so many *units* of work is timed: an element is a unit, and so is every 16th row of it,
so that large batches are all timed, where a reading of a clock costs nothing beside them, and single rows hardly ever.
Which ones is drawn at random (by a generator of its own, the same in every run), since elements come in patterns: with
every 256th, it would always be punctuation or never. An element of u units is hit by h of the points that were drawn.
The sum of h t / u over what was timed, by the number of points, is the time of a unit, and that times all units the
time that the operator took, without bias (sampling in proportion to size).

Processor time is that of the thread, so it holds on a machine that is busy. Where an operator runs is none of its
business: the clocks belong to whoever hosts the graph, and without one nothing is timed.

Of the elements that come in from outside some are *traced* in the same way: an operator that takes a traced element
passes the trace on to what it gives for it. So it is known how long elements wait on arcs, and how long
after its last cause has come in a result is taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import pairwise

UNIT = 4
"""A unit is two to the power of so many rows, and each element is one."""
EVERY = 1024
"""About one in so many units is timed."""
IN_LANES = 4
"""Rows in a lane take a fraction of what elements take: so many times fewer of them are timed."""
NEVER = 1 << 60
FORCED = 1 << 40
"""Is taken off what is left until the next is timed, when an element that is traced comes."""
RECENT = 256
"""So many waiting times are kept, from which quantiles are told."""


def stands_still() -> float:
    """A clock where there is none."""
    return 0.0


class Points:
    """Points on a line of units of work, so many units apart on average."""

    __slots__ = ("_seed", "drawn", "every", "hits")

    def __init__(self, every: int = EVERY) -> None:
        """None yet."""
        self.every, self._seed = every, 1
        self.drawn = 1
        """Where the next point is."""
        self.hits = 0
        """How many there were."""

    def gap(self) -> int:
        """How far the next point is from this one."""
        self._seed = (self._seed * 1103515245 + 12345) & 0x7FFFFFFF
        found = 1 + (self._seed >> 8) % (2 * self.every - 1)
        self.drawn += found
        self.hits += 1
        return found


class Waits:
    """How long things waited, in seconds, of those that were looked at."""

    __slots__ = ("count", "most", "recent", "total")

    def __init__(self) -> None:
        """Nothing yet."""
        self.count, self.total, self.most = 0, 0.0, 0.0
        self.recent: deque[float] = deque(maxlen=RECENT)

    def take(self, seconds: float) -> None:
        """One of them."""
        seconds = max(seconds, 0.0)
        self.count += 1
        self.total += seconds
        self.most = max(self.most, seconds)
        self.recent.append(seconds)

    @property
    def mean(self) -> float | None:
        """On average; None if there were none."""
        return self.total / self.count if self.count else None

    def quantile(self, part: float) -> float | None:
        """Of the last of them, what this part does not exceed."""
        ordered = sorted(self.recent)
        return ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else None


def _cost_of(clock: Callable[[], float]) -> float:
    """What passes between two readings, at least."""
    readings = [clock() for _ in range(20)]
    return min(after - before for before, after in pairwise(readings))


class Clocks:
    """By which a graph measures; those of whoever hosts it."""

    __slots__ = ("every", "processor", "reading", "stopwatch")

    def __init__(
        self,
        processor: Callable[[], float] | None = None,
        stopwatch: Callable[[], float] = stands_still,
        every: int = EVERY,
    ) -> None:
        """Without any nothing is measured."""
        self.processor, self.stopwatch, self.every = processor, stopwatch, every
        """Seconds of processor time of this thread; seconds that have passed."""
        self.reading = 0.0 if processor is None else _cost_of(processor)
        """So long a reading of the processor time takes itself."""


class Trace:
    """Something that came in from outside, by which what comes of it is known."""

    __slots__ = ("entered",)

    def __init__(self, entered: float) -> None:
        """It came in at this time."""
        self.entered = entered


class Arrivals:
    """What is known of what comes in from outside, and which of it is traced."""

    __slots__ = ("due", "peak", "peak_rows", "points", "since")

    def __init__(self, clocks: Clocks) -> None:
        """Nothing yet."""
        self.points = Points(clocks.every)
        self.due = 1 if clocks.processor is not None else NEVER
        """So many units of work until something is traced."""
        self.since = 0.0
        """When what waits came; if several came together, all of them did then."""
        self.peak = self.peak_rows = 0
        """How many elements, and rows, waited at most."""

    def wait(self, elements: int, rows: int, now: float) -> None:
        """So much waits now, since more has come."""
        self.since = now
        self.peak, self.peak_rows = max(self.peak, elements), max(self.peak_rows, rows)

    def is_traced(self, units: int) -> bool:
        """Whether something of so many units, which is taken now, is traced."""
        self.due -= units
        if self.due > 0:
            return False
        while self.due <= 0:
            self.due += self.points.gap()
        return True


class Meter:
    """What is known of the time that an operator takes."""

    __slots__ = ("arrivals", "clocks", "lane_hits", "lane_rows", "lane_seconds", "points", "taking", "weighed")

    def __init__(self, clocks: Clocks) -> None:
        """Nothing yet."""
        self.clocks = clocks
        self.points = Points(clocks.every)
        self.arrivals = Arrivals(clocks)
        """Of what comes in from outside."""
        self.taking: Trace | None = None
        """To what the element goes back that is taken now, if it is traced."""
        self.weighed = 0.0
        """Seconds by unit, summed over the points that hit."""
        self.lane_rows = self.lane_hits = 0
        self.lane_seconds = 0.0
        """Of rows that went through a lane: how many, and how many of them were timed, for how long."""

    def take(self, hits: int, units: int, seconds: float) -> None:
        """An element of so many units, hit by so many points, took so long."""
        self.weighed += hits * max(seconds, 0.0) / units

    def take_row(self, seconds: float) -> None:
        """A row in a lane took so long here."""
        self.lane_hits += 1
        self.lane_seconds += max(seconds - self.clocks.reading, 0.0)

    def seconds(self, left: int) -> float:
        """What it took in all, as far as is known; so many units are `left` to the next point."""
        points = self.points
        found = self.weighed / points.hits * (points.drawn - left) if points.hits else 0.0
        return found + (self.lane_seconds / self.lane_hits * self.lane_rows if self.lane_hits else 0.0)

    @property
    def timed(self) -> int:
        """How often it was timed."""
        return self.points.hits + self.lane_hits
