"""Stamp: rows are given the time at which they come here, where they had none of their own so far.

Rows carry the time at which they entered, and this operator is told the time whenever somebody looks at the clock. A
stamp is the greatest of these so far, of the rows that came here, so stamps never go back, whichever way rows took and
however long they waited on it. What is below the last stamp is complete, whatever the inputs promise: nobody waits for
a stream that is silent.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.operator import BoundMemory, Operator, Outputs


class StampOperator(Operator):
    """Gives rows their time. Its page is the last stamp."""

    kind = "stamp"
    is_ticked = True

    def __init__(self, schema: Schema, useful: tuple[int, int] = (1, 0)) -> None:
        """`useful`: step and origin of useful bounds."""
        super().__init__(schema)
        self.step, self.origin = useful
        self.passed_on = BoundMemory()

    def require(self, useful: tuple[int, int], told: int) -> None:
        """Bounds are counted by the new step."""
        self.step, self.origin = useful
        self.passed_on.set(self.pages, None if told == MIN_TICK else self._useful(told))

    def _useful(self, bound: int) -> int:
        return bound if bound == END_OF_TIME else (bound - self.origin) // self.step

    def tick(self, now: int) -> Outputs:
        """No stamp will be below the clock."""
        yield from self._reach(now)

    def process(self, port: int, batch: Batch) -> Outputs:
        """All rows that come together have one stamp."""
        if not len(batch):
            return
        last: int | None = self.pages.get("last")
        stamp = max(int(batch.times().max()), MIN_TICK if last is None else last)
        self.pages.put("last", stamp)
        yield self._stamped(batch, stamp)
        yield from self._reach(stamp)

    def _stamped(self, batch: Batch, stamp: int) -> Batch:
        at = self.schema.time_index
        if not batch.columnar:
            return Batch(self.schema, [(*row[:at], stamp, *row[at + 1 :]) for row in batch.rows])
        field = self.schema.arrow.field(at)
        times = pa.array(np.full(len(batch), stamp, np.int64)).cast(field.type)
        return Batch(self.schema, table=batch.table.set_column(at, field, times))

    def _reach(self, stamp: int) -> Outputs:
        """Stamps have come so far, which is said if it is of use."""
        last: int | None = self.pages.get("last")
        if last is None or stamp > last:
            self.pages.put("last", stamp)
        if self.passed_on.advance(self.pages, self._useful(max(stamp, MIN_TICK if last is None else last))):
            yield self.output_bound(max(stamp, MIN_TICK if last is None else last))

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Only the end of the input says anything about stamps."""
        if punctuation.is_end and self.passed_on.advance(self.pages, END_OF_TIME):
            yield self.output_bound(END_OF_TIME)
