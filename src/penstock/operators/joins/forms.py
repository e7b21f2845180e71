"""What comes out of a join, as tables and as rows: pairs, rows without a partner, rows of the left as they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import reason_of
from penstock.model.batch import Batch, Row, ticks_of
from penstock.model.interrupts import let_through
from penstock.model.schema import Schema
from penstock.operators.joins.nearness import LEFT, RIGHT
from penstock.operators.operator import Rejected
from penstock.operators.relational.attempt import by_row


@dataclass(frozen=True)
class Side:
    """One input of a join."""

    schema: Schema
    attribute: str
    """What must be near the other's."""
    keys: tuple[int, ...]
    """The places of the columns that must equal the other's."""
    keeps: bool
    """Whether its rows without a partner come out."""

    @property
    def on_time(self) -> bool:
        """Whether it is joined by its time."""
        return self.attribute == self.schema.time

    def times(self, table: pa.Table) -> np.ndarray:
        """The attribute of each row."""
        return ticks_of(table.column(self.schema.index(self.attribute)))

    def without_key(self, table: pa.Table) -> np.ndarray | None:
        """Which rows have a null among their keys, which equals nothing; None if none has."""
        nulls = [table.column(i) for i in self.keys if table.column(i).null_count]
        if not nulls:
            return None
        found = np.zeros(table.num_rows, np.bool_)
        for column in nulls:
            found |= np.asarray(pc.is_null(column).to_numpy())
        return found


class Rows(Protocol):
    """Rows of one side, however they are kept."""

    def take(self, places: Any) -> pa.Table:
        """The rows at some places, in their order; a table has it, too."""


@dataclass(frozen=True)
class Condition:
    """What must hold of a pair besides: over its columns, for many and for one."""

    schema: Schema
    by_column: Callable[[Batch], pa.ChunkedArray | None]
    by_row: Callable[[Row], Any]
    may_fail: bool = True
    """Whether it may have no value for a pair, which is then told of."""


class Forms:
    """Makes rows of the output."""

    def __init__(self, schema: Schema, sides: tuple[Side, Side], condition: Condition | None) -> None:
        """`schema` is that of the output; the condition may be over more columns than come out."""
        self.schema, self.sides, self.condition = schema, sides, condition
        self._times = [side.schema.time_index for side in sides]
        self._nulls = [(None,) * len(side.schema.fields) for side in sides]
        self._arrow = schema.arrow

    # Tables

    def pairs(self, sides: tuple[Rows, Rows], places: tuple[np.ndarray, np.ndarray]) -> Batch:
        """Rows of the left and of the right at these places, side by side."""
        return Batch(self.schema, table=self._beside(sides, places, self._arrow))

    def _beside(self, sides: tuple[Rows, Rows], places: tuple[np.ndarray, np.ndarray], arrow: pa.Schema) -> pa.Table:
        taken = [rows.take(own) for rows, own in zip(sides, places, strict=True)]
        ticks = [ticks_of(table.column(at)) for table, at in zip(taken, self._times, strict=True)]
        latest = pa.array(np.maximum(*ticks)).cast(arrow.types[-1])
        return pa.Table.from_arrays([*taken[LEFT].columns, *taken[RIGHT].columns, latest], schema=arrow)

    def holding(
        self, sides: tuple[Rows, Rows], places: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, list[Rejected]]:
        """Which pairs the condition holds for; those for which it has no value are given back."""
        assert self.condition is not None
        schema = self.condition.schema
        batch = Batch(schema, table=self._beside(sides, places, schema.arrow))
        try:
            mask = self.condition.by_column(batch)
        except Exception as error:  # some pair has no answer: each by itself
            let_through(error)
            mask = None
        if mask is not None:
            told = pc.fill_null(mask, False) if mask.null_count else mask
            return np.asarray(told.to_numpy(zero_copy_only=False), np.bool_), []
        asked = self.condition.by_row
        good, failed = by_row(batch.rows, lambda row: row if asked(row) else None)
        found = np.zeros(len(batch), np.bool_)
        found[[place for place, _ in good]] = True
        if not failed:
            return found, []
        wrong = batch.take(np.array([place for place, _ in failed]))
        return found, [Rejected("failed", wrong, (), [reason for _, reason in failed])]

    def alone(self, port: int, table: pa.Table, *, of_pairs: bool) -> Batch:
        """Rows without a partner: nulls take its place, if pairs come out."""
        if not of_pairs:
            return self.of_left(table)
        half = len(self.sides[LEFT].schema.fields)
        others = self._arrow.types[half:-1] if port == LEFT else self._arrow.types[:half]
        nulls = [pa.nulls(table.num_rows, kind) for kind in others]
        columns = [*table.columns, *nulls] if port == LEFT else [*nulls, *table.columns]
        time = table.column(self._times[port])
        return Batch(self.schema, table=pa.Table.from_arrays([*columns, time], schema=self._arrow))

    def of_left(self, table: pa.Table) -> Batch:
        """Rows of the left as they are."""
        return Batch(self.schema, table=pa.Table.from_arrays(table.columns, schema=self._arrow))

    # Rows

    def pair(self, left: Row, right: Row) -> Row:
        """Two rows side by side."""
        times: Any = left[self._times[LEFT]], right[self._times[RIGHT]]
        return (*left, *right, times[0] if times[0] > times[1] else times[1])

    def holds(self, pair: Row) -> bool | Rejected:
        """Whether the condition holds for a pair; the pair as failed where it has no value."""
        if self.condition is None:
            return True
        try:
            return bool(self.condition.by_row(pair))
        except Exception as error:
            let_through(error)
            return Rejected("failed", Batch(self.condition.schema, [pair]), (), [reason_of(error)])

    def alone_row(self, port: int, row: Row, *, of_pairs: bool) -> Row:
        """A row without a partner."""
        if not of_pairs:
            return row
        time = row[self._times[port]]
        return (*row, *self._nulls[RIGHT], time) if port == LEFT else (*self._nulls[LEFT], *row, time)
