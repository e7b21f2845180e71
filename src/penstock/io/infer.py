"""The schema of an input that does not declare one.

Rows given as dictionaries are looked at in full. Where a column holds values of types that do not go together the
schema must be given. The time column is read more kindly: text in it is taken for timestamps, and single values that do
not fit become dead letters.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

import pyarrow as pa

from penstock.errors import StreamError
from penstock.model.schema import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    DataType,
    Field,
    Schema,
    from_arrow_type,
    parse_type,
    timed,
)

_PYTHON: list[tuple[type, DataType]] = [
    (bool, BOOLEAN), (int, BIGINT), (float, DOUBLE), (str, STRING), (dt.datetime, TIMESTAMP), (dt.date, DATE),
    (bytes, BINARY), (Decimal, DataType("decimal", 38, 18)),
]  # fmt: skip


def parse_schema(ddl: str, time: str) -> Schema:
    """A schema from a DDL string such as `ts timestamp, srcIP string, len int`."""
    fields = []
    for part in re.split(r",(?![^(]*\))", ddl):
        words = part.strip().split(None, 1)
        if len(words) != 2:
            raise StreamError(
                "A schema is a list of names and types.", got=part.strip(), hint="'ts timestamp, srcIP string, len int'"
            )
        fields.append(Field(words[0].strip("`"), parse_type(words[1])))
    return timed(Schema(tuple(fields)), time)


def from_arrow(schema: pa.Schema, time: str) -> Schema:
    """The schema of Arrow data; columns of types without a SQL counterpart are refused."""
    fields = []
    for arrow in schema:
        type_ = from_arrow_type(arrow.type)
        if type_ is None:
            raise StreamError(
                "A column has a type that SQL queries cannot use.",
                got=f"{arrow.name}: {arrow.type}",
                hint="drop it, or convert it before",
            )
        fields.append(Field(arrow.name, STRING if type_.name == "void" else type_))
    return timed(Schema(tuple(fields)), time)


def from_rows(rows: Iterable[Mapping[str, object]], time: str) -> Schema:
    """The schema of dictionaries."""
    types: dict[str, set[DataType]] = {}
    for row in rows:
        for name, value in row.items():
            found = types.setdefault(str(name), set())
            if value is not None:
                found.add(_type_of(name, value))
    if not types:
        raise StreamError("The columns of an empty list are not known.", hint="give schema='ts timestamp, …'")
    fields = [Field(name, _one(name, found, is_time=name == time)) for name, found in types.items()]
    return timed(Schema(tuple(fields)), time)


def _type_of(name: object, value: object) -> DataType:
    for python, type_ in _PYTHON:
        if isinstance(value, python):
            return type_
    raise StreamError(
        "A value has a type that SQL queries cannot use.",
        got=f"{name}: {type(value).__name__}",
        hint="convert it before",
    )


def _one(name: str, found: set[DataType], *, is_time: bool) -> DataType:
    if is_time:
        if TIMESTAMP in found or not found & {BIGINT}:
            return TIMESTAMP if found - {BOOLEAN, DOUBLE} else next(iter(found), TIMESTAMP)
        return BIGINT
    if not found:
        return STRING
    if found == {BIGINT, DOUBLE}:
        return DOUBLE
    if len(found) > 1:
        raise StreamError(
            "A column holds values of types that do not go together.",
            got=f"{name}: {', '.join(sorted(map(str, found)))}",
            hint="give schema='…'; values that do not fit it become dead letters",
        )
    return next(iter(found))
