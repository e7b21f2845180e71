"""Aggregate functions as lift, combine, lower and, where it is exact, invert.

`lift` makes a partial of one value, `combine` joins two, `lower` gives the result, `invert` takes a partial back out. A
partial is None when no value that counts has come. Nulls do not count, except for `count(*)`. Taking a floating point
number out of a sum does not give back the sum before it, so only counts and exact sums have `invert`. NaN is greater
than any number, as in Spark.

Partials are never changed in place: the same one may sit in a pane and in a window.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from operator import and_, or_, xor
from typing import Any, Protocol, runtime_checkable

from penstock.errors import EvaluationError
from penstock.model.comparing import order_key
from penstock.model.schema import DataType
from penstock.model.values import canonical

# Partials of different functions have different shapes; they are opaque outside their function.
Partial = Any


@runtime_checkable
class UserAggregate(Protocol):
    """What a user's aggregate must have; `invert(total, leaving)` is optional.

    Where its partials are not plain data, it must also have `to_state(partial)`, which gives plain data, and
    `from_state(data)`, which gives the partial back; else a state that holds them cannot be kept.
    """

    def lift(self, value: Any) -> Any:
        """A partial of one value that is not null."""

    def combine(self, left: Any, right: Any) -> Any:
        """One partial of two; must not change either."""

    def lower(self, partial: Any) -> Any:
        """The result."""


@dataclass(frozen=True)
class AggregateFunction:
    """A function with its parts, and how Arrow computes partials of a whole batch."""

    name: str
    lift: Callable[[Any], Partial]
    """Of a value, or of a tuple of the values of several arguments: None if they do not count."""
    combine: Callable[[Partial, Partial], Partial]
    lower: Callable[[Partial], Any]
    invert: Callable[[Partial, Partial], Partial] | None = None
    counts_nulls: bool = False
    empty: Any = None
    """The result when no value counts."""
    arrow: tuple[str, ...] = ()
    """Arrow's grouped aggregates that together make a partial; empty where Arrow cannot."""
    from_arrow: Callable[[tuple[Any, ...]], Partial] | None = None
    to_state: Callable[[Partial], Any] | None = None
    """Partials as plain data, where they are not plain data themselves."""
    from_state: Callable[[Any], Partial] | None = None
    is_failed: Callable[[Partial], bool] | None = None
    """Whether a partial stands for a failure, which nothing can be taken out of; None where there are none."""

    def result(self, partial: Partial) -> Any:
        """The value of a partial, which may be None."""
        return self.empty if partial is None else self.lower(partial)

    def join(self, left: Partial, right: Partial) -> Partial:
        """`combine` for partials that may be None."""
        if left is None:
            return right
        return left if right is None else self.combine(left, right)


def _one(value: Any) -> int:
    return 1


def _add(left: Any, right: Any) -> Any:
    return left + right


def _subtract(left: int, right: int) -> int | None:
    return (left - right) or None


def _same(value: Any) -> Any:
    return value


def count(argument: DataType | None, result: DataType) -> AggregateFunction:
    """How many values there are; without an argument, rows."""
    star = argument is None
    return AggregateFunction(
        "count", _one, _add, _same, _subtract, counts_nulls=star, empty=0, arrow=("count",), from_arrow=_first_or_none
    )


def _first_or_none(parts: tuple[Any, ...]) -> Any:
    return parts[0] or None


# The distinct values with how often each was put in, so that they can be taken out again.


def count_distinct(argument: DataType | None, result: DataType) -> AggregateFunction:
    """How many different values there are."""
    return AggregateFunction(
        "count_distinct", _once, put_in, len, take_out, empty=0, arrow=("distinct",), from_arrow=_each_once
    )


def _once(value: Any) -> dict[Any, int]:
    return {canonical(value): 1}


def put_in(left: dict[Any, int], right: dict[Any, int]) -> dict[Any, int]:
    """The values of both."""
    more, less = (left, right) if len(left) >= len(right) else (right, left)
    total = more.copy()
    for value, times in less.items():
        total[value] = total.get(value, 0) + times
    return total


def take_out(total: dict[Any, int], leaving: dict[Any, int]) -> dict[Any, int] | None:
    """The values that are left."""
    rest = total.copy()
    for value, times in leaving.items():
        if rest[value] == times:
            del rest[value]
        else:
            rest[value] -= times
    return rest or None


def _each_once(parts: tuple[Any, ...]) -> dict[Any, int] | None:
    return {canonical(v): 1 for v in parts[0] if v is not None} or None


# Sums carry how many values they hold, so that a sum from which everything was taken out is null again.


def _lift_sum(value: Any) -> tuple[Any, int]:
    return value, 1


def _combine_sum(left: tuple[Any, int], right: tuple[Any, int]) -> tuple[Any, int]:
    return left[0] + right[0], left[1] + right[1]


def _invert_sum(total: tuple[Any, int], leaving: tuple[Any, int]) -> tuple[Any, int] | None:
    return (total[0] - leaving[0], total[1] - leaving[1]) if total[1] > leaving[1] else None


def _sum_from_arrow(parts: tuple[Any, ...]) -> tuple[Any, int] | None:
    return (parts[0], parts[1]) if parts[1] else None


def check_bigint(partial: tuple[Any, int]) -> int:
    """A sum of integers, if it is one that SQL can hold."""
    value = int(partial[0])
    if not -(2**63) <= value < 2**63:
        raise sum_overflow(value)
    return value


def sum_overflow(value: int | str = "it") -> EvaluationError:
    """The error for a sum of integers that SQL cannot hold; not everybody who finds one knows it."""
    return EvaluationError(
        "Arithmetic overflow in sum.", got=f"{value} does not fit bigint", hint="CAST the argument to decimal or double"
    )


def sum_of(argument: DataType | None, result: DataType) -> AggregateFunction:
    """The sum: of integers and decimals exact, or an error; of floats as it comes."""
    assert argument is not None
    if argument.is_decimal:
        return _decimals("sum", _DecimalSum(result))
    exact = not argument.is_fractional
    lower: Callable[[Any], Any] = check_bigint if argument.is_integer else _float_sum
    return AggregateFunction(
        "sum", _lift_sum if exact else _lift_float, _combine_sum, lower, _invert_sum if exact else None,
        arrow=("sum", "count"), from_arrow=_sum_from_arrow,
    )  # fmt: skip


def _lift_float(value: Any) -> tuple[float, int]:
    return float(value), 1


def _float_sum(partial: tuple[Any, int]) -> float:
    return float(partial[0])


# Decimals are added in a context that is wide enough to be exact; Python's own has 28 digits, SQL's have 38.
_WIDE = Context(prec=100, rounding=ROUND_HALF_UP)


def _combine_decimals(left: tuple[Decimal, int], right: tuple[Decimal, int]) -> tuple[Decimal, int]:
    return _WIDE.add(left[0], right[0]), left[1] + right[1]


def _invert_decimals(total: tuple[Decimal, int], leaving: tuple[Decimal, int]) -> tuple[Decimal, int] | None:
    return (_WIDE.subtract(total[0], leaving[0]), total[1] - leaving[1]) if total[1] > leaving[1] else None


def _fit_decimal(value: Decimal, type_: DataType, function: str) -> Decimal:
    fitted = _WIDE.quantize(value, Decimal(1).scaleb(-type_.scale))
    if fitted and fitted.adjusted() + 1 > type_.precision - type_.scale:
        raise EvaluationError(
            f"Arithmetic overflow in {function}.",
            got=f"{fitted} does not fit {type_}",
            hint="CAST the argument to a narrower decimal or to double",
        )
    return fitted


@dataclass(frozen=True)
class _DecimalSum:
    type: DataType

    def __call__(self, partial: tuple[Decimal, int]) -> Decimal:
        return _fit_decimal(partial[0], self.type, "sum")


@dataclass(frozen=True)
class _DecimalAvg:
    type: DataType

    def __call__(self, partial: tuple[Decimal, int]) -> Decimal:
        return _fit_decimal(_WIDE.divide(partial[0], Decimal(partial[1])), self.type, "avg")


def _decimals(name: str, lower: Callable[[Any], Any]) -> AggregateFunction:
    return AggregateFunction(name, _lift_sum, _combine_decimals, lower, _invert_decimals)


def _avg_of(partial: tuple[Any, int]) -> float:
    return float(partial[0] / partial[1])


def avg_of(argument: DataType | None, result: DataType) -> AggregateFunction:
    """The mean."""
    assert argument is not None
    if argument.is_decimal:
        return _decimals("avg", _DecimalAvg(result))
    exact = not argument.is_fractional
    return AggregateFunction(
        "avg", _lift_sum if exact else _lift_float, _combine_sum, _avg_of, _invert_sum if exact else None,
        arrow=("sum", "count"), from_arrow=_sum_from_arrow,
    )  # fmt: skip


def _nan_last(value: Any) -> Any:
    if isinstance(value, tuple):
        return order_key(value)
    return (math.isnan(value), value) if isinstance(value, float) else value


def least(left: Any, right: Any) -> Any:
    """The lesser of two numbers; NaN is above all."""
    return left if _nan_last(left) <= _nan_last(right) else right


def greatest(left: Any, right: Any) -> Any:
    """The greater of two numbers; NaN is above all."""
    return left if _nan_last(left) >= _nan_last(right) else right


def _least_plain(left: Any, right: Any) -> Any:
    return left if left <= right else right


def _greatest_plain(left: Any, right: Any) -> Any:
    return left if left >= right else right


_ARROW_ORDERED = frozenset({"tinyint", "smallint", "int", "bigint", "timestamp", "date", "decimal"})


def min_of(argument: DataType | None, result: DataType) -> AggregateFunction:
    """The least value."""
    return _extremum("min", argument)


def max_of(argument: DataType | None, result: DataType) -> AggregateFunction:
    """The greatest value."""
    return _extremum("max", argument)


def _extremum(name: str, argument: DataType | None) -> AggregateFunction:
    floats = argument is not None and (argument.is_fractional or argument.is_nested)
    lesser, greater = (least, greatest) if floats else (_least_plain, _greatest_plain)
    arrow = (name,) if argument is not None and argument.name in _ARROW_ORDERED else ()
    return AggregateFunction(name, _same, lesser if name == "min" else greater, _same, arrow=arrow, from_arrow=_first)


def _first(parts: tuple[Any, ...]) -> Any:
    return parts[0]


_BITS: dict[str, Callable[[int, int], int]] = {"bit_and": and_, "bit_or": or_, "bit_xor": xor}


def bits(name: str) -> Callable[[DataType | None, DataType], AggregateFunction]:
    """All whole numbers, bit by bit: `bit_and`, `bit_or` or `bit_xor`."""

    def row_form(argument: DataType | None, result: DataType) -> AggregateFunction:
        return AggregateFunction(name, _same, _BITS[name], _same)

    return row_form


# Variance by count, mean and sum of squared deviations, joined by Chan's rule.

Moments = tuple[int, float, float]


def lift_moments(value: Any) -> Moments:
    """The moments of one value."""
    number = float(value)
    return 1, number, 0.0 if math.isfinite(number) else math.nan


def combine_moments(left: Moments, right: Moments) -> Moments:
    """The moments of both."""
    n = left[0] + right[0]
    delta = right[1] - left[1]
    return n, left[1] + delta * right[0] / n, left[2] + right[2] + delta * delta * left[0] * right[0] / n


@dataclass(frozen=True)
class Spread:
    """A variance or standard deviation, of a sample or of a population, from moments."""

    sample: bool
    root: bool

    def __call__(self, moments: Moments) -> float | None:
        """None where the sample is a single value."""
        n = moments[0] - 1 if self.sample else moments[0]
        if n == 0:
            return None
        variance = moments[2] / n
        return math.sqrt(variance) if self.root else variance


def _moments_from_arrow(parts: tuple[Any, ...]) -> Moments | None:
    count, mean, variance = parts
    return (count, float(mean), float(variance) * count) if count else None


def moments(name: str, spread: Spread) -> AggregateFunction:
    """A variance or a standard deviation."""
    return AggregateFunction(
        name,
        lift_moments,
        combine_moments,
        spread,
        arrow=("count", "mean", "variance"),
        from_arrow=_moments_from_arrow,
    )
