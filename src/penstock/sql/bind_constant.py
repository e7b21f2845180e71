"""From sqlglot's constants to ours: NULL, TRUE, FALSE, numbers, texts, and texts that are read as times.

A number has the narrowest type that Spark gives it: int, bigint or decimal as its digits need, double with an exponent.
One that no type can hold is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.model.reading import read_text
from penstock.model.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INT, MAX_PRECISION, STRING, TIMESTAMP, VOID, decimal
from penstock.model.text import read_timestamp
from penstock.plan.expressions import Expression, Literal

if TYPE_CHECKING:
    from penstock.sql.bind_expression import ExpressionBinder


def null(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """NULL."""
    return Literal(None, VOID)


def boolean(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """TRUE and FALSE."""
    return Literal(bool(binder.reading.value(node, "this")), BOOLEAN)


def literal(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """A text or a number."""
    text = str(binder.reading.value(node, "this"))
    if binder.reading.flag(node, "is_string"):
        return Literal(text, STRING)
    try:
        return _approximate(text) if "e" in text.lower() else _exact(text)
    except ValueError:
        shortened = text if len(text) <= 50 else text[:47] + "..."
        raise binder.error(
            "Not a number that a type can hold.", node, got=shortened, hint="38 digits, or 1.8e308"
        ) from None


def _approximate(text: str) -> Literal:
    number = float(text)
    if abs(number) == float("inf"):
        raise ValueError(text)
    return Literal(number, DOUBLE)


def _exact(text: str) -> Literal:
    if "." in text:
        if len(text) > 2 * MAX_PRECISION:
            raise ValueError(text)
        value = Decimal(text)
        scale = max(-int(value.as_tuple().exponent), 0)
        digits = max(len(value.as_tuple().digits), scale)
        if digits > MAX_PRECISION:
            raise ValueError(text)
        return Literal(value, decimal(digits, scale))
    digits = len(text.lstrip("0"))
    if digits > MAX_PRECISION:
        raise ValueError(text)
    number = int(text)
    if number >= 2**63:
        return Literal(Decimal(number), decimal(digits, 0))
    return Literal(number, INT if number < 2**31 else BIGINT)


def timestamp(binder: ExpressionBinder, literal: Literal, node: exp.Expr) -> Literal:
    """A text literal as a time."""
    try:
        return Literal(read_timestamp(str(literal.value)), TIMESTAMP)
    except ValueError:
        raise binder.error("Not a timestamp.", node, got=str(literal), hint="write '2026-01-31 12:00:00'") from None


def date(binder: ExpressionBinder, literal: Literal, node: exp.Expr) -> Literal:
    """A text literal as a date."""
    value = read_text(str(literal.value), DATE)
    if value is None:
        raise binder.error("Not a date.", node, got=str(literal), hint="write '2026-01-31'")
    return Literal(value, DATE)


def raw_text(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """A text with an `r` before it, in which a backslash is a backslash."""
    return Literal(str(binder.reading.value(node, "this")), STRING)


CONSTANTS: dict[type[exp.Expr], Callable[[ExpressionBinder, exp.Expr], Expression | None]] = {
    exp.Null: null,
    exp.Boolean: boolean,
    exp.Literal: literal,
    exp.RawString: raw_text,
}
"""What binds a kind of constant."""
