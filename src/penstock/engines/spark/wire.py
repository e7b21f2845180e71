"""What travels between Spark's operators and the hosted graph: batches as Arrow IPC, the rest as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.batch import Batch
from penstock.model.lives import Lives
from penstock.model.plain import decode, encode
from penstock.model.schema import Schema

PACKED = "bucket bigint, stream string, rows binary, note binary"
"""One row per bucket and part of a batch.

The bucket's rows, and a note (progress of the whole part, dead letters, closing).
"""
ENDS, OLDS = "\0ends", "\0olds"
"""What lives are called among the columns of packed rows; no column of a stream can be called so."""
TAGGED = "kind string, body binary"
"""One row per kind of output of a bucket: result, late, dead, punctuation, promises, counts, progress, operators."""


def pack(table: pa.Table) -> bytes:
    """A table as Arrow IPC."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpack(data: bytes) -> pa.Table:
    """The table of Arrow IPC."""
    return pa.ipc.open_stream(data).read_all()


def with_lives(batch: Batch) -> pa.Table:
    """The rows of a batch with their lives, if they have any, as two columns more."""
    if batch.lives is None:
        return batch.table
    return batch.table.append_column(ENDS, pa.array(batch.lives.ends)).append_column(OLDS, pa.array(batch.lives.olds))


def unpack_batch(schema: Schema, data: bytes) -> Batch:
    """A batch of Arrow IPC, with the lives that travel beside its rows."""
    table = unpack(data)
    if schema.lives is None:
        return Batch(schema, table=table)
    lives = Lives(*(np.asarray(table.column(name).to_numpy()) for name in (ENDS, OLDS)))
    return Batch(schema, table=table.select(schema.names), lives=lives)


@dataclass(frozen=True)
class Note:
    """What a part of a micro-batch tells every bucket besides its rows."""

    summary: Any = None
    dead: tuple[tuple[str, str], ...] = ()
    read: int = 0
    bound: int | None = None
    """A bound given from outside: the stream goes on only from here."""
    said: tuple[tuple[Any, Any, int], ...] = ()
    """What the part promises of some groups: bounds, constants, and the time of the row that said it."""


def dump_note(note: Note) -> bytes:
    """A note as bytes."""
    return encode(vars(note))


def load_note(data: bytes) -> Note:
    """The note of bytes."""
    return Note(**decode(data, "note between Spark's operators"))


def dump(value: Any) -> bytes:
    """A small plain value as bytes."""
    return encode(value)


def load(data: bytes) -> Any:
    """The value of bytes."""
    return decode(data, "output between Spark's operators")
