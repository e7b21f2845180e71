"""Where a stream enters a query: what both forms of `Ingest` share.

Rows are put into those on time, late, dead and punctuation (`lateness.py` says what is late); what is told from outside
is kept; and bounds are passed on. Punctuation is put out only when it crosses a boundary that the consumer named as
useful (thesis 8.1): between two boundaries no window can close.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.operator import BoundMemory, Operator, Outputs, Rejected
from penstock.operators.progress import lateness
from penstock.operators.progress.ahead import GuardedTracker
from penstock.operators.progress.marks import (
    AMBIGUOUS,
    DATA,
    GROUPWISE,
    PUNCTUATION,
    UNJUDGED,
    Coded,
    Marks,
    PunctuationMarks,
)
from penstock.operators.progress.promises import GroupPromises
from penstock.operators.progress.timers import TimerTracker
from penstock.operators.progress.trackers import PunctuationTracker, Tracker
from penstock.operators.state import PROMISES


class MarksOf(Protocol):
    """What a tracker asks for of each row besides its time."""

    def __call__(self, batch: Batch) -> Coded | np.ndarray:
        """Of many rows."""

    def single(self, row: Row) -> Any:
        """Of one row."""


@dataclass(frozen=True)
class Split:
    """A batch by what becomes of its rows."""

    rejected: list[Rejected]
    batch: Batch
    kept: np.ndarray
    """Which rows of the batch are on time."""

    @cached_property
    def size(self) -> int:
        """How many those are."""
        return int(np.count_nonzero(self.kept))

    @cached_property
    def on_time(self) -> Batch:
        """The rows on time."""
        return self.batch if self.size == len(self.kept) else self.batch.select(self.kept)


class Ingest(Operator):
    """What both forms share: splitting a batch, and passing on useful bounds."""

    kind = "punctuation"
    greatest: int | None = None
    """The greatest time of the rows that were on time, as far as a form keeps it."""

    def __init__(
        self,
        schema: Schema,
        tracker: Tracker,
        marks_of: MarksOf | None = None,
        useful: tuple[int, int] = (1, 0),
        *,
        by_arrival: bool = False,
        groups: GroupPromises | None = None,
        is_in_place: bool = True,
    ) -> None:
        """`marks_of` gives the tracker what it asks for besides time; `useful`: step and origin of useful bounds.

        `is_in_place`: whoever takes the results wants punctuation where it stood, and not after a batch of rows.
        """
        super().__init__(schema)
        self.tracker, self.marks_of, self.groups = tracker, marks_of, groups
        self.step, self.origin = useful
        self.is_in_place, self.by_arrival = is_in_place, by_arrival
        """Rows are only numbered by whoever follows: none is late, and no bound but the end is of use."""
        self.passed_on = BoundMemory()
        self.guard = tracker if isinstance(tracker, GuardedTracker) else None
        self.is_punctuated = isinstance(self.guard.inner if self.guard else tracker, PunctuationTracker)
        inner = self.guard.inner if self.guard else tracker
        self.timer = inner if isinstance(inner, TimerTracker) else None
        self.is_ticked = self.timer is not None
        self.punctuation = 0
        """How many rows were punctuation and said so in order, since the operator was made."""
        self.skipped = 0
        """How many rows were skipped because nobody needs them, since the operator was made."""

    def takes(self, punctuation: Punctuation) -> bool:
        """Whether it can judge by what is promised from outside."""
        return self.is_on_time(punctuation) or (self.groups is not None and self.groups.can_use(punctuation))

    def tick(self, now: int) -> Outputs:
        """A timer may fire, and say what the rows have reached."""
        if self.timer is None:
            return
        state = self.pages.get("progress")
        if self.guard is None:
            state = self.timer.fire(state, now)
        else:
            reached, own = state if state is not None else (None, None)
            state = reached, self.timer.fire(own, now)
        self.pages.put("progress", state)
        self._forget_passed()
        yield from self.pass_on(self.tracker.bound(state))

    def require(self, useful: tuple[int, int], told: int) -> None:
        """Bounds are counted by the new step."""
        self.step, self.origin = useful
        self.passed_on.set(self.pages, None if told == MIN_TICK else self._useful(told))

    def reach(self, time: int) -> None:
        """A row of that time was on time."""
        if self.greatest is None or time > self.greatest:
            self.greatest = time

    def marks(self, batch: Batch) -> Marks:
        """What the tracker asks for of each row."""
        return self.marks_of(batch) if self.marks_of is not None else None

    def split(self, batch: Batch, times: np.ndarray, marks: Marks, before: np.ndarray | int) -> Split:
        """The rows on time, and those that are late or dead; punctuation rows are neither."""
        bounds = np.broadcast_to(np.asarray(before, np.int64), times.shape)
        late = lateness.is_late(batch, times, bounds)
        if self.by_arrival and not self.has_ended:
            late = late & (np.asarray(marks) != DATA) if self.is_punctuated else np.zeros(len(times), np.bool_)
        keep = ~late
        rejected: list[Rejected] = []
        if self.is_punctuated:
            kinds = np.asarray(marks)
            is_data = kinds == DATA
            if not is_data.all():
                speaks = (kinds == PUNCTUATION) | (kinds == GROUPWISE)
                backwards = late & speaks
                ambiguous = kinds == AMBIGUOUS
                self.punctuation += int(speaks.sum()) - int(backwards.sum())
                keep, late = keep & is_data, late & is_data
                if backwards.any():
                    rejected.append(lateness.backwards(batch.select(backwards), bounds[backwards].tolist()))
                if ambiguous.any():
                    rejected.append(lateness.ambiguous(batch.select(ambiguous), bounds[ambiguous].tolist()))
                rejected += self._unjudged(batch, kinds == UNJUDGED)
        needed = self.needed()
        if needed > MIN_TICK and batch.lives is None:
            skipped = keep & (times < needed)
            keep &= ~skipped
            self.skipped += int(skipped.sum())
        if late.any():
            rejected.append(lateness.late(batch.select(late), bounds[late].tolist()))
        return Split(rejected, batch, keep)

    def _unjudged(self, batch: Batch, mask: np.ndarray) -> list[Rejected]:
        """Rows of which it cannot be told whether they are punctuation."""
        if not mask.any():
            return []
        assert isinstance(self.marks_of, PunctuationMarks)
        rows = batch.select(mask)
        return [Rejected("dead", rows, (), [self.marks_of.reason(row) for row in rows.rows])]

    @staticmethod
    def late(batch: Batch, bounds: Sequence[int]) -> Rejected:
        """Rows that are all late, for whoever judges them in the entrance's stead."""
        return lateness.late(batch, bounds)

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """A bound from outside, such as the end of the stream: it also condemns the rows that follow it."""
        if self.groups is not None and self.groups.can_use(punctuation):
            yield from self._promised(punctuation)
        elif punctuation.is_linear:
            before = self.pages.get("outside")
            self.pages.put("outside", punctuation.value if before is None else max(before, punctuation.value))
            if self.guard is not None and not punctuation.is_end:
                self.pages.put("progress", self.guard.told(self.pages.get("progress"), punctuation.value))
            self._forget_passed()
            yield from self.pass_on(punctuation.value)

    def _promised(self, promise: Punctuation) -> Outputs:
        """What somebody outside promises of some rows."""
        frontier = self.frontier() or Frontier()
        known = max(self.linear(), frontier.bound(promise.attribute, dict(promise.constants)))
        if promise.value > known and frontier.add(promise):
            self.pages.put(PROMISES, frontier)
            yield from self.pass_on_promise(promise, known)

    def frontier(self) -> Frontier | None:
        """What was promised of groups, and with it as much of what the stream as a whole has come to."""
        found: Frontier | None = self.pages.get(PROMISES)
        return found

    def linear(self) -> int:
        """The bound of the stream as a whole."""
        return max(self.by_rows(), self.outside())

    def by_rows(self) -> int:
        """The bound that the stream's own rows allow."""
        return self.tracker.bound(self.pages.get("progress"))

    def _forget_passed(self) -> None:
        """Promises of groups that the stream as a whole has passed say nothing any more."""
        frontier, bound = self.frontier(), self.linear()
        if frontier is not None and bound > MIN_TICK and frontier.add(self.output_bound(bound)):
            self.pages.put(PROMISES, frontier)

    def outside(self) -> int:
        """The greatest bound that came from outside."""
        bound: int | None = self.pages.get("outside")
        return MIN_TICK if bound is None else bound

    def reached(self) -> int:
        """No later row is below this; only a few values are read, so that anybody may ask at any time."""
        return self.linear()

    @property
    def has_ended(self) -> bool:
        """Whether the stream was ended from outside."""
        return self.outside() == END_OF_TIME

    def feedback(self, bound: int) -> int | None:
        """Rows that are not needed are skipped: they count for progress and go no further.

        Rows with lives are not: an event that is not needed as it is may be made longer.
        """
        needed = bound if bound == END_OF_TIME else bound - self.schema.lifetime
        self.pages.put("needed", max(needed, self.needed()))
        return None

    def needed(self) -> int:
        """Rows before this time are not needed."""
        found: int | None = self.pages.get("needed")
        return MIN_TICK if found is None else found

    def pass_on(self, bound: int) -> Iterable[Punctuation]:
        """The bound as punctuation, if it says something new that is of use."""
        if bound == MIN_TICK or (self.by_arrival and bound != END_OF_TIME):
            return
        if self.passed_on.advance(self.pages, self._useful(bound)):
            yield self.output_bound(bound)

    def pass_on_all(self, bounds: Sequence[int]) -> list[Punctuation]:
        """Bounds that grow, as punctuation: those that say something new to somebody to whom every bound is of use."""
        if self.by_arrival or not bounds:
            return []
        new = bounds[bisect_right(bounds, self.passed_on.last(self.pages), key=self._useful) :]
        if new:
            self.passed_on.set(self.pages, self._useful(new[-1]))
        return [self.output_bound(bound) for bound in new]

    def pass_on_promise(self, promise: Punctuation, known: int) -> Iterable[Punctuation]:
        """The promise, if it is of use to somebody to whom `known` is known of the same rows."""
        if not self.by_arrival and (known == MIN_TICK or self._useful(promise.value) > self._useful(known)):
            yield promise

    def _useful(self, bound: int) -> int:
        """The number of the last useful bound up to this one."""
        return bound if bound == END_OF_TIME else (bound - self.origin) // self.step
