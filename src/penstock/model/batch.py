"""A batch: a run of rows between two punctuations, as rows or as an Arrow table.

Either form is made on first use and kept. A batch of a few rows stays rows end to end, a large one stays Arrow:
operators ask `columnar` which form is at hand and take it. Rows are tuples in schema order with timestamps as ticks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.elements import Insert
from penstock.model.schema import Schema
from penstock.model.time import from_ticks

Row = tuple[object, ...]


class Batch:
    """Rows of one schema; immutable by agreement."""

    __slots__ = ("_rows", "_table", "schema")

    def __init__(self, schema: Schema, rows: Sequence[Row] | None = None, table: pa.Table | None = None) -> None:
        """Give at least one of the two forms."""
        self.schema = schema
        self._rows = rows
        self._table = table

    @property
    def columnar(self) -> bool:
        """Whether the Arrow form is at hand."""
        return self._table is not None

    @property
    def rows(self) -> Sequence[Row]:
        """The rows as tuples."""
        if self._rows is None:
            assert self._table is not None
            self._rows = rows_of(self._table)
        return self._rows

    @property
    def table(self) -> pa.Table:
        """The rows as an Arrow table."""
        if self._table is None:
            assert self._rows is not None
            self._table = table_of(self.schema, self._rows)
        return self._table

    def __len__(self) -> int:
        """How many rows there are."""
        if self._rows is not None:
            return len(self._rows)
        assert self._table is not None
        return int(self._table.num_rows)

    def times(self) -> np.ndarray:
        """The ticks of the time column as int64."""
        i = self.schema.time_index
        if self._table is not None:
            return ticks_of(self._table.column(i))
        return np.fromiter((row[i] for row in self.rows), dtype=np.int64, count=len(self.rows))

    def inserts(self) -> list[Insert]:
        """The rows as events, hidden columns left out."""
        time, life = self.schema.time_index, self.schema.lifetime
        keep = [i for i, f in enumerate(self.schema.fields) if not f.hidden]
        result = []
        for row in self.rows:
            vs = row[time]
            assert isinstance(vs, int)
            result.append(Insert(tuple([row[i] for i in keep]), vs, vs + life))
        return result

    def visible(self) -> pa.Table:
        """The Arrow form without the hidden columns."""
        return self.table.select([f.name for f in self.schema.visible])

    def select(self, mask: Sequence[bool] | np.ndarray) -> Batch:
        """The rows for which the mask is true."""
        if self._table is not None:
            return Batch(self.schema, table=self._table.filter(pa.array(mask, pa.bool_())))
        return Batch(self.schema, [row for row, keep in zip(self.rows, mask, strict=True) if keep])

    def __repr__(self) -> str:
        """Size and form."""
        return f"Batch({len(self)} {'arrow' if self.columnar else 'rows'})"


def ticks_of(column: pa.ChunkedArray) -> np.ndarray:
    """A time column without nulls as int64 ticks."""
    return np.asarray(pc.cast(pc.cast(column, _tick_type(column.type)), pa.int64()).to_numpy())


def _tick_type(arrow: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", tz=arrow.tz) if pa.types.is_timestamp(arrow) else arrow


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of an Arrow table, timestamps as ticks."""
    columns = []
    for column in table.columns:
        is_time = pa.types.is_timestamp(column.type)
        values = pc.cast(pc.cast(column, _tick_type(column.type)), pa.int64()) if is_time else column
        columns.append(values.to_pylist())
    if not columns:
        return [()] * table.num_rows
    return list(zip(*columns, strict=True))


def table_of(schema: Schema, rows: Sequence[Row]) -> pa.Table:
    """The Arrow table of rows."""
    if not rows:
        return schema.arrow.empty_table()
    arrays = []
    for values, field in zip(zip(*rows, strict=True), schema.fields, strict=True):
        if field.type.name == "timestamp":
            arrays.append(pc.cast(pa.array(values, pa.int64()), field.type.arrow))
        else:
            arrays.append(pa.array(values, field.type.arrow))
    return pa.Table.from_arrays(arrays, schema=schema.arrow)


def concat(schema: Schema, batches: Iterable[Batch]) -> Batch:
    """One batch of many, columnar if any of them is."""
    parts = [b for b in batches if len(b)]
    if any(b.columnar for b in parts):
        return Batch(schema, table=pa.concat_tables([b.table for b in parts]))
    return Batch(schema, [row for b in parts for row in b.rows])


def present(schema: Schema, row: Row) -> dict[str, object]:
    """A row as the user would write it: by name, timestamps as datetimes, hidden columns left out."""
    shown: dict[str, object] = {}
    for field, value in zip(schema.fields, row, strict=True):
        if not field.hidden:
            is_time = field.type.name == "timestamp" and isinstance(value, int)
            shown[field.name] = _moment(value) if is_time else value  # type: ignore[arg-type]
    return shown


def _moment(ticks: int) -> object:
    """A tick as a datetime, or as text where the calendar has ended."""
    try:
        return from_ticks(ticks)
    except OverflowError:
        return f"{ticks} us"
