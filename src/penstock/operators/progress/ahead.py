"""Rows from the far future, which would move every bound: they are put aside before they count for progress.

A row is too far ahead when its time is more than `max_ahead` beyond what the stream has *reached*: the greatest time
admitted so far, or a bound that was given from outside. By row, the first row of a stream is admitted, and each further
one is judged by those before it. By batch, where rows have no order among them, a row is admitted if any order would
admit it: the times are walked upwards from what was reached, in steps of at most `max_ahead`. A first batch has nothing
to be judged by; there the stretch with the most rows counts as reached (of two alike the earlier), so that neither a
row of 1970 nor one of 2099 decides. Rows below what was reached are never too far ahead, only late, perhaps. Rows that
are refused for another reason, as punctuation that is ambiguous is, are not judged here and move nothing.

A stream that is silent for longer than `max_ahead` stays behind for good: every later row is too far ahead. Somebody
must say so, by a bound from outside.

Summary: the stretches of time in which rows are at most `max_ahead` apart, ascending: first and last time, how many
rows, and what the tracker itself needs of them. Mostly there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.model.time import END_OF_TIME
from penstock.operators.progress.marks import AMBIGUOUS, Coded, Marks

if TYPE_CHECKING:
    from penstock.operators.progress.trackers import Tracker

Stretch = tuple[int, int, int, Any]
State = tuple[int | None, Any]


@dataclass(frozen=True)
class GuardedTracker:
    """A tracker that is spared the rows that are too far ahead. State: what was reached, and the tracker's own."""

    inner: Tracker
    max_ahead: int
    punctuated: bool = False
    """Whether marks say which rows are punctuation."""

    def judges(self, marks: Marks) -> np.ndarray | None:
        """Which rows are judged here; None if all are."""
        if not self.punctuated:
            return None
        taken = np.asarray(marks) < AMBIGUOUS
        return None if taken.all() else taken

    # By batch

    def summarise(self, times: np.ndarray, marks: Marks) -> list[Stretch]:
        """The stretches of some rows."""
        taken = self.judges(marks)
        if taken is not None:
            times, marks = times[taken], chosen_marks(marks, np.flatnonzero(taken))
        order = np.argsort(times, kind="stable")
        ascending = times[order]
        # Differences of times may not fit 64 bits with a sign; without one they do.
        gaps = np.flatnonzero(np.diff(ascending.astype(np.uint64)) > np.uint64(self.max_ahead)) + 1
        stretches = []
        for part in np.split(order, gaps) if len(times) else ():
            chosen = np.sort(part)
            own = times[chosen]
            summary = self.inner.summarise(own, chosen_marks(marks, chosen))
            stretches.append((int(own.min()), int(own.max()), len(own), summary))
        return stretches

    def join(self, left: list[Stretch], right: list[Stretch]) -> list[Stretch]:
        """The stretches of both, those together that touch."""
        joined: list[Stretch] = []
        for first, last, rows, summary in sorted([*left, *right], key=lambda stretch: stretch[0]):
            if joined and first - joined[-1][1] <= self.max_ahead:
                before = joined[-1]
                together = self.inner.join(before[3], summary)
                joined[-1] = (before[0], max(before[1], last), before[2] + rows, together)
            else:
                joined.append((first, last, rows, summary))
        return joined

    def reach(self, state: State | None, summary: list[Stretch]) -> int:
        """What is reached with a batch: its rows beyond that are too far ahead."""
        reached = None if state is None else state[0]
        if reached is None:
            if not summary:
                return END_OF_TIME
            return max(summary, key=lambda stretch: (stretch[2], -stretch[0]))[1]
        for first, last, _, _ in summary:
            if first - reached > self.max_ahead:
                break
            reached = max(reached, last)
        return reached

    def advance(self, state: State | None, summary: list[Stretch]) -> State:
        """The tracker sees what was admitted, as one batch."""
        reached, own = state if state is not None else (None, None)
        if not summary:
            return reached, own
        reached = self.reach(state, summary)
        admitted: Any = None
        for first, _, _, part in summary:
            if first <= reached:
                admitted = part if admitted is None else self.inner.join(admitted, part)
        return reached, own if admitted is None else self.inner.advance(own, admitted)

    def bound(self, state: State | None) -> int:
        """The tracker's own."""
        return self.inner.bound(None if state is None else state[1])

    # By row

    def admit(self, state: State | None, times: np.ndarray) -> tuple[np.ndarray, State, list[int]]:
        """Which rows are admitted, the state after them as far as the guard goes, and what was reached before others.

        While all are admitted one running maximum tells so; from the first that is not, rows are taken one by one.
        """
        reached, own = state if state is not None else (None, None)
        mask = np.ones(len(times), np.bool_)
        if not len(times):
            return mask, (reached, own), []
        first = int(times[0]) if reached is None else reached
        before = np.maximum.accumulate(np.concatenate(([first], times[:-1])))
        limit = np.where(before > END_OF_TIME - self.max_ahead, END_OF_TIME, before + self.max_ahead)
        beyond = np.flatnonzero(times > limit)
        if not len(beyond):
            return mask, (max(int(before[-1]), int(times[-1])), own), []
        start = int(beyond[0])
        reached = int(before[start])
        refused: list[int] = []
        for i, time in enumerate(times[start:].tolist(), start):
            if time - reached > self.max_ahead:
                mask[i] = False
                refused.append(reached)
            else:
                reached = max(reached, time)
        return mask, (reached, own), refused

    def by_row(
        self, state: State | None, times: np.ndarray, marks: Marks, *, loosely: bool = False
    ) -> tuple[np.ndarray, State]:
        """The tracker's own, over rows that were admitted."""
        reached, own = state if state is not None else (None, None)
        before, own = self.inner.by_row(own, times, marks, loosely=loosely)
        return before, (reached, own)

    def observe(self, state: State | None, time: int, mark: Any) -> State:
        """The tracker's own, of a row that was admitted."""
        reached, own = state if state is not None else (None, None)
        return time if reached is None else max(reached, time), self.inner.observe(own, time, mark)

    def told(self, state: State | None, bound: int) -> State:
        """A bound came from outside: the stream has reached it."""
        reached, own = state if state is not None else (None, None)
        return bound if reached is None else max(reached, bound), own


def chosen_marks(marks: Marks, places: np.ndarray) -> Marks:
    """The marks of some rows."""
    if marks is None:
        return None
    if isinstance(marks, Coded):
        return Coded(marks.codes[places], marks.sources)
    if isinstance(marks, np.ndarray):
        return np.asarray(marks[places])
    return [marks[i] for i in places.tolist()]
