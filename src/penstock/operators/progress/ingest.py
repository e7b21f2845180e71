"""Ingest: where a stream enters a query. It puts late rows aside and turns what is known of progress into punctuation.

A row is late when its time is below the bound that precedes it; it is given back as `Rejected` with that bound, and
counts nowhere. An adjust is late by the lesser of its ends, and moves the stream's progress no further than its start:
that the end of an event is known says nothing of what comes next. `RowIngest` judges each row by the rows before it.
`BatchIngest` is for sources that give no order inside a batch: it judges by the bound after the batches before, and is
told by `advance` when a batch is complete.

Punctuation is put out only when it crosses a boundary that the consumer named as useful (thesis 8.1): between two
boundaries no window can close. A bound that follows from the rows is put out after their batch. A punctuation row that
is of use is put out by itself, and ends the batch where the consumer passes rows on as they come. A window does not:
rows after a punctuation are not below it, so the windows that it closes are the same with them or without, and the rows
of a batch may come first, all together. Punctuation that speaks for some rows alone (`promises.py`) goes the same ways.
What was promised of groups is kept as a frontier, beside what the tracker knows of the stream as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK, show_span, show_ticks
from penstock.operators.operator import BoundMemory, Operator, Outputs, Rejected
from penstock.operators.progress.ahead import GuardedTracker, chosen_marks
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
from penstock.operators.progress.promises import GroupPromises, Said
from penstock.operators.progress.trackers import PunctuationTracker, Tracker
from penstock.operators.state import PROMISES


class MarksOf(Protocol):
    """What a tracker asks for of each row besides its time."""

    def __call__(self, batch: Batch) -> Coded | np.ndarray:
        """Of many rows."""

    def single(self, row: Row) -> Any:
        """Of one row."""


AMBIGUOUS_REASON = (
    "punctuation with values besides its time might be meant for them alone: leave them null, "
    "or declare punctuated(…, per=[…]) if they are, punctuated(…, whole_stream=True) if they mean nothing"
)


@dataclass(frozen=True)
class Split:
    """A batch by what becomes of its rows."""

    rejected: list[Rejected]
    on_time: Batch
    kept: np.ndarray
    """Which rows of the batch are on time."""


class Ingest(Operator):
    """What both forms share: splitting a batch, and passing on useful bounds."""

    kind = "punctuation"

    def __init__(
        self,
        schema: Schema,
        tracker: Tracker,
        marks_of: MarksOf | None = None,
        useful: tuple[int, int] = (1, 0),
        *,
        by_arrival: bool = False,
        groups: GroupPromises | None = None,
    ) -> None:
        """`marks_of` gives the tracker what it asks for besides time; `useful`: step and origin of useful bounds."""
        super().__init__(schema)
        self.tracker, self.marks_of, self.groups = tracker, marks_of, groups
        self.step, self.origin = useful
        self.by_arrival = by_arrival
        """Rows are only numbered by whoever follows: none is late, and no bound but the end is of use."""
        self.passed_on = BoundMemory()
        self.guard = tracker if isinstance(tracker, GuardedTracker) else None
        self.is_punctuated = isinstance(self.guard.inner if self.guard else tracker, PunctuationTracker)
        self.punctuation = 0
        """How many rows were punctuation and said so in order, since the operator was made."""
        self.skipped = 0
        """How many rows were skipped because nobody needs them, since the operator was made."""

    def require(self, useful: tuple[int, int], told: int) -> None:
        """Bounds are counted by the new step."""
        self.step, self.origin = useful
        self.passed_on.set(self.pages, None if told == MIN_TICK else self._useful(told))

    def marks(self, batch: Batch) -> Marks:
        """What the tracker asks for of each row."""
        return self.marks_of(batch) if self.marks_of is not None else None

    def split(self, batch: Batch, times: np.ndarray, marks: Marks, before: np.ndarray | int) -> Split:
        """The rows on time, and those that are late or dead; punctuation rows are neither."""
        bounds = np.broadcast_to(np.asarray(before, np.int64), times.shape)
        late = (times if batch.lives is None else batch.lives.judged_by(times)) < bounds
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
                    below = bounds[backwards].tolist()
                    reasons = [self.goes_backwards(bound) for bound in below]
                    rejected.append(Rejected("dead", batch.select(backwards), below, reasons))
                if ambiguous.any():
                    alike = [AMBIGUOUS_REASON] * int(ambiguous.sum())
                    rejected.append(Rejected("dead", batch.select(ambiguous), bounds[ambiguous].tolist(), alike))
                rejected += self._unjudged(batch, kinds == UNJUDGED)
        needed = self.needed()
        if needed > MIN_TICK and batch.lives is None:
            skipped = keep & (times < needed)
            keep &= ~skipped
            self.skipped += int(skipped.sum())
        if late.any():
            rejected.append(self.late(batch.select(late), bounds[late].tolist()))
        return Split(rejected, batch if keep.all() else batch.select(keep), keep)

    def _unjudged(self, batch: Batch, mask: np.ndarray) -> list[Rejected]:
        """Rows of which it cannot be told whether they are punctuation."""
        if not mask.any():
            return []
        assert isinstance(self.marks_of, PunctuationMarks)
        rows = batch.select(mask)
        return [Rejected("dead", rows, (), [self.marks_of.reason(row) for row in rows.rows])]

    def late(self, batch: Batch, bounds: Sequence[int]) -> Rejected:
        """Rows that are all late, with the bound that condemned each."""
        return Rejected("late", batch, bounds, [self._reason("below the bound", bound) for bound in bounds])

    def _reason(self, why: str, bound: int) -> str:
        return f"{why} {show_ticks(bound, self.schema.domain)}"

    def goes_backwards(self, bound: int) -> str:
        """Why punctuation dies that is below a bound."""
        return self._reason("punctuation goes backwards, below the bound", bound)

    def is_ahead(self, reached: int) -> str:
        """Why a row dies that is too far ahead of what had been reached."""
        assert self.guard is not None
        limit = show_span(self.guard.max_ahead, self.schema.domain)
        return self._reason(f"more than {limit} ahead of", reached)

    def ahead(self, batch: Batch, reached: Sequence[int]) -> Rejected:
        """Rows that are all too far ahead."""
        return Rejected("dead", batch, reached, [self.is_ahead(tick) for tick in reached])

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
        return max(self.tracker.bound(self.pages.get("progress")), self.outside())

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
        return max(self.tracker.bound(self.pages.get("progress")), self.outside())

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

    def pass_on(self, bound: int) -> Outputs:
        """The bound as punctuation, if it says something new that is of use."""
        if bound == MIN_TICK or (self.by_arrival and bound != END_OF_TIME):
            return
        if self.passed_on.advance(self.pages, self._useful(bound)):
            yield self.output_bound(bound)

    def pass_on_promise(self, promise: Punctuation, known: int) -> Outputs:
        """The promise, if it is of use to somebody to whom `known` is known of the same rows."""
        if not self.by_arrival and (known == MIN_TICK or self._useful(promise.value) > self._useful(known)):
            yield promise

    def _useful(self, bound: int) -> int:
        """The number of the last useful bound up to this one."""
        return bound if bound == END_OF_TIME else (bound - self.origin) // self.step


class RowIngest(Ingest):
    """Judges each row by the rows before it."""

    greatest: int | None = None
    """The greatest time of the rows that were on time, since the operator was made."""

    def process(self, port: int, batch: Batch) -> Outputs:
        """Split the batch, then say how far the stream has come."""
        if not len(batch):
            return
        if len(batch) == 1 and not batch.columnar and self.guard is None and batch.lives is None:
            row = batch.rows[0]
            mark = self.marks_of.single(row) if self.marks_of is not None else None
            if not self.is_punctuated or mark == DATA:
                yield from self._single(batch, row[self.schema.time_index], mark)  # type: ignore[arg-type]
                return
        times, state = batch.times(), self.pages.get("progress")
        marks = self.marks(batch)
        if self.guard is not None:
            taken = self.guard.judges(marks)
            admitted, state, refused = self.guard.admit(state, times if taken is None else times[taken])
            if refused:
                if taken is not None:
                    admitted = _spread(admitted, taken)
                yield self.ahead(batch.select(~admitted), refused)
                batch, times = batch.select(admitted), times[admitted]
                marks = chosen_marks(marks, np.flatnonzero(admitted))
        if self.by_arrival and not self.is_punctuated:
            before = np.full(len(times), MIN_TICK, np.int64)
        else:
            before, state = self.tracker.by_row(state, times, marks)
        self.pages.put("progress", state)
        condemning, said = self._with_promises(batch, marks, np.maximum(before, self.outside()))
        split = self.split(batch, times, marks, condemning)
        yield from split.rejected
        if len(split.on_time):
            self.reach(int((times if split.kept.all() else times[split.kept]).max()))
        start = 0
        for place, passed in self._ends(times, marks, before, said):
            end = int(np.count_nonzero(split.kept[:place])) if self.step == 1 else len(split.on_time)
            if end > start:
                yield split.on_time.part(start, end)
                start = end
            yield from passed
        if start < len(split.on_time):
            yield split.on_time.part(start, len(split.on_time))
        if self.groups is not None:
            self._forget_passed()
        yield from self.pass_on(self.tracker.bound(state))

    def _single(self, batch: Batch, time: int, mark: Any) -> Outputs:
        """One row of data: the same as many, without arrays."""
        state, outside = self.pages.get("progress"), self.outside()
        bound = max(self.tracker.bound(state), outside)
        frontier = self.frontier() if self.groups is not None else None
        if frontier is not None and self.groups is not None:
            bound = max(bound, self.groups.bound(frontier, batch.rows[0]))
        if self.by_arrival:
            bound = outside if outside == END_OF_TIME else MIN_TICK
        else:
            state = self.tracker.observe(state, time, mark)
            self.pages.put("progress", state)
        if time < bound:
            yield self.late(batch, [bound])
        elif time < self.needed():
            self.skipped += 1
        else:
            self.reach(time)
            yield batch
        if not self.by_arrival:
            yield from self.pass_on(self.tracker.bound(state))

    def reach(self, time: int) -> None:
        """A row of that time was on time."""
        if self.greatest is None or time > self.greatest:
            self.greatest = time

    def _with_promises(self, batch: Batch, marks: Marks, linear: np.ndarray) -> tuple[np.ndarray, list[Said]]:
        """The bound that condemns each row, with what is promised of groups, and the promises that are new."""
        if self.groups is None:
            return linear, []
        kinds, frontier = np.asarray(marks), self.frontier() or Frontier()
        said = self.groups.said_in(batch, kinds)
        if not said and not len(frontier):
            return linear, []
        bounds = self.groups.held(frontier, batch)
        taken, forbidden = self.groups.taken(frontier, said, linear)
        self.groups.follow(bounds, batch, taken)
        condemning = _of_groups(kinds, linear, bounds)
        for place, bound in forbidden.items():
            condemning[place] = bound
        if taken:
            self.pages.put(PROMISES, frontier)
        return condemning, taken

    def _ends(
        self, times: np.ndarray, marks: Marks, before: np.ndarray, said: Sequence[Said]
    ) -> Iterator[tuple[int, Outputs]]:
        """The places of punctuation rows that say something new and useful, each with what is passed on."""
        if not self.is_punctuated:
            return
        places = np.flatnonzero((np.asarray(marks) == PUNCTUATION) & (times > before))
        useful = (times[places] - self.origin) // self.step
        fresh = np.ones(len(places), np.bool_)
        fresh[1:] = useful[1:] > useful[:-1]
        ends = [(place, self.pass_on(int(times[place]))) for place in places[fresh].tolist()]
        ends += [(each.place, self.pass_on_promise(each.promise, each.known)) for each in said]
        yield from sorted(ends, key=lambda end: end[0])


class BatchIngest(Ingest):
    """Judges every row by the batches before its own."""

    limit: int | None = None
    """What is reached with the batch at hand: its rows beyond that are too far ahead."""
    greatest: int | None = None
    """The greatest time of the rows that were on time, since somebody set it to None."""

    def process(self, port: int, batch: Batch) -> Outputs:
        """Split the batch; progress waits for `advance`."""
        marks = self.marks(batch) if len(batch) else None
        if self.limit is not None and self.guard is not None and len(batch):
            beyond, taken = batch.times() > self.limit, self.guard.judges(marks)
            beyond = beyond if taken is None else beyond & taken
            if beyond.any():
                refused = batch.select(beyond)
                yield self.ahead(refused, [self.limit] * len(refused))
                batch, marks = batch.select(~beyond), chosen_marks(marks, np.flatnonzero(~beyond))
        if len(batch):
            split = self.split(batch, batch.times(), marks, self._condemning(batch, marks))
            yield from split.rejected
            if len(split.on_time):
                newest = int(split.on_time.times().max())
                self.greatest = newest if self.greatest is None else max(self.greatest, newest)
                yield split.on_time

    def _condemning(self, batch: Batch, marks: Marks) -> np.ndarray | int:
        """The bound that condemns each row; promises that the batch itself makes wait for `advance`."""
        linear, frontier = self.linear(), self.frontier()
        if self.groups is None:
            return linear
        kinds = np.asarray(marks)
        held = self.groups.held(frontier or Frontier(), batch)
        bounds = _of_groups(kinds, np.full(len(batch), linear, np.int64), held)
        for each in self.groups.said_in(batch, kinds):
            forbidden = self._forbids(each, linear)
            if forbidden is not None:
                bounds[each.place] = forbidden
        return bounds

    def _forbids(self, said: Said, linear: int) -> int | None:
        """The bound below which a promise goes backwards; None if it does not."""
        frontier = self.frontier()
        if said.at < linear:
            return linear
        known = MIN_TICK if frontier is None else frontier.bound(said.promise.attribute, dict(said.promise.constants))
        return known if said.bound < known else None

    def announce(self, summary: Any) -> None:
        """The rows that come next are of a batch with this summary, over all of its parts."""
        if self.guard is not None:
            self.limit = self.guard.reach(self.pages.get("progress"), summary)

    def advance(self, summary: Any, said: Sequence[Said] = ()) -> Outputs:
        """The batch is complete and had this summary, and these promises, over all of its parts."""
        linear, limit = self.linear(), self.limit
        said = [s for s in said if self._forbids(s, linear) is None and (limit is None or s.at <= limit)]
        self.limit = None
        state = self.tracker.advance(self.pages.get("progress"), summary)
        self.pages.put("progress", state)
        self._forget_passed()
        yield from self.pass_on(self.tracker.bound(state))
        for each in said:
            yield from self._promised(each.promise)


def _of_groups(kinds: np.ndarray, linear: np.ndarray, held: np.ndarray) -> np.ndarray:
    """The bound that condemns each row: data by what is promised of its group too, a promise by nothing so far."""
    judged = np.where(kinds == DATA, np.maximum(linear, held), linear)
    return np.where(kinds == GROUPWISE, MIN_TICK, judged)


def _spread(admitted: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """Of all rows, those that are not refused, if only some were judged."""
    mask = np.ones(len(taken), np.bool_)
    mask[taken] = admitted
    return mask
