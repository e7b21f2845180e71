"""Numbers of rows by the definition: the rows of a window and group, sorted value by value.

Nulls are where the order says; NaN is the greatest number. Rows that tie are ordered by all of their columns, the first
column first, ascending, null before everything else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cmp_to_key

from penstock.model.batch import Row
from penstock.plan.rank_nodes import RowNumber
from penstock.reference.scalars import same_row
from penstock.reference.windows import extents


def row_numbers(node: RowNumber, rows: Sequence[Row]) -> list[Row]:
    """All rows with the bounds of their window and their number in it."""
    schema = node.input.schema
    keys = [schema.index(key) for key in node.keys]
    order = [(schema.index(each.column), each.descending, each.nulls_last) for each in node.order]
    order += [(place, False, False) for place in range(len(schema))]

    def compared(one: Row, other: Row) -> int:
        for place, descending, nulls_last in order:
            found = _compared(one[place], other[place], descending=descending, nulls_last=nulls_last)
            if found:
                return found
        return 0

    results: list[Row] = []
    for extent in extents(node.window, rows, schema):
        groups: dict[object, list[Row]] = {}
        for row in extent.rows:
            groups.setdefault(same_row(tuple(row[place] for place in keys)), []).append(row)
        for members in groups.values():
            for number, row in enumerate(sorted(members, key=cmp_to_key(compared)), 1):
                if node.most is None or number <= node.most:
                    results.append((*row, extent.start, extent.end, number))
    return results


def _compared(one: object, other: object, *, descending: bool, nulls_last: bool) -> int:
    if one is None or other is None:
        first = (one is not None) - (other is not None)  # null first
        return -first if nulls_last else first
    found = _is_nan(one) - _is_nan(other)
    if isinstance(one, tuple) and isinstance(other, tuple):  # nested: part by part
        parts = (_compared(a, b, descending=False, nulls_last=False) for a, b in zip(one, other, strict=False))
        found = next((each for each in parts if each), (len(one) > len(other)) - (len(one) < len(other)))
    elif not found and not _is_nan(one):
        found = (one > other) - (one < other)  # type: ignore[operator]
    return -found if descending else found


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
