"""Arrow columns brought into a SQL type: what `convert` gives of each value, and what `text` reads of text.

Arrow's own casts are used where they give the same; where some value does not fit, values are taken one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.arrow_forms import midnights, settled
from penstock.model.convert import convert
from penstock.model.nested import recast
from penstock.model.reading import read_column, read_text
from penstock.model.schema import DATE, STRING, TIMESTAMP, DataType, from_arrow_type
from penstock.model.time_format import TimeFormat

_WHOLE_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_EPOCH_TEXT = DataType("decimal", 38, 9)


def cast_column(column: pa.ChunkedArray, type_: DataType) -> pa.ChunkedArray:
    """The column in its type, null where a value, or a part of one, does not fit."""
    found = from_arrow_type(column.type)
    if found is None:  # no value of it fits
        return pa.chunked_array([pa.nulls(len(column), type_.arrow)])
    if found.name == "void":
        return pa.chunked_array([pa.nulls(len(column), type_.arrow)])
    if found.is_nested:
        return _nested(column, found, type_)
    if type_.is_nested and found != STRING:
        return pa.chunked_array([pa.nulls(len(column), type_.arrow)])
    plain = settled(column, found)
    if found == type_:
        return plain
    if found == STRING:
        return read_column(plain, type_)
    if found == DATE and type_ == TIMESTAMP:
        return midnights(plain)
    if _casts_alike(found, type_):
        try:
            return pc.cast(plain, type_.arrow, safe=not type_.is_fractional)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass  # some value does not fit: one by one
    return _by_value([None if v is None else convert(v, type_) for v in _values(plain)], type_)


def _nested(column: pa.ChunkedArray, found: DataType, type_: DataType) -> pa.ChunkedArray:
    if found.name != type_.name:
        return pa.chunked_array([pa.nulls(len(column), type_.arrow)])
    stored = isinstance(column.type, pa.BaseExtensionType)
    chunks = [recast(chunk.storage if stored else chunk, type_, _part)[0] for chunk in column.chunks]
    return pa.chunked_array(chunks, type_.arrow)


def _part(column: pa.Array, type_: DataType) -> tuple[pa.Array, np.ndarray | None]:
    """A part of a nested column in its type, and where what was there does not fit."""
    cast = cast_column(pa.chunked_array([column]), type_).combine_chunks()
    made = cast if isinstance(cast, pa.Array) else cast.chunk(0)
    if made.null_count == column.null_count:
        return made, None
    return made, np.asarray(pc.and_(pc.is_valid(column), pc.is_null(made)).to_numpy(zero_copy_only=False), np.bool_)


def times_by_format(column: pa.ChunkedArray, form: TimeFormat) -> pa.ChunkedArray:
    """A column as timestamps, by a format; null where a value cannot be read."""
    found = from_arrow_type(column.type)
    if found is None or found.name == "void" or found.is_nested:
        return pa.chunked_array([pa.nulls(len(column), TIMESTAMP.arrow)])
    if form.is_epoch and found.is_integer:
        return _counted(pc.cast(settled(column, found), pa.int64()), form)
    return _by_value([time_by_format(v, form) for v in _values(settled(column, found))], TIMESTAMP)


def _counted(column: pa.ChunkedArray, form: TimeFormat) -> pa.ChunkedArray:
    """Whole numbers that count from the epoch; those beyond the calendar are null."""
    first, last = form.counts
    within = pc.and_(pc.greater_equal(column, first), pc.less_equal(column, last))
    up, down = form.exact
    ticks = pc.multiply(pc.if_else(within, column, pa.scalar(None, pa.int64())), up)
    if down > 1:
        whole = pc.divide(ticks, down)
        ticks = pc.subtract(whole, pc.cast(pc.less(ticks, pc.multiply(whole, down)), pa.int64()))
    return pc.cast(ticks, TIMESTAMP.arrow)


def time_by_format(value: Any, form: TimeFormat) -> int | None:
    """The ticks of one value; text is read as a number where the format counts."""
    if form.is_epoch and isinstance(value, str):
        value = read_text(value, _EPOCH_TEXT)
    return None if value is None else form.ticks(value)


def _by_value(values: list[Any], type_: DataType) -> pa.ChunkedArray:
    if type_ == TIMESTAMP:
        return pa.chunked_array([pa.array(values, pa.int64()).cast(type_.arrow)])
    return pa.chunked_array([pa.array(values, type_.arrow)])


def _values(column: pa.ChunkedArray) -> list[Any]:
    return list(column.to_pylist())


def _casts_alike(source: DataType, target: DataType) -> bool:
    """Whether Arrow's cast of a column gives what `convert` gives of each value; Arrow would turn numbers into text."""
    if target.is_decimal:
        # Where digits can be lost Arrow does not always notice: 99999.0000 becomes another number in decimal(38,38).
        whole = _WHOLE_DIGITS.get(source.name, source.precision - source.scale)
        exact = source.is_decimal or source.is_integer
        return exact and target.scale >= source.scale and target.precision - target.scale >= whole
    if source.is_integer:
        return target.is_integer or target.is_fractional
    return source.is_fractional and target.is_fractional
