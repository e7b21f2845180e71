"""Functions that queries call by name as Spark columns, where Spark's answer is exactly ours.

A form gives a column that always has a value, or a column and where it fails by itself, its arguments not being null;
None in the place of the latter says that a value that is missing has failed. A form that gives None is left to Python:
a pattern whose groups are repeated, for which Java goes deeper with every turn and stops the task in the end, one that
can match nothing, for which Java looks into the middle of a character. Functions that have no form (logarithms, powers,
months between times) are left to Python altogether.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.engines.spark import nested_columns, utc
from penstock.engines.spark.ticks import long
from penstock.model.schema import MAX_PRECISION
from penstock.model.time import FIRST_TIMESTAMP, LAST_TIMESTAMP, MILLISECOND, SECOND
from penstock.plan import expressions as e
from penstock.plan.matching import read_replacement
from penstock.plan.regular_expressions import RegularExpression, parse
from penstock.plan.text_functions import LONGEST

Made = Column | tuple[Column, Column | None] | None
Form = Callable[[e.Call, list[Column]], Made]

_MONTHS_OF_ALL_TIME = 12 * 10_000


def _same(name: str = "") -> Form:
    """Spark's function of the same name, or of another."""
    return lambda call, parts: F.call_function(name or call.name, *parts)


def _unless(wrong: Column, value: Column) -> tuple[Column, Column]:
    """A value that is not computed where it would fail."""
    return F.when(~wrong, value), wrong


def _constant(call: e.Call, at: int) -> Any:
    argument = call.args[at]
    assert isinstance(argument, e.Literal)
    return argument.value


# Text


def _trim(call: e.Call, parts: list[Column]) -> Made:
    function = {"trim": F.btrim, "ltrim": F.ltrim, "rtrim": F.rtrim}[call.name]
    return function(*parts)


def _pad(call: e.Call, parts: list[Column]) -> Made:
    text, length, fill = parts
    value = F.call_function(call.name, *parts)
    if isinstance(call.args[1], e.Literal) and (call.args[1].value is None or _constant(call, 1) <= LONGEST):
        return value
    return _unless((length > LONGEST) & (F.length(text) < length) & (F.length(fill) > 0), value)


def _repeat(call: e.Call, parts: list[Column]) -> Made:
    text, times = parts
    return _unless(F.length(text).cast("bigint") * times > LONGEST, F.call_function("repeat", text, times))


def _split_part(call: e.Call, parts: list[Column]) -> Made:
    return _unless(parts[2] == 0, F.call_function("split_part", *parts))


def _expression(call: e.Call) -> RegularExpression | None:
    """The pattern of a call, if Java may be given it."""
    if any(isinstance(a, e.Literal) and a.value is None for a in call.args):
        return None
    expression = parse(str(_constant(call, 1)))
    return None if expression.repeats_group else expression


def _rlike(call: e.Call, parts: list[Column]) -> Made:
    expression = _expression(call)
    return None if expression is None else parts[0].rlike(expression.java)


def _extract(call: e.Call, parts: list[Column]) -> Made:
    expression = _expression(call)
    return None if expression is None else F.regexp_extract(parts[0], expression.java, int(_constant(call, 2)))


def _replace(call: e.Call, parts: list[Column]) -> Made:
    expression = _expression(call)
    if expression is None or expression.may_be_empty:
        return None
    replacement = read_replacement(str(_constant(call, 2)), expression)
    written = "".join([f"\\{part}" if isinstance(part, str) else f"${part}" for part in replacement])
    return F.regexp_replace(parts[0], expression.java, written)


# Numbers


def _rounded(call: e.Call, parts: list[Column]) -> Made:
    kind, digits = call.args[0].type, _constant(call, 1)
    if digits is None:
        return None
    if kind.is_integer:
        if digits >= 0:
            return parts[0]
        exact = F.call_function(call.name, parts[0].cast("decimal(20,0)"), F.lit(max(digits, -30)))
        return exact.try_cast(str(call.type)), None
    if call.type.is_decimal and call.type.precision == MAX_PRECISION:
        return None
    return F.call_function(call.name, parts[0], F.lit(digits))


def _pmod(call: e.Call, parts: list[Column]) -> Made:
    return _unless(parts[1] == 0, F.call_function("pmod", *parts))


# Times


def _within(days: Column) -> tuple[Column, Column]:
    """The date of a day's number, if a date can be that."""
    return _unless(~days.between(*utc.CALENDAR_DAYS), F.date_from_unix_date(days.cast("int")))


def _days(date: Column) -> Column:
    return F.unix_date(date).cast("bigint")


def _add_months(call: e.Call, parts: list[Column]) -> Made:
    date, months = parts
    near = F.when(months.between(-_MONTHS_OF_ALL_TIME, _MONTHS_OF_ALL_TIME), F.add_months(date, months))
    days = F.coalesce(_days(near), long(2**40))
    return _within(days)


def _make_date(call: e.Call, parts: list[Column]) -> Made:
    year, month, day = parts
    text = F.format_string("%04d-%02d-%02d", year, month, day)
    is_plain = year.between(1, 9999) & month.between(1, 12) & day.between(1, 31)
    return F.when(is_plain, text.try_cast("date")), None


def _date_format(call: e.Call, parts: list[Column]) -> Made:
    pattern = _constant(call, 1)
    if pattern is None:
        return None
    micros = F.unix_micros(parts[0])
    return _unless(~micros.between(FIRST_TIMESTAMP, LAST_TIMESTAMP), utc.formatted(parts[0], str(pattern)))


def _to_timestamp(call: e.Call, parts: list[Column]) -> Made:
    pattern = _constant(call, 1)
    if pattern is None:
        return None
    return utc.try_time_by_pattern(parts[0], str(pattern)), None


def _counted(unit: int) -> Form:
    return lambda call, parts: (F.timestamp_micros(F.try_multiply(parts[0], long(unit))), None)


FORMS: dict[str, Form] = {
    **nested_columns.FORMS,
    **dict.fromkeys(
        ("left", "right", "replace", "translate", "reverse", "initcap", "startswith", "endswith", "contains", "ascii"),
        _same(),
    ),
    **dict.fromkeys(("chr", "md5", "sha1", "sha2", "locate", "get_json_object", "shiftleft", "shiftright"), _same()),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), _trim),
    **dict.fromkeys(("lpad", "rpad"), _pad),
    "repeat": _repeat,
    "split_part": _split_part,
    "rlike": _rlike,
    "regexp_extract": _extract,
    "regexp_replace": _replace,
    **dict.fromkeys(("round", "bround", "floor", "ceil"), _rounded),
    "pmod": _pmod,
    "sign": _same("signum"),
    "bitwise_and": lambda call, parts: parts[0].bitwiseAND(parts[1]),
    "bitwise_or": lambda call, parts: parts[0].bitwiseOR(parts[1]),
    "bitwise_xor": lambda call, parts: parts[0].bitwiseXOR(parts[1]),
    "bitwise_not": lambda call, parts: F.bitwise_not(parts[0]),
    "second_fraction": lambda call, parts: utc.seconds_of(parts[0]),
    "date_format": _date_format,
    "to_timestamp": _to_timestamp,
    "unix_micros": lambda call, parts: F.unix_micros(parts[0]),
    "unix_millis": lambda call, parts: utc.whole(F.unix_micros(parts[0]), MILLISECOND),
    "unix_seconds": lambda call, parts: utc.whole(F.unix_micros(parts[0]), SECOND),
    "timestamp_micros": lambda call, parts: F.timestamp_micros(parts[0]),
    "timestamp_millis": _counted(MILLISECOND),
    "timestamp_seconds": _counted(SECOND),
    "date_add": lambda call, parts: _within(_days(parts[0]) + parts[1]),
    "date_sub": lambda call, parts: _within(_days(parts[0]) - parts[1]),
    "datediff": lambda call, parts: F.datediff(parts[0], parts[1]),
    "add_months": _add_months,
    "last_day": lambda call, parts: F.last_day(parts[0]),
    "make_date": _make_date,
    "trunc": lambda call, parts: F.trunc(parts[0], str(_constant(call, 1))),
}
