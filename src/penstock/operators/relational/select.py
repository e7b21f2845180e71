"""Select: the rows for which a predicate is true. Order-insensitive; punctuation passes through (thesis 8.2).

A row for which the predicate has no value, since evaluating it fails, is given back as failed. Lives pass through: an
insert and its adjusts are the same row, so all of them are kept or none is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Batch, Row
from penstock.model.schema import Schema
from penstock.operators.operator import Outputs, Stateless
from penstock.operators.relational.attempt import attempt

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
        return attempt(self.schema, batch, self._whole, self.single)

    def _whole(self, batch: Batch) -> Batch:
        mask = self.by_column(batch) if batch.columnar else None
        if mask is not None:
            kept = pc.fill_null(mask, False)
            lives = None if batch.lives is None else batch.lives.take(np.asarray(kept.to_numpy(), np.bool_))
            return Batch(self.schema, table=batch.table.filter(kept), lives=lives)
        rows = self.by_rows(batch.rows)
        return Batch(self.schema, rows, lives=None if batch.lives is None else batch.lives.take(_places(batch, rows)))

    def single(self, row: Row) -> Row | None:
        """The row if it is kept; fails where the predicate does."""
        return row if self.by_rows((row,)) else None


def _places(batch: Batch, kept: Sequence[Row]) -> list[int]:
    """Where in a batch the rows are that a filter kept, which are the very same objects in the same order."""
    places: list[int] = []
    for place, row in enumerate(batch.rows):
        if len(places) < len(kept) and kept[len(places)] is row:
            places.append(place)
    return places
