"""Expressions as Spark columns.

Spark's own operators are the meaning the other evaluators copy, so most calls map one to one. What would look at the
session's time zone is said in UTC instead (`utc.py`). What only Python can compute, users' functions above all, is not
here: see `attempts`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.engines.spark import utc
from penstock.engines.spark.types import spark_type
from penstock.model.schema import DataType
from penstock.plan import expressions as e
from penstock.plan.like import expression_of, is_simple

_BINARY: dict[str, Callable[[Any, Any], Column]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "modulo": operator.mod,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "and": operator.and_,
    "or": operator.or_,
    "null_safe_eq": Column.eqNullSafe,
}
_SAME_NAME = frozenset(
    [
        "abs",
        "length",
        "lower",
        "upper",
        "concat",
        "concat_ws",
        "coalesce",
        "greatest",
        "least",
        "floor",
        "ceil",
        "sqrt",
    ]
)
_OTHER_NAME = {"substring": "substr", "int_divide": "div"}


def leaf(expression: e.Column | e.Literal) -> Column:
    """The Spark column of a column of the same name, or of a constant."""
    if isinstance(expression, e.Column):
        return F.col(f"`{expression.name}`")
    return _literal(expression.value, expression.type)


def apply(call: e.Call, parts: list[Column]) -> Column:
    """A call over the columns of its arguments; the pattern of LIKE is a constant."""
    name, args = call.name, call.args
    if name == "cast":
        return _cast(parts[0], args[0].type, call.type)
    if name in utc.PARTS:
        return utc.part_of(name, parts[0])
    if name == "date_trunc" and isinstance(args[0], e.Literal):
        return utc.truncated(str(args[0].value), parts[1])
    if name == "like":
        return _like(parts, args[1])
    if name == "array":
        return F.array(*parts).cast(spark_type(call.type))
    if name == "struct":
        fields = zip(parts, call.type.parts, strict=True)
        return F.struct(*[part.alias(own) for part, (own, _) in fields])
    return _call(name, parts, spark_type(call.type))


def _literal(value: Any, type_: DataType) -> Column:
    """A constant that Spark sees as one: a cast around it would change the precision it gives to decimals."""
    if value is None:
        return F.lit(None) if type_.name == "void" else F.lit(None).cast(spark_type(type_))
    if type_.name == "timestamp":
        return F.timestamp_micros(F.lit(value).cast("bigint"))
    if type_.name == "date":
        return F.lit(value.isoformat()).cast("date")  # as text: what carries dates to the JVM knows another calendar
    is_plain = type_.name in ("decimal", "string", "boolean", "double")
    is_natural = type_.name == ("int" if isinstance(value, int) and abs(value) < 2**31 else "bigint")
    return F.lit(value) if is_plain or is_natural else F.lit(value).cast(str(type_))


def _cast(part: Column, source: DataType, target: DataType) -> Column:
    match source.name, target.name:
        case "timestamp", "bigint":
            return F.unix_micros(part)
        case "timestamp", "string":
            return utc.text_of(part)
        case "string", "timestamp":
            return utc.time_of_text(part)
        case "date", "timestamp":
            return utc.start_of(part)
        case "timestamp", "date":
            return utc.date_of(part)
        case _:
            return part.cast(spark_type(target))


def _like(parts: list[Column], pattern: e.Expression) -> Column:
    """Spark's own where it tries one place only; it would try every combination of places of several `%`."""
    assert isinstance(pattern, e.Literal)
    if pattern.value is None:
        return F.lit(None).cast("boolean")
    text = str(pattern.value)
    if is_simple(text):
        return F.call_function("like", *parts)
    return parts[0].rlike(rf"(?s)\A{expression_of(text)}\z")


def _call(name: str, parts: list[Column], type_: str) -> Column:
    if name in _BINARY:
        return _BINARY[name](parts[0], parts[1])
    if name in _SAME_NAME or name in _OTHER_NAME:
        called = F.call_function(_OTHER_NAME.get(name, name), *parts)
        return called.cast(type_) if name in ("floor", "ceil", "length") else called
    match name:
        case "negate":
            return -parts[0]
        case "not":
            return ~parts[0]
        case "is_null":
            return parts[0].isNull()
        case "in":
            return any_of([parts[0] == option for option in parts[1:]])
        case "time_add":
            return F.timestamp_micros(F.unix_micros(parts[0]) + parts[1])
        case "case":
            pairs = list(zip(parts[:-1:2], parts[1:-1:2], strict=True))
            result = F.when(pairs[0][0], pairs[0][1])
            for condition, value in pairs[1:]:
                result = result.when(condition, value)
            return result.otherwise(parts[-1])
    raise KeyError(f"no Spark column for {name}")


def any_of(conditions: Sequence[Column]) -> Column:
    """One of them, as a tree as shallow as can be: Spark goes through it by recursion, and Spark Connect not far."""
    found = list(conditions)
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=False)
        odd = found[-1:] if len(found) % 2 else []
        found = [a | b for a, b in pairs] + odd
    return found[0]
