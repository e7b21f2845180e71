"""Windows as updates, straight from the definitions (UpStream, section 6).

A window of a key is an update of the window before it. It has *started* when a row of it has come, and is *whole* when
it has started and nothing more of it can come: every row below its end is promised not to come any more, of all keys or
of this one. The most recent update is, lazily, the last window that is whole and, eagerly, the last that has started. A
queue may leave windows out, and never a part of one: what comes out is the true answer of a window that is whole, per
key in order, and once the stream has ended the last window of every key has come out.

Where an aggregate is over the windows of another, the update is a window of the last one. It holds what the windows
hold whose ends lie in it, and is whole when all of those are that could have a row.

Staleness is that of `reference.staleness` with windows for rows: a window arrives when it is whole, and for the queue
of eager windows when it starts.

Everything is found by trying windows one by one. Cost: the log's length to the third power, times rows per window.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.reference.staleness import StalenessLog


@dataclass(frozen=True)
class Level:
    """The windows of one aggregate, and what it makes of the values in one."""

    range: int
    slide: int
    origin: int = 0
    function: Callable[[list[Any]], Any] = len

    def end(self, wid: int) -> int:
        """The first tick after a window."""
        return self.origin + (wid + 1) * self.slide

    def holds(self, wid: int, time: int) -> bool:
        """Whether a time lies in a window."""
        return self.end(wid) - self.range <= time < self.end(wid)

    def near(self, time: int) -> Sequence[int]:
        """All windows that can hold a time, and some more."""
        return range((time - self.origin) // self.slide - 1, (time - self.origin + self.range) // self.slide + 2)

    def ending_in(self, low: int, high: int) -> list[int]:
        """The windows whose ends lie in a stretch of time."""
        some = range((low - self.origin) // self.slide - 2, (high - self.origin) // self.slide + 2)
        return [wid for wid in some if low <= self.end(wid) < high]


Levels = Sequence[Level]
"""The aggregates of a plan, the one nearest to the stream first."""


@dataclass(frozen=True)
class Came:
    """A row came."""

    key: Hashable
    time: int
    value: Any
    at: int


@dataclass(frozen=True)
class Said:
    """It was promised that nothing below a bound comes any more: of one key, or of all."""

    bound: int
    at: int
    key: Hashable | None = None


@dataclass(frozen=True)
class Answer:
    """A window was taken up (`value` is then of no account), or its result was delivered."""

    key: Hashable
    wid: int
    at: int
    value: Any = None


@dataclass
class WindowLog:
    """What happened, in the order in which it happened."""

    arrivals: list[Came | Said] = field(default_factory=list)
    commits: list[Answer] = field(default_factory=list)
    results: list[Answer] = field(default_factory=list)

    @property
    def keys(self) -> list[Hashable]:
        """All keys, in the order in which they came."""
        return list(dict.fromkeys(came.key for came in self.arrivals if isinstance(came, Came)))

    def rows(self, key: Hashable, by: int = END_OF_TIME) -> list[Came]:
        """The rows of a key that had come by a time."""
        return [came for came in self.arrivals if isinstance(came, Came) and came.key == key and came.at <= by]

    def bound(self, key: Hashable, by: int = END_OF_TIME) -> int:
        """What had been promised of a key by a time."""
        said = [each for each in self.arrivals if isinstance(each, Said) and each.at <= by]
        return max([each.bound for each in said if each.key is None or each.key == key], default=MIN_TICK)


def holds(levels: Levels, wid: int, time: int) -> bool:
    """Whether a row with this time is in a window of the last level."""
    *inner, last = levels
    if not inner:
        return last.holds(wid, time)
    return any(holds(inner, below, time) for below in _parts(levels, wid))


def needed(levels: Levels, wid: int) -> int | None:
    """The least bound by which nothing more of a window can come; None if nothing ever does."""
    *inner, last = levels
    if not inner:
        return last.end(wid)
    bounds = [found for below in _parts(levels, wid) if (found := needed(inner, below)) is not None]
    return max(bounds, default=None)


def windows_of(levels: Levels, time: int) -> list[int]:
    """The windows that hold a time, ascending."""
    *inner, last = levels
    if not inner:
        return [wid for wid in last.near(time) if last.holds(wid, time)]
    ends = [inner[-1].end(below) for below in windows_of(inner, time)]
    return sorted({wid for end in ends for wid in last.near(end) if last.holds(wid, end)})


def answer(levels: Levels, wid: int, rows: Sequence[tuple[int, Any]]) -> Any:
    """The true answer of a window over all rows, as times and values; None if it has none."""
    *inner, last = levels
    if not inner:
        values = [value for time, value in rows if last.holds(wid, time)]
    else:
        values = [found for below in _parts(levels, wid) if (found := answer(inner, below, rows)) is not None]
    return last.function(values) if values else None


def _parts(levels: Levels, wid: int) -> list[int]:
    """The windows of the level below whose ends lie in a window of the last."""
    last, below = levels[-1], levels[-2]
    return below.ending_in(last.end(wid) - last.range, last.end(wid))


def started(log: WindowLog, levels: Levels, key: Hashable, by: int = END_OF_TIME) -> list[int]:
    """The windows of a key that had started by a time, ascending."""
    return sorted({wid for row in log.rows(key, by) for wid in windows_of(levels, row.time)})


def whole(log: WindowLog, levels: Levels, key: Hashable, by: int = END_OF_TIME) -> list[int]:
    """The windows of a key that were whole by a time, ascending."""
    bound = log.bound(key, by)
    found = [(wid, needed(levels, wid)) for wid in started(log, levels, key, by)]
    return [wid for wid, least in found if least is not None and least <= bound]


def most_recent(log: WindowLog, levels: Levels, key: Hashable, by: int, *, eager: bool) -> int | None:
    """The most recent update of a key: under MRU_E the last window that has started, under MRU_L that is whole."""
    found = started(log, levels, key, by) if eager else whole(log, levels, key, by)
    return found[-1] if found else None


def faults(log: WindowLog, levels: Levels) -> Iterator[str]:
    """What is wrong with the results; if the stream has ended, also with those that are lacking."""
    last: dict[Hashable, int] = {}
    for result in log.results:
        said = f"window {result.wid} of {result.key!r} at {result.at}"
        if result.key in last and result.wid <= last[result.key]:
            yield f"{said} comes after window {last[result.key]}"
        last[result.key] = result.wid
        if result.wid not in whole(log, levels, result.key, result.at):
            yield f"{said} is not whole"
        true = answer(levels, result.wid, [(row.time, row.value) for row in log.rows(result.key)])
        if result.value != true:
            yield f"{said} is {result.value!r}, and should be {true!r}"
    for key in log.keys:
        final = started(log, levels, key)[-1:]
        if log.bound(key) == END_OF_TIME and final and last.get(key) != final[0]:
            yield f"window {final[0]} of {key!r}, its last, has not come out"


def application_updates(log: WindowLog, levels: Levels) -> StalenessLog:
    """Windows as updates that arrive when they are whole; taking one up and delivering it answers it."""
    return _updates(log, [(at, key, wid) for key in log.keys for wid, at in _whole_since(log, levels, key)])


def queue_updates(log: WindowLog, levels: Levels, *, eager: bool) -> StalenessLog:
    """Windows as updates of the queue: eager ones arrive when they start."""
    if not eager:
        return application_updates(log, levels)
    seen: dict[Hashable, int] = {}
    found = []
    for row in (each for each in log.arrivals if isinstance(each, Came)):
        for wid in windows_of(levels, row.time):
            if wid > seen.get(row.key, MIN_TICK):  # a window before the most recent one is no update any more
                found.append((row.at, row.key, wid))
                seen[row.key] = wid
    return _updates(log, found)


def _whole_since(log: WindowLog, levels: Levels, key: Hashable) -> Iterator[tuple[int, int]]:
    """Each window of a key that is ever whole, and since when."""
    times = sorted({each.at for each in log.arrivals})
    for wid in whole(log, levels, key):
        yield wid, next(at for at in times if wid in whole(log, levels, key, at))


def _updates(log: WindowLog, found: list[tuple[int, Hashable, int]]) -> StalenessLog:
    made = StalenessLog()
    ordered = sorted(found, key=lambda each: (each[0], each[2]))
    numbers = {(key, wid): made.arrive(key, wid, at) for at, key, wid in ordered}
    known = numbers.keys()  # a window that is taken up eagerly may never be whole
    made.dequeues += [(numbers[each.key, each.wid], each.at) for each in log.commits if (each.key, each.wid) in known]
    made.deliveries += [(numbers[each.key, each.wid], each.at) for each in log.results]
    return made
