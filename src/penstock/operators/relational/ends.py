"""Ends: the end of each event as a column, for expressions to read; null where an event never ends.

It takes inserts only, since the end of an event that is revised is not known before it has settled: a row made from it
could not be met by the adjusts that follow.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.model.batch import Batch
from penstock.model.time import END_OF_TIME
from penstock.operators.operator import Outputs, Stateless


class EndsOperator(Stateless):
    """Appends the end to each row."""

    def process(self, port: int, batch: Batch) -> Outputs:
        """In the form at hand."""
        lives = batch.its_lives()
        if batch.columnar:
            column = pa.array(lives.ends, pa.int64(), mask=np.asarray(lives.ends == END_OF_TIME))
            added = self.schema.arrow.field(len(self.schema) - 1)
            yield Batch(self.schema, table=batch.table.append_column(added, column.cast(added.type)), lives=lives)
        else:
            ends = [None if end == END_OF_TIME else end for end in lives.ends.tolist()]
            rows = [(*row, end) for row, end in zip(batch.rows, ends, strict=True)]
            yield Batch(self.schema, rows, lives=lives)
