"""RowNumber: the rows of tumbling windows, numbered in an order of their own once a window is complete.

Rows are held as they come, in pieces, each with its oldest and its newest time, until the bound has passed their
window. Then those of all windows that are complete are sorted at once, by window, keys and order, and come out with
their numbers. Where only the first n are wanted, pieces that are put together keep no more than the first n of each
window and group that they have: no other row can be among the first n of all.

State: a page for each piece, one for single rows, one that says which pieces there are. Cost: a row is sorted when its
window closes, and some times before where pieces are small.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Batch, Row, table_of, ticks_of
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.operators.operator import BoundMemory, Operator, Outputs
from penstock.operators.windows.sliding import Sliding
from penstock.operators.windows.sorting import Array, By, codes_of, in_order, starts_of

FEW_ROWS = 32
"""Fewer rows than this are held one by one."""
LOOSE_ROWS = 4096
"""So many of them become a piece."""
PIECES = 16
"""From so many pieces on they are put together."""


class RowNumberOperator(Operator):
    """Numbers the rows of each window and group."""

    kind = "row number"

    def __init__(
        self,
        schema: Schema,
        below: Schema,
        window: Sliding,
        keys: Sequence[int],
        order: Sequence[By],
        most: int | None = None,
    ) -> None:
        """`below` is the schema of the rows, in which `keys` and `order` are places; rows after `most` are left out."""
        super().__init__(schema)
        self.below, self.window, self.most = below, window, most
        self.keys = [By(place) for place in keys]
        self.order = list(order)
        named = {by.place for by in (*self.keys, *self.order)}
        self.ties = [*self.order[1:], *(By(place) for place in range(len(below)) if place not in named)]
        """What decides where rows are equal in the first that they are ordered by, which is rarely looked at."""
        self.passed_on = BoundMemory()

    # Taking rows

    def process(self, port: int, batch: Batch) -> Outputs:
        """Hold the rows, if any are wanted."""
        if self.most is not None and self.most < 1:
            return ()
        if len(batch) >= FEW_ROWS or batch.columnar:
            self._add(batch.table)
            return ()
        rows: list[Row] = self.pages.get("rows") or []
        rows.extend(batch.rows)
        self.pages.put("rows", rows)
        if len(rows) >= LOOSE_ROWS:
            self._tighten()
        return ()

    def _tighten(self) -> None:
        """Make a piece of the single rows."""
        rows: list[Row] | None = self.pages.get("rows")
        if rows:
            self.pages.delete("rows")
            self._add(table_of(self.below, rows))

    def _add(self, table: pa.Table) -> None:
        if not table.num_rows:
            return
        held = self._held()
        if len(held) >= PIECES:
            table = self._first(pa.concat_tables([*(self._taken(number) for number, _, _ in held), table]))
            held = []
        times = self._times(table)
        number = 1 + max((n for n, _, _ in held), default=-1)
        self.pages.put(f"t{number}", table)
        self.pages.put("held", [*held, (number, int(times.min()), int(times.max()))])

    def _held(self) -> list[tuple[int, int, int]]:
        """The pieces: number, oldest and newest time."""
        return [(number, oldest, newest) for number, oldest, newest in self.pages.get("held") or ()]

    def _taken(self, number: int) -> pa.Table:
        table = self.pages.get(f"t{number}")
        self.pages.delete(f"t{number}")
        return table

    def _times(self, table: pa.Table) -> Array:
        return ticks_of(table.column(self.below.time_index))

    # Numbering them

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Number the rows of the windows that the bound closes, and pass the bound on as one on their ends."""
        if not punctuation.is_linear or punctuation.attribute != self.below.time:
            return
        bound = punctuation.value
        limit = bound if bound == END_OF_TIME else self.window.start(self.window.first(bound))
        closing = self._closing(limit)
        if closing is not None:
            yield Batch(self.schema, table=self._numbered(closing))
        out = END_OF_TIME if bound == END_OF_TIME else self.window.output_bound(bound)
        if self.passed_on.advance(self.pages, out):
            yield self.output_bound(out)

    def _closing(self, limit: int) -> pa.Table | None:
        """The rows before a time, which are held no longer; None if there are none."""
        self._tighten()
        held, kept, found = self._held(), [], []
        for number, oldest, newest in held:
            if oldest >= limit:
                kept.append((number, oldest, newest))
                continue
            table = self._taken(number)
            if newest >= limit:
                closes = self._times(table) < limit
                rest = table.filter(pa.array(~closes))
                table = table.filter(pa.array(closes))
                self.pages.put(f"t{number}", rest)
                kept.append((number, int(self._times(rest).min()), newest))
            found.append(table)
        if not found:
            return None
        self.pages.put("held", kept)
        return pa.concat_tables(found)

    def _sorted(self, table: pa.Table) -> tuple[pa.Table, Array, Array]:
        """Rows by window, keys and order, with the number of the window and their own."""
        wids = np.floor_divide(self._times(table) - self.window.origin, self.window.slide)
        groups = [wids, *(codes_of(table.column(by.place), by) for by in self.keys)]
        order = in_order(table, [*groups, *(codes_of(table.column(by.place), by) for by in self.order[:1])], self.ties)
        starts = np.flatnonzero(starts_of([each[order] for each in groups], len(order)))
        numbers = np.arange(1, len(order) + 1) - np.repeat(starts, np.diff(starts, append=len(order)))
        if self.most is not None:
            first = numbers <= self.most
            order, numbers = order[first], numbers[first]
        return table.take(pa.array(order)), wids[order], numbers

    def _first(self, table: pa.Table) -> pa.Table:
        """The rows that can be among those that are wanted."""
        return table.combine_chunks() if self.most is None else self._sorted(table)[0]

    def _numbered(self, table: pa.Table) -> pa.Table:
        rows, wids, numbers = self._sorted(table)
        starts = wids * self.window.slide + self.window.origin
        bound = self.schema.fields[-3].type.arrow
        made = [pc.cast(pa.array(starts), bound), pc.cast(pa.array(starts + self.window.slide), bound)]
        return pa.Table.from_arrays([*rows.columns, *made, pa.array(numbers, pa.int32())], schema=self.schema.arrow)

    def feedback(self, bound: int) -> int | None:
        """Rows of windows whose results are not needed are not needed."""
        if bound == END_OF_TIME:
            return END_OF_TIME
        return self.window.start(self.window.first_needed(bound)) + self.below.lifetime
