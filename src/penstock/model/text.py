"""Text read as numbers and times, exactly as Spark's ANSI casts read it, and times written as Spark writes them.

White space and control characters around a value do not count: for whole numbers and times those of ASCII, for floating
point what Java trims. A whole number is a sign and digits. A floating point number is Java's: `1d`, `1.5f` and `0x1p3`
are numbers, `1_000` is none. A time is `[+-]year[-month[-day[ hour[:minute[:second[.fraction]]]]]]` with a `T` or one
space in the middle; months and smaller may have one digit, and after the seconds a zone may stand: `Z`, an offset, or
the name of a region. Without a zone it is UTC. A time without a date means today's in Spark, which no two runs agree
on: it is not read. Bytes are base64 with its padding and nothing else, as Spark writes them in JSON.

Reading costs one match of a regular expression; nothing here depends on the machine's own zone or locale.
"""

from __future__ import annotations

import base64
import datetime as dt
import re
from functools import lru_cache
from zoneinfo import ZoneInfo

_ASCII_BLANK = "".join(map(chr, range(0x21))) + "\x7f"
_JAVA_BLANK = "".join(map(chr, range(0x21)))

_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?")
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?")
_SPECIAL = {
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), float("inf")),
    **dict.fromkeys(("-inf", "-infinity"), float("-inf")),
    "nan": float("nan"),
}
_TIME = re.compile(
    r"(?P<sign>[+-]?)(?P<year>[0-9]{4,6})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})"
    r"(?:[ T](?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})"
    r"(?:\.(?P<fraction>[0-9]*))?(?P<zone>[^0-9.].*)?)?)?)?)?)?",
    re.DOTALL,
)
_OFFSET = re.compile(r"[+-](?:\d|\d\d(?::\d\d(?::\d\d)?|\d\d(?:\d\d)?)?)", re.ASCII)
_REGION = re.compile(r"[A-Za-z][A-Za-z0-9~/._+-]+")
BASE64 = "(?:[0-9A-Za-z+/]{4})*+(?:[0-9A-Za-z+/]{2}==|[0-9A-Za-z+/]{3}=)?"
"""A regular expression, in Python and in Spark, of what stands for bytes."""
_MICROS = 1_000_000
_DAY = 86_400
_LONG = 1 << 63

# Java's short names of zones, which Spark takes: the daylight saving ones as regions, three as fixed offsets.
_SHORT = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh", "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip


def read_whole(text: str) -> int:
    """The whole number that a text is; ValueError if it is none."""
    stripped = text.strip(_ASCII_BLANK)
    if not _WHOLE.fullmatch(stripped):
        raise ValueError(text)
    return int(stripped)


def read_double(text: str) -> float:
    """The floating point number that a text is; ValueError if it is none."""
    stripped = text.strip(_JAVA_BLANK)
    special = _SPECIAL.get(stripped.lower())
    if special is not None:
        return special
    if stripped[1:] == "NaN" and stripped[0] in "+-":  # Java's own spelling may have a sign
        return float("nan")
    if _DECIMAL.fullmatch(stripped):
        return float(stripped.rstrip("fFdD"))
    if _HEXADECIMAL.fullmatch(stripped):
        try:
            # The suffix stands after a decimal exponent, so an F or D at the end is never a digit.
            return float.fromhex(stripped.rstrip("fFdD"))
        except OverflowError:
            return float("-inf") if stripped.startswith("-") else float("inf")
    raise ValueError(text)


def read_bytes(text: str) -> bytes:
    """The bytes that a base64 text stands for; ValueError if it is none."""
    if not re.fullmatch(BASE64, text):
        raise ValueError(text)
    return base64.b64decode(text)


def write_bytes(value: bytes | bytearray | memoryview) -> str:
    """Bytes as base64."""
    return base64.b64encode(value).decode("ascii")


def read_timestamp(text: str) -> int:
    """The microseconds since 1970 of a time; ValueError if the text is none, or lies beyond 64 bits."""
    found = _TIME.fullmatch(text.strip(_ASCII_BLANK))
    if found is None:
        raise ValueError(text)
    year = int(found["year"]) * (-1 if found["sign"] == "-" else 1)
    month, day = int(found["month"] or 1), int(found["day"] or 1)
    hour, minute, second = int(found["hour"] or 0), int(found["minute"] or 0), int(found["second"] or 0)
    if not (1 <= month <= 12 and 1 <= day <= days_of_month(year, month) and hour < 24 and minute < 60 and second < 60):
        raise ValueError(text)
    seconds = days_of(year, month, day) * _DAY + hour * 3600 + minute * 60 + second
    if found["zone"] is not None:
        seconds -= offset_of(found["zone"].strip(_JAVA_BLANK), year, month, day, hour, minute, second)
    ticks = seconds * _MICROS + int((found["fraction"] or "").ljust(6, "0")[:6])
    if not -_LONG <= ticks < _LONG:
        raise ValueError(text)
    return ticks


def write_timestamp(ticks: int) -> str:
    """A time in UTC as Spark prints it: no more digits of the fraction than it needs, a sign beyond the year 9999."""
    seconds, micros = divmod(ticks, _MICROS)
    days, rest = divmod(seconds, _DAY)
    year, month, day = civil_of(days)
    shown = f"{year:04d}" if 0 <= year <= 9999 else f"{'+' if year > 0 else '-'}{abs(year):04d}"
    fraction = f".{micros:06d}".rstrip("0") if micros else ""
    return f"{shown}-{month:02d}-{day:02d} {rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}{fraction}"


# The calendar, which Python's own datetimes know for the years 1 to 9999 only. Years begin in March here, so that a
# leap day is the last of its year; 400 years are 146,097 days.


def days_of(year: int, month: int, day: int) -> int:
    """The number of a day, from 1970-01-01, in the calendar of today carried back for ever."""
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def civil_of(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day's number."""
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def days_of_month(year: int, month: int) -> int:
    """How many days a month has."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


# Zones


def offset_of(zone: str, year: int, month: int, day: int, hour: int, minute: int, second: int) -> int:
    """How many seconds a zone is ahead of UTC at a local time; ValueError if there is no such zone.

    A local time that a clock skips is read with the offset before it, one that it shows twice is the first.
    """
    zone = re.sub(r"([+-])([0-9]):", r"\g<1>0\2:", zone, count=1)
    zone = re.sub(r"([+-])([0-9][0-9]):([0-9])$", r"\1\2:0\3", zone, count=1)
    zone = _SHORT.get(zone, zone)
    if zone in ("Z", "UTC", "GMT", "UT"):
        return 0
    if zone[:1] in ("+", "-"):
        return _fixed(zone)
    for prefix in ("UTC", "GMT", "UT"):
        if zone.startswith(prefix) and zone[len(prefix) : len(prefix) + 1] in ("+", "-"):
            return _fixed(zone[len(prefix) :])
    # The calendar repeats every 400 years, and the rules with it.
    known = year if 1 < year < 9999 else (2000 + year % 400 if year > 1 else 2)
    local = dt.datetime(known, month, day, hour, minute, second, tzinfo=_region(zone))
    ahead = local.utcoffset()
    assert ahead is not None
    return round(ahead.total_seconds())


def _fixed(text: str) -> int:
    if not _OFFSET.fullmatch(text):
        raise ValueError(text)
    digits = text[1:].replace(":", "")
    if len(digits) == 1:
        digits = "0" + digits
    hours, minutes, seconds = int(digits[:2]), int(digits[2:4] or 0), int(digits[4:6] or 0)
    total = hours * 3600 + minutes * 60 + seconds
    if minutes > 59 or seconds > 59 or total > 18 * 3600:
        raise ValueError(text)
    return -total if text[0] == "-" else total


@lru_cache(maxsize=1024)
def _region(name: str) -> ZoneInfo:
    if not _REGION.fullmatch(name):
        raise ValueError(name)
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # not found is a KeyError, a folder an OSError
        raise ValueError(name) from None
