"""Project and Apply: new columns from expressions and user functions.

The time column is always among them, so progress passes on.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.algorithms.operator import Outputs, Stateless
from penstock.model.batch import Batch, Row
from penstock.model.schema import Schema

RowFunction = Callable[[Row], Row]
ColumnFunction = Callable[[Batch], pa.Table]


class ProjectOperator(Stateless):
    """Computes the output columns of each row."""

    def __init__(self, schema: Schema, by_row: RowFunction, by_column: ColumnFunction) -> None:
        """The two functions compute the same, row by row and column by column."""
        super().__init__(schema)
        self.by_row, self.by_column = by_row, by_column

    def process(self, port: int, batch: Batch) -> Outputs:
        """Compute in the form at hand."""
        if batch.columnar:
            yield Batch(self.schema, table=self.by_column(batch))
        else:
            by_row = self.by_row
            yield Batch(self.schema, [by_row(row) for row in batch.rows])
