"""From sqlglot's functions to ours: text, times, numbers, casts and the user's own.

Each function takes exactly the arguments that are read here; any other that is given is refused by the reading.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.errors import EvaluationError, StreamError
from penstock.model.schema import BIGINT, DATE, DOUBLE, INT, STRING, TIMESTAMP, DataType, parse_type
from penstock.model.time import Domain, parse_span
from penstock.plan.expressions import USER, Call, Expression, Literal
from penstock.plan.typing import can_cast, converted
from penstock.sql.aggregate_names import REFUSED
from penstock.sql.bind_constant import date, timestamp
from penstock.sql.reading import shown
from penstock.sql.tokens import HOW_WINDOWS_ARE_WRITTEN, WINDOW_FUNCTIONS

if TYPE_CHECKING:
    from penstock.sql.bind_expression import ExpressionBinder

_TEXT: dict[type[exp.Expr], tuple[str, DataType]] = {
    exp.Lower: ("lower", STRING), exp.Upper: ("upper", STRING), exp.Length: ("length", INT), exp.Trim: ("trim", STRING),
}  # fmt: skip
_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "year", exp.Month: "month", exp.Day: "day", exp.DayOfMonth: "day", exp.Hour: "hour",
    exp.Minute: "minute", exp.Second: "second",
}  # fmt: skip
_UNITS = frozenset({"second", "minute", "hour", "day"})
_LONG = 1 << 63


def text_function(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """A function of one text."""
    name, type_ = _TEXT[type(node)]
    return Call(name, (binder.string(binder.reading.need(node, "this")),), type_)


def concatenation(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """`concat`, texts side by side, and the operator of two bars: null if a part is."""
    reading = binder.reading
    reading.value(node, "safe")  # whether other dialects convert the parts; here they must be text
    reading.value(node, "coalesce")
    if isinstance(node, exp.DPipe):
        operands: list[exp.Expr] = []
        pending: list[exp.Expr] = [node]
        while pending:
            at = pending.pop()
            if isinstance(at, exp.DPipe):
                reading.value(at, "safe")
                pending += [reading.need(at, "expression"), reading.need(at, "this")]
            else:
                operands.append(at)
    else:
        operands = reading.parts(node, "expressions")
    if not operands:
        raise binder.error("Something is missing here.", node)
    return Call("concat", tuple(binder.string(o) for o in operands), STRING)


def substring(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """A part of a text, from a place and of a length."""
    reading = binder.reading
    args = [binder.string(reading.need(node, "this")), binder.integer(reading.need(node, "start"))]
    length = reading.part(node, "length")
    if length is not None:
        args.append(binder.integer(length))
    return Call("substring", tuple(args), STRING)


def time_part(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """Year, month and so on of a timestamp or a date."""
    inner = binder.reading.need(node, "this")
    if isinstance(inner, exp.TsOrDsToDate):  # put there by the parser
        inner = binder.reading.need(inner, "this")
    return Call(_PARTS[type(node)], (_timestamp(binder, inner, node),), INT)


def truncation(binder: ExpressionBinder, node: exp.Expr) -> Expression | None:
    """`date_trunc` to units that have one length."""
    unit = binder.reading.name(node, "unit").lower()
    value = binder.reading.need(node, "this")
    if unit not in _UNITS:
        raise binder.error(
            "date_trunc does not go to this unit.", node, got=unit.upper(), hint="use second, minute, hour or day"
        )
    return Call("date_trunc", (Literal(unit, STRING), _timestamp(binder, value, node)), TIMESTAMP)


def _timestamp(binder: ExpressionBinder, inner: exp.Expr, node: exp.Expr) -> Expression:
    value = binder.bind(inner)
    if value.type == DATE:
        return converted(value, TIMESTAMP)  # its first instant, as in Spark
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


def first_or_extreme(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """COALESCE, GREATEST and LEAST: any number of values in one type."""
    reading = binder.reading
    for arg in ("is_nvl", "is_null", "ignore_nulls"):  # how it was spelt; Spark ignores nulls in all three
        reading.value(node, arg)
    args = [binder.bind(a) for a in [reading.need(node, "this"), *reading.parts(node, "expressions")]]
    name = type(node).__name__.lower()
    type_ = binder.common([a.type for a in args], node)
    return Call(name, tuple(converted(a, type_) for a in args), type_)


def number_function(binder: ExpressionBinder, node: exp.Expr) -> Expression | None:
    """A function of one number."""
    value = binder.bind(binder.reading.need(node, "this"))
    if not value.type.is_numeric:
        raise binder.error("A number is expected.", node, got=str(value.type))
    if isinstance(node, exp.Abs):
        return Call("abs", (value,), value.type)
    if isinstance(node, exp.Sqrt):
        return Call("sqrt", (converted(value, DOUBLE),), DOUBLE)
    if value.type.is_decimal:
        return None
    return Call("floor" if isinstance(node, exp.Floor) else "ceil", (value,), BIGINT)


def cast(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """CAST, where the engines agree on it. A number with a letter after it is read as one, too."""
    reading = binder.reading
    if reading.flag(node, "safe"):
        raise binder.error("TRY_CAST is not supported.", node, hint="use CAST, and CASE for values that do not fit")
    value = binder.bind(reading.need(node, "this"))
    try:
        target = parse_type(_type_text(binder, reading.need(node, "to")))
    except StreamError as error:
        raise binder.error(error.what, node, got=error.got, hint=error.hint) from None
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


def user_function(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """A Python function that was registered."""
    name = binder.reading.name(node)
    function = binder.catalog.functions.get(name.lower())
    if function is None:
        hint = "register it with flow.function(…) or flow.aggregate(…)"
        if name.lower() in WINDOW_FUNCTIONS:
            hint = HOW_WINDOWS_ARE_WRITTEN
        if name.lower() in REFUSED:
            raise binder.error(f"{name.lower()} is not supported.", node, got=name, hint=REFUSED[name.lower()])
        raise binder.error("Unknown function.", node, got=name, hint=hint)
    args = binder.reading.parts(node, "expressions")
    return Call(USER + function.name, tuple(binder.bind(a) for a in args), function.returns)


FUNCTIONS: dict[type[exp.Expr], Callable[[ExpressionBinder, exp.Expr], Expression | None]] = {
    **dict.fromkeys(_TEXT, text_function),
    **dict.fromkeys(_PARTS, time_part),
    exp.Concat: concatenation,
    exp.DPipe: concatenation,
    exp.Substring: substring,
    exp.TimestampTrunc: truncation,
    exp.Interval: bare_interval,
    **dict.fromkeys((exp.Coalesce, exp.Greatest, exp.Least), first_or_extreme),
    **dict.fromkeys((exp.Abs, exp.Floor, exp.Ceil, exp.Sqrt), number_function),
    exp.Cast: cast,
    exp.TryCast: cast,
    exp.Anonymous: user_function,
}
"""What binds a function, by the kind of its node."""
