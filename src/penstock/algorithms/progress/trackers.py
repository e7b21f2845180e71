"""From arrivals to bounds, one tracker per kind of progress (thesis 8.1).

A tracker sums up arrivals (`summarise`), joins summaries of parts of a batch (`join`) and carries its state on
(`advance`); `bound` is what the state allows. That is all there is where a source gives no order inside a batch: every
row is judged by the bound after the batch before. Where order inside a batch counts, `by_row` gives the bound that
precedes each row as well. State and summaries are plain values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from penstock.model.progress import Bounded, Ordered, PerSource, Progress, Punctuated, span_ticks
from penstock.model.time import MIN_TICK, Domain

Marks = Sequence[Any] | np.ndarray | None
"""What a tracker needs of each row besides its time: the source, or whether it is punctuation."""


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

    def by_row(self, state: Any, times: np.ndarray, marks: Marks) -> tuple[np.ndarray, Any]:
        """The bound that precedes each row, and the state after them all."""


def tracker_for(progress: Progress, domain: Domain) -> Tracker:
    """The tracker of a configuration."""
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


def _greatest(times: np.ndarray) -> int:
    return int(times.max()) if len(times) else MIN_TICK


def _running(start: int, times: np.ndarray) -> np.ndarray:
    """The running maximum, beginning with what was there before."""
    return np.maximum.accumulate(np.concatenate((np.array([start], np.int64), times)).astype(np.int64))


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
        return MIN_TICK if state is None or state == MIN_TICK else state - self.delay

    def by_row(self, state: int | None, times: np.ndarray, marks: Marks) -> tuple[np.ndarray, int]:
        """A running maximum less the delay."""
        running = _running(MIN_TICK if state is None else state, times)
        before = np.where(running == MIN_TICK, MIN_TICK, running - self.delay)
        return before[:-1], int(running[-1])


@dataclass(frozen=True)
class RowsTracker:
    """The greatest time among all rows but the last n.

    State: the greatest time that counts, and for the newest arrivals that together are at least n, oldest first, how
    many came at once (one each, where order counts) and their greatest time. Rows of which the order is not known are
    left out together.
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
        counted, recent = (MIN_TICK, []) if state is None else state
        recent = [*recent, summary] if summary[0] else list(recent)
        newer = sum(n for n, _ in recent)
        while recent and newer - recent[0][0] >= self.rows:
            newer -= recent[0][0]
            counted = max(counted, recent.pop(0)[1])
        return counted, recent

    def bound(self, state: Any) -> int:
        """The greatest time that counts."""
        return MIN_TICK if state is None else int(state[0])

    def by_row(self, state: Any, times: np.ndarray, marks: Marks) -> tuple[np.ndarray, Any]:
        """A running maximum that lags n rows behind."""
        counted, recent = (MIN_TICK, []) if state is None else state
        if any(n != 1 for n, _ in recent):
            return self._one_by_one(state, times)
        tail = np.array([t for _, t in recent], np.int64)
        sequence = np.concatenate((tail, times)).astype(np.int64)
        running = _running(counted, sequence)
        bounds = running[np.maximum(np.arange(len(times) + 1) + len(tail) - self.rows, 0)]
        kept = sequence[max(len(sequence) - self.rows, 0) :].tolist()
        return bounds[:-1], (int(bounds[-1]), [(1, t) for t in kept])

    def _one_by_one(self, state: Any, times: np.ndarray) -> tuple[np.ndarray, Any]:
        before = np.empty(len(times), np.int64)
        for i, time in enumerate(times.tolist()):
            before[i] = self.bound(state)
            state = self.advance(state, (1, time))
        return before, state


@dataclass(frozen=True)
class PunctuationTracker:
    """The greatest bound that a punctuation row carried; marks say which rows are punctuation.

    State and summary: that bound.
    """

    def summarise(self, times: np.ndarray, marks: Marks) -> int:
        """The greatest bound carried."""
        return _greatest(times[np.asarray(marks, dtype=bool)])

    def join(self, left: int, right: int) -> int:
        """The greater."""
        return max(left, right)

    def advance(self, state: int | None, summary: int) -> int:
        """The greater."""
        return summary if state is None else max(state, summary)

    def bound(self, state: int | None) -> int:
        """As carried."""
        return MIN_TICK if state is None else state

    def by_row(self, state: int | None, times: np.ndarray, marks: Marks) -> tuple[np.ndarray, int]:
        """A running maximum over punctuation rows."""
        carried = np.where(np.asarray(marks, dtype=bool), times, MIN_TICK)
        running = _running(self.bound(state), carried)
        return running[:-1], int(running[-1])


Sources = tuple[dict[Any, int], int | None]


@dataclass(frozen=True)
class SourcesTracker:
    """The least bound over the sources that are not idle; marks name the source of each row.

    Summary: the greatest time per source, and the first time. State: the same of the whole stream, and the bound, which
    never goes back.
    """

    disorder: int
    idle: int | None
    sources: tuple[Any, ...]

    def summarise(self, times: np.ndarray, marks: Marks) -> Sources:
        """The greatest time per source."""
        greatest: dict[Any, int] = {}
        for time, source in zip(times.tolist(), marks if marks is not None else (), strict=True):
            if time > greatest.get(source, MIN_TICK):
                greatest[source] = time
        return greatest, int(times.min()) if len(times) else None

    def join(self, left: Sources, right: Sources) -> Sources:
        """The greater per source."""
        greatest = dict(left[0])
        for source, time in right[0].items():
            greatest[source] = max(time, greatest.get(source, MIN_TICK))
        firsts = [first for first in (left[1], right[1]) if first is not None]
        return greatest, min(firsts, default=None)

    def advance(self, state: Any, summary: Sources) -> Any:
        """Take the summary in; the bound only goes up."""
        bound = self.bound(state)
        greatest, first = ({}, None) if state is None else state[0]
        # A source of which everything was late is not made known by it.
        on_time = {source: time for source, time in summary[0].items() if time >= bound}
        seen = (self.join((greatest, None), (on_time, None))[0], summary[1] if first is None else first)
        return seen, max(bound, self._allowed(seen))

    def bound(self, state: Any) -> int:
        """The bound so far."""
        return MIN_TICK if state is None else int(state[1])

    def _allowed(self, seen: Sources) -> int:
        greatest, first = seen
        if first is None:
            return MIN_TICK
        newest = max(greatest.values())
        if any(s not in greatest for s in self.sources) and (self.idle is None or newest - first <= self.idle):
            return MIN_TICK
        return min(g for g in greatest.values() if self.idle is None or newest - g <= self.idle) - self.disorder

    def by_row(self, state: Any, times: np.ndarray, marks: Marks) -> tuple[np.ndarray, Any]:
        """Row by row; only a row that is the newest of its source can move the bound."""
        before = np.empty(len(times), np.int64)
        (greatest, first), bound = (({}, None), MIN_TICK) if state is None else state
        greatest = dict(greatest)
        for i, (time, source) in enumerate(zip(times.tolist(), marks if marks is not None else (), strict=True)):
            before[i] = bound
            first = time if first is None else first
            if time >= bound and time > greatest.get(source, MIN_TICK):
                greatest[source] = time
                bound = max(bound, self._allowed((greatest, first)))
        return before, ((greatest, first), bound)
