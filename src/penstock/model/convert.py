"""Single values brought into a SQL type: what Python, numpy and pandas have for it.

Nothing is guessed: a number is no text, text is no number (files are read by `model.text`), only text in a timestamp is
read, as the same text in a file would be. Timestamps become ticks, rounded down to a microsecond; one outside of the
years 1 to 9999 does not fit. Missing values of numpy and pandas (NaT, NA) are nulls.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from ctypes import c_float
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import numpy as np

from penstock.model.reading import read_text
from penstock.model.schema import TIMESTAMP, DataType
from penstock.model.time import DAY, FIRST_TIMESTAMP, LAST_TIMESTAMP, to_ticks
from penstock.model.values import canonical

_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()


def is_missing(value: object) -> bool:
    """Whether a value stands for null: None, NaT, NA; not NaN, which is a number."""
    if value is None:
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return type(value).__name__ in ("NaTType", "NAType") and (type(value).__module__ or "").startswith("pandas")


def plain(value: Any) -> Any:
    """A value of numpy as Python has it, a missing one as None; datetime64 stays, since datetimes hold less."""
    if is_missing(value):
        return None
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        return value.item()
    return value


def convert(value: Any, type_: DataType) -> object:
    """The value in its type, timestamps as ticks; None if it does not fit."""
    try:
        return _convert(plain(value) if isinstance(value, np.generic) else value, type_)
    except (ValueError, InvalidOperation, OverflowError, TypeError):
        return None


def _convert(value: Any, type_: DataType) -> object:
    match type_.name:
        case "timestamp":
            return _timestamp(value)
        case "boolean":
            return value if isinstance(value, bool) else None
        case "string":
            return value if isinstance(value, str) and (value.isascii() or encodable(value)) else None
        case "binary":
            return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else None
        case "date":
            return value if isinstance(value, dt.date) and not isinstance(value, dt.datetime) else None
        case "decimal":
            if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
                return None
            return exact_decimal(Decimal(value), type_)
        case "float" | "double":
            if isinstance(value, bool) or not isinstance(value, int | float):
                return None
            return float(value) if type_.name == "double" else single(float(value))
        case "void":
            return None
        case "array" | "struct" | "map":
            return _nested(value, type_)
        case _:
            fits = isinstance(value, int) and not isinstance(value, bool)
            return value if fits and -(1 << (type_.bits - 1)) <= value < 1 << (type_.bits - 1) else None


def _nested(value: Any, type_: DataType) -> object:
    """Lists and the like as arrays, mappings as structs or maps; so are tuples of fields, and of pairs.

    A field that a mapping has not is null, one that the struct has not does not count. No map has a key twice, or null.
    """
    if type_.name == "array":
        if isinstance(value, np.ndarray) and value.ndim == 1:
            value = value.tolist() if value.dtype.kind not in "mM" else list(value)
        fits = isinstance(value, list | tuple)
        return _parts(value, [type_.element] * len(value)) if fits else None
    if type_.name == "struct":
        if isinstance(value, Mapping):
            value = tuple([value.get(name) for name, _ in type_.parts])
        fits = isinstance(value, tuple) and len(value) == len(type_.parts)
        return _parts(value, [kind for _, kind in type_.parts]) if fits else None
    pairs = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(pairs, list | tuple) or not all(isinstance(p, tuple) and len(p) == 2 for p in pairs):
        return None
    made = [_parts(pair, [kind for _, kind in type_.parts]) for pair in pairs]
    keys = {canonical(pair[0]) for pair in made if pair is not None and pair[0] is not None}
    return tuple(made) if len(keys) == len(made) else None


def _parts(values: Sequence[Any], types: Sequence[DataType]) -> tuple[object, ...] | None:
    """Every part in its type; None if one does not fit. A time may be ticks already, as in rows that came out."""
    made: list[object] = []
    for value, type_ in zip(values, types, strict=True):
        if is_missing(value):
            made.append(None)
            continue
        is_ticks = type_ == TIMESTAMP and type(value) is int and FIRST_TIMESTAMP <= value <= LAST_TIMESTAMP
        made.append(value if is_ticks else convert(value, type_))
        if made[-1] is None:
            return None
    return tuple(made)


def _timestamp(value: Any) -> object:
    if isinstance(value, str):
        return read_text(value, TIMESTAMP)
    if isinstance(value, dt.datetime):
        return to_ticks(value) if value == value else None  # noqa: PLR0124 - NaT is a datetime, and equal to nothing
    if isinstance(value, dt.date):
        return (value.toordinal() - _EPOCH_DAY) * DAY
    if isinstance(value, np.datetime64):
        ticks = _numpy_ticks(value)
        return ticks if ticks is not None and FIRST_TIMESTAMP <= ticks <= LAST_TIMESTAMP else None
    return None


_NUMPY_UNITS = {
    "W": (7 * DAY, 1), "D": (DAY, 1), "h": (DAY // 24, 1), "m": (60_000_000, 1), "s": (1_000_000, 1), "ms": (1000, 1),
    "us": (1, 1), "ns": (1, 1000), "ps": (1, 10**6), "fs": (1, 10**9), "as": (1, 10**12),
}  # fmt: skip


def _numpy_ticks(value: np.datetime64) -> int | None:
    if np.isnat(value):
        return None
    unit, step = np.datetime_data(value.dtype)
    if unit in ("Y", "M"):
        months = int(value.astype("int64")) * step * (12 if unit == "Y" else 1)
        year, month = 1970 + months // 12, months % 12 + 1
        return (dt.date(year, month, 1).toordinal() - _EPOCH_DAY) * DAY if 1 <= year <= 9999 else None
    if unit not in _NUMPY_UNITS:
        return None
    up, down = _NUMPY_UNITS[unit]
    return int(value.astype("int64")) * step * up // down


def encodable(text: str) -> bool:
    """Whether text can be written as UTF-8: a lone surrogate, which JSON can spell, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_WIDE = Context(prec=100)


def exact_decimal(value: Decimal, type_: DataType) -> Decimal | None:
    """The value with the type's scale, if it has no more digits than that on either side of the point."""
    if not value.is_finite() or value.adjusted() > 60:
        return None
    scaled = _WIDE.quantize(value, Decimal(1).scaleb(-type_.scale))
    fits = scaled == value and (not scaled or scaled.adjusted() < type_.precision - type_.scale)
    return scaled if fits else None


def single(value: float) -> float:
    """The nearest number of single precision; beyond its range that is an infinity, whatever warnings are set to."""
    return c_float(value).value
