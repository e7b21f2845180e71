"""A batch: a run of rows between two punctuations, as rows or as an Arrow table.

Either form is made on first use and kept. A batch of a few rows stays rows end to end, a large one stays Arrow:
operators ask `columnar` which form is at hand and take it. Rows are tuples in schema order with timestamps as ticks.

A batch may carry lives (`model.lives`): then each row has an end of its own, and some may revise earlier ones. Without
them every row lives `[t, t + schema.lifetime)`.

Of a batch from a source that reads no more than is needed, columns that no query reads are null; its `origin` reads the
same rows with all of their columns, for whoever puts some of them aside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.elements import Adjust, Insert
from penstock.model.lives import NO_OLD, Lives, joined
from penstock.model.nested import column_of, shown_as, values_of
from penstock.model.schema import Schema

Row = tuple[object, ...]
FEW = 1000
"""One row in so many is few."""


class Batch:
    """Rows of one schema; immutable by agreement."""

    __slots__ = ("_rows", "_table", "lives", "origin", "schema")

    def __init__(
        self,
        schema: Schema,
        rows: Sequence[Row] | None = None,
        table: pa.Table | None = None,
        lives: Lives | None = None,
        origin: Callable[[], Batch] | None = None,
    ) -> None:
        """Give at least one of the two forms; `lives` where rows have ends of their own.

        `origin` reads the same rows anew, where columns that nobody reads were left out.
        """
        self.schema = schema
        self._rows = rows
        self._table = table
        self.lives = lives
        self.origin = origin

    def complete(self) -> Batch:
        """The rows with all of their columns."""
        return self if self.origin is None else self.origin()

    def alone(self) -> Batch:
        """The rows as they are: nothing is held of where they came from."""
        return self if self.origin is None else Batch(self.schema, self._rows, self._table, self.lives)

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

    def judged_by(self) -> np.ndarray:
        """For each row the time that a bound is compared with: the row's, of an adjust the lesser of its ends."""
        times = self.times()
        return times if self.lives is None else self.lives.judged_by(times)

    def its_lives(self) -> Lives:
        """The lives of the rows, also where they follow from the schema."""
        return self.lives if self.lives is not None else Lives.of_inserts(self.times() + self.schema.lifetime)

    def elements(self, *, hidden: bool = False) -> list[Insert | Adjust]:
        """The rows as inserts and adjusts, hidden columns left out unless they are asked for."""
        time, life = self.schema.time_index, self.schema.lifetime
        keep = [i for i, f in enumerate(self.schema.fields) if hidden or not f.hidden]
        payloads = [tuple([row[i] for i in keep]) for row in self.rows]
        starts: list[int] = [row[time] for row in self.rows]  # type: ignore[misc]
        if self.lives is None:
            return [Insert(payload, vs, vs + life) for payload, vs in zip(payloads, starts, strict=True)]
        ends, olds = self.lives.ends.tolist(), self.lives.olds.tolist()
        return [
            Insert(payload, vs, ve) if old == NO_OLD else Adjust(payload, vs, old, ve)
            for payload, vs, ve, old in zip(payloads, starts, ends, olds, strict=True)
        ]

    def visible(self) -> pa.Table:
        """The Arrow form without the hidden columns."""
        return self.table.select([f.name for f in self.schema.visible])

    def select(self, mask: Sequence[bool] | np.ndarray) -> Batch:
        """The rows for which the mask is true."""
        lives = None if self.lives is None else self.lives.take(np.asarray(mask, np.bool_))
        origin = None if self.origin is None else partial(selected_again, self.origin, mask)
        if self._table is not None:
            table = filtered(self._table, np.asarray(mask, np.bool_))
            return Batch(self.schema, table=table, lives=lives, origin=origin)
        rows = [row for row, keep in zip(self.rows, mask, strict=True) if keep]
        return Batch(self.schema, rows, lives=lives, origin=origin)

    def take(self, places: np.ndarray) -> Batch:
        """The rows at some places, in their order."""
        lives = None if self.lives is None else self.lives.take(places)
        if self._table is not None:
            return Batch(self.schema, table=self._table.take(pa.array(places)), lives=lives)
        return Batch(self.schema, [self.rows[p] for p in places.tolist()], lives=lives)

    def part(self, start: int, end: int) -> Batch:
        """Neighbouring rows, without copying."""
        if start == 0 and end >= len(self):
            return self
        lives = None if self.lives is None else self.lives.part(start, end)
        origin = None if self.origin is None else partial(_part, self.origin, start, end)
        if self._table is not None:
            return Batch(self.schema, table=self._table.slice(start, end - start), lives=lives, origin=origin)
        return Batch(self.schema, self.rows[start:end], lives=lives, origin=origin)

    def __repr__(self) -> str:
        """Size and form."""
        lives = "" if self.lives is None else " with lives"
        return f"Batch({len(self)} {'arrow' if self.columnar else 'rows'}{lives})"


def selected_again(origin: Callable[[], Batch], mask: Sequence[bool] | np.ndarray) -> Batch:
    """Some of the rows that an origin reads."""
    return origin().select(mask)


def _part(origin: Callable[[], Batch], start: int, end: int) -> Batch:
    return origin().part(start, end)


def filtered(table: pa.Table, mask: np.ndarray) -> pa.Table:
    """The rows of a table for which a mask is true.

    Where few are left out, as late rows and punctuation are, what is between them is copied in stretches; if they are
    more than that it is several times as fast column by column as all at once.
    """
    if not table.num_columns:
        return table.filter(pa.array(mask))
    left_out = np.flatnonzero(~mask)
    if len(left_out) * FEW <= len(mask):
        edges = [-1, *left_out.tolist(), len(mask)]
        stretches = [table.slice(lo + 1, hi - lo - 1) for lo, hi in pairwise(edges) if hi - lo > 1]
        copied = pa.concat_tables(stretches).combine_chunks() if stretches else table.slice(0, 0)
    else:
        kept = pa.array(mask)
        copied = pa.Table.from_arrays([column.filter(kept) for column in table.columns], schema=table.schema)
    return pa.Table.from_arrays([_plain(column) for column in copied.columns], schema=table.schema)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column that has no nulls any more, without a note of where there were some, which others would look at."""
    if column.null_count or column.type.num_fields or pa.types.is_dictionary(column.type):
        return column
    return pa.chunked_array([_without_notes(chunk) for chunk in column.chunks], column.type)


def _without_notes(chunk: pa.Array) -> pa.Array:
    notes, *others = chunk.buffers()
    if notes is None:
        return chunk
    return pa.Array.from_buffers(chunk.type, len(chunk), [None, *others], 0, chunk.offset)


def ticks_of(column: pa.ChunkedArray) -> np.ndarray:
    """A time column without nulls as int64 ticks."""
    return np.asarray(pc.cast(pc.cast(column, _tick_type(column.type)), pa.int64()).to_numpy())


def _tick_type(arrow: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", tz=arrow.tz) if pa.types.is_timestamp(arrow) else arrow


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of an Arrow table, timestamps as ticks."""
    columns = [values_of(column) for column in table.columns]
    if not columns:
        return [()] * table.num_rows
    return list(zip(*columns, strict=True))


def table_of(schema: Schema, rows: Sequence[Row]) -> pa.Table:
    """The Arrow table of rows."""
    if not rows:
        return schema.arrow.empty_table()
    columns = zip(zip(*rows, strict=True), schema.fields, strict=True)
    arrays = [column_of(values, field.type) for values, field in columns]
    return pa.Table.from_arrays(arrays, schema=schema.arrow)


def concat(schema: Schema, batches: Iterable[Batch]) -> Batch:
    """One batch of many, columnar if any of them is."""
    parts = [b for b in batches if len(b)]
    lives = joined(b.its_lives() for b in parts) if any(b.lives is not None for b in parts) else None
    origin = partial(_all_again, schema, parts) if any(b.origin is not None for b in parts) else None
    if any(b.columnar for b in parts):
        return Batch(schema, table=pa.concat_tables([b.table for b in parts]), lives=lives, origin=origin)
    return Batch(schema, [row for b in parts for row in b.rows], lives=lives, origin=origin)


def _all_again(schema: Schema, parts: Sequence[Batch]) -> Batch:
    return concat(schema, [part.complete() for part in parts])


def present(schema: Schema, row: Row) -> dict[str, object]:
    """A row as the user would write it: by name, times as datetimes, nested values as lists and dictionaries."""
    pairs = zip(schema.fields, row, strict=True)
    return {field.name: shown_as(value, field.type) for field, value in pairs if not field.hidden}
