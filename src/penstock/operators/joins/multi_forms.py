"""What comes out of a join of several streams, as a table and as rows, and what is asked of results on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Batch, Row, ticks_of
from penstock.model.schema import Schema
from penstock.operators.joins.forms import Side

Origin = tuple[tuple[int, ...], int]
"""Of a column: an input and a place in it; or several inputs and -1, for the latest of their times."""


@dataclass(frozen=True)
class MultiCondition:
    """What must hold of some inputs; it has a value for all of their rows."""

    inputs: frozenset[int]
    schema: Schema
    """The columns that it reads."""
    origins: tuple[tuple[int, int], ...]
    """Where these are: the input, and the place in it."""
    by_column: Callable[[Batch], pa.ChunkedArray | None]
    by_row: Callable[[Row], Any]

    def holds(self, tables: Sequence[pa.Table], places: Mapping[int, np.ndarray]) -> np.ndarray:
        """Which results it holds for."""
        columns = [tables[at].column(place).take(pa.array(places[at])) for at, place in self.origins]
        batch = Batch(self.schema, table=pa.Table.from_arrays(columns, schema=self.schema.arrow))
        mask = self.by_column(batch)
        if mask is None:
            return np.array([bool(self.by_row(row)) for row in batch.rows], np.bool_)
        told = pc.fill_null(mask, False) if mask.null_count else mask
        return np.asarray(told.to_numpy(zero_copy_only=False), np.bool_)

    def holds_for(self, rows: Mapping[int, Row]) -> bool:
        """Whether it holds for one."""
        return bool(self.by_row(tuple([rows[at][place] for at, place in self.origins])))


class MultiForms:
    """Makes rows of the output."""

    def __init__(
        self, schema: Schema, sides: Sequence[Side], origins: Sequence[Origin], conditions: Sequence[MultiCondition]
    ) -> None:
        """`origins` are those of the columns of the output."""
        self.schema, self.origins, self.conditions = schema, tuple(origins), tuple(conditions)
        self._times = [side.schema.time_index for side in sides]
        self._arrow = schema.arrow
        self.due = cache(self._due)

    def _due(self, before: frozenset[int], joined: frozenset[int]) -> list[MultiCondition]:
        """The conditions that can be asked of some inputs, and could not of those before."""
        return [each for each in self.conditions if each.inputs <= joined and not each.inputs <= before]

    def table(self, tables: Sequence[pa.Table], places: Mapping[int, np.ndarray]) -> pa.Table:
        """Rows of all inputs at these places, side by side."""
        taken = [table.take(pa.array(places[at])) for at, table in enumerate(tables)]
        ticks = [ticks_of(table.column(at)) for table, at in zip(taken, self._times, strict=True)]
        columns = []
        for (inputs, place), arrow in zip(self.origins, self._arrow.types, strict=True):
            if place >= 0:
                columns.append(taken[inputs[0]].column(place))
            else:
                columns.append(pa.array(np.maximum.reduce([ticks[at] for at in inputs])).cast(arrow))
        return pa.Table.from_arrays(columns, schema=self._arrow)

    def row(self, rows: Mapping[int, Row]) -> Row:
        """One row of each input, side by side."""
        made: list[Any] = []
        for inputs, place in self.origins:
            made.append(rows[inputs[0]][place] if place >= 0 else max(rows[at][self._times[at]] for at in inputs))  # type: ignore[type-var]
        return tuple(made)
