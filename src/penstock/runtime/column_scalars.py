"""Functions that are called by name as Arrow computations, where Arrow's answer is the definition's.

Patterns go to RE2, as `plan/regular_expressions.py` writes them for it; a text with a line end goes by rows where the
pattern has a `$`. Times beyond the ordinary calendar, and text that is not plain where case is concerned, go by rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.text import read_timestamp
from penstock.model.time import MILLISECOND, SECOND
from penstock.plan import time_patterns
from penstock.plan.expressions import Call, Literal
from penstock.plan.matching import linear_replacement, named, read_replacement
from penstock.plan.regular_expressions import RegularExpression, parse
from penstock.plan.time_functions import LENGTHS

ColumnFunction = Callable[[pa.Table], Any]
Parts = list[ColumnFunction]
FIRST_YEAR, AFTER_LAST_YEAR = read_timestamp("0001"), read_timestamp("10000")
_LINE_END = "[\n\r\x85\u2028\u2029]"


class NotColumnar(Exception):
    """These values have no columnar answer."""


def _constant(call: Call, at: int) -> Any:
    """The value of an argument that is a constant and not null; None of any other."""
    argument = call.args[at]
    return argument.value if isinstance(argument, Literal) else None


# Text


def _with_constant(function: Callable[..., Any]) -> Callable[[Call, Parts], ColumnFunction | None]:
    """A function of a text and a constant."""

    def form(call: Call, parts: Parts) -> ColumnFunction | None:
        pattern = _constant(call, 1)
        return None if pattern is None else lambda table: function(parts[0](table), pattern=pattern)

    return form


def _trim(function: Callable[..., Any]) -> Callable[[Call, Parts], ColumnFunction | None]:
    def form(call: Call, parts: Parts) -> ColumnFunction | None:
        characters = _constant(call, 1) if len(parts) > 1 else " "
        if not characters:
            return None
        return lambda table: function(parts[0](table), characters=characters)

    return form


def _replace(call: Call, parts: Parts) -> ColumnFunction | None:
    search, replacement = _constant(call, 1), _constant(call, 2)
    if not search or replacement is None:
        return None
    return lambda table: pc.replace_substring(parts[0](table), pattern=search, replacement=replacement)


def _left(call: Call, parts: Parts) -> ColumnFunction | None:
    length = _constant(call, 1)
    if length is None:
        return None
    return lambda table: pc.utf8_slice_codeunits(parts[0](table), start=0, stop=max(length, 0))


def _split_part(call: Call, parts: Parts) -> ColumnFunction | None:
    """Parts are counted from the front; one that is not there is empty."""
    separator, number = _constant(call, 1), _constant(call, 2)
    if not separator or number is None or number < 1:
        return None

    def apply(table: pa.Table) -> Any:
        text = parts[0](table)
        if isinstance(text, pa.Scalar):
            raise NotColumnar
        pieces = pc.split_pattern(text, pattern=separator, max_splits=number)
        one = pc.list_slice(pieces, start=number - 1, stop=number, return_fixed_size_list=True)
        return pc.if_else(pc.is_null(text), text, pc.fill_null(pc.list_element(one, 0), ""))

    return apply


def _searched(part: ColumnFunction, expression: RegularExpression) -> ColumnFunction:
    """A text column in which a `$` means the end alone."""

    def apply(table: pa.Table) -> Any:
        column = part(table)
        if expression.has_end and _any(pc.match_substring_regex(column, pattern=_LINE_END)):
            raise NotColumnar
        return column

    return apply


def _any(found: Any) -> bool:
    return bool(found.as_py() if isinstance(found, pa.Scalar) else pc.any(found).as_py())


def _rlike(call: Call, parts: Parts) -> ColumnFunction | None:
    pattern = _constant(call, 1)
    expression = None if pattern is None else parse(pattern)
    if expression is None or expression.linear is None:
        return None
    searched = _searched(parts[0], expression)
    return lambda table: pc.match_substring_regex(searched(table), pattern=expression.linear)


def _extract(call: Call, parts: Parts) -> ColumnFunction | None:
    pattern, group = _constant(call, 1), _constant(call, 2)
    expression = None if pattern is None or group is None else parse(pattern)
    if expression is None or expression.linear is None:
        return None
    searched = _searched(parts[0], expression)

    def apply(table: pa.Table) -> Any:
        column = searched(table)
        found = pc.struct_field(pc.extract_regex(column, pattern=named(expression)), [f"g{group}"])
        return pc.if_else(pc.is_null(column), column, pc.fill_null(found, ""))

    return apply


def _regexp_replace(call: Call, parts: Parts) -> ColumnFunction | None:
    pattern, replacement = _constant(call, 1), _constant(call, 2)
    expression = None if pattern is None or replacement is None else parse(pattern)
    if expression is None or expression.linear is None or expression.may_be_empty:
        return None
    rewriting = linear_replacement(read_replacement(replacement, expression))
    if rewriting is None:
        return None
    searched, linear = _searched(parts[0], expression), expression.linear
    return lambda table: pc.replace_substring_regex(searched(table), pattern=linear, replacement=rewriting)


# Numbers


def _logarithm(function: Callable[..., Any], divisor: float = 1.0) -> Callable[[Call, Parts], ColumnFunction | None]:
    """Null where there is none; the C library's, as by rows."""

    def form(call: Call, parts: Parts) -> ColumnFunction | None:
        def apply(table: pa.Table) -> Any:
            value = parts[0](table)
            found = function(pc.if_else(pc.less_equal(value, 0.0), pa.scalar(None, pa.float64()), value))
            return found if divisor == 1.0 else pc.divide(found, divisor)

        return apply

    return form


def _remainder(call: Call, parts: Parts) -> ColumnFunction | None:
    """Of whole numbers by a constant above zero; it has the sign of the dividend."""
    divisor = _constant(call, 1)
    if not call.type.is_integer or not isinstance(divisor, int) or divisor < 1:
        return None

    def apply(table: pa.Table) -> Any:
        value, by = pc.cast(parts[0](table), call.type.arrow), pa.scalar(divisor, call.type.arrow)
        return pc.subtract(value, pc.multiply(pc.divide(value, by), by))

    return apply


# Times


def within_calendar(part: ColumnFunction) -> ColumnFunction:
    """Times that Arrow counts right: it has 16 bits for a year."""

    def apply(table: pa.Table) -> Any:
        value = part(table)
        if not isinstance(value, pa.Scalar):
            ends = pc.min_max(pc.cast(value, pa.int64()))
            low, high = ends["min"].as_py(), ends["max"].as_py()
            if low is not None and not (low >= FIRST_YEAR and high < AFTER_LAST_YEAR):
                raise NotColumnar
        return value

    return apply


def _part(function: Callable[..., Any]) -> Callable[[Call, Parts], ColumnFunction | None]:
    def form(call: Call, parts: Parts) -> ColumnFunction | None:
        time = within_calendar(parts[0])
        return lambda table: pc.cast(function(time(table)), pa.int32())

    return form


def _truncate(call: Call, parts: Parts) -> ColumnFunction | None:
    """Units of one length, by arithmetic."""
    length = LENGTHS.get(str(_constant(call, 0)))
    if length is None:
        return None
    time = within_calendar(parts[1])

    def apply(table: pa.Table) -> Any:
        value = time(table)
        return pc.cast(pc.multiply(_whole(pc.cast(value, pa.int64()), length), length), call.type.arrow)

    return apply


def _whole(ticks: Any, unit: int) -> Any:
    """How many whole units, rounded down."""
    quotient = pc.divide(ticks, unit)
    return pc.subtract(quotient, pc.cast(pc.less(ticks, pc.multiply(quotient, unit)), pa.int64()))


def _counted(unit: int) -> Callable[[Call, Parts], ColumnFunction | None]:
    return lambda call, parts: lambda table: _whole(pc.cast(parts[0](table), pa.int64()), unit)


def _from_count(unit: int) -> Callable[[Call, Parts], ColumnFunction | None]:
    """A time from a count of units, of which there may be too many."""

    def form(call: Call, parts: Parts) -> ColumnFunction | None:
        def apply(table: pa.Table) -> Any:
            try:
                ticks = pc.multiply_checked(pc.cast(parts[0](table), pa.int64()), pa.scalar(unit, pa.int64()))
            except pa.ArrowInvalid:
                raise NotColumnar from None  # by rows the error says which
            return pc.cast(ticks, call.type.arrow)

        return apply

    return form


def _date_format(call: Call, parts: Parts) -> ColumnFunction | None:
    """As by rows, once for each different time of the finest unit that the pattern writes."""
    pattern = _constant(call, 1)
    if pattern is None:
        return None
    unit, time = time_patterns.finest(pattern), within_calendar(parts[0])

    def apply(table: pa.Table) -> Any:
        value = time(table)
        if isinstance(value, pa.Scalar):
            raise NotColumnar
        whole = pc.multiply(_whole(pc.cast(value, pa.int64()), unit), unit)
        found = whole.combine_chunks().dictionary_encode()
        written = [time_patterns.write(ticks, pattern) for ticks in found.dictionary.to_pylist()]
        return pc.take(pa.array(written, pa.string()), found.indices)

    return apply


Form = Callable[[Call, Parts], ColumnFunction | None]

COLUMN_FORMS: dict[str, Form] = {
    "startswith": _with_constant(pc.starts_with),
    "endswith": _with_constant(pc.ends_with),
    "contains": _with_constant(pc.match_substring),
    "trim": _trim(pc.utf8_trim),
    "ltrim": _trim(pc.utf8_ltrim),
    "rtrim": _trim(pc.utf8_rtrim),
    "replace": _replace,
    "left": _left,
    "split_part": _split_part,
    "reverse": lambda call, parts: lambda table: pc.utf8_reverse(parts[0](table)),
    "rlike": _rlike,
    "regexp_extract": _extract,
    "regexp_replace": _regexp_replace,
    "modulo": _remainder,
    "ln": _logarithm(pc.ln),
    "log10": _logarithm(pc.log10),
    "log2": _logarithm(pc.ln, math.log(2)),
    "exp": lambda call, parts: lambda table: pc.exp(parts[0](table)),
    "sqrt": lambda call, parts: lambda table: pc.sqrt(parts[0](table)),
    "bitwise_and": lambda call, parts: lambda table: pc.bit_wise_and(parts[0](table), parts[1](table)),
    "bitwise_or": lambda call, parts: lambda table: pc.bit_wise_or(parts[0](table), parts[1](table)),
    "bitwise_xor": lambda call, parts: lambda table: pc.bit_wise_xor(parts[0](table), parts[1](table)),
    "bitwise_not": lambda call, parts: lambda table: pc.bit_wise_not(parts[0](table)),
    **{name: _part(getattr(pc, name)) for name in ("year", "month", "day", "hour", "minute", "second", "quarter")},
    "dayofyear": _part(pc.day_of_year),
    "weekday": _part(pc.day_of_week),
    "weekofyear": _part(pc.iso_week),
    "date_trunc": _truncate,
    "date_format": _date_format,
    "timestamp_micros": _from_count(1),
    "timestamp_millis": _from_count(MILLISECOND),
    "timestamp_seconds": _from_count(SECOND),
    "unix_micros": _counted(1),
    "unix_millis": _counted(MILLISECOND),
    "unix_seconds": _counted(SECOND),
}
HARMLESS = frozenset(COLUMN_FORMS) - {
    "date_trunc",
    "date_format",
    *(f"timestamp_{u}" for u in ("micros", "millis", "seconds")),
}
"""Those that have a value for all values of their arguments."""
