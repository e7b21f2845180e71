"""Functions of times and dates on single values. A time is microseconds since 1970 in UTC, a date Python's own.

Weeks begin on Monday, and the first of a year is the one with its first Thursday (ISO 8601). A date outside of the
years 1 to 9999 is an error.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from penstock.errors import EvaluationError
from penstock.model.schema import BIGINT, DataType
from penstock.model.text import civil_of, days_of, days_of_month
from penstock.model.time import DAY, HOUR, MILLISECOND, MINUTE, SECOND, WEEK
from penstock.plan import time_patterns
from penstock.plan.fitting import fit

Strict = Callable[[list[Any], DataType], Any]

LENGTHS = {
    "microsecond": 1,
    "millisecond": MILLISECOND,
    "second": SECOND,
    "minute": MINUTE,
    "hour": HOUR,
    "day": DAY,
}
"""Units that have one length and begin at the epoch."""
MONTHS_OF = {"month": 1, "quarter": 3, "year": 12}
UNITS = {
    **{name: name for name in (*LENGTHS, "week", *MONTHS_OF)},
    **dict.fromkeys(("yyyy", "yy"), "year"), **dict.fromkeys(("mm", "mon"), "month"), "dd": "day",
}  # fmt: skip
"""What `date_trunc` goes to, by all names."""
_EPOCH = dt.date(1970, 1, 1).toordinal()
_MONDAY = 4 * DAY
"""The first Monday of 1970."""
_MONTH = 31 * 86_400
"""Seconds in a month, where months are compared."""


def date_of(days: int) -> dt.date:
    """The date of a day's number from 1970 on."""
    try:
        return dt.date.fromordinal(days + _EPOCH)
    except (ValueError, OverflowError):
        raise EvaluationError(
            "The date is outside of the years 1 to 9999.", got=f"{days} days from 1970-01-01", hint="check the number"
        ) from None


def days_since(date: dt.date) -> int:
    """The number of a date, from 1970-01-01."""
    return date.toordinal() - _EPOCH


def _truncate(args: list[Any], type_: DataType) -> int:
    unit, ticks = args[0].lower(), args[1]
    if unit in LENGTHS:
        return int(fit(ticks - ticks % LENGTHS[unit], BIGINT))
    if unit == "week":
        return int(fit(ticks - (ticks - _MONDAY) % WEEK, BIGINT))
    return int(fit(_first_day(ticks // DAY, unit) * DAY, BIGINT))


def _first_day(days: int, unit: str) -> int:
    """The first day of a day's month, quarter or year."""
    year, month, _ = civil_of(days)
    return days_of(year, month - (month - 1) % MONTHS_OF[unit], 1)


def _trunc(args: list[Any], type_: DataType) -> dt.date:
    date, unit = args[0], args[1].lower()
    days = days_since(date)
    return date_of(days - (days - 4) % 7 if unit == "week" else _first_day(days, unit))


def _date_part(at: int) -> Strict:
    return lambda args, type_: civil_of(args[0] // DAY)[at]


def _clock_part(unit: int, wraps: int) -> Strict:
    return lambda args, type_: args[0] // unit % wraps


def _day_of_year(args: list[Any], type_: DataType) -> int:
    days: int = args[0] // DAY
    return days - days_of(civil_of(days)[0], 1, 1) + 1


def _week(ticks: int) -> tuple[int, int]:
    """Year and number of the week, both of its Thursday."""
    days = ticks // DAY
    thursday = days - (days + 3) % 7 + 3
    year = civil_of(thursday)[0]
    return year, (thursday - days_of(year, 1, 1)) // 7 + 1


def _make_date(args: list[Any], type_: DataType) -> dt.date:
    try:
        return dt.date(*args)
    except (ValueError, OverflowError):
        raise EvaluationError(
            "There is no such date.", got="-".join(map(str, args)), hint="check year, month and day first"
        ) from None


def _add_months(args: list[Any], type_: DataType) -> dt.date:
    date, months = args
    year, month = divmod(date.year * 12 + date.month - 1 + months, 12)
    return date_of(days_of(year, month + 1, min(date.day, days_of_month(year, month + 1))))


def _last_day(args: list[Any], type_: DataType) -> dt.date:
    date = args[0]
    return dt.date(date.year, date.month, days_of_month(date.year, date.month))


def _months_between(args: list[Any], type_: DataType) -> float:
    """Whole months between equal days, or last days, of months; in between by 31sts, to eight digits."""
    first: int = args[0]
    second: int = args[1]
    (days1, clock1), (days2, clock2) = divmod(first, DAY), divmod(second, DAY)
    (year1, month1, day1), (year2, month2, day2) = civil_of(days1), civil_of(days2)
    months = float((year1 - year2) * 12 + month1 - month2)
    both_last = day1 == days_of_month(year1, month1) and day2 == days_of_month(year2, month2)
    if day1 == day2 or both_last:
        return months
    seconds = (day1 - day2) * 86_400 + clock1 // SECOND - clock2 // SECOND
    return math.floor((months + seconds / _MONTH) * 1e8 + 0.5) / 1e8


TIMES: dict[str, Strict] = {
    "date_trunc": _truncate,
    "time_add": lambda args, type_: fit(args[0] + args[1], BIGINT),
    **{part: _date_part(at) for at, part in enumerate(("year", "month", "day"))},
    "hour": _clock_part(HOUR, 24),
    "minute": _clock_part(MINUTE, 60),
    "second": _clock_part(SECOND, 60),
    "second_fraction": lambda args, type_: Decimal(args[0] % MINUTE).scaleb(-6).quantize(Decimal("0.000001")),
    "quarter": lambda args, type_: (civil_of(args[0] // DAY)[1] + 2) // 3,
    "dayofweek": lambda args, type_: (args[0] // DAY + 4) % 7 + 1,
    "weekday": lambda args, type_: (args[0] // DAY + 3) % 7,
    "dayofyear": _day_of_year,
    "weekofyear": lambda args, type_: _week(args[0])[1],
    "yearofweek": lambda args, type_: _week(args[0])[0],
    "date_format": lambda args, type_: time_patterns.write(args[0], args[1]),
    "to_timestamp": lambda args, type_: time_patterns.read(args[0], args[1]),
    "unix_seconds": lambda args, type_: args[0] // SECOND,
    "unix_millis": lambda args, type_: args[0] // MILLISECOND,
    "unix_micros": lambda args, type_: args[0],
    "timestamp_seconds": lambda args, type_: fit(args[0] * SECOND, BIGINT),
    "timestamp_millis": lambda args, type_: fit(args[0] * MILLISECOND, BIGINT),
    "timestamp_micros": lambda args, type_: args[0],
    "trunc": _trunc,
    "make_date": _make_date,
    "date_add": lambda args, type_: date_of(days_since(args[0]) + args[1]),
    "date_sub": lambda args, type_: date_of(days_since(args[0]) - args[1]),
    "datediff": lambda args, type_: days_since(args[0]) - days_since(args[1]),
    "add_months": _add_months,
    "last_day": _last_day,
    "months_between": _months_between,
}
