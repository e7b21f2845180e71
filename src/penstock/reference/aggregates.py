"""Aggregates from their textbook definitions, over the list of a group's values.

Nulls are left out first; what is left may be nothing, and then only `count` has a value. Arithmetic is exact, in
fractions, and is rounded once at the end, so that no order of summing is preferred. A variance is one of doubles: its
values are brought to double first. NaN is greater than every number. An infinity among the values makes a sum
infinite, or NaN beside its opposite. Ties are decided by the value, never by arrival: of the values that are most
frequent the mode is the least, of rows that are least by another `min_by` gives the least value, null before all, and
`max_by` the greatest. A group whose aggregate has no value raises `EvaluationError`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import reduce
from operator import and_, or_, xor
from typing import Any, Protocol, cast

from penstock.errors import EvaluationError, UnsupportedError
from penstock.model.interrupts import let_through
from penstock.model.schema import TIMESTAMP, DataType
from penstock.plan.expressions import USER, AggregateCall
from penstock.plan.user_functions import RAISED, checked, raised, shown
from penstock.reference.scalars import same

_BIGINT = 2**63
_EXACT = Context(prec=100)
_BITS = {"bit_and": and_, "bit_or": or_, "bit_xor": xor}


class Combinable(Protocol):
    """A user aggregate: each value is lifted, lifted values are combined, the last one is lowered to the result."""

    def lift(self, value: Any) -> Any:
        """The partial result of one value."""

    def combine(self, left: Any, right: Any) -> Any:
        """The partial result of two."""

    def lower(self, partial: Any) -> Any:
        """The result."""


def aggregate(call: AggregateCall, values: Sequence[object], user: Mapping[str, object]) -> object:
    """The aggregate of a group.

    `values` are those of its argument, tuples of them where it has several, or anything at all for `count(*)`.
    """
    if call.argument is None:
        return len(values)
    present = [v for v in values if _counts(call, v)]
    if call.distinct:
        present = list({same(v): v for v in present}.values())
    if call.function == "count":
        return len(present)
    if call.function in ("collect_list", "collect_set"):
        return _collected(call, present)
    if not present:
        return None
    if call.function.startswith(USER):
        return _user(call, present, user)
    match call.function:
        case "sum":
            return _sum(present, call.type)
        case "avg":
            return _avg(present, call.type)
        case "min":
            return min(present, key=_order)
        case "max":
            return max(present, key=_order)
        case "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
            return _spread(call.function, present)
        case _:
            return _further(call, present)


def _further(call: AggregateCall, present: list[Any]) -> object:
    match call.function:
        case "bit_and" | "bit_or" | "bit_xor":
            return reduce(_BITS[call.function], present)
        case "min_by":
            return min(present, key=_by)[0]
        case "max_by":
            return max(present, key=_by)[0]
        case "covar_pop" | "covar_samp" | "corr":
            return _joint(call.function, present)
        case "percentile":
            return _percentile(present, 0.5 if call.share is None else call.share)
        case "mode":
            times = Counter(same(v) for v in present)
            return min((v for v in present if times[same(v)] == max(times.values())), key=_order)
        case _:
            raise UnsupportedError("The reference does not know this aggregate.", got=call.function)


def _collected(call: AggregateCall, present: list[Any]) -> tuple[object, ...]:
    """Values by time, those of one time in order; or the distinct values in order."""
    if call.function == "collect_list":
        in_order = sorted(present, key=lambda pair: (pair[1] is not None, pair[1] or 0, _order(pair[0])))
        return tuple(value for value, _ in in_order)
    return tuple(sorted({same(value): value for value in present}.values(), key=_order))


def _counts(call: AggregateCall, value: object) -> bool:
    """Whether a row counts: none of its arguments is null; what is found by another may be."""
    if not isinstance(value, tuple) or len(call.columns) == 1:  # an array is a tuple, too
        return value is not None
    if call.function == "collect_list":
        return value[0] is not None
    return value[1] is not None if call.function in ("min_by", "max_by") else None not in value


def _user(call: AggregateCall, values: list[Any], user: Mapping[str, object]) -> object:
    name = call.function.removeprefix(USER).lower()
    if name not in user:
        raise UnsupportedError("The user aggregate is not known.", got=name, hint="pass it in aggregates=…")
    function = cast(Combinable, user[name])
    try:
        given = [shown(v) for v in values] if call.argument_type == TIMESTAMP else values
        partial = function.lift(given[0])
        for value in given[1:]:
            partial = function.combine(partial, function.lift(value))
        lowered = function.lower(partial)
    except RAISED as error:
        let_through(error)
        raise raised(name, error) from error
    result: object = checked(lowered, call.type, name)
    return result


def _order(value: Any) -> Any:
    """A sort key that puts NaN last."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    if isinstance(value, tuple):  # part by part, null first
        return tuple((part is not None, 0 if part is None else _order(part)) for part in value)
    return value


def _by(pair: tuple[Any, Any]) -> Any:
    """Rows by the second argument, ties by the first, of which null is the least."""
    value, by = pair
    return _order(by), value is not None, 0 if value is None else _order(value)


def _percentile(values: list[Any], share: float) -> float:
    """The value at a place among the values in order; between two places, in a straight line."""
    in_order = sorted(values, key=_order)
    place = share * (len(values) - 1)
    low, high = float(in_order[math.floor(place)]), float(in_order[math.ceil(place)])
    if low == high or place == math.floor(place):
        return low
    part = place - math.floor(place)
    if not (math.isfinite(low) and math.isfinite(high)):
        return low + part * (high - low)  # NaN where the line has no beginning
    return _double(Fraction(low) + Fraction(part) * (Fraction(high) - Fraction(low)))


def _joint(function: str, pairs: list[Any]) -> float | None:
    """Covariance or correlation; of a sample, and of a correlation, two pairs are needed, in which values differ."""
    sample, n = function != "covar_pop", len(pairs)
    if sample and n == 1:
        return None
    if function == "corr" and any(math.isfinite(pairs[0][i]) and len({p[i] for p in pairs}) == 1 for i in (0, 1)):
        return None
    if not all(math.isfinite(v) for pair in pairs for v in pair):
        return math.nan
    means = [_total([pair[i] for pair in pairs]) / n for i in (0, 1)]
    apart = [(Fraction(x) - means[0], Fraction(y) - means[1]) for x, y in pairs]
    both = sum((x * y for x, y in apart), Fraction(0))
    if function != "corr":
        return _double(both / (n - 1 if sample else n))
    xs, ys = (sum((pair[i] ** 2 for pair in apart), Fraction(0)) for i in (0, 1))
    share = _double(both**2 / (xs * ys))
    return math.copysign(math.sqrt(share), both)


def _sum(values: list[Any], type_: DataType) -> object:
    if type_.is_fractional:
        special = _not_finite(values)
        return special if special is not None else _double(_total(values))
    if type_.is_decimal:
        return _decimal(_total(values), type_, "sum")
    total = sum(values)
    if not -_BIGINT <= total < _BIGINT:
        raise _overflow("sum", type_, total)
    return total


def _avg(values: list[Any], type_: DataType) -> object:
    if type_.is_decimal:
        return _decimal(_total(values) / len(values), type_, "avg")
    special = _not_finite(values)
    return special if special is not None else _double(_total(values) / len(values))


def _spread(function: str, values: list[Any]) -> float | None:
    """Variance or standard deviation, of a population or of a sample (which needs two values)."""
    doubles = [float(v) for v in values]
    sample = function.endswith("_samp")
    if sample and len(doubles) == 1:
        return None
    if not all(math.isfinite(v) for v in doubles):
        return math.nan
    mean = _total(doubles) / len(doubles)
    squares = sum((Fraction(v) - mean) ** 2 for v in doubles)
    variance = _double(Fraction(squares) / (len(doubles) - 1 if sample else len(doubles)))
    return math.sqrt(variance) if function.startswith("stddev") else variance


def _total(values: Sequence[Any]) -> Fraction:
    return sum((Fraction(v) for v in values), Fraction(0))


def _not_finite(values: Sequence[Any]) -> float | None:
    """What a sum with NaN or infinities in it comes to; None when all are finite."""
    odd = {float(v) for v in values if not math.isfinite(v)}
    if not odd:
        return None
    return odd.pop() if len(odd) == 1 else math.nan


def _double(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _decimal(exact: Fraction, type_: DataType, function: str) -> Decimal:
    """The nearest decimal of the type's scale, halves away from zero."""
    units = abs(exact) * 10**type_.scale
    whole = (2 * units.numerator + units.denominator) // (2 * units.denominator)
    if whole >= 10**type_.precision:
        raise _overflow(function, type_, float(exact))
    return Decimal(whole if exact >= 0 else -whole).scaleb(-type_.scale, _EXACT)


def _overflow(function: str, type_: DataType, value: object) -> EvaluationError:
    return EvaluationError(f"Arithmetic overflow in {function}.", got=f"{value} does not fit {type_}")
