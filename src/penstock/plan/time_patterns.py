"""Patterns of times in Spark's letters, as `date_format` writes them and `to_timestamp` reads them.

Read and written: `yyyy` (or `uuuu`), `yy`, `MM`, `M`, `dd`, `d`, `HH`, `H`, `mm`, `m`, `ss`, `s`, and `S` up to six
times. Written only: `MMM`, `MMMM`, `E`, `EEE`, `EEEE`, `hh`, `h`, `a`, in English. Text stands in single quotes, two of
them are one; other signs than letters, `[`, `]`, `{`, `}` and `#` stand for themselves. Any other letter is refused by
name.

Where a pattern is read, doubled letters want as many digits, single ones take one or two, and `S` takes up to as many
as it stands for; what a pattern leaves out is as in 1970-01-01 00:00:00. Both are for the years 1 to 9999.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from penstock.errors import EvaluationError
from penstock.model.text import civil_of, read_timestamp
from penstock.model.time import DAY, FIRST_TIMESTAMP, HOUR, LAST_TIMESTAMP, MICROSECOND, MINUTE, SECOND

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAYS = ("Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday")
"""From the first day of 1970 on."""

_READ = {
    "yyyy": "year", "yy": "year", "MM": "month", "M": "month", "dd": "day", "d": "day", "HH": "hour", "H": "hour",
    "mm": "minute", "m": "minute", "ss": "second", "s": "second", **{"S" * n: "fraction" for n in range(1, 7)},
}  # fmt: skip
_WRITTEN = frozenset({*_READ, "MMM", "MMMM", "E", "EEE", "EEEE", "hh", "h", "a"})
_RESERVED = "[]{}#"
_PARTS = ("year", "month", "day", "hour", "minute", "second", "fraction")
_DEFAULTS = {"year": "1970", "month": "01", "day": "01", "hour": "00", "minute": "00", "second": "00", "fraction": "0"}
DEFAULT = "yyyy-MM-dd HH:mm:ss"
"""The pattern of `from_unixtime` and `unix_timestamp` where none is given."""


class WrongPattern(ValueError):
    """A pattern that cannot be used; the text says what is wrong with it."""


@dataclass(frozen=True)
class Letters:
    """A run of one letter, which stands for a part of a time."""

    text: str


Part = Letters | str


@lru_cache(maxsize=256)
def parse(pattern: str) -> tuple[Part, ...]:
    """The letters and texts of a pattern that can be written."""
    parts: list[Part] = []
    for found in re.finditer(r"'((?:[^']|'')*)'|(')|([a-zA-Z])\3*|(.)", pattern, re.DOTALL):
        text = found[0]
        if found[2]:
            raise WrongPattern("a quote that is not closed")
        if found[3]:
            letters = text.replace("u", "y") if text == "uuuu" else text
            if letters not in _WRITTEN:
                raise WrongPattern(f"the letters {text}")
            parts.append(Letters(letters))
        elif text in _RESERVED:
            raise WrongPattern(f"the sign {text} (in quotes it stands for itself)")
        else:
            parts.append("'" if text == "''" else found[1].replace("''", "'") if text[0] == "'" else text)
    return tuple(parts)


@dataclass(frozen=True)
class TextForm:
    """How texts of a pattern are read: what they match, and how what is found is put as `2026-01-31 10:00:00.5`."""

    regex: str
    template: tuple[str | int, ...]
    """Texts, and groups of the expression by number."""


@lru_cache(maxsize=256)
def text_form(pattern: str) -> TextForm:
    """How a pattern is read; WrongPattern if it has letters that are only written, or the same part twice."""
    regex, found = "", dict[str, tuple[int, str]]()
    for part in parse(pattern):
        if isinstance(part, str):
            regex += "".join([c if c.isalnum() else rf"\x{ord(c):02x}" if ord(c) < 256 else c for c in part])
            continue
        name = _READ.get(part.text)
        if name is None:
            raise WrongPattern(f"the letters {part.text}, which are only written")
        if name in found:
            raise WrongPattern(f"the {name} twice")
        found[name] = len(found) + 1, part.text
        least, most = _digits(part.text)
        regex += "((?!0000)[0-9]{4})" if part.text == "yyyy" else f"([0-9]{{{least},{most}}})"
    template: list[str | int] = []
    for name, sign in zip(_PARTS, ("-", "-", " ", ":", ":", ".", ""), strict=True):
        if name in found:
            template += ["20", found[name][0]] if found[name][1] == "yy" else [found[name][0]]
        else:
            template.append(_DEFAULTS[name])
        template.append(sign)
    return TextForm(regex, tuple(t for t in template if t != ""))


def _digits(letters: str) -> tuple[int, int]:
    if letters[0] == "S":
        return 1, len(letters)
    return (1, 2) if len(letters) == 1 else (len(letters), len(letters))


def read(text: str, pattern: str) -> int:
    """The time that a text says by a pattern."""
    form = text_form(pattern)
    found = re.fullmatch(form.regex, text)
    if found is not None:
        put = "".join([part if isinstance(part, str) else found[part] for part in form.template])
        with suppress(ValueError):  # such as the 30th of February
            return read_timestamp(put)
    raise EvaluationError(
        "The text is no time of this pattern.",
        got=f"{text!r} as {pattern!r}",
        hint="guard it, for example with CASE WHEN x RLIKE '…' THEN …",
    )


def finest(pattern: str) -> int:
    """The length of the finest unit that a pattern writes, a day at the most."""
    units = {"S": MICROSECOND, "s": SECOND, "m": MINUTE, "H": HOUR, "h": HOUR, "a": HOUR}
    return min((units.get(part.text[0], DAY) for part in parse(pattern) if not isinstance(part, str)), default=DAY)


def write(ticks: int, pattern: str) -> str:
    """A time by a pattern."""
    if not FIRST_TIMESTAMP <= ticks <= LAST_TIMESTAMP:
        raise EvaluationError("Only times of the years 1 to 9999 are written.", got=f"{ticks} microseconds since 1970")
    days, clock = divmod(ticks, DAY)
    year, month, day = civil_of(days)
    hour = clock // HOUR
    numbers = {
        "y": year, "M": month, "d": day, "H": hour,
        "h": (hour + 11) % 12 + 1, "m": clock // MINUTE % 60, "s": clock // SECOND % 60,
    }  # fmt: skip
    parts: list[str] = []
    for part in parse(pattern):
        if isinstance(part, str):
            parts.append(part)
        elif part.text[0] == "S":
            parts.append(f"{clock % SECOND:06d}"[: len(part.text)])
        elif part.text == "yy":
            parts.append(f"{year % 100:02d}")
        elif part.text in ("MMM", "MMMM"):
            parts.append(MONTHS[month - 1] if part.text == "MMMM" else MONTHS[month - 1][:3])
        elif part.text[0] == "E":
            parts.append(DAYS[days % 7] if part.text == "EEEE" else DAYS[days % 7][:3])
        elif part.text == "a":
            parts.append("AM" if hour < 12 else "PM")
        else:
            parts.append(f"{numbers[part.text[0]]:0{len(part.text)}d}")
    return "".join(parts)
