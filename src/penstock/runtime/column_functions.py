"""Expressions as Arrow computations over whole columns.

Only where Arrow's answer is the same as the definition in `query/functions.py`: integer arithmetic is checked, a
division looks at its divisors, comparisons of floats look for NaN. Where an expression has no such form
`column_function` gives None, and where the values at hand have none the function raises `NotColumnar`; both mean: go by
rows. An operand that SQL may leave unevaluated (the right side of AND, a branch of CASE) must not be able to fail, so
there only harmless expressions are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.made import failed_name, value_name
from penstock.model.schema import VOID, DataType, Schema
from penstock.plan.expressions import Call, Column, Expression, Literal, walk
from penstock.plan.fitting import overflow
from penstock.plan.like import ESCAPE, linear_expression_of
from penstock.plan.typing import common_type
from penstock.runtime.column_decimals import decimal_column, keeps_digits
from penstock.runtime.column_nested import ALWAYS_THERE, NESTED_FORMS
from penstock.runtime.column_scalars import COLUMN_FORMS, HARMLESS, ColumnFunction, NotColumnar
from penstock.runtime.few_values import column_of_text, once_each

Form = Callable[[Expression, Schema], ColumnFunction | None]
_CHECKED = {"add": "add_checked", "subtract": "subtract_checked", "multiply": "multiply_checked"}
_COMPARE = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_TEXT = {"lower": "utf8_lower", "upper": "utf8_upper", "length": "utf8_length"}
_HARMLESS = frozenset(
    {
        *_COMPARE,
        *_TEXT,
        *HARMLESS,
        *ALWAYS_THERE,
        "and",
        "or",
        "not",
        "is_null",
        "in",
        "like",
        "coalesce",
        "concat",
        "case",
    }
)


def column_function(expression: Expression, schema: Schema) -> ColumnFunction | None:
    """The column of an expression's values, or None where there is no columnar form."""
    text = column_of_text(expression)
    plain = _of_rows(expression, schema, column_function if text is None else _plain)
    of_values = None if text is None or plain is None else _plain(expression, Schema((schema[text],)))
    return plain if text is None or plain is None or of_values is None else once_each(text, schema, plain, of_values)


def _plain(expression: Expression, schema: Schema) -> ColumnFunction | None:
    """The same, row for row."""
    return _of_rows(expression, schema, _plain)


def _of_rows(expression: Expression, schema: Schema, of_part: Form) -> ColumnFunction | None:
    """The same, its parts by `of_part`."""
    match expression:
        case Column(name=name):
            index = schema.index(name)
            return lambda table: table.column(index)
        case Literal(value=value, type=type_):
            scalar = _scalar(value, type_)
            return lambda table: scalar
        case Call(name=name, args=args, type=type_):
            if name in ("and", "or", "coalesce", "case") and not all(_is_harmless(a) for a in args[1:]):
                return None
            if any(t.is_nested for t in (type_, *(a.type for a in args))) and name not in ("is_null", *NESTED_FORMS):
                return None
            if (
                name not in NESTED_FORMS
                and (any(a.type.is_decimal for a in args) or type_.is_decimal)
                and not keeps_digits(expression)
            ):
                return None
            if any(a.type == VOID for a in args) and name not in ("and", "or", "not", "is_null", "case"):
                return None  # Arrow's functions know no untyped null
            parts = [of_part(a, schema) for a in args]
            if any(p is None for p in parts):
                return None
            return _call(name, expression, [p for p in parts if p is not None])


class Unsound(Exception):
    """Some of these rows have no value; which, and why, is found row by row."""


def made_column(at: int) -> ColumnFunction:
    """What was computed beside the rows."""

    def apply(table: pa.Table) -> Any:
        if pc.any(table.column(failed_name(at))).as_py():
            raise Unsound
        return table.column(value_name(at))

    return apply


def _is_harmless(expression: Expression) -> bool:
    calls = [e for e in walk(expression) if isinstance(e, Call)]
    return all(e.name in _HARMLESS or keeps_digits(e) or _widens(e) for e in calls)


def _widens(call: Call) -> bool:
    """Whether it is a cast of whole numbers that changes none; a double may round them, as it does by rows."""
    if call.name != "cast" or not call.args[0].type.is_integer:
        return False
    return call.type.name == "double" or (call.type.is_integer and call.type.bits >= call.args[0].type.bits)


def _scalar(value: object, type_: DataType) -> pa.Scalar:
    if type_.name == "timestamp" and value is not None:
        return pa.scalar(value, pa.int64()).cast(type_.arrow)
    return pa.scalar(value, type_.arrow)


def _call(name: str, call: Call, parts: list[ColumnFunction]) -> ColumnFunction | None:
    types = [a.type for a in call.args]
    if name in NESTED_FORMS:
        return NESTED_FORMS[name](call, parts)
    if keeps_digits(call):
        return decimal_column(call, parts)
    if name in _COMPARE:
        common = common_type(types[0], types[1])
        return _compare(_COMPARE[name], parts, common) if common is not None and common.name != "boolean" else None
    if name in ("and", "or"):
        kleene = pc.and_kleene if name == "and" else pc.or_kleene
        return lambda table: kleene(_bools(parts[0](table)), _bools(parts[1](table)))
    if name in _CHECKED or name == "divide":
        return _arithmetic(name, parts, call.type)
    if name in _TEXT:
        return _text(getattr(pc, _TEXT[name]), parts[0])
    if name in COLUMN_FORMS:
        return COLUMN_FORMS[name](call, parts)
    match name:
        case "not":
            return lambda table: pc.invert(_bools(parts[0](table)))
        case "is_null":
            return lambda table: pc.is_null(parts[0](table))
        case "coalesce":
            return lambda table: pc.coalesce(*[p(table) for p in parts])
        case "concat":
            return lambda table: pc.binary_join_element_wise(*[p(table) for p in parts], "")
        case "case":
            return _case(parts, call.type)
        case "in":
            return _in(call, parts[0])
        case "like":
            pattern = call.args[1]
            if isinstance(pattern, Literal) and isinstance(pattern.value, str):
                return _like(pattern.value, parts[0])
        case "time_add":
            return lambda table: pc.cast(
                _checked(pc.add_checked, pc.cast(parts[0](table), pa.int64()), parts[1](table), call.type),
                call.type.arrow,
            )
        case "cast":
            if _widens(call):
                return lambda table: pc.cast(parts[0](table), call.type.arrow, safe=False)
        case _:
            return None
    return None


def _text(function: Callable[..., Any], part: ColumnFunction) -> ColumnFunction:
    """Arrow maps one letter to one letter, SQL (and Java) 'ß' to 'SS': only plain text goes by column."""

    def apply(table: pa.Table) -> Any:
        value = part(table)
        plain = pc.string_is_ascii(value)
        if (plain.as_py() if isinstance(plain, pa.Scalar) else pc.all(plain).as_py()) is False:
            raise NotColumnar
        return function(value)

    return apply


def _like(pattern: str, part: ColumnFunction) -> ColumnFunction:
    """Arrow's own LIKE takes an escaped backslash at an end for two."""
    if ESCAPE not in pattern:
        return lambda table: pc.match_like(part(table), pattern)
    expression = linear_expression_of(pattern)
    return lambda table: pc.match_substring_regex(part(table), expression)


def _bools(value: Any) -> Any:
    return pc.cast(value, pa.bool_()) if pa.types.is_null(value.type) else value


def _compare(name: str, parts: list[ColumnFunction], common: DataType) -> ColumnFunction:
    function = getattr(pc, name)

    def apply(table: pa.Table) -> Any:
        left, right = (pc.cast(p(table), common.arrow, safe=not common.is_fractional) for p in parts)
        if common.is_fractional and any(
            pc.any(pc.is_nan(side)).as_py() for side in (left, right) if not isinstance(side, pa.Scalar)
        ):
            raise NotColumnar
        return function(left, right)

    return apply


def _arithmetic(name: str, parts: list[ColumnFunction], type_: DataType) -> ColumnFunction:
    function = pc.divide if name == "divide" else getattr(pc, _CHECKED[name] if type_.is_integer else name)

    def apply(table: pa.Table) -> Any:
        left, right = (pc.cast(p(table), type_.arrow, safe=not type_.is_fractional) for p in parts)
        if name == "divide":
            zero = pc.equal(right, pa.scalar(0.0, type_.arrow))
            if zero.as_py() if isinstance(zero, pa.Scalar) else pc.any(pc.and_(zero, pc.is_valid(left))).as_py():
                raise NotColumnar  # by rows the error names the case, and a null dividend is no error
        return _checked(function, left, right, type_)

    return apply


def _checked(function: Callable[..., Any], left: Any, right: Any, type_: DataType) -> Any:
    try:
        return function(left, right)
    except pa.ArrowInvalid:
        raise overflow(type_, "the result") from None  # by rows it says which


def _case(parts: list[ColumnFunction], type_: DataType) -> ColumnFunction:
    """The value of the first condition that is true; null is not."""
    *branches, otherwise = parts

    def apply(table: pa.Table) -> Any:
        safe = not type_.is_fractional
        found = pc.cast(otherwise(table), type_.arrow, safe=safe)
        for condition, value in reversed(list(zip(branches[::2], branches[1::2], strict=True))):
            met = pc.fill_null(_bools(condition(table)), False)
            found = pc.if_else(met, pc.cast(value(table), type_.arrow, safe=safe), found)
        return found

    return apply


def _in(call: Call, value: ColumnFunction) -> ColumnFunction | None:
    options = call.args[1:]
    if not all(isinstance(o, Literal) and o.value is not None and o.type == call.args[0].type for o in options):
        return None
    if call.args[0].type.is_fractional:
        return None
    wanted = pa.array(
        [_scalar(o.value, o.type).as_py() for o in options if isinstance(o, Literal)], call.args[0].type.arrow
    )

    def apply(table: pa.Table) -> Any:
        column = value(table)
        return pc.if_else(pc.is_null(column), pa.scalar(None, pa.bool_()), pc.is_in(column, value_set=wanted))

    return apply
