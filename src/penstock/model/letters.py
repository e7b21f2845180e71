"""What is kept of rows that take no part: the columns of late rows and dead letters, and rows as text.

A dead letter names the stream, the operator that found no value for the row, the reason and the row. Rows that were
refused at the entrance of their stream have no operator. For an operator over several streams all are named. The row is
the one that the operator was given; for an aggregate, which has none, the window and the group.
"""

from __future__ import annotations

from penstock.model.batch import Row
from penstock.model.conform import as_json
from penstock.model.schema import BIGINT, STRING, Field, Schema
from penstock.model.time import Domain, from_ticks, show_ticks

DEAD_SCHEMA = Schema(
    (Field("stream", STRING), Field("operator", STRING), Field("reason", STRING), Field("row", STRING))
)


def late_schema(schema: Schema) -> Schema:
    """The columns of a late output: the stream, the bound that condemned the row, and the row as JSON."""
    bound = schema[schema.time].type if schema.time is not None else BIGINT
    return Schema((Field("stream", STRING), Field("bound", bound), Field("row", STRING)))


def row_text(schema: Schema, row: Row) -> str:
    """A row as one line of JSON, with the columns that a result would hide."""
    shown: dict[str, object] = {}
    for field, value in zip(schema.fields, row, strict=True):
        if field.type.name == "timestamp" and isinstance(value, int):
            try:
                shown[field.name] = from_ticks(value)
            except OverflowError:  # the calendar ends with the year 9999, ticks do not
                shown[field.name] = show_ticks(value, Domain.TIMESTAMP)
        else:
            shown[field.name] = value
    return plain_text(as_json(shown))


def plain_text(text: str) -> str:
    """The text with what UTF-8 cannot hold, a lone surrogate, written as an escape."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
