"""Project and Apply: new columns from expressions and user functions.

The time column is always among them, so progress passes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from penstock.algorithms.operator import Outputs, Stateless
from penstock.model.batch import Batch, Row
from penstock.model.schema import Schema

RowsFunction = Callable[[Sequence[Row]], Sequence[Row]]
ColumnFunction = Callable[[Batch], pa.Table]


class ProjectOperator(Stateless):
    """Computes the output columns of each row."""

    def __init__(self, schema: Schema, by_rows: RowsFunction, by_column: ColumnFunction) -> None:
        """The two functions compute the same, by rows and by columns."""
        super().__init__(schema)
        self.by_rows, self.by_column = by_rows, by_column

    def process(self, port: int, batch: Batch) -> Outputs:
        """Compute in the form at hand."""
        if batch.columnar:
            yield Batch(self.schema, table=self.by_column(batch))
        else:
            yield Batch(self.schema, self.by_rows(batch.rows))
