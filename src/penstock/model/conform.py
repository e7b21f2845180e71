"""Input brought into a stream's schema; what cannot be is a dead letter with its reason.

A row with a null or unreadable time, or with a value of the wrong type, takes no part in any query and is kept as text.
Naive timestamps are UTC. Text in a time column is read as ISO 8601. Rows and tables are judged alike, except that a
column of text in a table is read into its type, as in CSV.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Batch, Row, present
from penstock.model.schema import STRING, DataType, Field, Schema, from_arrow_type
from penstock.model.time import to_ticks


@dataclass(frozen=True)
class DeadLetter:
    """A row that could not be used: why, and the row as text."""

    reason: str
    row: str


def as_json(values: Mapping[str, object]) -> str:
    """A row as one line of JSON; what JSON has not is text."""
    return json.dumps(values, default=_jsonable, ensure_ascii=False)


def _jsonable(value: object) -> object:
    if isinstance(value, dt.datetime):
        return value.isoformat()
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def row_json(schema: Schema, row: Row) -> str:
    """A row of a schema as one line of JSON."""
    return as_json(present(schema, row))


class Misfit(Exception):
    """A value does not fit its type."""


def conform_rows(schema: Schema, rows: Sequence[Mapping[str, object]]) -> tuple[Batch, list[DeadLetter]]:
    """Rows given by name, value by value."""
    good: list[Row] = []
    dead: list[DeadLetter] = []
    fields = schema.fields
    for given in rows:
        try:
            row = tuple([_value(given.get(f.name), f) for f in fields])
            _require_time(schema, row)
        except Misfit as misfit:
            dead.append(DeadLetter(str(misfit), as_json(dict(given))))
        else:
            good.append(row)
    return Batch(schema, good), dead


def conform_row(schema: Schema, row: object) -> Row | DeadLetter:
    """One row given as a tuple in the order of the schema; a time may be ticks already."""
    if not isinstance(row, tuple) or len(row) != len(schema):
        return DeadLetter(f"not a tuple of {len(schema)} values", repr(row))
    try:
        ready = [
            v if f.type.name == "timestamp" and type(v) is int else _value(v, f)
            for v, f in zip(row, schema.fields, strict=True)
        ]
        _require_time(schema, ready)
    except Misfit as misfit:
        return DeadLetter(str(misfit), as_json(dict(zip(schema.names, row, strict=True))))
    return tuple(ready)


def _require_time(schema: Schema, row: Sequence[object]) -> None:
    if schema.time is not None and row[schema.time_index] is None:
        raise Misfit(f"{schema.time} is null")


def fits_text(name: str, type_: DataType) -> str:
    """Python text that tells whether the variable `name` is a value of the type as it is; it may deny, never err."""
    plain = {"timestamp": "int", "double": "float", "string": "str", "boolean": "bool"}
    if type_.is_integer:
        limit = 1 << (type_.bits - 1)
        return f"{name}.__class__ is int and {-limit} <= {name} < {limit}"
    return f"{name}.__class__ is {plain[type_.name]}" if type_.name in plain else "False"


def _value(value: object, field: Field) -> object:
    if value is None:
        return None
    converted = convert(value, field.type)
    if converted is None:
        raise Misfit(f"{field.name} is not a {field.type}: {value!r}")
    return converted


def convert(value: Any, type_: DataType) -> object:
    """The value in its type, timestamps as ticks; None if it does not fit."""
    try:
        match type_.name:
            case "timestamp":
                if isinstance(value, str):
                    value = dt.datetime.fromisoformat(value.strip())
                return to_ticks(value) if isinstance(value, dt.datetime) else None
            case "boolean":
                return value if isinstance(value, bool) else None
            case "string":
                return value if isinstance(value, str) else None
            case "binary":
                return bytes(value) if isinstance(value, bytes | bytearray) else None
            case "date":
                return value if isinstance(value, dt.date) and not isinstance(value, dt.datetime) else None
            case "decimal":
                if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
                    return None
                return _exact_decimal(Decimal(value), type_)
            case "float" | "double":
                if isinstance(value, bool) or not isinstance(value, int | float):
                    return None
                return float(value) if type_.name == "double" else _single(float(value))
            case _:
                fits = isinstance(value, int) and not isinstance(value, bool)
                return value if fits and -(1 << (type_.bits - 1)) <= value < 1 << (type_.bits - 1) else None
    except (ValueError, InvalidOperation, OverflowError):
        return None


_WIDE = Context(prec=100)


def _exact_decimal(value: Decimal, type_: DataType) -> Decimal | None:
    """The value with the type's scale, if it has no more digits than that on either side of the point."""
    if not value.is_finite():
        return None
    scaled = _WIDE.quantize(value, Decimal(1).scaleb(-type_.scale))
    fits = scaled == value and (not scaled or scaled.adjusted() < type_.precision - type_.scale)
    return scaled if fits else None


def _single(value: float) -> float:
    """The nearest number of single precision; beyond its range that is an infinity."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def conform_table(schema: Schema, table: pa.Table) -> tuple[Batch, list[DeadLetter]]:
    """An Arrow table, column by column; a row fails when any of its values does."""
    columns: list[pa.ChunkedArray] = []
    failed = pa.chunked_array([pa.repeat(pa.scalar(False), table.num_rows)])
    reasons: list[tuple[str, Any]] = []
    for field in schema.fields:
        column = table.column(field.name)
        cast = _cast_column(column, field.type)
        misfit = pc.and_(pc.is_null(cast), pc.is_valid(column))
        if pc.any(misfit).as_py():
            failed = pc.or_(failed, misfit)
            reasons.append((f"{field.name} is not a {field.type}: ", (misfit, column)))
        if field.name == schema.time:
            missing = pc.is_null(column)
            if pc.any(missing).as_py():
                failed = pc.or_(failed, missing)
                reasons.append((f"{field.name} is null", (missing, None)))
        columns.append(cast)
    result = pa.Table.from_arrays(columns, schema=schema.arrow)
    if not reasons:
        return Batch(schema, table=result), []
    dead = []
    for i, row in enumerate(table.select(schema.names).to_pylist()):
        for text, (mask, column) in reasons:
            if mask[i].as_py():
                dead.append(DeadLetter(text + (repr(column[i].as_py()) if column is not None else ""), as_json(row)))
                break
    return Batch(schema, table=result.filter(pc.invert(failed))), dead


def _cast_column(column: pa.ChunkedArray, type_: DataType) -> pa.ChunkedArray:
    """The column in its type, null where a value does not fit."""
    target = type_.arrow
    source = column.type
    if pa.types.is_dictionary(source):
        column = column.cast(source.value_type)
        source = column.type
    if source == target:
        return column
    found = from_arrow_type(source)
    if found is not None and _casts_alike(found, type_):
        try:
            if type_.name == "timestamp":
                return pc.cast(pc.cast(column, pa.timestamp("us", tz=source.tz), safe=False), target)
            return pc.cast(column, target, safe=not type_.is_fractional)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass  # some value does not fit: one by one
    read = _read_text if found == STRING else convert
    values = [None if v is None else read(v, type_) for v in _python_values(column)]
    if type_.name == "timestamp":
        return pa.chunked_array([pa.array(values, pa.int64()).cast(target)])
    return pa.chunked_array([pa.array(values, target)])


_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


def _casts_alike(source: DataType, target: DataType) -> bool:
    """Whether Arrow's cast of a column gives what `convert` gives of each value; Arrow would turn numbers into text."""
    if target.is_decimal:
        # Where digits can be lost Arrow does not always notice: 99999.0000 becomes another number in decimal(38,38).
        whole = _DIGITS.get(source.name, source.precision - source.scale)
        exact = source.is_decimal or source.is_integer
        return exact and target.scale >= source.scale and target.precision - target.scale >= whole
    if source.name in ("void", target.name):
        return True
    if source.is_integer:
        return target.is_integer or target.is_fractional
    return source.is_fractional and target.is_fractional


def _python_values(column: pa.ChunkedArray) -> list[Any]:
    """The values as Python has them; a nanosecond is more than a datetime can hold."""
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
        column = pc.cast(column, pa.timestamp("us", tz=column.type.tz), safe=False)
    return list(column.to_pylist())


def _read_text(value: str, type_: DataType) -> object:
    """A value from its text, as in CSV."""
    text = value.strip()
    try:
        if type_.is_integer:
            return convert(int(text), type_)
        if type_.is_fractional:
            return convert(float(text), type_)
        if type_.name == "boolean":
            return {"true": True, "false": False}.get(text.lower())
        if type_.name == "date":
            return dt.date.fromisoformat(text)
    except ValueError:
        return None
    return convert(text, type_)
