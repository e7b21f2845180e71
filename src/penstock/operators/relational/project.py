"""Project and Apply: new columns from expressions and user functions.

The time column is always among them, so progress passes on; what is promised of some groups passes on where the columns
that tell them apart are among them too, as they are. A row of which some column has no value, since evaluating it
fails, is given back as failed, with the reason of the first such column.

Lives pass through: an insert and its adjusts are the same row, so they become the same row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from penstock.model.batch import Batch, Row
from penstock.model.schema import Schema
from penstock.operators.operator import Outputs, Stateless
from penstock.operators.relational.attempt import attempt

RowsFunction = Callable[[Sequence[Row]], Sequence[Row]]
ColumnFunction = Callable[[Batch], pa.Table]


class ProjectOperator(Stateless):
    """Computes the output columns of each row."""

    def __init__(
        self,
        schema: Schema,
        by_rows: RowsFunction,
        by_column: ColumnFunction,
        names: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """The two functions compute the same, by rows and by columns; `names` are those that columns survive under."""
        super().__init__(schema, names)
        self.by_rows, self.by_column = by_rows, by_column

    def process(self, port: int, batch: Batch) -> Outputs:
        """Compute in the form at hand."""
        return attempt(self.schema, batch, self._whole, self.single)

    def _whole(self, batch: Batch) -> Batch:
        lives = batch.lives if self.schema.lives is not None else None
        if batch.columnar:
            return Batch(self.schema, table=self.by_column(batch), lives=lives)
        return Batch(self.schema, self.by_rows(batch.rows), lives=lives)

    def single(self, row: Row) -> Row:
        """The row that comes of a row; fails where a column does."""
        return self.by_rows((row,))[0]
