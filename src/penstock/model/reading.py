"""Text read into a type, as in files: what `CAST(text AS type)` means in Spark's ANSI SQL, on every engine.

Numbers and times are read by `model.text`. A decimal is rounded half up to its scale. A date may leave out day and
month, and a time of day after it does not count. Three things differ from Spark's cast: a time of day alone is no
timestamp, a date or timestamp outside of the years 1 to 9999 is none, and bytes are base64, as Spark's JSON has them,
since text cannot hold any bytes. Nested types are read from JSON, as members of a line are.

A column is read as a whole where all of its values have the plainest form, and value by value otherwise.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.nested import column_of
from penstock.model.text import read_bytes, read_double, read_timestamp, read_whole
from penstock.model.time import FIRST_TIMESTAMP, LAST_TIMESTAMP, to_ticks
from penstock.model.types import NESTED, DataType

BLANK = "".join(map(chr, range(0x21)))
_BLANK_AND_DELETE = BLANK + "\x7f"
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?")
_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_DATE = re.compile(r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)


def read_text(text: str, type_: DataType) -> object:
    """The value of a text, timestamps as ticks; None if it is none of the type."""
    try:
        return _READERS[type_.name](text, type_) if type_.name in _READERS else _whole(text, type_)
    except (ValueError, ArithmeticError):
        return None


def _whole(text: str, type_: DataType) -> int | None:
    value = read_whole(text)
    limit = 1 << (type_.bits - 1)
    return value if -limit <= value < limit else None


def _float(text: str, type_: DataType) -> float:
    value = read_double(text)
    if not math.isfinite(value):
        return value
    with np.errstate(all="ignore"):
        single = np.float32(value)
        if float(single) != value:
            single = _nearest(single, value, text)
    return float(single)


def _nearest(single: np.float32, value: float, text: str) -> np.float32:
    """Rounding twice can miss the nearest where the double lies in the middle of two singles."""
    other = np.nextafter(single, np.float32(math.copysign(math.inf, value - float(single))))
    bare = text.strip(BLANK).rstrip("dDfF")
    if not math.isfinite(other) or float(single) + float(other) != 2 * value or "x" in bare.lower():
        return single
    exact, middle = Decimal(bare), Decimal(value)
    if exact == middle:
        return single
    low, high = sorted((single, other))
    return np.float32(low if exact < middle else high)


def _boolean(text: str, type_: DataType) -> bool | None:
    bare = text.strip(_BLANK_AND_DELETE).lower()
    return True if bare in _TRUE else False if bare in _FALSE else None


class Number(str):
    """The text of a JSON number."""

    __slots__ = ()


def read_json(text: str, type_: DataType) -> object:
    """The value of a text that is JSON, parts of it read as a member of a line of JSON is."""
    try:
        value = json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number)
    except RecursionError:
        return None
    return None if isinstance(value, Number | bool) else _member(value, type_)


def _member(value: Any, type_: DataType) -> object:
    """A value of JSON in a type; None if it is none, also where a part of it is none."""
    if not type_.is_nested:
        return read_text(member_text(value), type_)
    if type_.name == "array":
        given = [(inner, type_.element) for inner in value] if isinstance(value, list) else None
    elif not isinstance(value, dict):
        given = None
    elif type_.name == "struct":
        given = [(value.get(name), kind) for name, kind in type_.parts]
    else:
        (_, key), (_, kind) = type_.parts
        pairs = [(read_text(k, key), None if v is None else _member(v, kind), v) for k, v in value.items()]
        right = all(k is not None and (v is None) == (was is None) for k, v, was in pairs)
        return tuple([(k, v) for k, v, _ in pairs]) if right and len({k for k, _, _ in pairs}) == len(pairs) else None
    if given is None:
        return None
    made = [None if inner is None else _member(inner, kind) for inner, kind in given]
    right = all((was is None) == (now is None) for (was, _), now in zip(given, made, strict=True))
    return tuple(made) if right else None


def member_text(value: Any) -> str:
    """A value of JSON as text: text as it is, numbers and booleans as they are written, what is nested as JSON."""
    if isinstance(value, str):  # a Number is one
        return str(value)
    if isinstance(value, dict):
        inside = [f"{json.dumps(k, ensure_ascii=False)}:{_written(v)}" for k, v in value.items()]
        return "{" + ",".join(inside) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _written(value: Any) -> str:
    is_text = isinstance(value, str) and not isinstance(value, Number)
    return json.dumps(value, ensure_ascii=False) if is_text else member_text(value)


_WIDE = Context(prec=200)


def _decimal(text: str, type_: DataType) -> Decimal | None:
    bare = text.strip(BLANK)
    if not _DECIMAL.fullmatch(bare):
        return None
    value = _WIDE.create_decimal(bare)
    whole = type_.precision - type_.scale
    if value and value.adjusted() >= whole:
        return None
    if value and value.adjusted() < -type_.scale - 1:
        value = Decimal(0)
    scaled = value.quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP, _WIDE)
    if not scaled:
        return abs(scaled)  # there is no negative zero
    return scaled if scaled.adjusted() < whole else None


def _date(text: str, type_: DataType) -> dt.date | None:
    match = _DATE.fullmatch(text.strip(_BLANK_AND_DELETE))
    if match is None:
        return None
    year, month, day = match.groups()
    return dt.date(int(year), int(month or 1), int(day or 1))


def _timestamp(text: str, type_: DataType) -> int | None:
    if len(text) == 19 and text[10] in " T" and text[4] == text[7] == "-" and text[13] == text[16] == ":":
        return to_ticks(dt.datetime.fromisoformat(text))  # the plainest form, by the quickest way
    ticks = read_timestamp(text)
    return ticks if FIRST_TIMESTAMP <= ticks <= LAST_TIMESTAMP else None


_READERS: dict[str, Callable[[str, DataType], object]] = {
    "string": lambda text, type_: text,
    "binary": lambda text, type_: read_bytes(text),
    "double": lambda text, type_: read_double(text),
    "float": _float,
    "boolean": _boolean,
    "decimal": _decimal,
    "date": _date,
    "timestamp": _timestamp,
    "void": lambda text, type_: None,
    **dict.fromkeys(NESTED, read_json),
}


# Columns

_PLAIN_WHOLE = r"^-?[0-9]{1,18}$"
_PLAIN_FRACTION = r"^-?[0-9]{1,17}(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?$"
_PLAIN_TIMESTAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"


def read_column(column: pa.ChunkedArray, type_: DataType) -> pa.ChunkedArray:
    """A column of text in its type, null where a text is none of the type."""
    if type_.name == "string":
        return column
    quick = read_plainly(column, type_)
    if quick is not None:
        return quick
    values = [None if v is None else read_text(v, type_) for v in column.to_pylist()]
    return pa.chunked_array([column_of(values, type_)])


def read_plainly(column: pa.ChunkedArray, type_: DataType) -> pa.ChunkedArray | None:
    """The column by Arrow's own casts, which read the plainest forms alike; None if some value needs a closer look."""
    try:
        if type_.is_integer and _all(column, _PLAIN_WHOLE):
            return column.cast(type_.arrow)
        if type_.is_fractional and _all(column, _PLAIN_FRACTION):
            return column.cast(type_.arrow)
        if type_.name == "timestamp":
            bare = pc.utf8_rtrim(column, "Z") if _all(column, _PLAIN_TIMESTAMP[:-1] + "Z$") else column
            if _all(bare, _PLAIN_TIMESTAMP):
                ticks = bare.cast(pa.timestamp("us")).cast(pa.int64())
                return ticks.cast(type_.arrow) if _within(ticks) else None
    except pa.ArrowInvalid:
        return None
    return None


def _all(column: pa.ChunkedArray, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(column, pattern), skip_nulls=True).as_py() is not False


def _within(ticks: pa.ChunkedArray) -> bool:
    extent = pc.min_max(ticks).as_py()
    return extent["min"] is None or (extent["min"] >= FIRST_TIMESTAMP and extent["max"] <= LAST_TIMESTAMP)
