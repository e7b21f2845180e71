"""What travels between Spark's operators and the hosted graph: batches as Arrow IPC, everything else pickled."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa

from penstock.model.batch import Batch
from penstock.model.schema import Schema

PACKED = "bucket bigint, stream string, rows binary, note binary"
"""One row per bucket and part of a batch.

The bucket's rows, and a note (progress of the whole part, dead letters, closing).
"""
TAGGED = "kind string, body binary"
"""One row per kind of output of a bucket: result, late, dead, punctuation, counts."""


def pack(table: pa.Table) -> bytes:
    """A table as Arrow IPC."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpack(data: bytes) -> pa.Table:
    """The table of Arrow IPC."""
    return pa.ipc.open_stream(data).read_all()


def unpack_batch(schema: Schema, data: bytes) -> Batch:
    """A batch of Arrow IPC."""
    return Batch(schema, table=unpack(data))


def dump(value: Any) -> bytes:
    """A small value as bytes."""
    return pickle.dumps(value, protocol=5)


def load(data: bytes) -> Any:
    """The value of bytes."""
    return pickle.loads(data)
