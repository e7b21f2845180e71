"""The types of text that nobody declared: what all values of a column look like.

Kinds are bits, so what parts of a stream show is joined with `|`, on any engine and in any order. A column is a bigint,
a decimal, a double, a boolean, a date or a timestamp if every value that is not null looks like one and can be read as
one, and text otherwise; in JSON what stands in quotes is text. The time column is what any of its values look like, so
that one odd value does not make the others dead. Only plain forms count: a column with `1d` in it is text, though
`CAST` would take it for a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import StreamError
from penstock.model.reading import BLANK, Number, read_plainly, read_text
from penstock.model.schema import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, DataType, Field, Schema

WHOLE, BIG, FRACTION, TRUTH, DAY, MOMENT, TEXT, NESTED = (1 << i for i in range(8))
Shapes = dict[str, int]
_BIG = DataType("decimal", 38)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|NaN|[+-]?Infinity")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_DAY = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[ T][0-9]{1,2}:[0-9]{1,2}.*", re.DOTALL)


def shape_of(text: str) -> int:
    """The kind of one text."""
    bare = text.strip(BLANK)
    if _WHOLE.fullmatch(bare):
        return WHOLE if read_text(bare, BIGINT) is not None else BIG if read_text(bare, _BIG) is not None else FRACTION
    if _NUMBER.fullmatch(bare):
        return FRACTION
    if bare.lower() in ("true", "false"):
        return TRUTH
    if _DAY.fullmatch(bare) and read_text(bare, DATE) is not None:
        return DAY
    return MOMENT if _MOMENT.fullmatch(bare) and read_text(bare, TIMESTAMP) is not None else TEXT


def shapes_of_table(table: pa.Table) -> Shapes:
    """The kinds in columns of text."""
    return {name: _shape_of_column(table.column(name)) for name in table.column_names}


def _shape_of_column(column: pa.ChunkedArray) -> int:
    found = 0
    if column.null_count == len(column):
        return 0
    for type_, kind in ((BIGINT, WHOLE), (DOUBLE, WHOLE | FRACTION), (TIMESTAMP, MOMENT)):
        if read_plainly(column, type_) is not None:
            return kind
    for text in pc.unique(column).to_pylist():
        found |= 0 if text is None else shape_of(text)
        if found & TEXT:
            break
    return found


def shapes_of_objects(objects: Iterable[Mapping[str, Any]]) -> Shapes:
    """The kinds of the members of JSON objects."""
    found: Shapes = {}
    for row in objects:
        for name, value in row.items():
            found[name] = found.get(name, 0) | _shape_of_member(value)
    return found


def _shape_of_member(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, Number):
        return shape_of(value)
    if isinstance(value, bool):
        return TRUTH
    if not isinstance(value, str):
        return NESTED
    return TEXT | (shape_of(value) & (DAY | MOMENT) if value[4:5] == "-" else 0)


def join_shapes(left: Shapes, right: Mapping[str, int]) -> Shapes:
    """The kinds in both, in the order of first sight."""
    for name, kinds in right.items():
        left[name] = left.get(name, 0) | kinds
    return left


def schema_of_shapes(shapes: Mapping[str, int], time: str | None, time_format: str | None) -> Schema:
    """The schema of columns that look like this; the time column is what some of it looks like, the rest is dead."""
    if not any(shapes.values()):
        raise StreamError(
            "There are no values to tell the types of the columns from.",
            got=f"{', '.join(shapes)}, and no row with a value",
            hint="give schema='ts timestamp, …'",
        )
    given = {name: _type_of(kinds) for name, kinds in shapes.items() if not kinds & NESTED}
    for name in given:
        if time is not None and name.lower() == time.lower():
            given[name] = STRING if time_format is not None else _time_type(shapes[name])
    fields = tuple(Field(name, type_) for name, type_ in given.items())
    return Schema(fields, unusable=tuple((name, "nested JSON") for name, kinds in shapes.items() if kinds & NESTED))


def _time_type(kinds: int) -> DataType:
    if kinds & (DAY | MOMENT):
        return STRING
    return BIGINT if kinds & (WHOLE | BIG) else _type_of(kinds)


def _type_of(kinds: int) -> DataType:
    if not kinds:
        return STRING
    for allowed, type_ in (
        (WHOLE, BIGINT), (WHOLE | BIG, _BIG), (WHOLE | BIG | FRACTION, DOUBLE), (TRUTH, BOOLEAN), (DAY, DATE),
        (DAY | MOMENT, TIMESTAMP),
    ):  # fmt: skip
        if not kinds & ~allowed:
            return type_
    return STRING
