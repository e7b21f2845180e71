"""Columns that somebody has computed beside the rows of a stream, so that whoever comes next need not.

Each expression has a column of its values and one that says for which rows it has none, since evaluating it fails. They
stand behind the stream's own columns under names that no column of a stream can have, and are no part of the rows: who
puts rows aside, or sends them on, leaves them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from penstock.model.batch import Batch
from penstock.model.schema import BOOLEAN, DataType, Field, Schema

_MARK = "\0made"


def value_name(at: int) -> str:
    """The column of the values of an expression, by its number."""
    return f"{_MARK}{at}"


def failed_name(at: int) -> str:
    """The column that is true where it has no value."""
    return f"{_MARK}{at} failed"


def is_made(name: str) -> bool:
    """Whether a column is one of these."""
    return name.startswith(_MARK)


def with_made(schema: Schema, types: Sequence[DataType]) -> Schema:
    """The columns of a stream, and those of expressions of these types."""
    made = [
        field
        for at, type_ in enumerate(types)
        for field in (Field(value_name(at), type_), Field(failed_name(at), BOOLEAN))
    ]
    return replace(schema, fields=(*schema.fields, *made))


def join_made(batch: Batch, schema: Schema, made: Sequence[pa.ChunkedArray] | None) -> Batch:
    """Rows with the columns that were computed; without any, all count as failed, and are evaluated one by one."""
    fields = schema.fields[len(batch.schema) :]
    if made is None:
        arrays = [
            pa.chunked_array([pa.repeat(pa.scalar(True), len(batch)) if at % 2 else pa.nulls(len(batch), f.type.arrow)])
            for at, f in enumerate(fields)
        ]
    else:
        arrays = [column.cast(field.type.arrow) for column, field in zip(made, fields, strict=True)]
    return Batch(schema, table=pa.Table.from_arrays([*batch.table.columns, *arrays], schema=schema.arrow))


def without_made(batch: Batch) -> Batch:
    """The rows alone."""
    own = tuple(field for field in batch.schema.fields if not is_made(field.name))
    if len(own) == len(batch.schema):
        return batch
    schema = replace(batch.schema, fields=own)
    if batch.columnar:
        return Batch(schema, table=batch.table.select(schema.names))
    return Batch(schema, [row[: len(own)] for row in batch.rows])
