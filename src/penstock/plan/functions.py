"""What every scalar function means on single values: SQL nulls, ANSI overflow, Java's rounding.

Each takes the values of its arguments and the result type. Those in `STRICT` give null when any argument is null and
are never called with one. Overflow, division by zero and casts that fail are errors, on every engine, as they are in
Spark under ANSI.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

from penstock.errors import EvaluationError
from penstock.model.comparing import compare, order_key
from penstock.model.reading import read_text
from penstock.model.schema import DATE, DataType
from penstock.model.text import read_double, read_timestamp, read_whole
from penstock.model.time import DAY, to_ticks
from penstock.plan.fitting import WIDE, fit, overflow
from penstock.plan.like import like
from penstock.plan.nested_functions import MAKERS, NESTED
from penstock.plan.number_functions import NUMBERS, check_divisor, numeric
from penstock.plan.text_functions import TEXT, concat_ws
from penstock.plan.time_functions import TIMES, date_of

# Values of mixed SQL types meet here, so they are Any inside this module and `object` at its border.
Strict = Callable[[list[Any], DataType], Any]


def _arithmetic(op: Callable[[Any, Any], Any]) -> Strict:
    def apply(args: list[Any], type_: DataType) -> Any:
        with localcontext(WIDE):
            try:
                return fit(op(numeric(args[0], type_), numeric(args[1], type_)), type_)
            except OverflowError:
                raise overflow(type_, "the result") from None

    return apply


def _divide(args: list[Any], type_: DataType) -> Any:
    left, right = (numeric(a, type_) for a in args)
    check_divisor(right)
    with localcontext(WIDE):
        return fit(left / right, type_)


def _int_divide(args: list[Any], type_: DataType) -> Any:
    check_divisor(args[1])
    quotient = abs(args[0]) // abs(args[1])
    return fit(quotient if (args[0] < 0) == (args[1] < 0) else -quotient, type_)


def _comparison(op: str) -> Strict:
    return lambda args, type_: compare(op, args[0], args[1])


def _cast(args: list[Any], type_: DataType) -> Any:
    value = args[0]
    if type_.is_nested:
        return _cast_parts(value, type_)
    try:
        if type_.name == "string":
            return _to_string(value)
        if type_.name in ("boolean", "binary"):  # only what is that already is brought there, as a part
            return value
        if type_.name == "timestamp":
            return _to_timestamp(value)
        if type_.name == "date":
            return _to_date(value)
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


def _cast_parts(value: Any, type_: DataType) -> Any:
    """A nested value in a type of the same shape, whose parts are wider."""
    if type_.name == "map":
        (_, key), (_, kind) = type_.parts
        return tuple([(_cast_part(k, key), _cast_part(v, kind)) for k, v in value])
    kinds = [kind for _, kind in type_.parts] if type_.name == "struct" else [type_.element] * len(value)
    return tuple([_cast_part(part, kind) for part, kind in zip(value, kinds, strict=True)])


def _cast_part(value: Any, type_: DataType) -> Any:
    return None if value is None else _cast([value], type_)


def _to_timestamp(value: Any) -> int:
    if isinstance(value, str):
        return read_timestamp(value)
    return to_ticks(dt.datetime(value.year, value.month, value.day)) if isinstance(value, dt.date) else int(value)


def _to_date(value: Any) -> dt.date:
    if not isinstance(value, str):
        return date_of(value // DAY)
    found = read_text(value, DATE)
    if not isinstance(found, dt.date):
        raise ValueError(value)
    return found


def _to_string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _abs(args: list[Any], type_: DataType) -> Any:
    return fit(args[0].copy_abs() if isinstance(args[0], Decimal) else abs(args[0]), type_)


def _negate(args: list[Any], type_: DataType) -> Any:
    return fit(args[0].copy_negate() if isinstance(args[0], Decimal) else -args[0], type_)


STRICT: dict[str, Strict] = {
    "add": _arithmetic(lambda a, b: a + b),
    "subtract": _arithmetic(lambda a, b: a - b),
    "multiply": _arithmetic(lambda a, b: a * b),
    "divide": _divide,
    "int_divide": _int_divide,
    "negate": _negate,
    "abs": _abs,
    **{op: _comparison(op) for op in ("eq", "ne", "lt", "le", "gt", "ge")},
    "not": lambda args, type_: not args[0],
    "like": lambda args, type_: like(args[0], args[1]),
    "cast": _cast,
    **TEXT,
    **NUMBERS,
    **TIMES,
    **NESTED,
}

LAZY = frozenset(
    {"and", "or", "is_null", "case", "coalesce", "in", "null_safe_eq", "greatest", "least", "concat_ws", *MAKERS}
)
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
        case "concat_ws":
            return concat_ws([a() for a in args])
        case _ if name in MAKERS:
            return MAKERS[name]([a() for a in args])
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
            return max(values, key=order_key) if name == "greatest" else min(values, key=order_key)
