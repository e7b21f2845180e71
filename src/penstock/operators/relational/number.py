"""Row numbers by arrival, from 0; the number becomes the time.

No row number comes late, so what is below the next one is complete: a punctuation follows a batch when it passes a
boundary that the consumer named as useful.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.operator import BoundMemory, Operator, Outputs


class NumberOperator(Operator):
    """Counts rows."""

    kind = "row numbers"

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

    def process(self, port: int, batch: Batch) -> Outputs:
        """Append the number and say how far numbering has come."""
        first: int = self.pages.get("next") or 0
        following = first + len(batch)
        if not len(batch):
            return
        if batch.columnar:
            numbers = pa.array(np.arange(first, following, dtype=np.int64))
            table = batch.table.append_column(pa.field(self.schema.fields[-1].name, pa.int64()), numbers)
            yield Batch(self.schema, table=table)
        else:
            yield Batch(self.schema, [(*row, n) for n, row in enumerate(batch.rows, first)])
        self.pages.put("next", following)
        yield from self.pass_on()

    def pass_on(self) -> Outputs:
        """How far numbering has come, if that is of use."""
        following: int = self.pages.get("next") or 0
        if self.passed_on.advance(self.pages, self._useful(following)):
            yield self.output_bound(following)

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Only the end of the input says anything about row numbers."""
        if punctuation.is_end and self.passed_on.advance(self.pages, END_OF_TIME):
            yield self.output_bound(END_OF_TIME)
