"""Which windows are updates, and which rows each needs (UpStream, section 6; footnote 4 for several aggregates).

`WindowExtents` are the windows of one aggregate. `NestedExtents` are those of a plan in which an aggregate is over the
windows of another: an update is a window of the last aggregate, and needs all windows below whose ends lie in it, and
all rows of those. So a queue below such a plan keeps or drops what the whole plan needs, and no aggregate of it sees a
broken window.

Both have windows that start and end one after the other, so a few numbers say all of it. A window of a nested plan may
need nothing at all, where no window below ends in it, or only ones that need nothing themselves; it never starts, and
no result of it ever reaches the level above. Such windows are passed over from either side (`following`, `preceding`).
A row in no window is of no use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from penstock.model.time import END_OF_TIME
from penstock.operators.windows.sliding import Sliding

Interval = tuple[int, int]
"""The first and the last of windows one after the other."""
SEARCHED = 100_000
"""So many windows that need nothing may lie between two that need something; a plan with more is taken to have none."""


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

    @abstractmethod
    def following(self, wid: int) -> int | None:
        """The first window from this one on that needs something; None if there is none."""

    @abstractmethod
    def preceding(self, wid: int) -> int | None:
        """The last window up to this one that needs something; None if there is none."""

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

    def following(self, wid: int) -> int:
        """Every window needs rows."""
        return wid

    def preceding(self, wid: int) -> int:
        """Every window needs rows."""
        return wid


class NestedExtents(Extents):
    """The windows of an aggregate over the windows of a plan."""

    def __init__(self, below: Extents, window: Sliding) -> None:
        """`window` is on the ends of the windows below."""
        self.levels = (*below.levels, window)
        self.below, self.window = below, window
        self.inner = below.levels[-1]

    def _ending_from(self, time: int) -> int:
        """The first window below that ends at a time or later."""
        return -((self.inner.origin - time) // self.inner.slide) - 1

    def _needed(self, wid: int) -> Interval | None:
        """The first and the last of the windows below that need something and end in a window; None without any."""
        low, high = self.window.extent(wid)
        first, last = self.below.following(self._ending_from(low)), self.below.preceding(self._ending_from(high) - 1)
        return None if first is None or last is None or first > last else (first, last)

    def following(self, wid: int) -> int | None:
        """From end to end of the windows below, over the gaps between those here."""
        for _ in range(SEARCHED):
            below = self.below.following(self._ending_from(self.window.start(wid)))
            if below is None:
                return None
            end = self.inner.end(below)
            first, last = self.window.first(end), self.window.last(end)
            if first <= last:
                return max(first, wid)
            wid = first  # the one after the gap
        return None

    def preceding(self, wid: int) -> int | None:
        """The same, backwards."""
        for _ in range(SEARCHED):
            below = self.below.preceding(self._ending_from(self.window.end(wid)) - 1)
            if below is None:
                return None
            end = self.inner.end(below)
            first, last = self.window.first(end), self.window.last(end)
            if first <= last:
                return min(last, wid)
            wid = last  # the one before the gap
        return None

    def start(self, wid: int) -> int:
        """That of the first window below that is needed from here on."""
        needed = self._needed_by(self.following(wid))
        return self.below.start(self._ending_from(self.window.start(wid)) if needed is None else needed[0])

    def end(self, wid: int) -> int:
        """That of the last window below that is needed up to here."""
        needed = self._needed_by(self.preceding(wid))
        return self.below.end(self._ending_from(self.window.end(wid)) - 1 if needed is None else needed[1])

    def _needed_by(self, wid: int | None) -> Interval | None:
        return None if wid is None else self._needed(wid)

    def holding(self, time: int) -> Sequence[Interval]:
        """The windows in which those below end that hold the row."""
        found: list[Interval] = []
        for low, high in self.below.holding(time):
            for wid in range(low, high + 1):
                end = self.inner.end(wid)
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
        later = self.below.following(closed + 1)
        return self.window.first(self.inner.end(closed + 1 if later is None else later)) - 1

    def first_from(self, time: int) -> int:
        """The one after the last that holds the end of a window below that starts before."""
        before = self.below.preceding(self.below.first_from(time) - 1)
        last = None if before is None else self.preceding(self.window.last(self.inner.end(before)))
        return self.window.first(time) if last is None else last + 1

    def parts(self, wid: int) -> tuple[Interval, ...]:
        """Itself, and below it the runs of windows that reach from the first that is needed to the last."""
        needed = self._needed(wid)
        if needed is None:
            return (*((0, -1),) * (len(self.levels) - 1), (wid, wid))
        lows, highs = map(self.below.parts, needed)
        return (*((low[0], high[1]) for low, high in zip(lows, highs, strict=True)), (wid, wid))


def extents_of(levels: Sequence[Sliding]) -> Extents:
    """The windows of aggregates over one another, the one nearest to the stream first."""
    first, *others = levels
    found: Extents = WindowExtents(first)
    for window in others:
        found = NestedExtents(found, window)
    return found
