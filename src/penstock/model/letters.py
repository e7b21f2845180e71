"""What is kept of rows that take no part: the columns of late rows and dead letters, and rows as text.

A dead letter names the stream, the operator that found no value for the row, the reason and the row. Rows that were
refused at the entrance of their stream have no operator. For an operator over several streams all are named. The row is
the one that the operator was given; for an aggregate, which has none, the window and the group.
"""

from __future__ import annotations

import pyarrow as pa

from penstock.model.batch import Batch, Row, table_of
from penstock.model.conform import as_json
from penstock.model.elements import Punctuation
from penstock.model.lives import NO_OLD
from penstock.model.schema import BIGINT, STRING, Field, Schema
from penstock.model.time import END_OF_TIME, Domain, from_ticks, show_ticks

DEAD_SCHEMA = Schema(
    (Field("stream", STRING), Field("operator", STRING), Field("reason", STRING), Field("row", STRING))
)

SUPERSEDED_SCHEMA = Schema((Field("queue", STRING), Field("reason", STRING), Field("row", STRING)))
"""Of rows that an update queue has passed over: a newer one of their key came, or had come before (`older`)."""


def superseded_table(queue: str, reason: str, batch: Batch) -> pa.Table:
    """Rows that a queue has passed over, for whoever keeps them."""
    return table_of(SUPERSEDED_SCHEMA, [(queue, reason, text) for text in texts_of(batch)])


def late_schema(schema: Schema, *others: Schema) -> Schema:
    """The columns of a late output: the stream, the bound that condemned the row, and the row as JSON.

    The bound is a time, or the text of a promise if in any of the streams several attributes progress, or if they have
    different kinds of time. A row that came after the end, of its stream or of its group, has none.
    """
    bound = schema[schema.time].type if schema.time is not None else BIGINT
    if any(each.attributes or each.domain is not schema.domain for each in (schema, *others)):
        bound = STRING
    return Schema((Field("stream", STRING), Field("bound", bound), Field("row", STRING)))


def promise_text(promise: Punctuation, schema: Schema) -> str:
    """A promise in the words of a stream: `seq >= 12`, `ts >= 2026-01-01 00:00:05 or seq >= 12, router = 'a'`."""
    bounds = []
    for name, bound in promise.bounds:
        domain = schema[name].type.domain or Domain.INTEGER
        bounds.append(f"{name} >= {'end' if bound == END_OF_TIME else show_ticks(bound, domain)}")
    return ", ".join([" or ".join(bounds), *(f"{name} = {value!r}" for name, value in promise.constants)])


def row_text(schema: Schema, row: Row, life: tuple[int, int | None] | None = None) -> str:
    """A row as one line of JSON, with the columns that a result would hide; with a life, its end and old end too.

    Columns that the query does not name are in its words.
    """
    shown: dict[str, object] = {}
    for name, field, value in zip(schema.shown_names, schema.fields, row, strict=True):
        is_time = field.type.name == "timestamp" and isinstance(value, int)
        shown[name] = _moment(value) if is_time else value  # type: ignore[arg-type]
    if life is not None and schema.lives is not None:
        for name, tick in zip(schema.lives, life, strict=True):
            if tick is not None:
                shown[name] = "open" if tick == END_OF_TIME else _end(tick, schema.domain)
    return plain_text(as_json(shown))


def texts_of(batch: Batch) -> list[str]:
    """The rows of a batch as text, with their lives."""
    schema = batch.schema
    if batch.lives is None:
        return [row_text(schema, row) for row in batch.rows]
    olds = [None if old == NO_OLD else old for old in batch.lives.olds.tolist()]
    lives = zip(batch.lives.ends.tolist(), olds, strict=True)
    return [row_text(schema, row, life) for row, life in zip(batch.rows, lives, strict=True)]


def _end(tick: int, domain: Domain) -> object:
    return _moment(tick) if domain is Domain.TIMESTAMP else tick


def _moment(tick: int) -> object:
    try:
        return from_ticks(tick)
    except OverflowError:  # the calendar ends with the year 9999, ticks do not
        return show_ticks(tick, Domain.TIMESTAMP)


def plain_text(text: str) -> str:
    """The text with what UTF-8 cannot hold, a lone surrogate, written as an escape."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
