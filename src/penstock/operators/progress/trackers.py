"""From arrivals to bounds, one tracker per kind of progress (thesis 8.1).

A tracker sums up arrivals (`summarise`), joins summaries of parts of a batch (`join`) and carries its state on
(`advance`); `bound` is what the state allows. That is all there is where a source gives no order inside a batch: every
row is judged by the bound after the batch before. Where order inside a batch counts, `by_row` gives the bound that
precedes each row as well, and `observe` takes one row. State and summaries are plain values; a state that was handed in
may be changed in place, so only the one that is given back is good afterwards. A bound that would lie before all time
is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from penstock.model.estimated import Estimated
from penstock.model.progress import Bounded, Ordered, PerSource, Punctuated, Single, span_ticks
from penstock.model.time import MIN_TICK, Domain, earlier
from penstock.model.timer import Timer
from penstock.operators.progress.ahead import GuardedTracker
from penstock.operators.progress.estimates import EstimateTracker
from penstock.operators.progress.marks import PUNCTUATION, Marks
from penstock.operators.progress.running import greatest_before_late, running_greatest
from penstock.operators.progress.sources import SourcesTracker
from penstock.operators.progress.timers import TimerTracker


class Tracker(Protocol):
    """Follows the progress of one stream; the state is None at the start."""

    def summarise(self, times: np.ndarray, marks: Marks) -> Any:
        """What counts of some rows that arrived."""

    def join(self, left: Any, right: Any) -> Any:
        """The summary of both."""

    def advance(self, state: Any, summary: Any) -> Any:
        """The state after a batch with that summary."""

    def bound(self, state: Any) -> int:
        """No later row is below this."""

    def observe(self, state: Any, time: int, mark: Any) -> Any:
        """The state after one more row."""

    def by_row(self, state: Any, times: np.ndarray, marks: Marks, *, loosely: bool = False) -> tuple[np.ndarray, Any]:
        """The bound that precedes each row, and the state after them all.

        Taken loosely, a row that is not below the bound that precedes it may be given an earlier one.
        """


def tracker_for(progress: Single, domain: Domain, max_ahead: int | None = None) -> Tracker:
    """The tracker of a configuration; with `max_ahead`, one that is spared the rows further ahead than that."""
    plain = _tracker(progress, domain)
    return plain if max_ahead is None else GuardedTracker(plain, max_ahead, isinstance(progress, Punctuated))


def _tracker(progress: Single, domain: Domain) -> Tracker:
    match progress:
        case Ordered():
            return DelayTracker(0)
        case Bounded(delay=delay, rows=None):
            assert delay is not None
            return DelayTracker(span_ticks(delay, domain))
        case Bounded(rows=rows):
            assert rows is not None
            return RowsTracker(rows)
        case Punctuated():
            return PunctuationTracker()
        case PerSource():
            idle = None if progress.idle is None else span_ticks(progress.idle, domain)
            return SourcesTracker(span_ticks(progress.disorder, domain), idle, progress.sources)
        case Estimated():
            return EstimateTracker(progress)
        case Timer():
            return TimerTracker(progress.period, span_ticks(progress.disorder, domain))


MIN_COLUMNAR = 32
"""Fewer rows than this are cheaper one by one."""


def _greatest(times: np.ndarray) -> int:
    return int(times.max()) if len(times) else MIN_TICK


@dataclass(frozen=True)
class DelayTracker:
    """The greatest time less a delay. State and summary: the greatest time."""

    delay: int

    def summarise(self, times: np.ndarray, marks: Marks) -> int:
        """The greatest time."""
        return _greatest(times)

    def join(self, left: int, right: int) -> int:
        """The greater."""
        return max(left, right)

    def advance(self, state: int | None, summary: int) -> int:
        """The greater."""
        return summary if state is None else max(state, summary)

    def bound(self, state: int | None) -> int:
        """Less the delay, once there is a time."""
        return MIN_TICK if state is None else earlier(state, self.delay)

    def observe(self, state: int | None, time: int, mark: Any) -> int:
        """The greater."""
        return time if state is None else max(state, time)

    def by_row(
        self, state: int | None, times: np.ndarray, marks: Marks, *, loosely: bool = False
    ) -> tuple[np.ndarray, int]:
        """A running maximum less the delay."""
        start = MIN_TICK if state is None else state
        running = greatest_before_late(start, times, self.delay) if loosely else running_greatest(start, times)
        newest = int(running[-1])
        if int(running[0]) < MIN_TICK + self.delay:
            running = np.where(running < MIN_TICK + self.delay, MIN_TICK, running - self.delay)
        else:
            running -= self.delay
        return running[:-1], newest


@dataclass(frozen=True)
class RowsTracker:
    """The greatest time among all rows but the last n.

    State: the greatest time that counts, how many rows do not count yet, and of those, oldest first, how many came at
    once (one each, where order counts) and their greatest time. Rows of which the order is not known are left out
    together. The state is changed in place.
    """

    rows: int

    def summarise(self, times: np.ndarray, marks: Marks) -> tuple[int, int]:
        """How many, and the greatest time."""
        return len(times), _greatest(times)

    def join(self, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
        """All of both."""
        return left[0] + right[0], max(left[1], right[1])

    def advance(self, state: Any, summary: tuple[int, int]) -> Any:
        """Arrivals that are no longer among the newest n count from now on."""
        counted, held, recent = (MIN_TICK, 0, []) if state is None else state
        if summary[0]:
            recent.append(summary)
            held += summary[0]
        while recent and held - recent[0][0] >= self.rows:
            size, greatest = recent.pop(0)
            held -= size
            counted = max(counted, greatest)
        return counted, held, recent

    def bound(self, state: Any) -> int:
        """The greatest time that counts."""
        return MIN_TICK if state is None else int(state[0])

    def observe(self, state: Any, time: int, mark: Any) -> Any:
        """One row came."""
        counted, held, recent = (MIN_TICK, 0, []) if state is None else state
        if held >= self.rows and recent and recent[0][0] == 1:  # as it is where order counts: one comes, one goes
            recent.append((1, time))
            greatest = recent.pop(0)[1]
            return (greatest if greatest > counted else counted), held, recent
        return self.advance((counted, held, recent), (1, time))

    def by_row(self, state: Any, times: np.ndarray, marks: Marks, *, loosely: bool = False) -> tuple[np.ndarray, Any]:
        """A running maximum that lags n rows behind."""
        counted, held, recent = (MIN_TICK, 0, []) if state is None else state
        if len(times) < min(MIN_COLUMNAR, self.rows) or held != len(recent):  # few rows, or some came at once
            return self._one_by_one(state, times)
        tail = np.array([t for _, t in recent], np.int64)
        sequence = np.concatenate((tail, times)).astype(np.int64)
        running = running_greatest(counted, sequence)
        bounds = running[np.maximum(np.arange(len(times) + 1) + len(tail) - self.rows, 0)]
        kept = sequence[max(len(sequence) - self.rows, 0) :].tolist()
        return bounds[:-1], (int(bounds[-1]), len(kept), [(1, t) for t in kept])

    def _one_by_one(self, state: Any, times: np.ndarray) -> tuple[np.ndarray, Any]:
        before = np.empty(len(times), np.int64)
        for i, time in enumerate(times.tolist()):
            before[i] = self.bound(state)
            state = self.observe(state, time, None)
        return before, state


@dataclass(frozen=True)
class PunctuationTracker:
    """The greatest bound that a punctuation row carried; marks say which rows are punctuation that counts.

    State and summary: that bound.
    """

    def summarise(self, times: np.ndarray, marks: Marks) -> int:
        """The greatest bound carried."""
        return _greatest(times[np.asarray(marks) == PUNCTUATION])

    def join(self, left: int, right: int) -> int:
        """The greater."""
        return max(left, right)

    def advance(self, state: int | None, summary: int) -> int:
        """The greater."""
        return summary if state is None else max(state, summary)

    def bound(self, state: int | None) -> int:
        """As carried."""
        return MIN_TICK if state is None else state

    def observe(self, state: int | None, time: int, mark: Any) -> int:
        """The greater, of punctuation."""
        return max(self.bound(state), time) if mark == PUNCTUATION else self.bound(state)

    def by_row(
        self, state: int | None, times: np.ndarray, marks: Marks, *, loosely: bool = False
    ) -> tuple[np.ndarray, int]:
        """A running maximum over punctuation rows."""
        places = np.flatnonzero(np.asarray(marks) == PUNCTUATION)
        running = running_greatest(self.bound(state), times[places])
        return np.repeat(running, np.diff(places, prepend=-1, append=len(times) - 1)), int(running[-1])
