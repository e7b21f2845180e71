"""Ingest: where a stream enters a query. It puts late rows aside and turns what is known of progress into punctuation.

A row is late when its time is below the bound that precedes it; it is given back as `Rejected` with that bound, and
counts nowhere. `RowIngest` judges each row by the rows before it. `BatchIngest` is for sources that give no order
inside a batch: it judges by the bound after the batches before, and is told by `advance` when a batch is complete.
Punctuation is put out only when it crosses a boundary that the consumer named as useful (thesis 8.1): between two
boundaries no window can close.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from penstock.algorithms.operator import BoundMemory, Operator, Outputs, Rejected
from penstock.algorithms.progress.trackers import Marks, PunctuationTracker, Tracker
from penstock.model.batch import Batch, rows_of
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK, show_ticks
from penstock.model.values import canonical

MarksOf = Callable[[Batch], Sequence[Any] | np.ndarray]


class Ingest(Operator):
    """What both forms share: splitting a batch, and passing on useful bounds."""

    def __init__(
        self, schema: Schema, tracker: Tracker, marks_of: MarksOf | None = None, useful: tuple[int, int] = (1, 0)
    ) -> None:
        """`marks_of` gives the tracker what it asks for besides time; `useful`: step and origin of useful bounds."""
        super().__init__(schema)
        self.tracker, self.marks_of = tracker, marks_of
        self.step, self.origin = useful
        self.passed_on = BoundMemory()
        self.punctuation = 0
        """How many rows were punctuation and said so in order, since the operator was made."""

    def marks(self, batch: Batch) -> Marks:
        """What the tracker asks for of each row."""
        return self.marks_of(batch) if self.marks_of is not None else None

    def split(self, batch: Batch, times: np.ndarray, marks: Marks, before: np.ndarray | int) -> Outputs:
        """The rows on time, and those that are late; punctuation rows are neither."""
        bounds = np.broadcast_to(np.asarray(before, np.int64), times.shape)
        late = times < bounds
        keep = ~late
        needed = self.needed()
        if needed > MIN_TICK:
            skipped = keep & (times < needed)
            keep &= ~skipped
            self.count_skipped(int(skipped.sum()))
        if isinstance(self.tracker, PunctuationTracker):
            punctuation = np.asarray(marks, dtype=bool)
            backwards = late & punctuation
            self.punctuation += int(punctuation.sum()) - int(backwards.sum())
            keep, late = keep & ~punctuation, late & ~punctuation
            if backwards.any():
                yield self._dead(batch, backwards, bounds, "punctuation goes backwards, below the bound")
        if late.any():
            yield self.late(batch.select(late), bounds[late].tolist())
        if keep.all():
            yield batch
        elif keep.any():
            yield batch.select(keep)

    def late(self, batch: Batch, bounds: Sequence[int]) -> Rejected:
        """Rows that are all late, with the bound that condemned each."""
        return Rejected("late", batch, bounds, [self._reason("below the bound", bound) for bound in bounds])

    def _reason(self, why: str, bound: int) -> str:
        return f"{why} {show_ticks(bound, self.schema.domain)}"

    def _dead(self, batch: Batch, mask: np.ndarray, bounds: np.ndarray, why: str) -> Rejected:
        condemned = bounds[mask].tolist()
        return Rejected("dead", batch.select(mask), condemned, [self._reason(why, bound) for bound in condemned])

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """A bound from outside, such as the end of the stream: it also condemns the rows that follow it."""
        if punctuation.is_linear:
            before = self.pages.get("outside")
            self.pages.put("outside", punctuation.value if before is None else max(before, punctuation.value))
            yield from self.pass_on(punctuation.value)

    def outside(self) -> int:
        """The greatest bound that came from outside."""
        bound: int | None = self.pages.get("outside")
        return MIN_TICK if bound is None else bound

    def feedback(self, bound: int) -> int | None:
        """Rows that are not needed are skipped: they count for progress and go no further."""
        needed = bound if bound == END_OF_TIME else bound - self.schema.lifetime
        self.pages.put("needed", max(needed, self.needed()))
        return None

    def needed(self) -> int:
        """Rows before this time are not needed."""
        found: int | None = self.pages.get("needed")
        return MIN_TICK if found is None else found

    def count_skipped(self, rows: int) -> None:
        """So many more rows were skipped."""
        if rows:
            self.pages.put("skipped", self.skipped + rows)

    @property
    def skipped(self) -> int:
        """How many rows were skipped because nobody needs them."""
        return self.pages.get("skipped") or 0

    def pass_on(self, bound: int) -> Outputs:
        """The bound as punctuation, if it says something new that is of use."""
        if bound == MIN_TICK:
            return
        useful = bound if bound == END_OF_TIME else (bound - self.origin) // self.step
        if self.passed_on.advance(self.pages, useful):
            yield self.output_bound(bound)


class RowIngest(Ingest):
    """Judges each row by the rows before it."""

    def process(self, port: int, batch: Batch) -> Outputs:
        """Split the batch, then say how far the stream has come."""
        if not len(batch):
            return
        times, marks = batch.times(), self.marks(batch)
        before, state = self.tracker.by_row(self.pages.get("progress"), times, marks)
        self.pages.put("progress", state)
        yield from self.split(batch, times, marks, np.maximum(before, self.outside()))
        yield from self.pass_on(self.tracker.bound(state))


class BatchIngest(Ingest):
    """Judges every row by the batches before its own."""

    def process(self, port: int, batch: Batch) -> Outputs:
        """Split the batch; progress waits for `advance`."""
        if len(batch):
            before = max(self.tracker.bound(self.pages.get("progress")), self.outside())
            yield from self.split(batch, batch.times(), self.marks(batch), before)

    def advance(self, summary: Any) -> Outputs:
        """The batch is complete and had this summary, over all of its parts."""
        state = self.tracker.advance(self.pages.get("progress"), summary)
        self.pages.put("progress", state)
        yield from self.pass_on(self.tracker.bound(state))


class ColumnMarks:
    """Marks taken from a column."""

    def __init__(self, index: int) -> None:
        """The position of the column."""
        self.index = index

    def __call__(self, batch: Batch) -> Sequence[Any]:
        """The values of the column."""
        if batch.columnar:
            return [canonical(value) for (value,) in rows_of(batch.table.select([self.index]))]
        return [canonical(row[self.index]) for row in batch.rows]
