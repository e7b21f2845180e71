"""From sqlglot's functions of times to ours: parts of a time, truncation, intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import StreamError
from penstock.model.schema import DATE, INT, STRING, TIMESTAMP, VOID, decimal
from penstock.model.time import Domain, parse_span
from penstock.plan.expressions import Call, Expression, Literal
from penstock.plan.time_functions import UNITS
from penstock.plan.typing import converted
from penstock.sql.reading import shown

if TYPE_CHECKING:
    from penstock.sql.bind_expression import ExpressionBinder

PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "year", exp.Month: "month", exp.Day: "day", exp.DayOfMonth: "day", exp.Hour: "hour",
    exp.Minute: "minute", exp.Second: "second",
}  # fmt: skip
_EXTRACTED = {
    **dict.fromkeys(("year", "years"), "year"), **dict.fromkeys(("quarter", "qtr"), "quarter"),
    "yearofweek": "yearofweek",
    **dict.fromkeys(("month", "months", "mon", "mons"), "month"), **dict.fromkeys(("week", "weeks"), "weekofyear"),
    **dict.fromkeys(("day", "days"), "day"), **dict.fromkeys(("dayofweek", "dow"), "dayofweek"),
    **dict.fromkeys(("dayofweek_iso", "dow_iso"), "weekday"), "doy": "dayofyear",
    **dict.fromkeys(("hour", "hours"), "hour"), **dict.fromkeys(("minute", "minutes", "min", "mins"), "minute"),
    **dict.fromkeys(("second", "seconds", "sec", "secs"), "second_fraction"),
}  # fmt: skip
"""What EXTRACT takes; seconds have a fraction there."""
UNITS_OF_DATES = {name: unit for name, unit in UNITS.items() if unit in ("week", "month", "quarter", "year")}
_LONG = 1 << 63


def time_part(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """Year, month and so on of a timestamp or a date."""
    inner = binder.reading.need(node, "this")
    if isinstance(inner, exp.TsOrDsToDate):  # put there by the parser
        inner = binder.reading.need(inner, "this")
    return Call(PARTS[type(node)], (moment(binder, inner, node),), INT)


def moment(binder: ExpressionBinder, inner: exp.Expr, node: exp.Expr) -> Expression:
    """A timestamp, or the first instant of a date; `node` is what asks for it."""
    value = binder.bind(inner)
    if value.type == DATE:
        return converted(value, TIMESTAMP)  # its first instant, as in Spark
    if value.type == VOID:
        return converted(value, TIMESTAMP)
    if value.type != TIMESTAMP:
        raise binder.error("A timestamp or a date is expected.", node, got=str(value.type))
    return value


def interval_ticks(binder: ExpressionBinder, interval: exp.Expr, node: exp.Expr) -> int:
    """The length of an interval of fixed length, in microseconds."""
    amount = binder.reading.need(interval, "this")
    unit = binder.reading.name(interval, "unit")
    ticks: int | None = None
    text = f"{amount.this} {unit}" if isinstance(amount, exp.Literal) else shown(interval)
    if isinstance(amount, exp.Literal) and len(text) < 60:
        binder.reading.whole(amount)
        try:
            ticks = parse_span(text).ticks(Domain.TIMESTAMP)
        except (StreamError, ValueError):
            ticks = None
    if ticks is None or not -_LONG < ticks < _LONG:
        raise binder.error(
            "The INTERVAL has no fixed length.", node, got=text.strip()[:60], hint="use weeks or smaller units"
        )
    return ticks


def bare_interval(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """An interval that stands by itself has no meaning here."""
    raise binder.error("An INTERVAL can be added to or taken from a timestamp.", node)


def truncation(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """`date_trunc`."""
    unit = unit_named(binder, node, "date_trunc", binder.reading.name(node, "unit"), UNITS)
    value = binder.reading.need(node, "this")
    return Call("date_trunc", (Literal(unit, STRING), moment(binder, value, node)), TIMESTAMP)


def unit_named(binder: ExpressionBinder, node: exp.Expr, function: str, name: str, units: Mapping[str, str]) -> str:
    """The unit that a name stands for."""
    unit = units.get(name.lower())
    if unit is None:
        known = ", ".join(dict.fromkeys(units.values()))
        raise binder.error(f"{function} does not know this unit.", node, got=name.upper(), hint=f"use {known}")
    return unit


def extraction(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """EXTRACT(unit FROM time)."""
    return extracted(binder, node, binder.reading.name(node), binder.reading.need(node, "expression"))


def extracted(binder: ExpressionBinder, node: exp.Expr, name: str, inner: exp.Expr) -> Expression:
    """A part of a time."""
    part = unit_named(binder, node, "extract", name, _EXTRACTED)
    time = moment(binder, inner, node)
    if part == "second_fraction":
        return Call(part, (time,), decimal(8, 6))
    found = Call(part, (time,), INT)
    return Call("add", (found, Literal(1, INT)), INT) if part == "weekday" else found  # Monday is 1 there
