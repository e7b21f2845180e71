"""Values of nested types as rows and as Arrow columns.

In a row an array is a tuple of its elements, a struct a tuple of its fields in the type's order, a map a tuple of pairs
in the order in which its entries came; times in them are ticks. So they are plain data and can be keys like any other
value; what a tuple is, its type tells. Users are given lists and dictionaries instead.

A column is taken apart into the columns of its parts, so that the cost is a few array operations per level of the type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.plain import decode, encode
from penstock.model.time import from_ticks
from penstock.model.types import DataType
from penstock.model.values import canonical

Cast = Callable[[pa.Array, DataType], tuple[pa.Array, np.ndarray | None]]
"""A column in a type, and where a value that was there does not fit."""


# From columns to rows


def values_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column as rows have them."""
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in values_of(chunk)]
    type_ = column.type
    if pa.types.is_timestamp(type_):
        ticks = column if type_.unit == "us" else pc.cast(column, pa.timestamp("us", tz=type_.tz))
        return list(pc.cast(ticks, pa.int64()).to_pylist())
    if pa.types.is_struct(type_):
        fields = [values_of(part) for part in column.flatten()]
        rows: list[Any] = list(zip(*fields, strict=True))
        return _without(rows, column)
    if is_list(type_) or pa.types.is_map(type_):
        lengths, inside = taken_apart(column)
        flat = values_of(inside)
        ends = list(accumulate(lengths.tolist(), initial=0))
        rows = [tuple(flat[lo:hi]) for lo, hi in pairwise(ends)]
        return _without(rows, column)
    return list(column.to_pylist())


def is_list(arrow: pa.DataType) -> bool:
    """Whether it is a list of any layout."""
    t = pa.types
    return bool(t.is_list(arrow) or t.is_large_list(arrow) or t.is_fixed_size_list(arrow))


def _without(rows: list[Any], column: pa.Array) -> list[Any]:
    """The values with None where the column is null."""
    if not column.null_count:
        return rows
    return [row if valid else None for row, valid in zip(rows, pc.is_valid(column).to_pylist(), strict=True)]


def taken_apart(column: pa.Array) -> tuple[np.ndarray, pa.Array]:
    """How many elements each list or map has, none where it is null, and all elements; entries of a map are structs."""
    if pa.types.is_map(column.type):
        entry = pa.struct([pa.field("key", column.type.key_type, False), pa.field("value", column.type.item_type)])
        column = column.cast(pa.list_(pa.field("entries", entry, False)))
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    return np.asarray(lengths, np.int64), column.flatten()


# From rows to columns


def column_of(values: Sequence[Any], type_: DataType) -> pa.Array:
    """The Arrow column of values as rows have them."""
    if type_.name == "timestamp":
        return pc.cast(pa.array(values, pa.int64()), type_.arrow)
    if not type_.is_nested:
        return pa.array(values, type_.arrow)
    missing = pa.array([value is None for value in values], pa.bool_())
    if type_.name == "struct":
        empty = (None,) * len(type_.parts)
        columns = list(zip(*[empty if value is None else value for value in values], strict=True)) or [()] * len(empty)
        parts = [column_of(part, kind) for part, (_, kind) in zip(columns, type_.parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(type_.arrow), mask=missing)
    lengths = [0 if value is None else len(value) for value in values]
    flat = [inner for value in values if value is not None for inner in value]
    return put_together(type_, np.array(lengths, np.int64), _inside(flat, type_), missing)


def _inside(flat: list[Any], type_: DataType) -> list[pa.Array]:
    """The columns of all elements, or of all keys and all values."""
    if type_.name == "array":
        return [column_of(flat, type_.element)]
    pairs = list(zip(*flat, strict=True)) or [(), ()]
    return [column_of(part, kind) for part, (_, kind) in zip(pairs, type_.parts, strict=True)]


def put_together(type_: DataType, lengths: np.ndarray, inside: list[pa.Array], missing: pa.Array) -> pa.Array:
    """Lists or maps of so many elements each, null where they are missing."""
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())
    mask = missing if pc.any(missing).as_py() else None
    if type_.name == "array":
        return pa.ListArray.from_arrays(offsets, inside[0], type=type_.arrow, mask=mask)
    return pa.MapArray.from_arrays(offsets, inside[0], inside[1], type=type_.arrow, mask=mask)


# As bytes


def column_of_bytes(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Nested values as bytes, the same for values that are one value: what tables of keys go by."""
    encoded = [None if value is None else encode(canonical(value)) for value in values_of(column)]
    return pa.array(encoded, pa.binary())


def column_from_bytes(column: pa.Array, type_: DataType) -> pa.Array:
    """The nested values of such bytes."""
    return column_of([None if data is None else decode(data, "key") for data in column.to_pylist()], type_)


# From columns of another layout


def recast(column: pa.Array, type_: DataType, cast: Cast) -> tuple[pa.Array, np.ndarray | None]:
    """A nested column in a nested type of its kind, its parts brought there by `cast`; and where some part misfits.

    Fields of a struct are found by name; one that the column has not is null, as a column that an input has not.
    """
    if type_.name == "struct":
        return _recast_struct(column, type_, cast)
    lengths, inside = taken_apart(column)
    given = [inside] if type_.name == "array" else inside.flatten()
    made, misfits = [], []
    for part, (_, kind) in zip(given, type_.parts, strict=True):
        fitted, wrong = cast(part, kind)
        made.append(fitted)
        misfits += [] if wrong is None else [wrong]
    missing = pc.is_null(column)
    if misfits:
        owners = np.repeat(np.arange(len(column)), lengths)
        lost = np.zeros(len(column), np.bool_)
        lost[owners[np.logical_or.reduce(misfits)]] = True
        if type_.name == "map":  # a key that does not fit is null now, and no map can have it
            kept = ~lost[owners]
            made = [part.filter(pa.array(kept)) for part in made]
            lengths = np.where(lost, 0, lengths)
        return put_together(type_, lengths, made, pc.or_(missing, pa.array(lost))), lost
    return put_together(type_, lengths, made, missing), None


def _recast_struct(column: pa.Array, type_: DataType, cast: Cast) -> tuple[pa.Array, np.ndarray | None]:
    parts = dict(zip([field.name for field in column.type], column.flatten(), strict=True))
    made, lost = [], np.zeros(len(column), np.bool_)
    for name, kind in type_.parts:
        if name not in parts:
            made.append(pa.nulls(len(column), kind.arrow))
            continue
        fitted, wrong = cast(parts[name], kind)
        made.append(fitted)
        if wrong is not None:
            lost |= wrong
    missing = pc.or_(pc.is_null(column), pa.array(lost))
    return pa.StructArray.from_arrays(made, fields=list(type_.arrow), mask=missing), lost if lost.any() else None


# For people


def shown_as(value: Any, type_: DataType) -> Any:
    """A value as a user would write it: lists and dictionaries, times as datetimes."""
    if value is None:
        return None
    match type_.name:
        case "timestamp":
            return _moment(value)
        case "array":
            return [shown_as(inner, type_.element) for inner in value]
        case "struct":
            return {name: shown_as(inner, kind) for inner, (name, kind) in zip(value, type_.parts, strict=True)}
        case "map":
            (_, key), (_, kind) = type_.parts
            return {_as_key(shown_as(k, key)): shown_as(v, kind) for k, v in value}
        case _:
            return value


def _as_key(value: Any) -> Any:
    """What can be the key of a dictionary."""
    if isinstance(value, list):
        return tuple(_as_key(inner) for inner in value)
    return tuple((k, _as_key(v)) for k, v in value.items()) if isinstance(value, dict) else value


def _moment(ticks: int) -> object:
    """A tick as a datetime, or as text where the calendar has ended."""
    try:
        return from_ticks(ticks)
    except OverflowError:
        return f"{ticks} us"
