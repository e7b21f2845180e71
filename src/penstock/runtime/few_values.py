"""Expressions over one column of text, computed once for each value that is in it.

Channels, names and addresses come again and again: where a batch has far fewer values than rows, an expression over
them is computed for the values, and rows take what became of theirs. The outermost expression that reads a single
column of text, and does more with it than to compare it, goes this way. What it gives is the same, null and failures
included, since all values of the column are looked at either way, and no expression gives two answers to one value.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.schema import STRING, Schema
from penstock.plan.expressions import USER, Call, Column, Expression, walk
from penstock.runtime.column_scalars import ColumnFunction

MANY_ROWS = 4096
"""From so many rows on it is looked how many values there are."""
SAMPLE = 1024
"""So many of them are looked at first."""
SHARE = 4
"""There are few values if there is one to so many rows, at the most."""
_CHEAP = frozenset({"eq", "ne", "in", "is_null", "and", "or", "not", "coalesce"})


def column_of_text(expression: Expression) -> str | None:
    """The one column, of text, that an expression works on; None if it is not of this kind."""
    parts = list(walk(expression))
    names = {part.name for part in parts if isinstance(part, Column)}
    calls = {part.name for part in parts if isinstance(part, Call)}
    if len(names) != 1 or calls <= _CHEAP or any(name.startswith(USER) for name in calls):
        return None
    of_text = all(part.type == STRING for part in parts if isinstance(part, Column))
    return names.pop() if of_text else None


def once_each(column: str, schema: Schema, plain: ColumnFunction, of_values: ColumnFunction) -> ColumnFunction:
    """An expression over a column, `plain` or `of_values` of a table that has nothing but this column."""
    at = schema.index(column)

    def apply(table: pa.Table) -> Any:
        found = _few(table.column(at))
        if found is None:
            return plain(table)
        values, places = found
        made = of_values(pa.table([values], names=[column]))
        if isinstance(made, pa.Scalar):
            return made
        whole = made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made
        return pa.chunked_array([whole.take(places)])

    return apply


def _few(column: pa.ChunkedArray) -> tuple[pa.Array, pa.Array] | None:
    """The values of a column, null among them, and of each row which it has; None if they are not few."""
    rows = len(column)
    if rows < MANY_ROWS or len(pc.unique(column.slice(rows // 2, SAMPLE))) > SAMPLE * 3 // 4:
        return None
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        return None  # more text than one array holds
    coded = whole.dictionary_encode(null_encoding="encode")
    if len(coded.dictionary) * SHARE > rows:
        return None
    return coded.dictionary, coded.indices
