"""Unnest: one row for each element of an array or each entry of a map, in their order, beside the columns of its row.

Punctuation passes as it is, since every row has the time of the row that it comes of. Lives pass, too: an adjust of a
row adjusts each of its elements. Cost: a few array operations per batch, and the room of the columns repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.batch import Batch, Row
from penstock.model.interleaved import Interleaved
from penstock.model.nested import taken_apart
from penstock.model.schema import Schema
from penstock.operators.operator import Outputs, Stateless


class UnnestOperator(Stateless):
    """Repeats each row once for each element of a column."""

    def __init__(self, schema: Schema, column: int, kept: Sequence[int], *, outer: bool, place: bool) -> None:
        """`column` and `kept` are places in the input; with `outer` a row without elements gives one row."""
        super().__init__(schema)
        self.column, self.kept, self.outer, self.place = column, tuple(kept), outer, place
        self.width = len(schema) - len(self.kept) - place

    def process(self, port: int, batch: Batch) -> Outputs:
        """Take the rows apart in the form at hand."""
        made = self._made(batch)[0]
        if len(made):
            yield made

    def interleave(self, port: int, given: Interleaved) -> Outputs:
        """Take all rows apart at once; punctuation stands behind what comes of the rows that it stood behind."""
        made, times = self._made(given.batch)
        before = np.concatenate(([0], np.cumsum(times)))
        yield from self.carried_over(port, given, made, before[np.asarray(given.places, np.int64)].tolist())

    def _made(self, batch: Batch) -> tuple[Batch, np.ndarray]:
        """What comes of a batch, and how many rows of each."""
        table, times = self._by_columns(batch.table) if batch.columnar else (None, self._times(batch.rows))
        lives = None if batch.lives is None else batch.lives.take(np.repeat(np.arange(len(batch)), times))
        if table is not None:
            return Batch(self.schema, table=table, lives=lives), times
        return Batch(self.schema, self._by_rows(batch.rows), lives=lives), times

    def _times(self, rows: Sequence[Row]) -> np.ndarray:
        lengths = np.fromiter((len(row[self.column] or ()) for row in rows), np.int64, len(rows))  # type: ignore[arg-type]
        return np.maximum(lengths, 1) if self.outer else lengths

    def _by_rows(self, rows: Sequence[Row]) -> list[Row]:
        made: list[Row] = []
        nothing = (None,) * (self.width + self.place)
        for row in rows:
            own = tuple([row[i] for i in self.kept])
            elements: Any = row[self.column]
            if not elements:
                made += [(*own, *nothing)] if self.outer else []
                continue
            parts = elements if self.width == 2 else [(element,) for element in elements]
            made += [(*own, *((at,) if self.place else ()), *part) for at, part in enumerate(parts)]
        return made

    def _by_columns(self, table: pa.Table) -> tuple[pa.Table, np.ndarray]:
        column = table.column(self.column)
        chunks = [taken_apart(chunk) for chunk in column.chunks]
        lengths = np.concatenate([part for part, _ in chunks]) if chunks else np.zeros(0, np.int64)
        times = np.maximum(lengths, 1) if self.outer else lengths
        owners = np.repeat(np.arange(table.num_rows), times)
        starts = np.cumsum(times) - times
        places = np.arange(len(owners)) - starts[owners] if len(owners) else owners
        missing = (lengths == 0)[owners] if len(owners) else np.zeros(0, np.bool_)
        inside = pa.chunked_array([part for _, part in chunks], self._inside_type(column.type))
        if self.outer:
            firsts = np.cumsum(lengths) - lengths
            inside = inside.take(pa.array(np.where(missing, 0, firsts[owners] + places), pa.int64(), mask=missing))
        parts = inside.flatten() if self.width == 2 else [inside]
        numbers = [pa.array(places.astype(np.int32), pa.int32(), mask=missing)] if self.place else []
        own = table.select(list(self.kept)).take(pa.array(owners)).columns
        return pa.Table.from_arrays([*own, *numbers, *parts], schema=self.schema.arrow), times

    def _inside_type(self, arrow: pa.DataType) -> pa.DataType:
        if not pa.types.is_map(arrow):
            return arrow.value_type
        return pa.struct([pa.field("key", arrow.key_type, False), pa.field("value", arrow.item_type)])
