"""Split: of each event what is before an instant, or what is from it on (GenMig, Algorithm 2).

One instant, the split time T, is for all inputs and outputs of a plan. `BeforeSplit` stands where events go to the old
plan or come out of it, `FromSplit` where they go to the new one or come out of that:

    event                  before T     from T on
    [s, e), e <= T         [s, e)
    [s, e), s < T < e      [s, T)       [T, e)
    [s, e), T <= s                      [s, e)

At `e = T` nothing is left from T on, at `s = T` nothing before: half-open lives need no instant between two ticks.
With `clips` off events stay whole, and go where they start.

Revisions are cut like lives: an adjust says what it says of each side, which may be nothing, or there an insert or a
removal, if one of the two ends is beyond T.

Before T all is over when the bound reaches T, so the old plan is told that its input has ended. From T on nothing
begins earlier than T, so that is promised before anything else, as soon as anything is. There is no state but what was
promised.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.lives import NO_OLD, Lives
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.operators.operator import BoundMemory, Operator, Outputs


class BeforeSplit(Operator):
    """What is before T."""

    kind = "before split"

    def __init__(self, schema: Schema, split: int, *, clips: bool = True) -> None:
        """`split` is T."""
        super().__init__(schema)
        self.split, self.clips = split, clips
        self.passed_on = BoundMemory()

    def process(self, port: int, batch: Batch) -> Outputs:
        """Keep what starts before T, and end it there."""
        mask = batch.times() < self.split
        if not mask.any():
            return
        kept = batch if mask.all() else batch.select(mask)
        if self.clips:
            kept = self._ended(kept)
        if len(kept):
            yield kept

    def _ended(self, batch: Batch) -> Batch:
        lives = batch.its_lives()
        if not (lives.ends > self.split).any() and not (lives.olds > self.split).any():
            return batch
        ends, olds = np.minimum(lives.ends, self.split), np.minimum(lives.olds, self.split)
        rows, table = (None, batch.table) if batch.columnar else (batch.rows, None)
        cut = Batch(batch.schema, rows, table, Lives(ends, olds))
        says = ~lives.revises | (ends != olds)
        return cut if says.all() else cut.select(says)

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """As it is while below T; then all is over."""
        if not self.is_on_time(punctuation):
            yield punctuation
            return
        bound = END_OF_TIME if punctuation.value >= self.split else punctuation.value
        if self.passed_on.advance(self.pages, bound):
            yield self.output_bound(bound)


class FromSplit(Operator):
    """What is from T on."""

    kind = "from split"

    def __init__(self, schema: Schema, split: int, *, clips: bool = True) -> None:
        """`split` is T."""
        super().__init__(schema)
        self.split, self.clips = split, clips
        self.passed_on = BoundMemory()

    def process(self, port: int, batch: Batch) -> Outputs:
        """Keep what is left from T on, and begin it there."""
        starts, lives = batch.times(), batch.its_lives()
        early = starts < self.split
        if not early.any():
            yield batch
            return
        if not self.clips:
            if not early.all():
                yield batch.select(~early)
            return
        kept = ~early | (lives.ends > self.split) | (lives.revises & (lives.olds > self.split))
        if kept.any():
            yield self._begun(batch if kept.all() else batch.select(kept))

    def _begun(self, batch: Batch) -> Batch:
        """Events with their starts no earlier than T; an adjust of what was not there from T on is an insert."""
        starts, lives = batch.times(), batch.its_lives()
        early = starts < self.split
        ends = np.where(early, np.maximum(lives.ends, self.split), lives.ends)
        olds = np.where(early & (lives.olds <= self.split), NO_OLD, lives.olds)
        return with_starts(batch, np.maximum(starts, self.split), Lives(ends, olds))

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """No less than T."""
        if not self.is_on_time(punctuation):
            yield punctuation
            return
        bound = max(punctuation.value, self.split)
        if self.passed_on.advance(self.pages, bound):
            yield self.output_bound(bound)


def with_starts(batch: Batch, starts: np.ndarray, lives: Lives) -> Batch:
    """The rows of a batch with other times, in the form at hand."""
    at = batch.schema.time_index
    if batch.columnar:
        field = batch.schema.arrow.field(at)
        column = pc.cast(pa.array(starts, pa.int64()), field.type)
        return Batch(batch.schema, table=batch.table.set_column(at, field, column), lives=lives)
    told = starts.tolist()
    rows = [(*row[:at], start, *row[at + 1 :]) for row, start in zip(batch.rows, told, strict=True)]
    return Batch(batch.schema, rows, lives=lives)
