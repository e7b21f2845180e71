"""Time as int64 ticks, and the units people write it in.

A tick is a microsecond for a timestamp attribute and one for an integer attribute or a row number. Months and years are
not durations of a fixed length and are refused. Naive timestamps are UTC.
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
