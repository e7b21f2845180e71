"""Functions that are called by name: those of `plan/scalars.py`, after the user's own.

Most are bound by what their record says. The others have rules here: patterns must be constants and are checked when
the query is bound, some functions are ways to write others, and some have types that depend on their arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.model.schema import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, VOID, DataType
from penstock.plan import json_paths, matching, regular_expressions, time_patterns
from penstock.plan.expressions import Call, Expression, Literal
from penstock.plan.scalars import BY_NAME, Scalar
from penstock.plan.typing import arithmetic_type, converted, rounded_type
from penstock.sql.bind_cast import cast_to
from penstock.sql.bind_constant import date
from penstock.sql.bind_nested import RULES
from penstock.sql.bind_times import UNITS_OF_DATES, extracted, moment, unit_named
from penstock.sql.reading import shown

if TYPE_CHECKING:
    from penstock.sql.bind_expression import ExpressionBinder

Arguments = list[exp.Expr]
Rule = Callable[["ExpressionBinder", exp.Expr, Arguments], Expression]


def named_function(binder: ExpressionBinder, node: exp.Expr, name: str, args: Arguments) -> Expression | None:
    """A function of the language, by its name in small letters; None if there is none."""
    scalar = BY_NAME.get(name)
    if scalar is None:
        return None
    if scalar.returns is None:
        least, most, rule = _RULES.get(scalar.called) or RULES[scalar.called]
        _check_count(binder, node, scalar, args, least, most)
        return rule(binder, node, args)
    _check_count(binder, node, scalar, args, len(scalar.takes) - len(scalar.defaults), len(scalar.takes))
    if name == "reverse" and (array := binder.bind(args[0])).type.name == "array":
        return Call("array_reverse", (array,), array.type)
    values = [argument(binder, arg, kind) for arg, kind in zip(args, scalar.takes, strict=False)]
    for kind, default in list(zip(reversed(scalar.takes), reversed(scalar.defaults), strict=False))[::-1]:
        if len(values) < len(scalar.takes):
            values.append(Literal(default, STRING if kind == "text" else INT))
    return Call(scalar.name or scalar.called, tuple(values), scalar.returns)


def _check_count(
    binder: ExpressionBinder, node: exp.Expr, scalar: Scalar, args: Arguments, least: int, most: int | None
) -> None:
    if len(args) < least or (most is not None and len(args) > most):
        raise binder.error(
            f"{scalar.called} does not take {len(args)} values.", node, got=shown(node), hint=f"write {scalar.written}"
        )


def argument(binder: ExpressionBinder, node: exp.Expr, kind: str) -> Expression:
    """An argument of a kind that a record names."""
    match kind:
        case "text":
            return converted(binder.string(node), STRING)
        case "int" | "bigint":
            return converted(binder.integer(node), INT if kind == "int" else BIGINT)
        case "double":
            return converted(number(binder, node), DOUBLE)
        case "time":
            return moment(binder, node, node)
        case _:
            return _date(binder, node)


def number(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """An expression that must be a number."""
    bound = binder.bind(node)
    if not bound.type.is_numeric and bound.type != VOID:
        raise binder.error("A number is expected.", node, got=f"{shown(node)} of type {bound.type}")
    return bound


def _date(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    bound = binder.bind(node)
    if isinstance(bound, Literal) and bound.type == STRING and bound.value is not None:
        return date(binder, bound, node)
    if bound.type not in (DATE, TIMESTAMP, VOID):
        raise binder.error(
            "A date or a timestamp is expected.", node, got=f"{shown(node)} of type {bound.type}", hint="to_date(…)"
        )
    return converted(bound, DATE)


def constant(binder: ExpressionBinder, node: exp.Expr, what: str) -> str | None:
    """A text that must be a constant; None for NULL."""
    bound = binder.string(node)
    if not isinstance(bound, Literal):
        raise binder.error(
            f"The {what} must be a constant.",
            node,
            got=shown(node),
            hint=f"write the {what} as text; for one per row register a Python function with flow.function(…)",
        )
    return None if bound.value is None else str(bound.value)


def whole(binder: ExpressionBinder, node: exp.Expr, what: str) -> int | None:
    """A whole number that must be a constant; None for NULL."""
    bound = binder.integer(node)
    if not isinstance(bound, Literal):
        raise binder.error(f"The {what} must be a constant.", node, got=shown(node), hint="write a number")
    return bound.value if isinstance(bound.value, int) else None


# Text


def pattern(binder: ExpressionBinder, node: exp.Expr) -> str | None:
    """A regular expression that means the same everywhere."""
    text = constant(binder, node, "pattern")
    if text is not None:
        try:
            regular_expressions.parse(text)
        except regular_expressions.WrongPattern as wrong:
            raise binder.error(
                "The regular expression cannot be used.",
                node,
                got=str(wrong),
                hint="characters, classes, groups, alternatives, * + ? {m,n}, ^ $ \\b, \\d \\w \\s and lookahead can",
            ) from None
    return text


def matched(binder: ExpressionBinder, text: exp.Expr, wanted: exp.Expr) -> Expression:
    """RLIKE and its names as a function."""
    return Call("rlike", (argument(binder, text, "text"), Literal(pattern(binder, wanted), STRING)), BOOLEAN)


def _extract(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    text, wanted = argument(binder, args[0], "text"), pattern(binder, args[1])
    group = whole(binder, args[2], "group") if len(args) > 2 else 1
    if wanted is not None and group is not None:
        there_are = regular_expressions.parse(wanted).groups
        if not 0 <= group <= there_are:
            raise binder.error(
                "The pattern has no such group.", node, got=f"group {group} of {there_are}", hint="0 is the whole match"
            )
    return Call("regexp_extract", (text, Literal(wanted, STRING), Literal(group, INT)), STRING)


def _replace(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    text, wanted = argument(binder, args[0], "text"), pattern(binder, args[1])
    replacement = constant(binder, args[2], "replacement")
    if wanted is not None and replacement is not None:
        try:
            matching.read_replacement(replacement, regular_expressions.parse(wanted))
        except regular_expressions.WrongPattern as wrong:
            raise binder.error(
                "The replacement is wrong.", args[2], got=str(wrong), hint="$1 is what the first group found"
            ) from None
    return Call("regexp_replace", (text, Literal(wanted, STRING), Literal(replacement, STRING)), STRING)


def _json(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    text, path = argument(binder, args[0], "text"), constant(binder, args[1], "path")
    if path is not None and json_paths.read_path(path) is None:
        raise binder.error(
            "The path cannot be used.", args[1], got=path, hint="$ and then .name, ['name'] or [0], without wildcards"
        )
    return Call("get_json_object", (text, Literal(path, STRING)), STRING)


def _concat_ws(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    return Call("concat_ws", tuple(argument(binder, a, "text") for a in args), STRING)


def _instr(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    return located(binder, args[1], args[0], None)


def _locate(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    return located(binder, args[0], args[1], args[2] if len(args) > 2 else None)


def located(binder: ExpressionBinder, part: exp.Expr, text: exp.Expr, begin: exp.Expr | None) -> Expression:
    """The place of a part in a text; 0 if where to begin is null, as in Spark."""
    start = Literal(1, INT) if begin is None else argument(binder, begin, "int")
    found = Call("locate", (argument(binder, part, "text"), argument(binder, text, "text"), start), INT)
    if isinstance(start, Literal) and start.value is not None:
        return found
    return Call("case", (Call("is_null", (start,), BOOLEAN), Literal(0, INT), found), INT)


# Numbers


def _rounding(name: str) -> Rule:
    def bind(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
        value = number(binder, args[0])
        value = converted(value, DOUBLE) if value.type == VOID else value
        digits = whole(binder, args[1], "number of digits") if len(args) > 1 else 0
        return Call(name, (value, Literal(digits, INT)), rounded_type(value.type, digits))

    return bind


def _log(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    values = tuple(argument(binder, a, "double") for a in args)
    return Call("ln" if len(values) == 1 else "log", values, DOUBLE)


def _pmod(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    left, right = (number(binder, a) for a in args)
    type_ = arithmetic_type("modulo", left, right)
    if type_ is None:
        raise binder.error("A number is expected.", node, got=f"{left.type} and {right.type}")
    return Call("pmod", (left, right), type_)


def _is_nan(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    return Call("null_safe_eq", (argument(binder, args[0], "double"), Literal(float("nan"), DOUBLE)), BOOLEAN)


def _shifted(name: str) -> Rule:
    def bind(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
        value = binder.integer(args[0])
        type_: DataType = BIGINT if value.type == BIGINT else INT
        return Call(name, (converted(value, type_), argument(binder, args[1], "int")), type_)

    return bind


# Times


def time_pattern(binder: ExpressionBinder, node: exp.Expr | None, *, is_read: bool) -> Expression:
    """A pattern of times whose letters are known."""
    text = time_patterns.DEFAULT if node is None else constant(binder, node, "pattern")
    if node is not None and text is not None:
        try:
            if is_read:
                time_patterns.text_form(text)
            time_patterns.parse(text)
        except time_patterns.WrongPattern as wrong:
            raise binder.error(
                "The pattern of times cannot be used.",
                node,
                got=str(wrong),
                hint="use yyyy MM dd HH mm ss SSS, and text in single quotes",
            ) from None
    return Literal(text, STRING)


def _date_format(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    return Call("date_format", (moment(binder, args[0], args[0]), time_pattern(binder, args[1], is_read=False)), STRING)


def _to_timestamp(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    if len(args) == 1:
        return cast_to(binder, args[0], TIMESTAMP, node)
    return Call(
        "to_timestamp", (argument(binder, args[0], "text"), time_pattern(binder, args[1], is_read=True)), TIMESTAMP
    )


def _to_date(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    if len(args) == 1:
        return cast_to(binder, args[0], DATE, node)
    return converted(_to_timestamp(binder, node, args), DATE)


def _unix_timestamp(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    """Whole seconds towards 1970, as in Spark; `unix_seconds` goes down."""
    time = binder.bind(args[0])
    if time.type == STRING:
        wanted = time_pattern(binder, args[1] if len(args) > 1 else None, is_read=True)
        time = Call("to_timestamp", (time, wanted), TIMESTAMP)
    else:
        time = moment(binder, args[0], args[0])
        if len(args) > 1:
            constant(binder, args[1], "pattern")  # of no use for a time, as in Spark
    return Call("int_divide", (Call("unix_micros", (time,), BIGINT), Literal(1_000_000, BIGINT)), BIGINT)


def _from_unixtime(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    time = Call("timestamp_seconds", (argument(binder, args[0], "bigint"),), TIMESTAMP)
    wanted = time_pattern(binder, args[1] if len(args) > 1 else None, is_read=False)
    return Call("date_format", (time, wanted), STRING)


def _date_part(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    return extracted(binder, node, constant(binder, args[0], "unit") or "", args[1])


def _trunc(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    unit = unit_named(binder, node, "trunc", constant(binder, args[1], "unit") or "", UNITS_OF_DATES)
    return Call("trunc", (argument(binder, args[0], "date"), Literal(unit, STRING)), DATE)


# Choice


def _nvl2(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    test, there, missing = (binder.bind(a) for a in args)
    return binder.chosen([Call("is_null", (test,), BOOLEAN)], [missing], there, node)


def _is_null(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    return Call("is_null", (binder.bind(args[0]),), BOOLEAN)


def _is_not_null(binder: ExpressionBinder, node: exp.Expr, args: Arguments) -> Expression:
    return Call("not", (_is_null(binder, node, args),), BOOLEAN)


_RULES: dict[str, tuple[int, int | None, Rule]] = {
    "concat_ws": (1, None, _concat_ws),
    "instr": (2, 2, _instr),
    "locate": (2, 3, _locate),
    "regexp_like": (2, 2, lambda binder, node, args: matched(binder, args[0], args[1])),
    "regexp_extract": (2, 3, _extract),
    "regexp_replace": (3, 3, _replace),
    "get_json_object": (2, 2, _json),
    "round": (1, 2, _rounding("round")),
    "bround": (1, 2, _rounding("bround")),
    "log": (1, 2, _log),
    "pmod": (2, 2, _pmod),
    "isnan": (1, 1, _is_nan),
    "shiftleft": (2, 2, _shifted("shiftleft")),
    "shiftright": (2, 2, _shifted("shiftright")),
    "date_part": (2, 2, _date_part),
    "date_format": (2, 2, _date_format),
    "to_timestamp": (1, 2, _to_timestamp),
    "to_date": (1, 2, _to_date),
    "unix_timestamp": (1, 2, _unix_timestamp),
    "from_unixtime": (1, 2, _from_unixtime),
    "trunc": (2, 2, _trunc),
    "nvl2": (3, 3, _nvl2),
    "isnull": (1, 1, _is_null),
    "isnotnull": (1, 1, _is_not_null),
}
"""How many values, at least and at most, and the rule of those that have one of their own."""
