"""Aggregates of two arguments: the value beside the least or the greatest of another, and how two go together.

`min_by(x, y)` is the x of the row with the least y, `max_by` that of the greatest; rows without a y do not count, an x
may be null. Of rows with the same y it is the least x for `min_by`, the greatest for `max_by`, null being below all.
Spark leaves that open; here an answer must not depend on the order of arrival.

Covariance and correlation come from the joint moments of the pairs of which neither is null: number, means, and sums of
squared and multiplied deviations, joined by Chan's rule. A correlation of values that are all the same is null, as is
one of a single pair, and a covariance of a sample of one; else what is not finite makes them NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.model.schema import DataType
from penstock.operators.aggregates.functions import AggregateFunction
from penstock.operators.aggregates.ordering import ordered

Beside = tuple[Any, Any]
"""A value of the second argument, and that of the first beside it."""
Pair = tuple[Any, Any]


def _beside(pair: Pair) -> Beside | None:
    value, by = pair
    return None if by is None else (by, value)


def _rank(beside: Beside) -> tuple[Any, Any]:
    return ordered(beside[0]), ordered(beside[1])


def _lesser(left: Beside, right: Beside) -> Beside:
    return left if _rank(left) <= _rank(right) else right


def _greater(left: Beside, right: Beside) -> Beside:
    return left if _rank(left) >= _rank(right) else right


def _value(beside: Beside) -> Any:
    return beside[1]


def min_by(argument: DataType | None, result: DataType) -> AggregateFunction:
    """The first argument where the second is least."""
    return AggregateFunction("min_by", _beside, _lesser, _value)


def max_by(argument: DataType | None, result: DataType) -> AggregateFunction:
    """The first argument where the second is greatest."""
    return AggregateFunction("max_by", _beside, _greater, _value)


JointMoments = tuple[int, float, float, float, float, float]
"""Number, both means, both sums of squared deviations, sum of multiplied deviations."""


def _lift(pair: Pair) -> JointMoments | None:
    if pair[0] is None or pair[1] is None:
        return None
    x, y = float(pair[0]), float(pair[1])
    apart_x, apart_y = x - x, y - y  # NaN if it is not finite
    return 1, x, y, apart_x, apart_y, apart_x * apart_y


def _combine(left: JointMoments, right: JointMoments) -> JointMoments:
    n, m = left[0], right[0]
    total = n + m
    dx, dy = right[1] - left[1], right[2] - left[2]
    weight = n * m / total
    return (
        total,
        left[1] + dx * m / total,
        left[2] + dy * m / total,
        left[3] + right[3] + dx * dx * weight,
        left[4] + right[4] + dy * dy * weight,
        left[5] + right[5] + dx * dy * weight,
    )


def _covar_pop(moments: JointMoments) -> float:
    return moments[5] / moments[0]


def _covar_samp(moments: JointMoments) -> float | None:
    return moments[5] / (moments[0] - 1) if moments[0] > 1 else None


def _corr(moments: JointMoments) -> float | None:
    number, _, _, xs, ys, both = moments
    if number == 1 or xs == 0 or ys == 0:
        return None
    return both / math.sqrt(xs) / math.sqrt(ys)


@dataclass(frozen=True)
class JointSpread:
    """Makes a function of joint moments."""

    name: str
    lower: Callable[[JointMoments], float | None]

    def __call__(self, argument: DataType | None, result: DataType) -> AggregateFunction:
        """Of any two arguments that are doubles."""
        return AggregateFunction(self.name, _lift, _combine, self.lower)


covar_pop = JointSpread("covar_pop", _covar_pop)
covar_samp = JointSpread("covar_samp", _covar_samp)
corr = JointSpread("corr", _corr)
