"""One pass from a batch to partials per group: the low level of two-level aggregation.

`Grouping` knows which columns are keys and arguments. `absorb` adds rows one at a time to a table of partials; `reduce`
brings a columnar batch down to one row per (slot, group) with Arrow and gives partials, so that the work in Python is
per group and not per row. Both give the same partials; floating point sums may differ in the last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Batch, rows_of
from penstock.model.schema import Schema
from penstock.model.values import canonical
from penstock.operators.aggregates.functions import AggregateFunction, Partial

Key = tuple[Any, ...]
Table = dict[Key, list[Partial]]
Places = int | tuple[int, ...] | None
"""Where the argument of an aggregate stands, or each of several; None if it has none."""
SAFE_SUM = 2**62
MIN_COLUMNAR = 16
"""Smaller batches are faster by rows."""


@dataclass(frozen=True)
class Grouping:
    """Which columns of the input are keys and arguments, and what is computed of them."""

    schema: Schema
    keys: tuple[int, ...]
    arguments: tuple[Places, ...]
    functions: tuple[AggregateFunction, ...]

    def key(self, row: Sequence[Any]) -> Key:
        """The group of a row."""
        return tuple([canonical(row[i]) for i in self.keys])

    def lift(self, row: Sequence[Any]) -> list[Partial]:
        """The partials of one row."""
        partials: list[Partial] = []
        for index, function in zip(self.arguments, self.functions, strict=True):
            if isinstance(index, tuple):
                partials.append(function.lift(tuple([row[i] for i in index])))
                continue
            value = None if index is None else row[index]
            counted = value is not None or function.counts_nulls
            partials.append(function.lift(value) if counted else None)
        return partials

    def absorb(self, table: Table, row: Sequence[Any]) -> None:
        """Add a row to a table of partials."""
        key = self.key(row)
        self.merge(table, key, self.lift(row))

    def merge(self, table: Table, key: Key, partials: list[Partial]) -> None:
        """Add partials of a group to a table."""
        present = table.get(key)
        if present is None:
            table[key] = partials
        else:
            table[key] = [f.join(a, b) for f, a, b in zip(self.functions, present, partials, strict=True)]

    def results(self, partials: list[Partial]) -> list[Any]:
        """The values of partials."""
        return [f.result(p) for f, p in zip(self.functions, partials, strict=True)]

    def to_plain(self, table: Table) -> Table:
        """The table with partials as plain data; built-in functions have no others."""
        return self._converted(table, [f.to_state for f in self.functions])

    def from_plain(self, table: Table) -> Table:
        """The table with partials as their functions want them."""
        return self._converted(table, [f.from_state for f in self.functions])

    @staticmethod
    def _converted(table: Table, ways: list[Callable[[Any], Any] | None]) -> Table:
        if not any(ways):
            return table
        return {
            key: [p if p is None or way is None else way(p) for p, way in zip(partials, ways, strict=True)]
            for key, partials in table.items()
        }

    def is_columnar(self, batch: Batch) -> bool:
        """Whether Arrow can reduce this batch: it is columnar, and every function and value allows it."""
        if not batch.columnar or len(batch) < MIN_COLUMNAR:
            return False
        for index, function in zip(self.arguments, self.functions, strict=True):
            if not function.arrow:
                return False
            if not isinstance(index, int):
                continue
            column = batch.table.column(index)
            if "sum" in function.arrow and pa.types.is_integer(column.type) and not _sum_fits(column):
                return False
        kinds = [batch.table.column(i).type for i in self.keys]
        return not any(pa.types.is_floating(kind) or pa.types.is_nested(kind) for kind in kinds)

    def reduce(self, batch: Batch, slots: np.ndarray) -> Iterator[tuple[int, Key, list[Partial]]]:
        """One entry per slot and group of a columnar batch; a slot is a pane or a window."""
        table = batch.table
        columns: dict[str, Any] = {"slot": pa.array(slots, pa.int64())}
        for n, position in enumerate(self.keys):
            columns[f"k{n}"] = table.column(position)
        wanted: list[tuple[Any, ...]] = []
        for n, (index, function) in enumerate(zip(self.arguments, self.functions, strict=True)):
            name = f"a{n}" if isinstance(index, int) else "slot"
            if isinstance(index, int):
                columns[name] = _readable(table.column(index), function)
            wanted += [(name, part) for part in function.arrow]
        grouped = pa.table(columns).group_by(["slot", *(f"k{n}" for n in range(len(self.keys)))], use_threads=False)
        reduced = grouped.aggregate(wanted)
        # Arrow may name two aggregates alike, so columns are taken by position: keys first, then in the order asked
        # for.
        width = 1 + len(self.keys)
        by_position = pa.Table.from_arrays(reduced.columns, names=[str(i) for i in range(reduced.num_columns)])
        for row in rows_of(by_position):
            partials: list[Partial] = []
            at = width
            for function in self.functions:
                size = len(function.arrow)
                assert function.from_arrow is not None
                partials.append(function.from_arrow(row[at : at + size]))
                at += size
            yield row[0], row[1:width], partials  # type: ignore[misc]


def _readable(column: pa.ChunkedArray, function: AggregateFunction) -> pa.ChunkedArray:
    """The column such that Arrow's answer has the same values as one by rows."""
    if "variance" in function.arrow and not pa.types.is_floating(column.type):
        return pc.cast(column, pa.float64(), safe=False)
    if "distinct" in function.arrow and pa.types.is_timestamp(column.type):
        return pc.cast(column, pa.int64())
    return column


def _sum_fits(column: pa.ChunkedArray) -> bool:
    """Whether no sum over this column can overflow int64, where Arrow would wrap around."""
    extremes = pc.min_max(column).as_py()
    greatest = max(abs(int(extremes["min"] or 0)), abs(int(extremes["max"] or 0)))
    return greatest * len(column) < SAFE_SUM
