"""Result types under Spark's ANSI rules.

Integers of two widths give the wider, an integer with a decimal gives a decimal, anything with floating point gives
double. Division of integers gives double. Decimal arithmetic follows Spark's precision rules and loses scale past 38
digits.
"""

from __future__ import annotations

from penstock.model.schema import (
    BIGINT,
    DATE,
    DOUBLE,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    VOID,
    DataType,
    decimal,
)
from penstock.plan.expressions import Call, Expression, Literal

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}


def common_type(left: DataType, right: DataType) -> DataType | None:
    """The type that both can be brought to without loss, or None."""
    if left == right:
        return left
    if VOID in (left, right):
        return right if left == VOID else left
    if left.is_integer and right.is_integer:
        return left if left.bits >= right.bits else right
    if left.is_numeric and right.is_numeric:
        if left.is_fractional or right.is_fractional:
            return DOUBLE  # a float with anything but a float, too
        a, b = as_decimal(left), as_decimal(right)
        scale = max(a.scale, b.scale)
        return decimal(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    if {left, right} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    return _common_nested(left, right) if left.is_nested and left.name == right.name else None


def _common_nested(left: DataType, right: DataType) -> DataType | None:
    """Part by part; structs must have the same fields. Dates and times inside stay what they are: CAST one."""
    same_names = [n.lower() for n, _ in left.parts] == [n.lower() for n, _ in right.parts]
    parts: list[tuple[str, DataType]] = []
    for (name, a), (_, b) in zip(left.parts, right.parts, strict=False):
        common = None if {a, b} == {DATE, TIMESTAMP} else common_type(a, b)
        if common is None or not same_names:
            return None
        parts.append((name, common))
    return DataType(left.name, parts=tuple(parts)) if same_names else None


def as_decimal(type_: DataType) -> DataType:
    """The decimal type that holds every value of an integer type."""
    return type_ if type_.is_decimal else decimal(_DIGITS[type_.name], 0)


def literal_decimal(expression: Expression) -> DataType:
    """The decimal type of an operand; an integer literal is as narrow as its digits."""
    if isinstance(expression, Literal) and expression.type.is_integer:
        return decimal(max(len(str(abs(int(str(expression.value))))), 1), 0)
    return as_decimal(expression.type)


def arithmetic_type(name: str, left: Expression, right: Expression) -> DataType | None:
    """The type of an arithmetic operator's result, or None if it does not apply."""
    a, b = left.type, right.type
    if a == VOID and b == VOID:
        return DOUBLE if name == "divide" else None
    if VOID in (a, b):
        a = b = a if b == VOID else b
    if not (a.is_numeric and b.is_numeric):
        return None
    if name == "int_divide":
        return BIGINT if a.is_integer and b.is_integer else None
    if a.is_fractional or b.is_fractional:
        return DOUBLE if name == "divide" else common_type(a, b)
    if a.is_integer and b.is_integer:
        return DOUBLE if name == "divide" else common_type(a, b)
    return _decimal_result(name, literal_decimal(left), literal_decimal(right))


def _decimal_result(name: str, a: DataType, b: DataType) -> DataType:
    if name in ("add", "subtract"):
        scale = max(a.scale, b.scale)
        return decimal(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)
    if name == "multiply":
        return decimal(a.precision + b.precision + 1, a.scale + b.scale)
    if name == "divide":
        scale = max(6, a.scale + b.precision + 1)
        return decimal(a.precision - a.scale + b.scale + scale, scale)
    scale = max(a.scale, b.scale)
    return decimal(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def rounded_type(type_: DataType, digits: int | None) -> DataType:
    """The type of a number that is rounded to digits after the point; None where there is no number of digits."""
    if not type_.is_decimal or digits is None:
        return type_
    whole = type_.precision - type_.scale + 1  # 9.9 becomes 10
    if digits < 0:
        return decimal(min(max(whole, 1 - digits), MAX_PRECISION), 0)
    scale = min(type_.scale, digits)
    return DataType("decimal", min(whole + scale, MAX_PRECISION), scale)


def decimal_of(type_: DataType) -> DataType:
    """The decimal that Spark brings a number to where a function is of decimals alone."""
    return {"float": decimal(14, 7), "double": decimal(30, 15)}.get(type_.name) or as_decimal(type_)


CASTABLE_TO_STRING = frozenset(
    {"boolean", "tinyint", "smallint", "int", "bigint", "string", "decimal", "timestamp", "date"}
)


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether the three evaluators agree on this cast."""
    if source in (target, VOID):
        return True
    if source.is_nested or target.is_nested:
        return common_type(source, target) == target
    if target == STRING:
        return source.name in CASTABLE_TO_STRING
    if source == STRING:
        return target.is_integer or target in (DOUBLE, TIMESTAMP, DATE)
    return (source.is_numeric and target.is_numeric) or {source, target} == {DATE, TIMESTAMP}


def converted(expression: Expression, type_: DataType) -> Expression:
    """The expression in a type; NULL takes it as it is."""
    if expression.type == type_:
        return expression
    if isinstance(expression, Literal) and expression.value is None:
        return Literal(None, type_)
    return Call("cast", (expression,), type_)
