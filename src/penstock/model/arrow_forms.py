"""Arrow columns in the form that SQL types have: one Arrow type per SQL type, and only values that the type can have.

Dictionaries, run ends and extensions are decoded, text and bytes of every layout become plain ones, unsigned integers
and half floats wider. A timestamp of any unit becomes microseconds, rounded down; a duration likewise. What the SQL
type cannot have is null afterwards: a timestamp or date outside of the years 1 to 9999, a duration beyond int64, text
that is not UTF-8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.schema import DataType
from penstock.model.time import DAY, FIRST_TIMESTAMP, LAST_TIMESTAMP, MIN_TICK

_UNITS = {"s": (1_000_000, 1), "ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}
_TICKS = pa.timestamp("us", tz="UTC")


def settled(column: pa.ChunkedArray, type_: DataType) -> pa.ChunkedArray:
    """A column whose SQL type is `type_` (see `from_arrow_type`) in that type's Arrow form."""
    arrow = column.type
    if isinstance(arrow, pa.BaseExtensionType):
        stored = [chunk.storage for chunk in column.chunks]
        return settled(pa.chunked_array(stored, arrow.storage_type), type_)
    if pa.types.is_dictionary(arrow):
        parts = [_settled_array(chunk.dictionary, type_).take(chunk.indices) for chunk in column.chunks]
        return pa.chunked_array(parts, type_.arrow)
    if pa.types.is_run_end_encoded(arrow):
        plain = [pc.run_end_decode(chunk) for chunk in column.chunks]
        return settled(pa.chunked_array(plain, arrow.value_type), type_)
    match type_.name:
        case "timestamp":
            return _timestamps(column)
        case "date":
            return _dates(column)
        case "bigint" if pa.types.is_duration(arrow):
            return _scaled(column, arrow.unit, MIN_TICK, -MIN_TICK - 1)
        case "string":
            return _text(column)
        case "void":
            return column
        case _:
            return column if arrow == type_.arrow else column.cast(type_.arrow)


def _settled_array(values: pa.Array, type_: DataType) -> pa.Array:
    return settled(pa.chunked_array([values]), type_).combine_chunks()


def _timestamps(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.type == _TICKS and _within(column.cast(pa.int64()), FIRST_TIMESTAMP, LAST_TIMESTAMP):
        return column
    ticks = _scaled(column, column.type.unit, FIRST_TIMESTAMP, LAST_TIMESTAMP)
    return ticks.cast(_TICKS)


def _scaled(column: pa.ChunkedArray, unit: str, first: int, last: int) -> pa.ChunkedArray:
    """A count of units as microseconds, rounded down; null where that is not between the two."""
    up, down = _UNITS[unit]
    counts = column.cast(pa.int64())
    low, high = -(-first // up) * down, (last // up) * down + down - 1
    if down > 1:  # every int64 of nanoseconds is within int64 of microseconds
        low, high = max(low, MIN_TICK), min(high, -MIN_TICK - 1)
    if not _within(counts, low, high):
        fits = pc.and_(pc.greater_equal(counts, low), pc.less_equal(counts, high))
        counts = pc.if_else(fits, counts, pa.scalar(None, pa.int64()))
    if up == down:
        return counts
    if down == 1:
        return pc.multiply(counts, up)
    plain = counts.fill_null(0).to_numpy() // down
    return pa.chunked_array([pa.array(plain, pa.int64(), mask=_nulls(counts))])


def _nulls(column: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(pc.is_null(column).to_numpy(), bool)


def _within(counts: pa.ChunkedArray, low: int, high: int) -> bool:
    extent = pc.min_max(counts).as_py()
    return extent["min"] is None or (extent["min"] >= low and extent["max"] <= high)


def _dates(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_date64(column.type):
        milliseconds = column.cast(pa.int64())
        low, high = FIRST_TIMESTAMP // 1000, LAST_TIMESTAMP // 1000
        fits = pc.and_(pc.greater_equal(milliseconds, low), pc.less_equal(milliseconds, high))
        kept = pc.if_else(fits, milliseconds, pa.scalar(None, pa.int64()))
        days = kept.fill_null(0).to_numpy() // 86_400_000
        return pa.chunked_array([pa.array(days.astype(np.int32), pa.int32(), mask=_nulls(kept))]).cast(pa.date32())
    days = column.cast(pa.int32())
    low, high = FIRST_TIMESTAMP // DAY, LAST_TIMESTAMP // DAY
    if _within(days, low, high):
        return column
    fits = pc.and_(pc.greater_equal(days, low), pc.less_equal(days, high))
    return pc.if_else(fits, days, pa.scalar(None, pa.int32())).cast(pa.date32())


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_null(column.type):
        return column.cast(pa.string())
    plain = column
    if column.type != pa.string():
        plain = column.cast(pa.binary() if pa.types.is_string_view(column.type) else pa.string())
        plain = plain.cast(pa.string()) if plain.type != pa.string() else plain
    try:
        plain.validate(full=True)
    except pa.ArrowInvalid:
        return pa.chunked_array([pa.array([_decoded(v) for v in plain.cast(pa.binary()).to_pylist()], pa.string())])
    return plain


def _decoded(value: bytes | None) -> str | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def midnights(dates: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates as timestamps."""
    return pc.multiply(dates.cast(pa.int32()).cast(pa.int64()), DAY).cast(_TICKS)


def shown(scalar: pa.Scalar) -> Any:
    """A value for a person, also where Python has none for it."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):  # bytes that are no text are a ValueError as well
        pass
    t = pa.types
    if isinstance(scalar.type, pa.BaseExtensionType) or t.is_dictionary(scalar.type):
        return shown(scalar.value)
    if t.is_string(scalar.type) or t.is_large_string(scalar.type) or t.is_string_view(scalar.type):
        return bytes(scalar.as_buffer()).decode("utf-8", "backslashreplace")
    if t.is_temporal(scalar.type):
        width = pa.int32() if scalar.type.bit_width == 32 else pa.int64()
        return f"{scalar.cast(width).as_py()} as {scalar.type}"
    return f"a value of {scalar.type}"
