"""The latest rows as of a time, by their definition: of all that a row could meet, those that fewest others are after.

A row is after another if its time is later, or the time is the same and it is greater: in the first column in which the
two differ, null being less than all else and NaN greater than all other numbers; where none differs, -0.0 is less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from penstock.model.batch import Row
from penstock.plan.join_nodes import Join

Pair = tuple[int, int]
"""The places of a row of the left and of one of the right."""


def latest(node: Join, count: int, pairs: Sequence[Pair], rights: Sequence[Row]) -> list[Pair]:
    """Of the pairs of each row of the left, those with the latest rows of the right."""
    at = node.right.schema.index(node.on[1])

    def among(pair: Pair) -> bool:
        others = [j for i, j in pairs if i == pair[0]]
        return sum(_place(rights, j, at) > _place(rights, pair[1], at) for j in others) < count

    return [pair for pair in pairs if among(pair)]


def _place(rights: Sequence[Row], number: int, at: int) -> tuple[Any, ...]:
    """What rows are ordered by; of two that are the same in everything, either may be the later."""
    row = rights[number]
    return row[at], *by_columns(row), number


def by_columns(row: Row) -> tuple[list[Any], list[Any]]:
    """What rows of one time are ordered by."""
    return [_size(value) for value in row], [_sign(value) for value in row]


def _size(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ("0 null",)
    if isinstance(value, float) and math.isnan(value):
        return ("2 not a number",)
    if isinstance(value, tuple):  # a nested one: part by part
        return ("1 value", [_size(part) for part in value])
    return ("1 value", value)


def _sign(value: Any) -> Any:
    """What tells the zeros apart where all else is equal."""
    if isinstance(value, tuple):
        return [_sign(part) for part in value]
    return math.copysign(1, value) if isinstance(value, float) and value == 0 else 0
