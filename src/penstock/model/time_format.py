"""How an input writes its time: a count from the epoch, or a pattern.

`epoch_s`, `epoch_ms`, `epoch_us` and `epoch_ns` count from 1970 in UTC, in numbers or in text; what is finer than a
microsecond is cut off (floating point numbers are rounded to the nearest). Anything else is a pattern for text, in
Spark's letters (`dd/MM/yyyy HH:mm:ss`) or, if it has a `%`, in those of `strptime` (`%d/%m/%Y %H:%M:%S`), which are
translated. Blanks around the text do not count, everything else must match; a text without a zone is in UTC. Letters
that stand twice want two digits, single ones take one or two; `S` takes up to as many digits as it stands for.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from penstock.errors import StreamError
from penstock.model.text import days_of, offset_of
from penstock.model.time import FIRST_TIMESTAMP, LAST_TIMESTAMP, SECOND

EPOCHS = {"epoch_s": 1_000_000.0, "epoch_ms": 1000.0, "epoch_us": 1.0, "epoch_ns": 0.001}
_EXACT = {"epoch_s": (1_000_000, 1), "epoch_ms": (1000, 1), "epoch_us": (1, 1), "epoch_ns": (1, 1000)}
_MONTHS = [
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
]  # fmt: skip
_LONG = "|".join(_MONTHS)
_SHORT = "|".join(m[:3] for m in _MONTHS)
_LETTERS = {
    "yyyy": "(?P<year>[0-9]{4})", "uuuu": "(?P<year>[0-9]{4})", "yy": "(?P<year2>[0-9]{2})",
    "MM": "(?P<month>[0-9]{2})", "M": "(?P<month>[0-9]{1,2})", "MMM": f"(?P<name>{_SHORT})",
    "MMMM": f"(?P<name>{_LONG})", "dd": "(?P<day>[0-9]{2})", "d": "(?P<day>[0-9]{1,2})",
    "HH": "(?P<hour>[0-9]{2})", "H": "(?P<hour>[0-9]{1,2})", "hh": "(?P<half>[0-9]{2})", "h": "(?P<half>[0-9]{1,2})",
    "a": "(?P<noon>AM|PM)", "mm": "(?P<minute>[0-9]{2})", "m": "(?P<minute>[0-9]{1,2})",
    "ss": "(?P<second>[0-9]{2})", "s": "(?P<second>[0-9]{1,2})",
    "XXX": "(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})", "XX": "(?P<zone>Z|[+-][0-9]{4})", "X": "(?P<zone>Z|[+-][0-9]{2})",
    "xxx": "(?P<zone>[+-][0-9]{2}:[0-9]{2})", "xx": "(?P<zone>[+-][0-9]{4})", "x": "(?P<zone>[+-][0-9]{2})",
    "Z": "(?P<zone>[+-][0-9]{4})", "VV": "(?P<zone>[A-Za-z0-9/_+:-]+)",
}  # fmt: skip
_ANY_OFFSET = "[XXX][XX]"
_STRPTIME = {
    "%Y": "yyyy", "%y": "yy", "%m": "M", "%B": "MMMM", "%b": "MMM", "%d": "d", "%H": "H", "%I": "h", "%p": "a",
    "%M": "m", "%S": "s", "%f": "SSSSSS", "%z": _ANY_OFFSET, "%T": "H:m:s", "%F": "yyyy-M-d", "%%": "'%'",
}  # fmt: skip
_HINT = "for example 'epoch_ms', 'dd/MM/yyyy HH:mm:ss' or '%d/%m/%Y %H:%M:%S'"


@dataclass(frozen=True)
class TimeFormat:
    """A format that can be read."""

    text: str
    pattern: str
    """Spark's pattern; empty for a count from the epoch."""
    regex: re.Pattern[str] | None

    @property
    def is_epoch(self) -> bool:
        """Whether it is a count."""
        return self.regex is None

    @property
    def exact(self) -> tuple[int, int]:
        """Of a count, by what a whole number is multiplied and then divided to give ticks."""
        return _EXACT[self.text]

    @property
    def counts(self) -> tuple[int, int]:
        """The first and the last whole number that is within the calendar, as far as 64 bits go."""
        up, down = self.exact
        first, last = -(-FIRST_TIMESTAMP * down // up), (LAST_TIMESTAMP * down + down - 1) // up
        return max(first, -(1 << 63)), min(last, (1 << 63) - 1)

    @property
    def has_zone(self) -> bool:
        """Whether texts name their zone."""
        return self.regex is not None and "zone" in self.regex.groupindex

    def ticks(self, value: Any) -> int | None:
        """The ticks of a value; None if it cannot be read."""
        try:
            ticks = self._counted(value) if self.regex is None else self._matched(value)
        except (ValueError, OverflowError):
            return None
        return ticks if ticks is not None and FIRST_TIMESTAMP <= ticks <= LAST_TIMESTAMP else None

    def _counted(self, value: Any) -> int | None:
        up, down = self.exact
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            return None
        if isinstance(value, float):
            return round(value * EPOCHS[self.text]) if math.isfinite(value) else None
        if isinstance(value, Decimal):
            return math.floor(value * up / down) if value.is_finite() and value.adjusted() < 30 else None
        return value * up // down

    def _matched(self, value: Any) -> int | None:
        assert self.regex is not None
        match = self.regex.fullmatch(value.strip(_BLANK)) if isinstance(value, str) else None
        if match is None:
            return None
        found = {name: text for name, text in match.groupdict().items() if text is not None}
        hour = int(found.get("hour", 0))
        if "half" in found:
            if not 1 <= int(found["half"]) <= 12:
                return None
            hour = int(found["half"]) % 12 + (12 if found["noon"].upper() == "PM" else 0)
        year = int(found["year"]) if "year" in found else 2000 + int(found.get("year2", 0))
        minute, second = int(found.get("minute", 0)), int(found.get("second", 0))
        time = dt.datetime(year, _month(found), int(found.get("day", 1)), hour, minute, second)
        seconds = days_of(time.year, time.month, time.day) * 86_400 + hour * 3600 + minute * 60 + second
        if "zone" in found:
            seconds -= offset_of(found["zone"], time.year, time.month, time.day, hour, minute, second)
        return seconds * SECOND + int(found.get("fraction", "0")[:6].ljust(6, "0"))


_BLANK = "".join(map(chr, range(0x21)))


def _month(found: dict[str, str]) -> int:
    if "name" not in found:
        return int(found.get("month", 1))
    return 1 + next(i for i, m in enumerate(_MONTHS) if m[:3].lower() == found["name"][:3].lower())


@lru_cache(maxsize=256)
def parse_format(text: str) -> TimeFormat:
    """The format of a text."""
    if not isinstance(text, str) or not text.strip():
        raise StreamError("A time format is a text.", got=repr(text), hint=_HINT)
    if text.startswith("epoch"):
        if text not in EPOCHS:
            raise StreamError("Unknown unit of an epoch.", got=repr(text), hint=f"one of {', '.join(EPOCHS)}")
        return TimeFormat(text, "", None)
    pattern = _from_strptime(text) if "%" in text else text
    regex, names = _regex(pattern, text)
    if not {"year", "year2"} & names:
        raise StreamError("A time format needs a year.", got=repr(text), hint=_HINT)
    if ("half" in names) != ("noon" in names):
        raise StreamError(
            "Hours of half a day need AM or PM.", got=repr(text), hint="'hh:mm a' or '%I:%M %p'; 'HH' or '%H' for 0-23"
        )
    return TimeFormat(text, pattern, re.compile(regex, re.IGNORECASE))


def _from_strptime(text: str) -> str:
    """Spark's pattern of one of `strptime`; single letters where widths may vary, two where digits meet digits."""
    parts: list[str] = []
    for part in re.findall(r"%.?|[A-Za-z'\[\]{}#]+|[^%]", text, re.DOTALL):
        if part[0] != "%":
            quoted = part[0].isalpha() or part[0] in "'[]{}#"
            parts.append("'" + part.replace("'", "''") + "'" if quoted else part)
        elif part in _STRPTIME:
            known = _STRPTIME[part]
            parts += [known] if known[0] in "['" else re.findall(r"[A-Za-z]+|[^A-Za-z]", known)
        else:
            raise StreamError("This part of the time format is not known.", got=f"{part} in {text!r}", hint=_HINT)
    for i, part in enumerate(parts):
        if part in _SINGLE and any(_is_digits(p) for p in (parts[i - 1 : i] + parts[i + 1 : i + 2])):
            parts[i] = part * 2
    return "".join(parts)


_SINGLE = frozenset("MdHhms")


def _is_digits(letters: str) -> bool:
    return letters[0] in "yuMdHhmsS" and letters not in ("MMM", "MMMM")


def _regex(pattern: str, given: str) -> tuple[str, set[str]]:
    """A regular expression for Spark's pattern, and the names of its groups."""
    result, names, i, depth, before = "", set[str](), 0, 0, "-"
    while i < len(pattern):
        char = pattern[i]
        if char == "'":
            quoted = re.match(r"'((?:[^']|'')*)'", pattern[i:])
            if quoted is None:
                raise StreamError("A quote in the time format does not end.", got=repr(given), hint=_HINT)
            result += re.escape(quoted.group(1).replace("''", "'") or "'")
            i, before = i + quoted.end(), "-"
            continue
        if pattern.startswith(_ANY_OFFSET, i) and "zone" not in names:
            result += "(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?"
            names.add("zone")
            i, before = i + len(_ANY_OFFSET), "-"
            continue
        if char in "[]":
            depth += 1 if char == "[" else -1
            result += "(?:" if char == "[" else ")?"
            if depth < 0:
                break
            i += 1
            continue
        if not char.isalpha():
            if char in "{}#":
                raise StreamError("A time format cannot have this sign.", got=f"{char} in {given!r}", hint=_HINT)
            result += re.escape(char)
            i, before = i + 1, "-"
            continue
        run = re.match(f"{char}+", pattern[i:])
        assert run is not None
        letters = run.group()
        digits = char == "S" and len(letters) < 10
        part = f"(?P<fraction>[0-9]{{1,{len(letters)}}})" if digits else _LETTERS.get(letters)
        name = re.match(r"\(\?P<(\w+)>", part or "")
        if part is None or name is None:
            raise StreamError("This part of the time format is not known.", got=f"{letters} in {given!r}", hint=_HINT)
        if name.group(1) in names:
            raise StreamError("The time format has a part twice.", got=f"{letters} in {given!r}", hint=_HINT)
        if _is_digits(letters) and _is_digits(before) and (letters in _SINGLE or before in _SINGLE):
            raise StreamError(
                "Numbers that meet in a time format need two digits each.",
                got=f"{before}{letters} in {given!r}",
                hint="for example 'yyyyMMdd'",
            )
        names.add(name.group(1))
        before = letters
        result += part
        i += len(letters)
    if depth:
        raise StreamError("A bracket in the time format has no partner.", got=repr(given), hint=_HINT)
    return result, names
