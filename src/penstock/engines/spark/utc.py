"""Times in UTC, whatever time zone the session is in, as Spark expressions.

Spark takes text without a zone, a date, a timestamp without a zone, an hour or a day to be in the session's zone. Here
they are in UTC in every session, and the session is not touched: a timestamp is its microseconds, a day is a whole
number of them, and text without a zone is read as a timestamp that has none. Text with a zone means the same anywhere.

All of it is arithmetic on whole numbers, except text. Where Spark reads a time of day as today's there is nothing that
two runs agree on, so it is not read.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.engines.spark.ticks import long
from penstock.model.time import DAY, HOUR, MINUTE, SECOND

_BLANK = r"[\x00-\x20\x7f]*"
_WITHOUT_ZONE = rf"^{_BLANK}[+-]?[0-9]+(-[0-9]+){{0,2}}([ T][0-9:.]*)?{_BLANK}$"
_WITHOUT_DATE = rf"^{_BLANK}(T|[0-9]{{0,2}}:)"
_UNITS = {"second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}
_CLOCK = {"hour": (HOUR, 24), "minute": (MINUTE, 60), "second": (SECOND, 60)}
CALENDAR = frozenset({"year", "month", "day"})
PARTS = CALENDAR | frozenset(_CLOCK)


def part_of(name: str, time: Column) -> Column:
    """A part of a time as it is in UTC: year, month, day, hour, minute, second."""
    micros = F.unix_micros(time)
    if name in CALENDAR:
        return F.call_function(name, F.date_from_unix_date(_whole(micros, DAY).cast("int")))
    unit, wraps = _CLOCK[name]
    return F.pmod(_whole(micros, unit), long(wraps)).cast("int")


def _whole(micros: Column, unit: int) -> Column:
    """How many whole units a time is, rounded down, for the first times that there are too."""
    towards_zero = F.call_function("div", micros, long(unit))
    return F.when(micros % long(unit) < 0, towards_zero - 1).otherwise(towards_zero)


def truncated(unit: str, time: Column) -> Column:
    """A time cut down to a second, minute, hour or day of UTC; null where that is before all time."""
    micros = F.unix_micros(time)
    return F.timestamp_micros(F.try_subtract(micros, F.pmod(micros, long(_UNITS[unit]))))


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
    epoch = F.lit("1970-01-01").cast("timestamp_ntz")
    return F.timestamp_add("MICROSECOND", F.unix_micros(time), epoch).cast("string")


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
