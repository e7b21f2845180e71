"""CAST, where the engines agree on it, and the functions that are casts by another name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import EvaluationError, StreamError
from penstock.model.schema import DATE, STRING, TIMESTAMP, DataType, parse_type
from penstock.plan.expressions import Expression, Literal
from penstock.plan.typing import can_cast, converted
from penstock.sql.bind_constant import date, timestamp
from penstock.sql.reading import shown

if TYPE_CHECKING:
    from penstock.sql.bind_expression import ExpressionBinder


def cast(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """CAST. A number with a letter after it is read as one, too."""
    reading = binder.reading
    if reading.flag(node, "safe"):
        raise binder.error("TRY_CAST is not supported.", node, hint="use CAST, and CASE for values that do not fit")
    inner = reading.need(node, "this")
    try:
        target = parse_type(_type_text(binder, reading.need(node, "to")))
    except StreamError as error:
        raise binder.error(error.what, node, got=error.got, hint=error.hint) from None
    return cast_to(binder, inner, target, node)


def cast_to(binder: ExpressionBinder, inner: exp.Expr, target: DataType, node: exp.Expr) -> Expression:
    """An expression in a type; `node` is what asks for it."""
    value = binder.bind(inner)
    if isinstance(value, Literal) and value.type == STRING and target == TIMESTAMP:
        return timestamp(binder, value, node)
    if isinstance(value, Literal) and value.type == STRING and target == DATE and value.value is not None:
        return date(binder, value, node)
    if not can_cast(value.type, target):
        raise binder.error("This cast is not supported.", node, got=f"{value.type} to {target}")
    try:
        return converted(value, target)
    except EvaluationError as error:
        raise binder.error(error.what, node, got=error.got) from None


def _type_text(binder: ExpressionBinder, type_: exp.Expr) -> str:
    """A type as it is written: its name, and the numbers in parentheses."""
    reading = binder.reading
    if not isinstance(type_, exp.DataType):
        return shown(type_)
    reading.value(type_, "this")
    for parameter in reading.parts(type_, "expressions"):
        number = reading.part(parameter, "this")
        if isinstance(parameter, exp.DataTypeParam) and isinstance(number, exp.Literal):
            reading.whole(number)
    return shown(type_)
