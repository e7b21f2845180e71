"""Aggregates in two steps: what a batch comes to by itself, and how the operator that keeps the state takes it.

The low level of two-level aggregation, apart from the high one: whoever has rows brings them down to one entry per pane
and group, in a table that can travel, and the operator that has the state takes the entries in place of the rows. It
answers no differently, but for the last bits of sums of floating point numbers, which depend on the order in any case.

It is not worth it where there are few rows, or about as many groups as rows: then rows are sent as they are. A sample
says how many groups there are. What has no form of this kind, such as an aggregate in Python, is sent as rows too.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.model.batch import Batch, rows_of, table_of
from penstock.model.nested import column_of_bytes
from penstock.model.plain import decode, encode
from penstock.model.schema import Schema
from penstock.operators.aggregates.columnar import ColumnarAggregate
from penstock.operators.aggregates.paned import PanedAggregate
from penstock.operators.operator import Operator
from penstock.operators.state import MemoryPages

FEW = 256
SAMPLE = 1 << 14
WORTH = 0.75
"""Entries per row of a sample from which on rows are sent as they are."""
_PANE = "\0pane"
"""How the columns beside keys are called; no column of a stream can be called so."""


class PartialForm(Protocol):
    """Both steps of one aggregate."""

    keys: Schema
    """The columns that groups are told apart by; a table of entries begins with them."""

    def of(self, batch: Batch) -> pa.Table | None:
        """What the rows of a batch come to; None if they had better travel as they are."""

    def take(self, table: pa.Table) -> int:
        """Take what rows came to elsewhere, and say how many rows that were."""


def partial_form(operator: Operator) -> PartialForm | None:
    """How an operator is given what was brought down elsewhere, if it can be."""
    if isinstance(operator, ColumnarAggregate):
        return ColumnarPartials(operator)
    if isinstance(operator, PanedAggregate) and all(f.arrow for f in operator.grouping.functions):
        return PanedPartials(operator)
    return None


class ColumnarPartials:
    """Panes of numbers: a table of keys, panes and measures."""

    def __init__(self, operator: ColumnarAggregate) -> None:
        """The operator that has the state, or another one like it to bring rows down with."""
        self.operator, self.keys = operator, operator.key_schema

    def of(self, batch: Batch) -> pa.Table | None:
        """The panes of one batch."""
        operator = self.operator
        if not _reduces(batch, operator.window.panes_of(batch.times()), operator.keys):
            return None
        operator.attach(MemoryPages())
        for _ in operator.process(0, batch):
            pass
        panes, keys, numbers = operator.give_panes()
        if any(isinstance(n, np.ndarray) and n.dtype == object for n in numbers):  # 64 bits might not hold a sum
            return None
        arrays, names = [*keys, pa.array(panes)], [*self.keys.names, _PANE]
        for at, n in enumerate(numbers):
            is_wide = isinstance(n, np.ndarray) and n.ndim == 2
            parts = [n[:, part] for part in range(n.shape[1])] if is_wide else [n]
            arrays += [values if isinstance(values, pa.Array) else pa.array(values) for values in parts]
            names += [f"{_PANE}{at}.{part}" for part in range(len(parts))]
        return pa.Table.from_arrays(arrays, names)

    def take(self, table: pa.Table) -> int:
        """Put panes into those that there are."""
        panes, *rest = [_numbers(column) for column in table.columns[len(self.keys) :]]
        numbers = []
        for measure in self.operator.measures:
            width = 3 if measure.kind == "moments" else 1
            numbers.append(rest[0] if width == 1 else np.stack(rest[:width], axis=1))
            rest = rest[width:]
        self.operator.take_panes(panes, table.columns[: len(self.keys)], numbers)
        return int(numbers[0].sum())  # the first measure is how many rows there are


class PanedPartials:
    """Partials as plain data: a table of keys, panes, partials, and of how many rows they are."""

    def __init__(self, operator: PanedAggregate) -> None:
        """The operator that has the state, or another one like it to bring rows down with."""
        self.operator = operator
        self.keys = Schema(tuple(operator.grouping.schema.fields[i] for i in operator.grouping.keys))

    def of(self, batch: Batch) -> pa.Table | None:
        """The partials of one batch."""
        grouping = self.operator.grouping
        panes = self.operator.window.panes_of(batch.times())
        if not grouping.is_columnar(batch) or not _reduces(batch, panes, grouping.keys):
            return None
        entries = list(grouping.reduce(batch, panes))
        keys = table_of(self.keys, [key for _, key, _ in entries]) if len(self.keys) else None
        arrays = [
            *(keys.columns if keys is not None else ()),
            pa.array([pane for pane, _, _ in entries], pa.int64()),
            pa.array([encode(partials) for _, _, partials in entries], pa.binary()),
            pa.array([len(batch), *[0] * (len(entries) - 1)], pa.int64()),
        ]
        return pa.Table.from_arrays(arrays, [*self.keys.names, _PANE, f"{_PANE}partials", f"{_PANE}rows"])

    def take(self, table: pa.Table) -> int:
        """Join partials with those that there are."""
        keys = rows_of(table.select(self.keys.names)) if len(self.keys) else [()] * table.num_rows
        panes, bodies, rows = (column.to_pylist() for column in table.columns[len(self.keys) :])
        partials = [decode(body, "partials between stages") for body in bodies]
        self.operator.take_partials(zip(panes, keys, partials, strict=True))
        return sum(rows)


def _numbers(column: pa.ChunkedArray) -> Any:
    """A column as an array, lists as they are."""
    return column.combine_chunks() if pa.types.is_large_list(column.type) else np.asarray(column.to_numpy())


def _reduces(batch: Batch, panes: np.ndarray, keys: tuple[int, ...]) -> bool:
    """Whether entries would be much fewer than rows, by a sample of them."""
    if not batch.columnar or len(batch) < FEW:
        return False
    size = min(len(batch), SAMPLE)
    columns = [batch.table.column(i).slice(0, size) for i in keys]
    plain = [column_of_bytes(column) if pa.types.is_nested(column.type) else column for column in columns]
    sample = pa.table([pa.array(panes[:size]), *plain], _names(keys))
    entries: int = sample.group_by(_names(keys), use_threads=False).aggregate([]).num_rows
    return bool(entries <= WORTH * size)


def _names(keys: tuple[int, ...]) -> list[str]:
    return [str(at) for at in range(1 + len(keys))]
