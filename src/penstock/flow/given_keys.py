"""Keys as people give them, to read a result or to say how often a key is wanted: in the types of their columns.

A value of a key is what a stream takes for its column: times as datetimes (without a zone they are UTC), as texts or as
ticks, dates also as texts, structs as dictionaries, arrays as lists. What is none of the type is no key: it is refused.
One column is given by its value, several by a tuple; a tuple of one is taken as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.errors import StreamError
from penstock.model.batch import Row
from penstock.model.convert import convert, is_missing
from penstock.model.reading import read_text
from penstock.model.schema import Schema
from penstock.model.time import FIRST_TIMESTAMP, LAST_TIMESTAMP
from penstock.model.types import DATE, TIMESTAMP, DataType

EXAMPLES = {
    "timestamp": "datetime(2026, 1, 31, 12, 30) or '2026-01-31 12:30:00', in UTC if there is no zone",
    "date": "date(2026, 1, 31) or '2026-01-31'",
    "array": "a list",
    "struct": "a dictionary of its fields",
    "map": "a dictionary",
    "boolean": "True or False",
    "string": "a text",
    "binary": "bytes",
}


def given_key(given: Any, names: Sequence[str], schema: Schema, where: str) -> Row:
    """The values of these columns, as rows have them."""
    types = [schema[name].type for name in names]
    key = given if isinstance(given, tuple) else (given,)
    if len(types) == 1 and types[0].is_nested and isinstance(given, tuple) and _value(given, types[0]) is not None:
        key = (given,)  # a struct or an array as rows have it
    if len(key) != len(types):
        raise StreamError(
            "A key has a value for each of its columns.", where=where, got=repr(given)[:200],
            hint=f"values of {', '.join(names) or 'no columns: ()'}",
        )  # fmt: skip
    found = []
    for name, type_, value in zip(names, types, key, strict=True):
        found.append(None if is_missing(value) else _value(value, type_))
        if found[-1] is None and not is_missing(value):
            raise StreamError(
                f"No key has such a value: {name} is of type {type_}.", where=where, got=repr(value)[:200],
                hint=EXAMPLES.get(type_.name, "a number"),
            )  # fmt: skip
    return tuple(found)


def _value(value: Any, type_: DataType) -> object:
    """A value in its type; None if it is none of it."""
    if type_ == TIMESTAMP and type(value) is int:
        return value if FIRST_TIMESTAMP <= value <= LAST_TIMESTAMP else None
    if type_ == DATE and isinstance(value, str):
        return read_text(value, type_)
    return convert(value, type_)
