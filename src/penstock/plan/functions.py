"""What every scalar function means on single values: SQL nulls, ANSI overflow, Java's rounding.

Each takes the values of its arguments and the result type. Those in `STRICT` give null when any argument is null and
are never called with one. Overflow, division by zero and casts that fail are errors, on every engine, as they are in
Spark under ANSI.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation, localcontext
from typing import Any

from penstock.errors import EvaluationError
from penstock.model.convert import single
from penstock.model.schema import DataType
from penstock.model.text import civil_of, read_double, read_timestamp, read_whole
from penstock.model.time import MINUTE, SECOND, to_ticks
from penstock.plan.like import like

# Values of mixed SQL types meet here, so they are Any inside this module and `object` at its border.
Strict = Callable[[list[Any], DataType], Any]

_WIDE = Context(prec=80)
_DAY = 1440 * MINUTE
_BOUNDS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}


def overflow(type_: DataType, value: object) -> EvaluationError:
    """The error for a value that its type cannot hold."""
    return EvaluationError(
        "Arithmetic overflow.", got=f"{value} does not fit {type_}", hint="CAST an operand to a wider type"
    )


def fit(value: Any, type_: DataType) -> Any:
    """The value in its type: integers checked for overflow, decimals rounded half up to the scale."""
    if type_.name in _BOUNDS:
        limit = 1 << _BOUNDS[type_.name]
        if not -limit <= value < limit:
            raise overflow(type_, value)
        return value
    if type_.is_decimal:
        with localcontext(_WIDE):
            scaled = Decimal(value).quantize(Decimal(1).scaleb(-type_.scale), rounding=ROUND_HALF_UP)
        if scaled and scaled.adjusted() + 1 > type_.precision - type_.scale:
            raise overflow(type_, value)
        return scaled
    return single(value) if type_.name == "float" else value


def _numeric(value: Any, type_: DataType) -> Any:
    """An operand as the kind of number that the result type computes with."""
    if type_.is_fractional:
        return float(value)
    return Decimal(value) if type_.is_decimal else value


def _arithmetic(op: Callable[[Any, Any], Any]) -> Strict:
    def apply(args: list[Any], type_: DataType) -> Any:
        with localcontext(_WIDE):
            try:
                return fit(op(_numeric(args[0], type_), _numeric(args[1], type_)), type_)
            except OverflowError:
                raise overflow(type_, "the result") from None

    return apply


def _check_divisor(value: Any) -> None:
    if value == 0:
        raise EvaluationError("Division by zero.", hint="guard the divisor, for example with NULLIF(x, 0)")


def _divide(args: list[Any], type_: DataType) -> Any:
    left, right = (_numeric(a, type_) for a in args)
    _check_divisor(right)
    with localcontext(_WIDE):
        return fit(left / right, type_)


def _modulo(args: list[Any], type_: DataType) -> Any:
    left, right = (_numeric(a, type_) for a in args)
    _check_divisor(right)
    if type_.is_fractional:
        return math.nan if math.isinf(left) else fit(math.fmod(left, right), type_)
    if type_.is_decimal:
        with localcontext(_WIDE):
            return fit(left % right, type_)
    return int(math.copysign(abs(left) % abs(right), left)) if abs(left) < 2**52 else _java_mod(left, right)


def _java_mod(left: int, right: int) -> int:
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _int_divide(args: list[Any], type_: DataType) -> Any:
    _check_divisor(args[1])
    quotient = abs(args[0]) // abs(args[1])
    return fit(quotient if (args[0] < 0) == (args[1] < 0) else -quotient, type_)


def _nan_last(value: Any) -> Any:
    """A sort key: Spark takes NaN as greater than any number and equal to itself."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return (0, value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else value


def compare(op: str, left: Any, right: Any) -> bool:
    """A comparison of two values that are not null."""
    if isinstance(left, float) or isinstance(right, float):
        left, right = _nan_last(left), _nan_last(right)
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


def _comparison(op: str) -> Strict:
    return lambda args, type_: compare(op, args[0], args[1])


def _substring(args: list[Any], type_: DataType) -> str:
    text, start = args[0], args[1]
    begin = start - 1 if start > 0 else (len(text) + start if start < 0 else 0)
    end = len(text) if len(args) < 3 else max(begin + max(args[2], 0), 0)
    return str(text[max(begin, 0) : end])


def _cast(args: list[Any], type_: DataType) -> Any:
    value = args[0]
    try:
        if type_.name == "string":
            return _to_string(value)
        if type_.name == "timestamp":
            return _to_timestamp(value)
        if isinstance(value, str):
            value = read_whole(value) if type_.is_integer else read_double(value)
        if type_.is_integer:
            if isinstance(value, float) and not math.isfinite(value):
                raise overflow(type_, value)
            return fit(int(value), type_)
        if type_.is_decimal:
            if isinstance(value, float):
                return fit(Decimal(repr(value)), type_) if math.isfinite(value) else None  # as in Spark
            return fit(Decimal(value), type_)
        return fit(float(value), type_)
    except (ValueError, InvalidOperation):
        raise EvaluationError(
            f"The value cannot be cast to {type_}.",
            got=repr(value),
            hint="clean the value first, for example with CASE",
        ) from None


def _to_timestamp(value: Any) -> int:
    if isinstance(value, str):
        return read_timestamp(value)
    return to_ticks(dt.datetime(value.year, value.month, value.day)) if isinstance(value, dt.date) else int(value)


def _to_string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _date_part(at: int) -> Strict:
    return lambda args, type_: civil_of(args[0] // _DAY)[at]


def _clock_part(unit: int, wraps: int) -> Strict:
    return lambda args, type_: args[0] // unit % wraps


def _abs(args: list[Any], type_: DataType) -> Any:
    return fit(args[0].copy_abs() if isinstance(args[0], Decimal) else abs(args[0]), type_)


def _negate(args: list[Any], type_: DataType) -> Any:
    return fit(args[0].copy_negate() if isinstance(args[0], Decimal) else -args[0], type_)


def _rounded(rounding: Callable[[Any], int]) -> Strict:
    """Floor and ceil: NaN gives 0, as in Spark; an infinity does not fit."""

    def apply(args: list[Any], type_: DataType) -> int:
        value = args[0]
        if isinstance(value, float) and not math.isfinite(value):
            if math.isnan(value):
                return 0
            raise overflow(type_, value)
        return int(fit(rounding(value), type_))

    return apply


def _truncate(args: list[Any], type_: DataType) -> int:
    ticks: int = args[1]
    unit = {"second": SECOND, "minute": MINUTE, "hour": 60 * MINUTE, "day": _DAY}[args[0].lower()]
    return int(fit(ticks - ticks % unit, DataType("bigint")))


STRICT: dict[str, Strict] = {
    "add": _arithmetic(lambda a, b: a + b),
    "subtract": _arithmetic(lambda a, b: a - b),
    "multiply": _arithmetic(lambda a, b: a * b),
    "divide": _divide,
    "modulo": _modulo,
    "int_divide": _int_divide,
    "negate": _negate,
    "abs": _abs,
    **{op: _comparison(op) for op in ("eq", "ne", "lt", "le", "gt", "ge")},
    "not": lambda args, type_: not args[0],
    "like": lambda args, type_: like(args[0], args[1]),
    "length": lambda args, type_: len(args[0]),
    "lower": lambda args, type_: args[0].lower(),
    "upper": lambda args, type_: args[0].upper(),
    "trim": lambda args, type_: args[0].strip(" "),
    "concat": lambda args, type_: "".join(args),
    "substring": _substring,
    "cast": _cast,
    "floor": _rounded(math.floor),
    "ceil": _rounded(math.ceil),
    "sqrt": lambda args, type_: math.sqrt(args[0]) if args[0] >= 0 else math.nan,
    "date_trunc": _truncate,
    "time_add": lambda args, type_: fit(args[0] + args[1], DataType("bigint")),
    **{part: _date_part(at) for at, part in enumerate(("year", "month", "day"))},
    "hour": _clock_part(60 * MINUTE, 24),
    "minute": _clock_part(MINUTE, 60),
    "second": _clock_part(SECOND, 60),
}

LAZY = frozenset({"and", "or", "is_null", "case", "coalesce", "in", "null_safe_eq", "greatest", "least"})
"""Functions with their own rule for nulls, or that do not look at every argument."""


def evaluate_lazy(name: str, args: list[Callable[[], Any]]) -> Any:
    """A function of `LAZY`, its arguments as thunks."""
    match name:
        case "and" | "or":
            decisive = name == "or"
            left = args[0]()
            if left is not None and left is decisive:
                return decisive
            right = args[1]()
            if right is not None and right is decisive:
                return decisive
            return None if left is None or right is None else not decisive
        case "is_null":
            return args[0]() is None
        case "case":
            for condition, value in zip(args[:-1:2], args[1:-1:2], strict=True):
                if condition():
                    return value()
            return args[-1]()
        case "coalesce":
            return next((v for a in args if (v := a()) is not None), None)
        case "null_safe_eq":
            left, right = args[0](), args[1]()
            return (left is None) == (right is None) and (left is None or compare("eq", left, right))
        case "in":
            value = args[0]()
            if value is None:
                return None
            options = [a() for a in args[1:]]
            if any(o is not None and compare("eq", value, o) for o in options):
                return True
            return None if any(o is None for o in options) else False
        case _:
            values = [v for a in args if (v := a()) is not None]
            if not values:
                return None
            return max(values, key=_nan_last) if name == "greatest" else min(values, key=_nan_last)
