"""A result as a table: plain rows; rows with their ends; or a changelog, where rows may be revised.

| result | columns |
|---|---|
| plain rows | what the query selects |
| events with lives of their own | the same, then the end (`ve`), which is null while an event is open |
| events that are revised | `op` first, and the old end (`v_old`) at last |

`op` is `insert`, `update` (the end has moved from the old end to the end) or `delete` (the event is taken back, and the
end is its start), as in the changelogs of Spark's and Flink's tables. An `update` and a `delete` repeat the row of
their `insert`: the row, its start and the old end say which event is meant. Where the query hides the time, the start
is a column as well (`vs`), since without it no event could be told from another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Batch, rows_of
from penstock.model.elements import Adjust, Insert
from penstock.model.lived_rows import end_type
from penstock.model.schema import STRING, DataType, Field, Schema
from penstock.model.time import END_OF_TIME

START, OP = "vs", "op"
INSERT, UPDATE, DELETE = "insert", "update", "delete"


@dataclass(frozen=True)
class ResultForm:
    """How the results of a query look in a table."""

    result: Schema
    """Of the query, hidden columns and all."""
    insert_only: bool = True

    @cached_property
    def schema(self) -> Schema:
        """The columns of the table; of plain rows the visible ones."""
        visible = self.result.visible
        if self.result.lives is None:
            return self.result
        taken = {f.name.lower() for f in visible}
        time = self.result[self.result.time]
        start = [Field(_free(START, taken), time.type)] if time.hidden else []
        end, old = (Field(_free(name, taken), end_type(self.result)) for name in self.result.lives)
        if self.insert_only:
            return Schema((*visible, *start, end))
        return Schema((Field(_free(OP, taken), STRING), *visible, *start, end, old))

    @property
    def arrow(self) -> pa.Schema:
        """The same in Arrow's words."""
        return self.schema.visible_arrow

    def table(self, batch: Batch) -> pa.Table:
        """A batch of results as users see it."""
        if self.result.lives is None:
            return batch.visible()
        lives, starts = batch.its_lives(), batch.times()
        visible = batch.visible()
        columns = list(visible.columns)
        time = self.result[self.result.time]
        if time.hidden:
            columns.append(batch.table.column(self.result.time_index))
        ticks = end_type(self.result)
        columns.append(_ticks(lives.ends, lives.ends != END_OF_TIME, ticks))
        if not self.insert_only:
            ops = np.where(lives.revises, np.where(lives.ends == starts, DELETE, UPDATE), INSERT)
            columns.insert(0, pa.chunked_array([pa.array(ops, pa.string())]))
            columns.append(_ticks(lives.olds, lives.revises & (lives.olds != END_OF_TIME), ticks))
        return pa.Table.from_arrays(columns, schema=self.arrow)

    def elements(self, table: pa.Table) -> list[Insert | Adjust]:
        """The inserts and adjusts that a table of results with lives tells, in its order."""
        count = len(self.result.visible)
        hidden = self.result[self.result.time].hidden
        start = count if hidden else [f.name for f in self.result.visible].index(str(self.result.time))
        found: list[Insert | Adjust] = []
        for row in rows_of(table.select(self.schema.names).cast(self.arrow)):
            op, values = (INSERT, row) if self.insert_only else (row[0], row[1:])
            payload, vs, ve = values[:count], values[start], _end(values[count + hidden])
            assert isinstance(vs, int)
            if op == INSERT:
                found.append(Insert(payload, vs, ve))
            else:
                found.append(Adjust(payload, vs, _end(values[-1]), ve))
        return found


def _free(name: str, taken: set[str]) -> str:
    """The name, with underscores before it where a column has it already."""
    while name.lower() in taken:
        name = f"_{name}"
    taken.add(name.lower())
    return name


def _ticks(ticks: np.ndarray, known: np.ndarray, type_: DataType) -> pa.ChunkedArray:
    """Ticks as a column, null where they are not known."""
    return pa.chunked_array([pc.cast(pa.array(ticks, pa.int64(), mask=~known), type_.arrow)])


def _end(value: object) -> int:
    """An end as a tick; no end is the end of time."""
    assert value is None or isinstance(value, int)
    return END_OF_TIME if value is None else value
