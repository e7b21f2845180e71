"""Input brought into a stream's schema; what cannot be is a dead letter with its reason.

A row with a null or unreadable time, a time that leaves no room for a window (`time.usable`), or a value of the wrong
type takes no part in any query and is kept as text. Naive timestamps are UTC. A column that the input does not have is
null. Rows and tables are judged alike, except that a column of text in a table is read into its type, as in CSV.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.arrow_forms import shown
from penstock.model.batch import Batch, Row, present
from penstock.model.columns import cast_column, time_by_format, times_by_format
from penstock.model.convert import convert, is_missing, plain
from penstock.model.schema import DataType, Field, Schema
from penstock.model.text import write_bytes
from penstock.model.time import FIRST_TIMESTAMP, LAST_TIMESTAMP, Domain, show_ticks, usable
from penstock.model.time_format import parse_format

Reason = tuple[np.ndarray, str, pa.ChunkedArray | None]
"""Which rows fail, why, and the column that shows it."""


@dataclass(frozen=True)
class DeadLetter:
    """A row that could not be used: why, and the row as text."""

    reason: str
    row: str


def as_json(values: Mapping[str, object]) -> str:
    """A row as one line of JSON; what JSON has not is text, bytes are base64."""
    try:
        text = json.dumps({str(k): v for k, v in values.items()}, default=_jsonable, ensure_ascii=False)
    except Exception:  # values that hold themselves, or of a class that fails when it is asked
        text = json.dumps({str(k): described(v)[:1000] for k, v in values.items()}, ensure_ascii=False)
    return written(text)


def described(value: object) -> str:
    """A value for a person, also where its class cannot say."""
    try:
        return repr(value)
    except Exception:
        return f"a {type(value).__name__}"


def written(text: str) -> str:
    """Text that can be written as UTF-8: a lone surrogate becomes its escape."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _jsonable(value: object) -> object:
    if is_missing(value):
        return None
    if isinstance(value, dt.datetime | dt.date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return write_bytes(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        return value.item()
    return str(value)


def row_json(schema: Schema, row: Row) -> str:
    """A row of a schema as one line of JSON."""
    return as_json(present(schema, row))


class Misfit(Exception):
    """A value does not fit its type."""


def without_time(batch: Batch) -> tuple[Batch, list[DeadLetter]]:
    """A batch without the rows that have no time, and those."""
    at = batch.schema.time_index
    if batch.columnar:
        missing = np.asarray(batch.table.column(at).is_null())
    else:
        missing = np.fromiter((row[at] is None for row in batch.rows), np.bool_, count=len(batch))
    if not missing.any():
        return batch, []
    reason = f"{batch.schema.time} is null"
    return batch.select(~missing), [DeadLetter(reason, row_json(batch.schema, r)) for r in batch.select(missing).rows]


def conform_rows(schema: Schema, rows: Sequence[Mapping[str, object]]) -> tuple[Batch, list[DeadLetter]]:
    """Rows given by name, value by value."""
    good: list[Row] = []
    dead: list[DeadLetter] = []
    fields = schema.fields
    time = None if schema.time is None else schema.time_index
    first, last = usable(schema.domain)
    several = bool(schema.attributes)
    for given in rows:
        try:
            row = tuple([_value(given.get(f.name), f, schema) for f in fields])
            if time is not None and not ((ticks := row[time]).__class__ is int and first <= ticks <= last):
                _require_time(schema, row)
            elif several:
                _require_usable(schema, row)
        except Misfit as misfit:
            dead.append(DeadLetter(written(str(misfit)), as_json(given)))
        else:
            good.append(row)
    return Batch(schema, good), dead


def conform_row(schema: Schema, row: object) -> Row | DeadLetter:
    """One row given as a tuple in the order of the schema; a time may be ticks already."""
    if not isinstance(row, tuple) or len(row) != len(schema):
        return DeadLetter(written(_expected(schema)), written(described(row)))
    try:
        ready = [
            v if f.type.name == "timestamp" and type(v) is int and _dated(v) else _value(v, f, schema)
            for v, f in zip(row, schema.fields, strict=True)
        ]
        _require_time(schema, ready)
    except Misfit as misfit:
        return DeadLetter(written(str(misfit)), as_json(dict(zip(schema.names, row, strict=True))))
    return tuple(ready)


def _expected(schema: Schema) -> str:
    """What a row is not that should be one; ends of lives are no columns, but an element's own."""
    if schema.lives is None:
        return f"not a tuple of {len(schema)} values"
    names = ", ".join(schema.names)
    return f"not a tuple of {len(schema)} values ({names}), nor an Insert or Adjust, which says how long it lives"


def _dated(ticks: int) -> bool:
    return FIRST_TIMESTAMP <= ticks <= LAST_TIMESTAMP


def _require_time(schema: Schema, row: Sequence[object]) -> None:
    if schema.time is None:
        return
    if schema.attributes:
        _require_usable(schema, row)
        return
    if row[schema.time_index] is None:
        raise Misfit(f"{schema.time} is null")
    _require_in_range(schema[schema.time], row[schema.time_index])


def _require_usable(schema: Schema, row: Sequence[object]) -> None:
    """Of several attributes that progress, those that are not null leave room for windows."""
    for name in schema.attributes:
        value = row[schema.index(name)]
        if value is not None:
            _require_in_range(schema[name], value)


def _require_in_range(field: Field, value: Any) -> None:
    domain = _domain(field)
    first, last = usable(domain)
    if not first <= value <= last:
        bounds = " and ".join(show_ticks(t, domain) for t in (first, last))
        raise Misfit(f"{field.name} is not between {bounds}: {show_ticks(value, domain)}")


def _domain(field: Field) -> Domain:
    return field.type.domain or Domain.INTEGER


def fits_text(name: str, type_: DataType, time: Schema | None = None) -> str:
    """Python text that tells whether the variable `name` is a value of the type as it is; it may deny, never err.

    `time` is the schema whose time the variable is, if it is one: it must then be a usable time.
    """
    if time is not None and type_.domain is not None:
        first, last = usable(time.domain)
        if type_.is_integer:
            limit = 1 << (type_.bits - 1)
            first, last = max(first, -limit), min(last, limit - 1)
        return f"{name}.__class__ is int and {first} <= {name} <= {last}"
    kinds = {"double": "float", "boolean": "bool"}
    if type_.name == "timestamp":
        return f"{name}.__class__ is int and {FIRST_TIMESTAMP} <= {name} <= {LAST_TIMESTAMP}"
    if type_.is_integer:
        limit = 1 << (type_.bits - 1)
        return f"{name}.__class__ is int and {-limit} <= {name} < {limit}"
    if type_.name == "string":
        return f"{name}.__class__ is str and ({name}.isascii() or encodable({name}))"
    return f"{name}.__class__ is {kinds[type_.name]}" if type_.name in kinds else "False"


def _value(value: object, field: Field, schema: Schema) -> object:
    if value is None:
        return None
    if schema.time_format is not None and field.name == schema.time:
        converted: object = time_by_format(plain(value), parse_format(schema.time_format))
    else:
        converted = convert(value, field.type)
    if converted is None and not is_missing(value):
        raise Misfit(_misfit(field, schema) + described(value))
    return converted


def _misfit(field: Field, schema: Schema) -> str:
    what = f"a {field.type}"
    if schema.time_format is not None and field.name == schema.time:
        what = schema.time_format
    return f"{field.name} is not {what}: "


@dataclass(frozen=True)
class Conformed:
    """The rows of a table in a schema, those that do not fit it among them."""

    table: pa.Table
    failed: np.ndarray | None
    """Which rows do not fit; None if all do."""
    reasons: list[Reason]

    def letters(self, given: pa.Table, texts: Sequence[str] | None = None) -> list[DeadLetter]:
        """Those that do not fit, as JSON of what was given, or as they are in `texts`."""
        if self.failed is None:
            return []
        names = [name for name in self.table.column_names if name in given.column_names]
        return _letters(given.select(names), self.failed, self.reasons, texts)


def conformed(schema: Schema, table: pa.Table) -> Conformed:
    """An Arrow table, column by column; a row fails when any of its values does, which is null then."""
    columns: list[pa.ChunkedArray] = []
    reasons: list[Reason] = []
    for field in schema.fields:
        if field.name not in table.column_names:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, field.type.arrow)]))
            if field.name == schema.time and not schema.attributes:
                reasons.append((np.ones(table.num_rows, bool), f"{field.name} is null", None))
            continue
        column = table.column(field.name)
        is_time = field.name == schema.time
        if is_time and schema.time_format is not None:
            cast = times_by_format(column, parse_format(schema.time_format))
        else:
            cast = cast_column(column, field.type)
        reasons += _misfits(schema, field, column, cast)
        columns.append(cast)
    result = pa.Table.from_arrays(columns, schema=schema.arrow)
    if not any(mask.any() for mask, _, _ in reasons):
        return Conformed(result, None, [])
    return Conformed(result, np.logical_or.reduce([mask for mask, _, _ in reasons]), reasons)


def conform_table(
    schema: Schema, table: pa.Table, texts: Sequence[str] | None = None
) -> tuple[Batch, list[DeadLetter]]:
    """The rows of a table that fit a schema, and dead letters of the others (`Conformed.letters`)."""
    found = conformed(schema, table)
    if found.failed is None:
        return Batch(schema, table=found.table), []
    return Batch(schema, table=found.table.filter(pa.array(~found.failed))), found.letters(table, texts)


def _misfits(schema: Schema, field: Field, column: pa.ChunkedArray, cast: pa.ChunkedArray) -> list[Reason]:
    """Which rows fail because of a column, and why."""
    found: list[Reason] = []
    is_needed = field.name == schema.time and not schema.attributes
    if cast.null_count > column.null_count or (cast.null_count and is_needed):
        present_, gone = _mask(pc.is_valid(column)), _mask(pc.is_null(cast))
        found.append((present_ & gone, _misfit(field, schema), column))
        if is_needed:
            found.append((~present_, f"{field.name} is null", None))
    if field.name == schema.time or field.name in schema.attributes:
        ticks = cast.cast(pa.int64())
        extent = pc.min_max(ticks).as_py()
        domain = _domain(field)
        first, last = usable(domain)
        if extent["min"] is not None and not first <= extent["min"] <= extent["max"] <= last:
            outside = pc.or_(pc.less(ticks, first), pc.greater(ticks, last)).fill_null(False)
            bounds = " and ".join(show_ticks(t, domain) for t in (first, last))
            found.append((_mask(outside), f"{field.name} is not between {bounds}: ", ticks))
    return found


def _mask(column: pa.ChunkedArray) -> np.ndarray:
    return np.asarray(column.to_numpy(), bool)


def _letters(
    table: pa.Table,
    failed: np.ndarray,
    reasons: list[Reason],
    texts: Sequence[str] | None,
) -> list[DeadLetter]:
    dead = []
    for i in np.flatnonzero(failed).tolist():
        if texts is None:
            row = as_json({name: shown(table.column(name)[i]) for name in table.column_names})
        else:
            row = texts[i]
        _, why, column = next(r for r in reasons if r[0][i])
        dead.append(DeadLetter(written(why + (repr(shown(column[i])) if column is not None else "")), row))
    return dead
