"""Times in UTC, whatever time zone the session is in, as Spark expressions.

Spark takes text without a zone, a date, a timestamp without a zone, an hour or a day to be in the session's zone. Here
they are in UTC in every session, and the session is not touched: a timestamp is its microseconds, a day is a whole
number of them, and text without a zone is read as a timestamp that has none. Text with a zone means the same anywhere.

All of it is arithmetic on whole numbers, except text. Where Spark reads a time of day as today's there is nothing that
two runs agree on, so it is not read.
"""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.engines.spark.ticks import long
from penstock.model.time import DAY, FIRST_TIMESTAMP, HOUR, LAST_TIMESTAMP, MINUTE, SECOND
from penstock.plan import time_patterns
from penstock.plan.time_functions import LENGTHS

_BLANK = r"[\x00-\x20\x7f]*"
_WITHOUT_ZONE = rf"^{_BLANK}[+-]?[0-9]+(-[0-9]+){{0,2}}([ T][0-9:.]*)?{_BLANK}$"
_WITHOUT_DATE = rf"^{_BLANK}(T|[0-9]{{0,2}}:)"
_WRITTEN = "yyyy-MM-dd HH:mm:ss"
_NAMES = {"H": "hour", "m": "minute", "s": "second"}
_CLOCK = {"hour": (HOUR, 24), "minute": (MINUTE, 60), "second": (SECOND, 60)}
CALENDAR = frozenset(
    {"year", "month", "day", "quarter", "dayofweek", "weekday", "dayofyear", "weekofyear", "yearofweek"}
)
CALENDAR_DAYS = (FIRST_TIMESTAMP // DAY, LAST_TIMESTAMP // DAY)
"""The first and the last day that a date can be."""
PARTS = CALENDAR | frozenset(_CLOCK)


def part_of(name: str, time: Column) -> Column:
    """A part of a time as it is in UTC: of its day, or of its clock."""
    micros = F.unix_micros(time)
    if name == "yearofweek":
        return F.extract(F.lit("YEAROFWEEK"), date_of(time))
    if name in CALENDAR:
        return F.call_function(name, date_of(time))
    unit, wraps = _CLOCK[name]
    return F.pmod(whole(micros, unit), long(wraps)).cast("int")


def date_of(time: Column) -> Column:
    """The day of a time in UTC."""
    return _naive(time).cast("date")


def _naive(time: Column) -> Column:
    """A time without a zone, in UTC."""
    return F.timestamp_add("MICROSECOND", F.unix_micros(time), F.lit("1970-01-01").cast("timestamp_ntz"))


def seconds_of(time: Column) -> Column:
    """The seconds of a time within its minute, with their fraction."""
    micros = F.pmod(F.unix_micros(time), long(MINUTE)).cast("decimal(8,0)")
    return (micros * F.lit(Decimal("0.000001"))).cast("decimal(8,6)")


def whole(micros: Column, unit: int) -> Column:
    """How many whole units a time is, rounded down, for the first times that there are too."""
    towards_zero = F.call_function("div", micros, long(unit))
    return F.when(micros % long(unit) < 0, towards_zero - 1).otherwise(towards_zero)


def truncated(unit: str, time: Column) -> Column:
    """A time cut down to a unit of UTC; null where that is before all time."""
    micros = F.unix_micros(time)
    if unit in LENGTHS:
        return F.timestamp_micros(F.try_subtract(micros, F.pmod(micros, long(LENGTHS[unit]))))
    first = F.unix_date(F.trunc(date_of(time), unit)).cast("bigint")
    return F.timestamp_micros(F.try_multiply(first, long(DAY)))


def start_of(date: Column) -> Column:
    """The first moment of a date in UTC."""
    return F.timestamp_micros(F.unix_date(date).cast("bigint") * long(DAY))


def instant_of(naive: Column) -> Column:
    """The moment of a timestamp without a zone, which is taken for UTC."""
    seconds = F.date_part(F.lit("SECOND"), naive) * F.lit(SECOND)
    clock = F.hour(naive) * long(HOUR) + F.minute(naive) * long(MINUTE) + seconds.cast("bigint")
    return F.timestamp_micros(F.unix_date(naive.cast("date")).cast("bigint") * long(DAY) + clock)


def text_of(time: Column) -> Column:
    """A time as text, as Spark writes it in UTC."""
    return _naive(time).cast("string")


def time_of_text(text: Column) -> Column:
    """The time that a text says; an error if it says none."""
    refusal = F.raise_error(F.concat(F.lit("Not a timestamp, but a time of day: "), text))
    return (
        F.when(text.rlike(_WITHOUT_ZONE), instant_of(text.cast("timestamp_ntz")))
        .when(text.rlike(_WITHOUT_DATE), refusal)
        .otherwise(text.cast("timestamp_ltz"))
    )


def try_time_of_text(text: Column) -> Column:
    """The time that a text says, or null."""
    zoned = F.when(~text.rlike(_WITHOUT_DATE), text.try_cast("timestamp_ltz"))
    return F.when(text.rlike(_WITHOUT_ZONE), instant_of(text.try_cast("timestamp_ntz"))).otherwise(zoned)


def formatted(time: Column, pattern: str) -> Column:
    """A time of the years 1 to 9999 by a pattern: slices of how Spark writes it, as long as can be."""
    slices: list[tuple[int, int] | Column] = []
    for part in time_patterns.parse(pattern):
        last = slices[-1] if slices else None
        text = part if isinstance(part, str) else part.text
        begin = last[1] if isinstance(last, tuple) else -1
        if isinstance(part, time_patterns.Letters):
            begin = _WRITTEN.rfind(text) if len(text) > 1 else -1  # of a year, `yy` are the last digits
        if begin < 0 or not _WRITTEN.startswith(text, begin):
            slices.append(F.lit(text) if isinstance(part, str) else _letters(text, time))
        elif isinstance(last, tuple) and last[1] == begin:
            slices[-1] = last[0], begin + len(text)
        else:
            slices.append((begin, begin + len(text)))
    written = text_of(time)
    parts = [F.substring(written, s[0] + 1, s[1] - s[0]) if isinstance(s, tuple) else s for s in slices]
    return F.concat(*parts) if parts else F.lit("")


def _letters(letters: str, time: Column) -> Column:
    """What is not a slice of a time as Spark writes it. A day is the same in whatever zone its letters are written."""
    if letters[0] in "yMdE":
        return F.date_format(date_of(time), letters)
    if letters[0] == "S":
        micros = F.lpad(F.pmod(F.unix_micros(time), long(SECOND)).cast("string"), 6, "0")
        return F.substring(micros, 1, len(letters))
    hour = part_of("hour", time)
    if letters == "a":
        return F.when(hour < 12, F.lit("AM")).otherwise(F.lit("PM"))
    value = (hour + 11) % 12 + 1 if letters[0] == "h" else part_of(_NAMES[letters[0]], time)
    text = value.cast("string")
    return F.lpad(text, 2, "0") if len(letters) == 2 else text


def try_time_by_pattern(text: Column, pattern: str) -> Column:
    """The time that a text says by a pattern, or null: put as Spark reads it, and with a zone."""
    form = time_patterns.text_form(pattern)
    expression = rf"\A{form.regex}\z"
    put = "".join([part if isinstance(part, str) else f"${part}" for part in form.template]) + "Z"
    return F.when(text.rlike(expression), F.regexp_replace(text, expression, put).try_cast("timestamp_ltz"))
