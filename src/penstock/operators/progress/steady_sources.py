"""Rows of any number of sources by columns, while none of them becomes idle and none is awaited.

How far a source has come only grows. So how far it was before a row is no more than how far it was before its own next
row. The least over all sources before a row is thus the least of how far the source of each row was, over that row and
all after it, and of how far all sources are at the end: one running minimum from the end, however many sources there
are. How far the source of each row was is a running maximum over the rows in order of source.

A source that is not known yet does not hold back what comes before its first row. Where that row is no less than any
least before it, counting what was known at the start, it makes no difference that it seems to. Else it is in doubt, as
is whether it is late, and rows up to there are for somebody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.model.time import END_OF_TIME, MIN_TICK, earlier
from penstock.operators.progress.marks import Coded
from penstock.operators.progress.running import accumulate
from penstock.operators.progress.source_state import Rule, State, before_by, hear

MAX_KEY = 2**62
BLOCK = 256


@dataclass(frozen=True)
class Reached:
    """How far the sources are that have rows in a batch."""

    codes: np.ndarray
    sources: Sequence[Any]
    before: np.ndarray
    """How far the source of each row was before it; without end if it was not known."""
    after: np.ndarray
    """How far each source is after the batch."""
    strange: np.ndarray
    """The places of the first rows of sources that were not known."""


def bounds_of_steady(rule: Rule, state: State, times: np.ndarray, found: Coded) -> np.ndarray | int:
    """The bound before each row, the state changed to that after them.

    Else, and no change, how many rows must be taken otherwise before it is worth another try.
    """
    every = len(times)
    if state["awaited"] or len(state["greatest"]) > every:
        return every
    if not state["greatest"]:
        return _all_heard(found)
    reached = _reached(state, times, found)
    if reached is None:
        return every
    absent = _absent(state, reached)
    end = min(absent, int(reached.after.min()))
    least = _least(reached.before, end)
    if rule.idle is not None and _becomes_idle(rule.idle, state["newest"], times, (reached.before, least, end)):
        return every
    doubtful = _doubtful(reached, times, found, absent)
    if doubtful:
        return doubtful
    bounds: np.ndarray = np.maximum(before_by(least, rule.disorder), state["bound"], out=least)
    state["bound"] = max(int(bounds[-1]), earlier(end, rule.disorder))
    _take_in(state, times, reached)
    return bounds


def _all_heard(found: Coded) -> int:
    """How many rows there are up to the last first row of a source."""
    first = np.full(len(found.sources), -1, np.int64)
    first[found.codes[::-1]] = np.arange(len(found))[::-1]
    return int(first.max()) + 1


def _reached(state: State, times: np.ndarray, found: Coded) -> Reached | None:
    """How far sources are; None where that cannot be counted in 64 bits."""
    order = np.argsort(_narrow(found), kind="stable")
    own = times[order]
    counts = found.counts()
    codes = np.flatnonzero(counts)
    counts = counts[codes]
    ends = np.cumsum(counts)
    firsts = ends - counts
    sources = [found.sources[code] for code in codes.tolist()]
    known = list(map(state["greatest"].get, sources))
    is_strange = np.array([time is None for time in known], np.bool_)
    start = np.array([MIN_TICK if time is None else time for time in known], np.int64)
    own[firsts] = np.maximum(own[firsts], start)
    low, high = int(own.min()), int(own.max())
    span = high - low + 1
    if span * len(codes) > MAX_KEY:
        return None
    lift = np.repeat(np.arange(len(codes)) * span - low, counts)
    own += lift
    running = own  # large arrays are costly to make: where it can be, in place
    accumulate(np.maximum, own, running)
    running -= lift
    before = np.empty(len(times), np.int64)
    before[order[1:]] = running[:-1]
    before[order[firsts]] = np.where(is_strange, END_OF_TIME, start)
    return Reached(codes, sources, before, running[ends - 1], order[firsts[is_strange]])


def _absent(state: State, reached: Reached) -> int:
    """The least of the sources that are known and have no row."""
    greatest = state["greatest"]
    if len(greatest) == len(reached.sources) - len(reached.strange):
        return END_OF_TIME
    present = set(reached.sources)
    return int(min(time for source, time in greatest.items() if source not in present))


def _becomes_idle(idle: int, newest: int, times: np.ndarray, how_far: tuple[np.ndarray, np.ndarray, int]) -> bool:
    """Whether some source does: blocks of rows are looked at, and all rows only where that does not tell."""
    before, least, end = how_far
    starts = np.arange(0, len(times), BLOCK)
    newest_of_block = np.maximum(np.maximum.accumulate(np.maximum.reduceat(times, starts)), newest)
    if end < earlier(int(newest_of_block[-1]), idle):
        return True
    if (least[starts] >= before_by(newest_of_block, idle)).all():
        return False
    newest_before = np.maximum.accumulate(np.concatenate(([newest], times[:-1])))
    return bool((before < before_by(newest_before, idle)).any())


def _doubtful(reached: Reached, times: np.ndarray, found: Coded, absent: int) -> int:
    """How many rows there are up to the last first row of a source that may hold back, or be late."""
    if not len(reached.strange):
        return 0
    is_strange = np.zeros(len(found.sources), np.bool_)
    is_strange[found.codes[reached.strange]] = True
    least = _least(
        np.where(is_strange[found.codes], END_OF_TIME, reached.before),
        min(absent, int(np.where(is_strange[reached.codes], END_OF_TIME, reached.after).min())),
    )
    doubtful = reached.strange[times[reached.strange] < least[reached.strange]]
    return int(doubtful.max(initial=-1)) + 1


def _least(before: np.ndarray, end: int) -> np.ndarray:
    """The least over all sources before each row, which only grows."""
    least = np.empty(len(before), np.int64)
    accumulate(np.minimum, before[::-1], least[::-1])
    least[np.searchsorted(least, end) :] = end
    return least


def _take_in(state: State, times: np.ndarray, reached: Reached) -> None:
    """Note how far sources are; entries of the heap may lag behind."""
    if state["first"] is None:
        state["first"] = int(times[0])
    after = reached.after.tolist()
    if len(reached.strange):
        for source, time in zip(reached.sources, after, strict=True):
            hear(state, source, time)
    else:
        state["greatest"].update(zip(reached.sources, after, strict=True))
    state["newest"] = max(state["newest"], int(times.max()))


def _narrow(found: Coded) -> np.ndarray:
    """Codes in as few bytes as they need, which are sorted by counting."""
    size = len(found.sources)
    return found.codes.astype(np.uint8 if size <= 256 else np.uint16) if size <= 65_536 else found.codes
