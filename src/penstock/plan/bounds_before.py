"""From which bound on attributes a bound on what is computed from them follows: the way back through an expression.

Of an expression that rises with attributes (`monotone`), a bound `b` on each of them comes to the bound `f(b)`. Whoever
waits for `x` on it waits for the least `b` with `f(b) >= x`, and for nothing later. It is found by looking where the
expression itself says so, by doubling steps and then by halves, so it is exact for whatever rises: sums, quotients,
truncations, those that cut towards zero and those that round, and the least of several attributes. Some sixty times two
evaluations at most; a bound that is asked for again is remembered.

Where the expression has no value (it overflows) nothing is promised: far out it counts as beyond every value.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial

from penstock.errors import EvaluationError
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.plan.expressions import Column, Expression, Literal, columns_in
from penstock.plan.functions import LAZY, STRICT, evaluate_lazy

_LOW, _HIGH = MIN_TICK + 1, END_OF_TIME - 1
"""The first and the last bound that says something, and not everything."""


def value_at(expression: Expression, bounds: Mapping[str, int]) -> int | None:
    """What bounds on its attributes come to; None where the expression has no value."""
    try:
        found = _value(expression, bounds)
    except EvaluationError:
        return None
    return found if isinstance(found, int) else None


def _value(expression: Expression, bounds: Mapping[str, int]) -> object:
    match expression:
        case Column(name=name):
            return bounds[name]
        case Literal(value=value):
            return value
    if expression.name in LAZY:
        return evaluate_lazy(expression.name, [partial(_value, arg, bounds) for arg in expression.args])
    found: object = STRICT[expression.name]([_value(arg, bounds) for arg in expression.args], expression.type)
    return found


@lru_cache(maxsize=4096)
def bound_before(expression: Expression, bound: int) -> int | None:
    """The least bound on all of its attributes that comes to a bound on an expression; None if only the end does."""
    attributes = columns_in(expression)

    def reaches(at: int) -> bool:
        found = value_at(expression, dict.fromkeys(attributes, at))
        return at > 0 if found is None else found >= bound

    low = high = min(max(bound, _LOW), _HIGH)
    step = 1
    while not reaches(high):
        if high == _HIGH:
            return None
        low, high, step = high, min(high + step, _HIGH), step * 2
    step = 1
    while low == high or reaches(low):
        if low == _LOW:
            return low
        high, low, step = low, max(low - step, _LOW), step * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high if value_at(expression, dict.fromkeys(attributes, high)) is not None else None
