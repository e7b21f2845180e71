"""Which windows are updates, and which rows each needs (UpStream, section 6; footnote 4 for several aggregates).

`WindowExtents` are the windows of one aggregate. `NestedExtents` are those of a plan in which an aggregate is over the
windows of another: an update is a window of the last aggregate, and needs all windows below whose ends lie in it, and
all rows of those. So a queue below such a plan keeps or drops what the whole plan needs, and no aggregate of it sees a
broken window.

Both have windows that start and end one after the other, so a few numbers say all of it. A window of a nested plan may
need nothing at all, where no window below ends in it; it never starts. A row in no window is of no use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from penstock.model.time import END_OF_TIME
from penstock.operators.windows.sliding import Sliding

Interval = tuple[int, int]
"""The first and the last of windows one after the other."""


class Extents(ABC):
    """The windows of a plan, numbered as those of its last aggregate."""

    levels: tuple[Sliding, ...]
    """The windows of each aggregate, the one nearest to the stream first."""

    @abstractmethod
    def start(self, wid: int) -> int:
        """The first tick that this window or a later one needs."""

    @abstractmethod
    def end(self, wid: int) -> int:
        """The first tick after what the window needs; once it is promised, the window is whole."""

    @abstractmethod
    def holding(self, time: int) -> Sequence[Interval]:
        """The windows that need a row, ascending; none where the row is in no window."""

    @abstractmethod
    def whole(self, bound: int) -> int:
        """The last window of which nothing more can come once `bound` is promised."""

    @abstractmethod
    def first_from(self, time: int) -> int:
        """The first window that needs nothing before a time."""

    @abstractmethod
    def parts(self, wid: int) -> tuple[Interval, ...]:
        """Of every level, the windows that make up this one; the last is the window itself."""

    def result_end(self, wid: int) -> int:
        """The end of the window as its result has it."""
        return self.levels[-1].end(wid)

    def latest(self, time: int) -> int | None:
        """The last window that needs a row."""
        found = self.holding(time)
        return found[-1][1] if found else None


class WindowExtents(Extents):
    """The windows of one aggregate."""

    def __init__(self, window: Sliding) -> None:
        """Sliding or tumbling, with or without gaps."""
        self.levels = (window,)
        self.window = window

    def start(self, wid: int) -> int:
        """Its first tick."""
        return self.window.start(wid)

    def end(self, wid: int) -> int:
        """The tick after it."""
        return self.window.end(wid)

    def holding(self, time: int) -> Sequence[Interval]:
        """One run of windows, or none in a gap."""
        first, last = self.window.first(time), self.window.last(time)
        return ((first, last),) if first <= last else ()

    def whole(self, bound: int) -> int:
        """The one before the first that is still open."""
        return END_OF_TIME if bound == END_OF_TIME else self.window.first(bound) - 1

    def first_from(self, time: int) -> int:
        """The first that starts at or after it."""
        window = self.window
        return -((window.origin - time - window.range) // window.slide) - 1

    def parts(self, wid: int) -> tuple[Interval, ...]:
        """Itself."""
        return ((wid, wid),)


class NestedExtents(Extents):
    """The windows of an aggregate over the windows of a plan."""

    def __init__(self, below: Extents, window: Sliding) -> None:
        """`window` is on the ends of the windows below."""
        self.levels = (*below.levels, window)
        self.below, self.window = below, window
        self._period = below.levels[-1].slide
        """After so many windows at most, ends lie in windows as they did before."""

    def _ending_in(self, wid: int) -> Interval:
        """The windows below whose ends lie in a window; the first is after the last where there are none."""
        low, high = self.window.extent(wid)
        inner = self.below.levels[-1]
        return -((inner.origin - low) // inner.slide) - 1, -((inner.origin - high) // inner.slide) - 2

    def start(self, wid: int) -> int:
        """That of the first window below that is needed from here on; windows that need nothing are passed over."""
        first, last = self._ending_in(wid)
        for later in range(wid, wid + self._period):
            first, last = self._ending_in(later)
            if first <= last:
                break
        return self.below.start(first)

    def end(self, wid: int) -> int:
        """That of the last window below that is needed up to here."""
        return self.below.end(self._ending_in(wid)[1])

    def holding(self, time: int) -> Sequence[Interval]:
        """The windows in which those below end that hold the row."""
        found: list[Interval] = []
        inner = self.below.levels[-1]
        for low, high in self.below.holding(time):
            for wid in range(low, high + 1):
                end = inner.end(wid)
                first, last = self.window.first(end), self.window.last(end)
                if first > last:
                    continue
                if found and first <= found[-1][1] + 1:
                    found[-1] = (found[-1][0], last)
                else:
                    found.append((first, last))
        return found

    def whole(self, bound: int) -> int:
        """What the level below promises of the ends of its windows is the bound here."""
        closed = self.below.whole(bound)
        if closed == END_OF_TIME:
            return END_OF_TIME
        return self.window.first(self.below.result_end(closed + 1)) - 1

    def first_from(self, time: int) -> int:
        """The first that holds none of the ends of windows below that start before."""
        inner = self.below.levels[-1]
        end = inner.end(self.below.first_from(time) - 1)
        return -((self.window.origin - end - 1 - self.window.range) // self.window.slide) - 1

    def parts(self, wid: int) -> tuple[Interval, ...]:
        """Itself, and below it the runs of windows that reach from the first that is needed to the last."""
        first, last = self._ending_in(wid)
        if first > last:
            return (*((0, -1),) * (len(self.levels) - 1), (wid, wid))
        lows, highs = self.below.parts(first), self.below.parts(last)
        return (*((low[0], high[1]) for low, high in zip(lows, highs, strict=True)), (wid, wid))


def extents_of(levels: Sequence[Sliding]) -> Extents:
    """The windows of aggregates over one another, the one nearest to the stream first."""
    first, *others = levels
    found: Extents = WindowExtents(first)
    for window in others:
        found = NestedExtents(found, window)
    return found
