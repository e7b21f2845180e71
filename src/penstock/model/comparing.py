"""How values compare: NaN is greater than any number and equal to itself, and the two zeros are one, as in Spark.

Nested values compare part by part, null before everything else and equal to null; an array that another one begins with
comes before it.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any


def order_key(value: Any) -> Any:
    """What values are sorted by; those that are one value have one key."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    if isinstance(value, tuple):
        return tuple([(0,) if part is None else (1, order_key(part)) for part in value])
    return (0, value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else value


def compare(op: str, left: Any, right: Any) -> bool:
    """A comparison of two values that are not null."""
    if isinstance(left, float | tuple) or isinstance(right, float | tuple):
        left, right = order_key(left), order_key(right)
    match op:
        case "eq":
            return bool(left == right)
        case "ne":
            return bool(left != right)
        case "lt":
            return bool(left < right)
        case "le":
            return bool(left <= right)
        case "gt":
            return bool(left > right)
        case _:
            return bool(left >= right)
