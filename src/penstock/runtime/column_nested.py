"""Functions of arrays, maps and structs as Arrow computations over whole columns.

Parts of nested values are columns of their own, so taking one out costs no loop over rows. What needs a look at single
values (a place that differs from row to row, an element that is not there, a value that is NaN) goes by rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.nested import put_together, taken_apart
from penstock.model.types import DataType
from penstock.plan.expressions import Call, Literal
from penstock.runtime.column_scalars import ColumnFunction, Form, NotColumnar, Parts


def _constant(call: Call, at: int) -> Any:
    argument = call.args[at]
    return argument.value if isinstance(argument, Literal) else None


def _array(column: Any) -> pa.Array:
    """One array of a column."""
    if isinstance(column, pa.Scalar):
        raise NotColumnar
    made = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(made, pa.ChunkedArray):  # more than one array can hold
        raise NotColumnar
    return made


def _field(call: Call, parts: Parts) -> ColumnFunction | None:
    at = _constant(call, 1)
    return lambda table: pc.struct_field(parts[0](table), [at])


def _size(call: Call, parts: Parts) -> ColumnFunction | None:
    def apply(table: pa.Table) -> Any:
        column = _array(parts[0](table))
        lengths, _ = taken_apart(column)
        missing = np.asarray(pc.is_null(column).to_numpy(zero_copy_only=False), np.bool_)
        return pa.array(lengths.astype(np.int32), pa.int32(), mask=missing)

    return apply


def _place(base: int, *, must_be_there: bool) -> Form:
    """The element at a constant place, counted from the front."""

    def form(call: Call, parts: Parts) -> ColumnFunction | None:
        place = _constant(call, 1)
        if not isinstance(place, int) or place < base:
            return None

        def apply(table: pa.Table) -> Any:
            column = _array(parts[0](table))
            lengths, inside = taken_apart(column)
            there = lengths > place - base
            valid = np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False), np.bool_)
            if must_be_there and bool((valid & ~there).any()):
                raise NotColumnar  # by rows the error says which
            starts = np.cumsum(lengths) - lengths
            return inside.take(pa.array(starts + (place - base), pa.int64(), mask=~there))

        return apply

    return form


def _map_value(call: Call, parts: Parts) -> ColumnFunction | None:
    key, kind = _constant(call, 1), call.args[1].type
    if key is None or kind.is_nested or kind.name == "timestamp" or kind != call.args[0].type.parts[0][1]:
        return None
    if isinstance(key, float) and math.isnan(key):
        return None
    wanted = pa.scalar(key, kind.arrow)

    def apply(table: pa.Table) -> Any:
        column = _array(parts[0](table))
        lengths, inside = taken_apart(column)
        keys, values = inside.flatten()
        found = np.flatnonzero(np.asarray(pc.equal(keys, wanted).to_numpy(zero_copy_only=False), np.bool_))
        owners = np.repeat(np.arange(len(column)), lengths)[found]
        places, missing = np.zeros(len(column), np.int64), np.ones(len(column), np.bool_)
        places[owners], missing[owners] = found, False
        return values.take(pa.array(places, pa.int64(), mask=missing))

    return apply


def _contains(call: Call, parts: Parts) -> ColumnFunction | None:
    value, kind = _constant(call, 1), call.args[1].type
    if value is None or kind.is_nested or kind.is_fractional or kind.name == "timestamp":
        return None
    if kind != call.args[0].type.element:
        return None
    wanted = pa.scalar(value, kind.arrow)

    def apply(table: pa.Table) -> Any:
        column = _array(parts[0](table))
        lengths, inside = taken_apart(column)
        owners = np.repeat(np.arange(len(column)), lengths)
        found, unknown = np.zeros(len(column), np.bool_), np.zeros(len(column), np.bool_)
        found[owners[np.asarray(pc.fill_null(pc.equal(inside, wanted), False).to_numpy(zero_copy_only=False))]] = True
        unknown[owners[np.asarray(pc.is_null(inside).to_numpy(zero_copy_only=False))]] = True
        missing = np.asarray(pc.is_null(column).to_numpy(zero_copy_only=False), np.bool_)
        return pa.array(found, pa.bool_(), mask=missing | (unknown & ~found))

    return apply


def _of_entries(which: int) -> Form:
    """All keys, or all values."""

    def form(call: Call, parts: Parts) -> ColumnFunction | None:
        def apply(table: pa.Table) -> Any:
            column = _array(parts[0](table))
            lengths, inside = taken_apart(column)
            return put_together(call.type, lengths, [inside.flatten()[which]], pc.is_null(column))

        return apply

    return form


def _made(put: Callable[[DataType, list[pa.Array]], pa.Array]) -> Form:
    """A value made of columns."""

    def form(call: Call, parts: Parts) -> ColumnFunction | None:
        kinds = [a.type for a in call.args]

        def apply(table: pa.Table) -> Any:
            columns = [_long(p(table), table.num_rows, kind) for p, kind in zip(parts, kinds, strict=True)]
            return put(call.type, columns)

        return apply if parts else None

    return form


def _long(column: Any, count: int, type_: DataType) -> pa.Array:
    if isinstance(column, pa.Scalar):
        return pa.nulls(count, type_.arrow) if not column.is_valid else pa.repeat(column, count)
    return _array(column)


def _struct(type_: DataType, columns: list[pa.Array]) -> pa.Array:
    return pa.StructArray.from_arrays(columns, fields=list(type_.arrow))


NESTED_FORMS: dict[str, Form] = {
    "field": _field,
    "size": _size,
    "item": _place(0, must_be_there=True),
    "get": _place(0, must_be_there=False),
    "element_at": _place(1, must_be_there=True),
    "try_element_at": _place(1, must_be_there=False),
    "map_value": _map_value,
    "array_contains": _contains,
    "map_keys": _of_entries(0),
    "map_values": _of_entries(1),
    "struct": _made(_struct),
}
ALWAYS_THERE = frozenset(NESTED_FORMS) - {"item", "element_at", "try_element_at"}
"""Those that have a value for all values of their arguments."""
