"""Row numbers by arrival, from 0; the number becomes the time, so every batch ends with a punctuation of its own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.algorithms.operator import Operator, Outputs
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.time import END_OF_TIME


class NumberOperator(Operator):
    """Counts rows."""

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
        yield self.output_bound(following)

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Only the end of the input says anything about row numbers."""
        if punctuation.is_end:
            yield self.output_bound(END_OF_TIME)
