"""Aggregates of several queries over the same windows and groups: their rows are counted once.

A *family* has the measures that any of its members needs. It brings batches down to panes and lets totals slide over
them as a columnar aggregate does, and gives the numbers of the windows that close. Each query has a *face* of the
family: it makes its own results of the numbers, and a sum that SQL cannot hold fails in the queries that ask for it and
in no other. So what grows with the queries is work per result, not per row.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.model.batch import Batch
from penstock.model.schema import Schema
from penstock.operators.aggregates.columnar import ColumnarAggregate
from penstock.operators.aggregates.group_codes import GroupCodes
from penstock.operators.aggregates.measures import Array, Measure, Result, infinite
from penstock.operators.aggregates.slide import Slide
from penstock.operators.aggregates.window_tables import Block, WindowTables, joined, window_columns
from penstock.operators.operator import Outputs, Stateless
from penstock.operators.windows.sliding import Sliding


class WindowNumbers(Batch):
    """Windows and groups as rows, with per measure of the family its numbers."""

    __slots__ = ("numbers", "wids")

    def __init__(self, schema: Schema, table: pa.Table, wids: Array, numbers: list[Array]) -> None:
        """`numbers` has an array per measure, in the order of the rows."""
        super().__init__(schema, table=table)
        self.wids, self.numbers = wids, numbers


class _Numbers(WindowTables):
    """Gives the numbers as they are, whether or not a result can be made of them."""

    def of(self, blocks: list[Block], groups: GroupCodes) -> Outputs:
        """One batch with its numbers."""
        wids, codes, numbers = joined(blocks)
        columns = [*window_columns(self.schema, self.window, wids), *groups.columns(codes)]
        yield WindowNumbers(self.schema, pa.Table.from_arrays(columns, schema=self.schema.arrow), wids, numbers)


class FamilyAggregate(ColumnarAggregate):
    """What several aggregates over the same windows and groups have in common."""

    def __init__(
        self,
        schema: Schema,
        window: Sliding,
        time: int,
        keys: tuple[int, ...],
        key_schema: Schema,
        measures: tuple[Measure, ...],
        lifetime: int = 1,
        attribute: str = "",
    ) -> None:
        """As a columnar aggregate without results; `schema` has the window and the keys."""
        super().__init__(schema, window, time, keys, key_schema, measures, (), lifetime, attribute)
        self._tables = _Numbers(schema, window, len(keys), measures, ())

    def _has_tables_alone(self, state: Slide) -> bool:
        """Faces take numbers, so rows are always brought down to them."""
        return False


class FaceOperator(Stateless):
    """What one query makes of the numbers of a family."""

    def __init__(
        self, schema: Schema, window: Sliding, keys: int, results: Sequence[Result], places: Sequence[int]
    ) -> None:
        """`places` are those of the query's measures among the family's; `results` go by the query's own."""
        super().__init__(schema)
        self.places = tuple(places)
        self._tables = WindowTables(schema, window, keys, (), tuple(results))

    def process(self, port: int, batch: Batch) -> Outputs:
        """The results of windows."""
        assert isinstance(batch, WindowNumbers)
        own = [batch.numbers[place] for place in self.places]
        columns = batch.table.columns
        with infinite():
            return list(self._tables.made(batch.wids, columns[:3], columns[3:], own))
