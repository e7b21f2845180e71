"""Select: the rows for which a predicate is true. Order-insensitive; punctuation passes through (thesis 8.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.algorithms.operator import Outputs, Stateless
from penstock.model.batch import Batch, Row
from penstock.model.schema import Schema

RowFilter = Callable[[Sequence[Row]], list[Row]]
ColumnPredicate = Callable[[Batch], pa.ChunkedArray | None]


class SelectOperator(Stateless):
    """Keeps the rows for which the predicate is true; null is not true."""

    def __init__(self, schema: Schema, by_rows: RowFilter, by_column: ColumnPredicate) -> None:
        """`by_column` gives the mask of a columnar batch, or None where these values have no columnar answer."""
        super().__init__(schema)
        self.by_rows, self.by_column = by_rows, by_column

    def process(self, port: int, batch: Batch) -> Outputs:
        """Filter in the form at hand."""
        mask = self.by_column(batch) if batch.columnar else None
        if mask is not None:
            kept = Batch(self.schema, table=batch.table.filter(pc.fill_null(mask, False)))
        else:
            kept = Batch(self.schema, self.by_rows(batch.rows))
        if len(kept):
            yield kept
