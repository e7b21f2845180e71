"""Time as int64 ticks, and the units people write it in.

A tick is a microsecond for a timestamp attribute and one for an integer attribute or a row number. Months and years are
not durations of a fixed length and are refused. Naive timestamps are UTC.

Not every int64 is a time that a row may have. A timestamp, in whatever column, lies within the years 1 to 9999, as in
Spark and in Python. The time column of a stream keeps a further distance from both ends (`usable`), and lengths are
limited (`longest`), so that starts and ends of windows, bounds and delays are times again: no sum of a time and a few
lengths leaves int64, and none of a timestamp and a length leaves the calendar.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from enum import Enum

from penstock.errors import StreamError

MICROSECOND = 1
MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

MIN_TICK = -(2**63)
"""The bound of a stream of which nothing is known yet."""
END_OF_TIME = 2**63 - 1
"""The bound of a stream that has ended: `stable(infinity)`."""

FIRST_TIMESTAMP = -62_135_596_800 * SECOND
"""The start of the year 1."""
LAST_TIMESTAMP = 253_402_300_800 * SECOND - 1
"""The last microsecond of the year 9999."""

_UNITS: dict[str, int] = {}
for _names, _ticks in (
    ("microsecond microseconds us usec usecs", MICROSECOND),
    ("millisecond milliseconds ms msec msecs", MILLISECOND),
    ("second seconds sec secs s", SECOND),
    ("minute minutes min mins m", MINUTE),
    ("hour hours hr hrs h", HOUR),
    ("day days d", DAY),
    ("week weeks w", WEEK),
):
    for _name in _names.split():
        _UNITS[_name] = _ticks
ROW_UNITS = frozenset({"row", "rows", "tuple", "tuples"})
TIME_UNITS = frozenset(_UNITS)


class Domain(Enum):
    """What the ticks of a progressing attribute count."""

    TIMESTAMP = "timestamp"
    INTEGER = "integer"


_CENTURY = 36_524 * DAY
_LONGEST = {Domain.TIMESTAMP: 36_159 * DAY, Domain.INTEGER: 2**60}
_USABLE = {
    Domain.TIMESTAMP: (FIRST_TIMESTAMP + _CENTURY, LAST_TIMESTAMP - _CENTURY),
    Domain.INTEGER: (-(2**62), 2**62),
}


def usable(domain: Domain) -> tuple[int, int]:
    """The first and the last tick that a row of a stream may have as its time: a century within the calendar."""
    return _USABLE[domain]


def longest(domain: Domain) -> int:
    """The longest RANGE, SLIDE or delay: 99 years, or 2^60."""
    return _LONGEST[domain]


@dataclass(frozen=True)
class Span:
    """A length as it was written: `10 minutes`, `1000 rows`, or a bare `300`."""

    amount: int
    unit: str  # "" for a bare number

    @property
    def is_rows(self) -> bool:
        """Whether the unit counts rows."""
        return self.unit in ROW_UNITS

    @property
    def is_time(self) -> bool:
        """Whether the unit is one of time."""
        return self.unit in TIME_UNITS

    def ticks(self, domain: Domain) -> int | None:
        """The length in ticks of `domain`, or None when the unit does not fit it."""
        if domain is Domain.TIMESTAMP:
            return self.amount * _UNITS[self.unit] if self.is_time else None
        return None if self.is_time else self.amount

    def __str__(self) -> str:
        """As it would be written in SQL."""
        return f"{self.amount} {self.unit}".strip()


MOST_DIGITS = 100
"""So many digits may a length have; no tick has more than 19."""
_SPAN = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*$")


def parse_span(text: str) -> Span:
    """Read `'5 seconds'`; fractions are allowed where they come to whole microseconds (`'0.5 s'`)."""
    match = _SPAN.match(text)
    unit = match.group(2).lower() if match else ""
    if match is None or (unit and unit not in TIME_UNITS and unit not in ROW_UNITS):
        raise StreamError(
            "Not a length of time.",
            got=repr(text),
            hint="write a number and a unit, for example '5 seconds', '500 ms' or '1 hour'",
        )
    return make_span(match.group(1), unit)


def make_span(number: str, unit: str) -> Span:
    """A span from a number as written and a known unit, in a finer unit where the number has a fraction."""
    if len(number) > MOST_DIGITS:
        raise StreamError("The length is too great.", got=f"{number[:20]}… of {len(number)} digits")
    if "." not in number:
        return Span(int(number), unit)
    whole, _, fraction = number.partition(".")
    if unit in _UNITS:
        scaled = int(whole + fraction) * _UNITS[unit]
        if scaled % 10 ** len(fraction) == 0:
            return Span(scaled // 10 ** len(fraction), "microseconds")
    raise StreamError(
        "A length must come to whole microseconds, or whole rows.",
        got=f"{number} {unit}".strip(),
        hint="use a finer unit",
    )


def duration_ticks(text: str) -> int:
    """Microseconds of a duration such as `'30 seconds'`."""
    span = parse_span(text)
    ticks = span.ticks(Domain.TIMESTAMP)
    if ticks is None or ticks < 0:
        raise StreamError("Not a duration.", got=repr(text), hint="write for example '30 seconds'")
    return ticks


def earlier(tick: int, by: int) -> int:
    """A tick less a length; what would lie before all time is `MIN_TICK`, which as a bound says nothing."""
    return max(tick - by, MIN_TICK)


Length = str | int | dt.timedelta
"""A length of time as a user gives it: `'5 seconds'`, a timedelta, or a plain number for an integer attribute."""


def length_ticks(length: Length, domain: Domain | None) -> int:
    """The ticks of a length; `domain` None only checks that it can be read.

    A plain number has no unit, so a timestamp takes only zero: five microseconds are rarely what `5` means.
    """
    ticks: int | None = None
    if isinstance(length, dt.timedelta):
        ticks = (length.days * 86_400 + length.seconds) * SECOND + length.microseconds
        ticks = None if domain is Domain.INTEGER else ticks
    elif isinstance(length, str):
        span = parse_span(length)
        ticks = span.amount if domain is None else span.ticks(domain)
        if span.is_rows or (domain is Domain.TIMESTAMP and not span.unit and span.amount == 0):
            ticks = None if span.is_rows else 0
    elif isinstance(length, int) and not isinstance(length, bool):
        ticks = length if domain is not Domain.TIMESTAMP or length == 0 else None
    if ticks is None or ticks < 0:
        raise StreamError(
            "The length does not fit the time column.",
            got=repr(length),
            hint="use a unit of time with a timestamp column ('5 seconds', timedelta(seconds=5)), "
            "a plain number with an integer column",
        )
    if domain is not None and ticks > longest(domain):
        raise StreamError(
            "The length is too great.", got=repr(length), hint=f"at most {show_span(longest(domain), domain)}"
        )
    return ticks


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def to_ticks(value: dt.datetime) -> int:
    """Microseconds since the epoch; a naive value is taken as UTC."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    delta = aware - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * SECOND + delta.microseconds


def from_ticks(ticks: int) -> dt.datetime:
    """The UTC timestamp of a number of microseconds since the epoch."""
    return _EPOCH + dt.timedelta(microseconds=ticks)


def show_ticks(ticks: int, domain: Domain) -> str:
    """A tick as a person would write it."""
    if ticks == END_OF_TIME:
        return "end"
    if ticks == MIN_TICK:
        return "-"
    if domain is Domain.INTEGER:
        return str(ticks)
    try:
        return from_ticks(ticks).isoformat(sep=" ").removesuffix("+00:00")
    except OverflowError:
        return f"{ticks} us"


def show_span(ticks: int, domain: Domain) -> str:
    """A length in its largest whole unit."""
    if domain is Domain.INTEGER:
        return str(ticks)
    for name, size in (("hour", HOUR), ("minute", MINUTE), ("second", SECOND), ("millisecond", MILLISECOND)):
        if ticks and ticks % size == 0:
            count = ticks // size
            return f"{count} {name}{'' if count == 1 else 's'}"
    return f"{ticks} microseconds"
