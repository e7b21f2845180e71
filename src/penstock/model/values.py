"""When two values are one value: what GROUP BY, DISTINCT and `count(DISTINCT …)` take as equal.

Null is equal to null, NaN to NaN, and the two zeros of floating point are one zero, as in Spark. Python's NaN is equal
to nothing, not even to a copy of itself that has been through a checkpoint, so `canonical` puts `NAN` in its place.
Values of nested types, which are tuples, are one value where all of their parts are.
"""

from __future__ import annotations

import math
from typing import Any


class _NaN(float):
    """A NaN that is equal to itself, in this process and in the next."""

    __slots__ = ()

    def __new__(cls) -> _NaN:
        return super().__new__(cls, "nan")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NaN)

    def __ne__(self, other: object) -> bool:
        return not isinstance(other, _NaN)

    def __hash__(self) -> int:
        return 0x7FF8

    def __reduce__(self) -> tuple[object, ...]:
        return _NaN, ()


NAN = _NaN()


def canonical(value: Any) -> Any:
    """The value as a key."""
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0  # -0.0 becomes 0.0
    return canonical_row(value) if isinstance(value, tuple) else value


def canonical_row(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Several values as a key."""
    return tuple([canonical(v) for v in values])
