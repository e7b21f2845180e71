"""Progress by source: a stream is as far as the slowest of its sources that are not idle (thesis 8.1, heartbeats).

A source is known once a row of it was on time. One that has fallen more than `idle` behind the greatest time of the
stream holds nothing back and is forgotten: when it speaks again it is as new, which makes no difference, since what it
could say of its past is idle too. So memory is bounded by the sources that were heard within `idle`; without `idle`
every source is kept, and one that falls silent holds the stream back for good. Sources that are named beforehand hold
the stream back until they were heard once, or until the stream has come more than `idle` from its first row.

The least is kept as a heap with one entry per source, whose time may lag behind; it is brought up to date when it gets
to the top. So a row costs O(lg sources) at worst and one comparison as a rule, and never a look at all sources. A batch
of rows of few sources is judged by columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from typing import Any

import numpy as np

from penstock.model.time import END_OF_TIME, MIN_TICK, earlier
from penstock.model.values import canonical
from penstock.operators.progress.marks import Coded, Marks, coded

FEW = 16
"""Up to so many sources are judged by columns, each a running maximum."""
MIN_COLUMNAR = 64

Sources = tuple[dict[Any, int], int | None]
State = dict[str, Any]
"""Plain values: `greatest` per source, `heap` of (time, number, source), `awaited` names, `first`, `newest`, `bound`,
and how many entries were `made`."""


@dataclass(frozen=True)
class SourcesTracker:
    """The least bound over the sources that are not idle; marks name the source of each row.

    Summary: the greatest time per source, and the least time. The state is changed in place.
    """

    disorder: int
    idle: int | None
    sources: tuple[Any, ...]

    def summarise(self, times: np.ndarray, marks: Marks) -> Sources:
        """The greatest time per source."""
        if not len(times):
            return {}, None
        found = coded(marks)
        greatest = np.full(len(found.sources), MIN_TICK, np.int64)
        np.maximum.at(greatest, found.codes, times)
        present = np.bincount(found.codes, minlength=len(found.sources)) > 0
        named = zip(found.sources, greatest.tolist(), present.tolist(), strict=True)
        return {source: time for source, time, there in named if there}, int(times.min())

    def join(self, left: Sources, right: Sources) -> Sources:
        """The greater per source."""
        greatest = dict(left[0])
        for source, time in right[0].items():
            greatest[source] = max(time, greatest.get(source, MIN_TICK))
        firsts = [first for first in (left[1], right[1]) if first is not None]
        return greatest, min(firsts, default=None)

    def advance(self, state: State | None, summary: Sources) -> State:
        """Take the summary in; the bound only goes up."""
        state = self._started(state)
        greatest, first = summary
        if first is None:
            return state
        if state["first"] is None:
            state["first"] = first
        bound = state["bound"]
        for source, time in greatest.items():
            if time >= bound:  # a source of which everything was late is not made known by it
                _raise(state, source, time)
        self._settle(state)
        return state

    def bound(self, state: State | None) -> int:
        """The bound so far."""
        return MIN_TICK if state is None else int(state["bound"])

    def observe(self, state: State | None, time: int, mark: Any) -> State:
        """One row: only one that is the newest of its source can move the bound."""
        state = self._started(state)
        if state["first"] is None:
            state["first"] = time
        if time >= state["bound"] and _raise(state, mark, time):
            self._settle(state)
        return state

    def by_row(self, state: State | None, times: np.ndarray, marks: Marks) -> tuple[np.ndarray, State]:
        """By columns where there are few sources and none makes itself known again by late rows, else row by row."""
        state = self._started(state)
        found = coded(marks)
        if len(times) >= MIN_COLUMNAR and len(found.sources) <= FEW:
            names = list(dict.fromkeys([*found.sources, *state["greatest"], *state["awaited"]]))
            if len(names) <= FEW:
                before = self._by_column(state, times, found, names)
                if before is not None:
                    return before, state
        return self._one_by_one(state, times, found), state

    def _one_by_one(self, state: State, times: np.ndarray, found: Coded) -> np.ndarray:
        """Row by row; while the source that is least stays so, and does not become idle, nothing can move."""
        if state["first"] is None and len(times):
            state["first"] = int(times[0])
        greatest, sources = state["greatest"], found.sources
        bound, newest = state["bound"], state["newest"]
        least = END_OF_TIME  # as long as the least is not known, every row is looked at
        reach = END_OF_TIME if self.idle is None else self.idle
        own = [greatest.get(source, MIN_TICK) for source in sources]
        before = []
        for time, code in zip(times.tolist(), found.codes.tolist(), strict=True):
            before.append(bound)
            if time > own[code] > least and time - least <= reach:
                if time >= bound:
                    own[code] = greatest[sources[code]] = time
                    if time > newest:  # noqa: PLR1730 - a call to max costs more than all the rest
                        newest = time
            elif time >= bound:
                state["newest"] = newest
                if _raise(state, sources[code], time):
                    own[code] = time
                    self._settle(state)
                    bound, newest = state["bound"], state["newest"]
                    least = END_OF_TIME if state["awaited"] else state["heap"][0][0]
        state["newest"] = newest
        return np.array(before, np.int64)

    def _started(self, state: State | None) -> State:
        if state is not None:
            return state
        awaited = list(dict.fromkeys(canonical(s) for s in self.sources))
        return {"greatest": {}, "heap": [], "awaited": awaited, "first": None, "newest": MIN_TICK, "bound": MIN_TICK,
                "made": 0}  # fmt: skip

    def _settle(self, state: State) -> None:
        """Forget what is idle, and let the bound follow the least of the rest."""
        newest = state["newest"]
        floor = MIN_TICK if self.idle is None else earlier(newest, self.idle)
        if state["awaited"]:
            if self.idle is None or state["first"] >= floor:
                return
            state["awaited"] = []  # the stream has come too far to wait for them
        greatest, heap = state["greatest"], state["heap"]
        while heap:
            noted, number, source = heap[0]
            time = greatest[source]
            if time < floor:
                heappop(heap)
                del greatest[source]
            elif time > noted:
                heapreplace(heap, (time, number, source))
            else:
                state["bound"] = max(state["bound"], earlier(time, self.disorder))
                return

    def _by_column(self, state: State, times: np.ndarray, found: Coded, names: Sequence[Any]) -> np.ndarray | None:
        """The bound before each row; None where a late row would count, which columns cannot tell."""
        first = int(times[0]) if state["first"] is None else state["first"]
        newest = np.maximum.accumulate(np.concatenate(([state["newest"]], times)))
        floor = None if self.idle is None else _earlier(newest, self.idle)
        least = np.full(len(times) + 1, END_OF_TIME, np.int64)
        held = np.zeros(len(times) + 1, np.bool_)
        raising = np.zeros(len(times), np.bool_)
        code_of = {source: code for code, source in enumerate(found.sources)}
        reached: dict[Any, int] = {}
        for source in names:
            own = found.codes == code_of[source] if source in code_of else None
            start = state["greatest"].get(source, MIN_TICK)
            if own is None:
                greatest = np.full(len(times) + 1, start, np.int64)
            else:
                greatest = np.maximum.accumulate(np.concatenate(([start], np.where(own, times, MIN_TICK))))
                raising |= own & (times > greatest[:-1])
                reached[source] = int(greatest[-1])
            unseen = greatest == MIN_TICK
            if source in state["awaited"]:
                held |= unseen if floor is None else unseen & (first >= floor)
            counts = ~unseen if floor is None else ~unseen & (greatest >= floor)
            np.minimum(least, np.where(counts, greatest, END_OF_TIME), out=least)
        held |= least == END_OF_TIME
        allowed = np.where(held, MIN_TICK, _earlier(least, self.disorder))
        bounds = np.maximum.accumulate(np.maximum(allowed, state["bound"]))
        before: np.ndarray = bounds[:-1]
        if (raising & (times < before)).any():
            return None
        state["first"] = first
        for source, time in reached.items():
            _raise(state, source, time)
        self._settle(state)
        state["bound"] = int(bounds[-1])
        return before


def _raise(state: State, source: Any, time: int) -> bool:
    """Whether a source has come further; it is known from then on."""
    known = state["greatest"].get(source)
    if known is None:
        heappush(state["heap"], (time, state["made"], source))
        state["made"] += 1
        if source in state["awaited"]:
            state["awaited"].remove(source)
    elif time <= known:
        return False
    state["greatest"][source] = time
    state["newest"] = max(state["newest"], time)
    return True


def _earlier(times: np.ndarray, by: int) -> np.ndarray:
    """Times less a length; what would lie before all time is no bound."""
    return np.where(times < MIN_TICK + by, MIN_TICK, times - by)
