"""The schema of an input that does not declare one.

Rows given as dictionaries are looked at in full. Where a column holds values of types that do not go together the
schema must be given. The time column is read more kindly: text in it is taken for timestamps, and single values that do
not fit become dead letters. A list is an array, a dictionary a struct that has the fields of all; a map must be
declared. A column of which queries can make nothing (a time of day, a list of texts and numbers) is no part of the
schema, but known by name, so that a query that asks for it is told.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import StreamError
from penstock.model.convert import encodable, is_missing, plain
from penstock.model.reading import read_text
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
    columns_of,
    parse_type,
    timed,
)
from penstock.model.types import VOID, array_of, split_list, struct_of
from penstock.plan.typing import common_type

_PYTHON: list[tuple[type, DataType]] = [
    (bool, BOOLEAN), (int, BIGINT), (float, DOUBLE), (str, STRING), (dt.datetime, TIMESTAMP), (dt.date, DATE),
    (bytes, BINARY), (bytearray, BINARY), (np.datetime64, TIMESTAMP), (Decimal, DataType("decimal", 38, 18)),
]  # fmt: skip


def check_names(names: Iterable[str]) -> None:
    """Refuse columns that no table can have."""
    for name in names:
        if not encodable(name):
            raise StreamError(
                "The name of a column holds a character that is none.",
                got=ascii(name)[:200],
                hint="a surrogate must stand in a pair",
            )


def parse_schema(ddl: str, time: str | None, time_format: str | None = None) -> Schema:
    """A schema from a DDL string such as `ts timestamp, srcIP string, len int`."""
    if not isinstance(ddl, str):
        raise StreamError("A schema is a text.", got=repr(ddl), hint="'ts timestamp, srcIP string, len int'")
    fields = []
    for part in split_list(ddl):
        match = re.fullmatch(r"\s*(?:`((?:[^`]|``)+)`|(\S+))\s+(\S.*?)\s*", part, re.DOTALL)
        words = [match[1].replace("``", "`") if match[1] else match[2], match[3]] if match is not None else []
        if len(words) != 2 or not words[0].strip("`"):
            raise StreamError(
                "A schema is a list of names and types.", got=part.strip(), hint="'ts timestamp, srcIP string, len int'"
            )
        fields.append(Field(words[0], parse_type(words[1])))
    check_names(field.name for field in fields)
    return timed(Schema(tuple(fields)), time, time_format, declared=True)


def from_arrow(schema: pa.Schema, time: str | None, time_format: str | None = None) -> Schema:
    """The schema of Arrow data."""
    return timed(columns_of(schema), time, time_format)


def from_rows(rows: Iterable[Mapping[str, object]], time: str | None, time_format: str | None = None) -> Schema:
    """The schema of dictionaries."""
    types: dict[str, set[DataType]] = {}
    unusable: dict[str, str] = {}
    for row in rows:
        for name, value in row.items():
            if not isinstance(name, str):
                raise StreamError("The name of a column must be a text.", got=repr(name), hint="rename it")
            found = types.setdefault(name, set())
            if value is not None and not is_missing(value):
                type_ = _type_of(value)
                if type_ == STRING and name == time and time_format is None and TIMESTAMP not in found:
                    type_ = TIMESTAMP if read_text(str(value), TIMESTAMP) is not None else STRING
                if type_ is None:
                    unusable.setdefault(name, type(value).__name__)
                else:
                    found.add(type_)
    check_names(types)
    if not types:
        raise StreamError("The columns of an empty list are not known.", hint="give schema='ts timestamp, …'")
    fields = tuple(
        Field(name, _one(name, found, is_time=name == time)) for name, found in types.items() if name not in unusable
    )
    return timed(Schema(fields, unusable=tuple(unusable.items())), time, time_format)


_BIG = DataType("decimal", 38)


def _type_of(value: object) -> DataType | None:
    value = plain(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return _BIG
    if isinstance(value, list | Mapping | np.ndarray):
        return _nested_type(value)
    return next((type_ for python, type_ in _PYTHON if isinstance(value, python)), None)


def _nested_type(value: list[object] | Mapping[Any, object] | np.ndarray) -> DataType | None:
    """A list as an array of what its elements go together in, a dictionary as a struct."""
    if isinstance(value, Mapping):
        fields = [(name, VOID if is_missing(v) else _type_of(v)) for name, v in value.items()]
        known = [(name, type_) for name, type_ in fields if isinstance(name, str) and name and type_ is not None]
        told_apart = len({name.lower() for name, _ in known}) == len(fields) > 0
        return struct_of(known) if told_apart else None
    element: DataType | None = VOID
    for inner in value.tolist() if isinstance(value, np.ndarray) else value:
        found = VOID if is_missing(inner) else _type_of(inner)
        element = None if element is None or found is None else _together(element, found)
    return None if element is None else array_of(element)


def _together(left: DataType, right: DataType) -> DataType | None:
    """The type of values of both; structs have the fields of both, and decimals do not become floating point."""
    if left.name == right.name == "struct":
        fields = dict(left.parts)
        for name, type_ in right.parts:
            both = _together(fields[name], type_) if name in fields else type_
            if both is None:
                return None
            fields[name] = both
        return struct_of(fields.items()) if len({n.lower() for n in fields}) == len(fields) else None
    if left.name == right.name == "array":
        element = _together(left.element, right.element)
        return None if element is None else array_of(element)
    if {left, right} in ({BIGINT, DOUBLE}, {BIGINT, _BIG}) or VOID in (left, right) or left == right:
        return common_type(left, right)
    return None


def _settled(type_: DataType) -> DataType:
    """Parts of which nothing is known are text, as such a column is."""
    if type_ == VOID:
        return STRING
    return replace(type_, parts=tuple((name, _settled(part)) for name, part in type_.parts))


def _one(name: str, found: set[DataType], *, is_time: bool) -> DataType:
    if is_time:
        return _time_type(found)
    if not found:
        return STRING
    if found == {BIGINT, DOUBLE}:
        return DOUBLE
    if found == {BIGINT, _BIG}:
        return _BIG
    if all(type_.is_nested for type_ in found):
        both: DataType | None = VOID
        for type_ in sorted(found, key=str):
            both = None if both is None else _together(both, type_)
        found = found if both is None else {_settled(both)}
    if len(found) > 1:
        raise StreamError(
            "A column holds values of types that do not go together.",
            got=f"{name}: {', '.join(sorted(map(str, found)))}",
            hint="give schema='…'; values that do not fit it become dead letters",
        )
    return next(iter(found))


def _time_type(found: set[DataType]) -> DataType:
    if TIMESTAMP in found or DATE in found:
        return TIMESTAMP
    if BIGINT in found or _BIG in found:
        return BIGINT
    return STRING if STRING in found or not found else next(iter(found))
