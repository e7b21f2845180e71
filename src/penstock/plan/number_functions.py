"""Functions of numbers on single values: rounding, logarithms and powers, remainders, bits.

Rounding is by decimal digits, those that the number is written with. Logarithms of what has none are null, as in Spark.
Logarithms, `exp` and `power` are the C library's, whose last bit may differ from Java's: so that no two engines differ
on one query, Spark leaves them to Python too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

from penstock.errors import EvaluationError
from penstock.model.schema import DataType
from penstock.plan.fitting import WIDE, fit, overflow

Strict = Callable[[list[Any], DataType], Any]

_WIDEST = Context(prec=800)
"""Digits that any double can have in front of and behind its point."""


def numeric(value: Any, type_: DataType) -> Any:
    """An operand as the kind of number that the result type computes with."""
    if type_.is_fractional:
        return float(value)
    return Decimal(value) if type_.is_decimal else value


def check_divisor(value: Any) -> None:
    """Refuse to divide by zero."""
    if value == 0:
        raise EvaluationError("Division by zero.", hint="guard the divisor, for example with NULLIF(x, 0)")


def java_mod(left: int, right: int) -> int:
    """A remainder with the sign of the dividend."""
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def modulo(args: list[Any], type_: DataType) -> Any:
    """A remainder with the sign of the dividend."""
    left, right = (numeric(a, type_) for a in args)
    check_divisor(right)
    if type_.is_fractional:
        return math.nan if math.isinf(left) else fit(math.fmod(left, right), type_)
    if type_.is_decimal:
        with localcontext(WIDE):
            return fit(left % right, type_)
    return java_mod(left, right)


def _pmod(args: list[Any], type_: DataType) -> Any:
    """A remainder that is not negative where the divisor is not; sums of integers wrap, as in Java."""
    right = numeric(args[1], type_)
    rest = modulo(args, type_)
    if not rest < 0:
        return rest
    if not type_.is_integer:
        with localcontext(WIDE):
            return modulo([rest + right, right], type_)
    total = rest + right
    if type_.bits >= 32:
        total = _wrapped(total, type_.bits)
    return java_mod(total, right)


def _wrapped(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (1 << bits) - half


def _rounding(mode: str) -> Strict:
    def apply(args: list[Any], type_: DataType) -> Any:
        value, digits = args[0], args[1]
        if isinstance(value, float):
            return fit(_round_double(value, digits, mode), type_)
        if isinstance(value, int):
            return value if digits >= 0 else fit(int(_quantized(Decimal(value), digits, mode)), type_)
        kept = min(digits, type_.scale) if digits >= 0 else digits
        return fit(_quantized(value, kept, mode), type_)

    return apply


def _quantized(value: Decimal, digits: int, mode: str) -> Decimal:
    digits = max(digits, -400)
    with localcontext(_WIDEST):
        return value.quantize(Decimal(1).scaleb(-digits), rounding=mode)


def _round_double(value: float, digits: int, mode: str) -> float:
    if not math.isfinite(value):
        return value
    written = Decimal(repr(value + 0.0))  # there is no negative zero among decimals
    exponent = written.as_tuple().exponent
    if not isinstance(exponent, int) or -exponent <= digits:
        return value + 0.0
    rounded = _quantized(written, digits, mode)
    return float(rounded) if rounded else 0.0


def rounded_to_whole(rounding: Callable[[Any], int], mode: str) -> Strict:
    """Floor and ceil, with digits or without: NaN gives 0, as in Spark; an infinity does not fit."""
    by_digits = _rounding(mode)

    def apply(args: list[Any], type_: DataType) -> Any:
        if len(args) > 1:
            return by_digits(args, type_)
        value = args[0]
        if isinstance(value, float) and not math.isfinite(value):
            if math.isnan(value):
                return 0
            raise overflow(type_, value)
        return fit(Decimal(rounding(value)) if type_.is_decimal else rounding(value), type_)

    return apply


def _log(args: list[Any], type_: DataType) -> float | None:
    return None if args[0] <= 0 else math.log(args[0])


def _log10(args: list[Any], type_: DataType) -> float | None:
    return None if args[0] <= 0 else math.log10(args[0])


def _log2(args: list[Any], type_: DataType) -> float | None:
    return None if args[0] <= 0 else math.log(args[0]) / math.log(2)


def _log_to(args: list[Any], type_: DataType) -> float | None:
    base, value = args
    if base <= 0 or value <= 0:
        return None
    over, under = math.log(value), math.log(base)
    if under == 0:
        return math.nan if over == 0 or math.isnan(over) else math.copysign(math.inf, over)
    return over / under


def _exp(args: list[Any], type_: DataType) -> float:
    try:
        return math.exp(args[0])
    except OverflowError:
        return math.inf


def _power(args: list[Any], type_: DataType) -> float:
    """Java's: an infinite power of 1 or -1, and NaN as a power of 1, are NaN."""
    base, exponent = args
    if exponent != 0 and (math.isnan(exponent) or (math.isinf(exponent) and abs(base) == 1)):
        return math.nan
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError):
        if base < 0 and math.isfinite(base) and not exponent.is_integer():
            return math.nan
        negative = math.copysign(1.0, base) < 0 and math.fmod(exponent, 2) != 0
        return -math.inf if negative else math.inf


def _sign(args: list[Any], type_: DataType) -> float:
    value = args[0]
    return value if value == 0 or math.isnan(value) else math.copysign(1.0, value)


def _shift(args: list[Any], type_: DataType) -> tuple[int, int]:
    return args[0], args[1] & (type_.bits - 1)


def _shift_left(args: list[Any], type_: DataType) -> int:
    value, by = _shift(args, type_)
    return _wrapped(value << by, type_.bits)


def _shift_right(args: list[Any], type_: DataType) -> int:
    value, by = _shift(args, type_)
    return value >> by


NUMBERS: dict[str, Strict] = {
    "modulo": modulo,
    "pmod": _pmod,
    "round": _rounding(ROUND_HALF_UP),
    "bround": _rounding(ROUND_HALF_EVEN),
    "floor": rounded_to_whole(math.floor, ROUND_FLOOR),
    "ceil": rounded_to_whole(math.ceil, ROUND_CEILING),
    "sqrt": lambda args, type_: math.sqrt(args[0]) if args[0] >= 0 else math.nan,
    "ln": _log,
    "log10": _log10,
    "log2": _log2,
    "log": _log_to,
    "exp": _exp,
    "power": _power,
    "sign": _sign,
    "bitwise_and": lambda args, type_: args[0] & args[1],
    "bitwise_or": lambda args, type_: args[0] | args[1],
    "bitwise_xor": lambda args, type_: args[0] ^ args[1],
    "bitwise_not": lambda args, type_: ~args[0],
    "shiftleft": _shift_left,
    "shiftright": _shift_right,
}
