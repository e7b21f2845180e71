"""One schema for files whose schemas differ: every column of any, each in the widest of its types.

Whole numbers go with wider whole numbers and with floating point, decimals with decimals and whole numbers, dates with
timestamps, a column that is all null with anything. Anything else is an error that names the file.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import StreamError
from penstock.model.schema import DATE, DOUBLE, TIMESTAMP, DataType, Field, Schema, decimal

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


def merge_columns(parts: Sequence[tuple[str, Schema]]) -> Schema:
    """The columns of all parts, each given with the name of its file."""
    first, known = parts[0]
    fields: dict[str, DataType] = {f.name: f.type for f in known.fields}
    origin = dict.fromkeys(fields, first)
    unusable = dict(known.unusable)
    for path, schema in parts[1:]:
        unusable |= dict(schema.unusable)
        for field in schema.fields:
            before = fields.setdefault(field.name, field.type)
            wider = widest(before, field.type)
            if wider is None:
                raise StreamError(
                    "The files do not agree on the type of a column.",
                    where=path,
                    got=f"{field.name} is {field.type}, and {before} in {origin[field.name]}",
                    hint="declare one stream per kind of file, or give schema='…'",
                )
            if field.name not in origin or (wider != before and wider == field.type):
                origin[field.name] = path
            elif wider != before:  # neither of them has it
                origin[field.name] += f" with {path}"
            fields[field.name] = wider
    usable = tuple(Field(n, t) for n, t in fields.items() if n not in unusable)
    return Schema(usable, unusable=tuple(unusable.items()))


def widest(a: DataType, b: DataType) -> DataType | None:
    """The type that holds the values of both; None if there is none."""
    if a == b:
        return a
    if {a, b} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    if not (a.is_numeric and b.is_numeric):
        return None
    if a.is_fractional or b.is_fractional:
        return DOUBLE
    if a.is_integer and b.is_integer:
        return a if a.bits > b.bits else b
    scale = max(a.scale, b.scale)
    whole = max(_DIGITS.get(t.name, t.precision - t.scale) for t in (a, b))
    return decimal(whole + scale, scale) if whole + scale <= 38 else None
