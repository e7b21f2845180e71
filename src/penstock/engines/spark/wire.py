"""What travels between Spark's operators and the hosted graph: batches as Arrow IPC, the rest as plain data.

Before a stage, everything is a packet: to a bucket of a stage, for a port of it, of a kind. Packets to later stages,
and those that only pass by on their way out, go through a stage as they are. After the last one they are outputs, each
with its tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.model.batch import Batch
from penstock.model.lives import Lives
from penstock.model.plain import decode, encode
from penstock.model.schema import Schema

OUT = 0
"""The stage of packets that are outputs already."""
ROWS, PARTIALS, UPDATES, NOTE, BOUNDS, CALL = "rows", "partials", "updates", "note", "bounds", "call"
"""Kinds of packets: rows, what rows came to before they were sent, the newest rows of their keys with how many each
stands for, what a part of a micro-batch tells of its stream, what a bucket of the stage before promises of the rows
that it sends, and nothing but that there is a micro-batch."""
_PACKET = {
    "bucket": ("bigint", pa.int64()),
    "stage": ("int", pa.int32()),
    "port": ("string", pa.string()),
    "kind": ("string", pa.string()),
    "body": ("binary", pa.binary()),
}
PACKED = ", ".join(f"{name} {type_}" for name, (type_, _) in _PACKET.items())
"""A packet, as Spark's types."""
PACKED_TYPES = {name: arrow for name, (_, arrow) in _PACKET.items()}
"""The same as Arrow's."""
ENDS, OLDS, STANDS = "\0ends", "\0olds", "\0stands"
"""What lives, and how many a row stands for, are called among the columns of packed rows; no column of a stream can be
called so."""
_READ = Struct(">II")
TAGGED = "kind string, body binary"
"""One row per kind of output of a bucket: result, late, dead, punctuation, promises, counts, progress, greatest,
operators, queues, superseded."""


class Packet(NamedTuple):
    """One row between stages."""

    bucket: int
    """By its id."""
    stage: int
    port: str
    """The identity of the node whose output it is, or, of what enters a stream, the stream."""
    kind: str
    body: bytes


def output(kind: str, body: bytes) -> Packet:
    """A packet on its way out, which leaves through whichever bucket it is then given to."""
    return Packet(0, OUT, "", kind, body)


def packed(packets: Sequence[Packet]) -> pa.RecordBatch:
    """Packets as Spark takes them."""
    columns = zip(*packets, strict=True) if packets else [()] * len(PACKED_TYPES)
    arrays = [pa.array(values, type_) for values, type_ in zip(columns, PACKED_TYPES.values(), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(PACKED_TYPES))


def pack(table: pa.Table) -> bytes:
    """A table as Arrow IPC."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpack(data: bytes | pa.Buffer) -> pa.Table:
    """The table of Arrow IPC."""
    return pa.ipc.open_stream(data).read_all()


def numbered(task: int, part: int, data: bytes) -> bytes:
    """Arrow IPC that knows where it was read, so that in the order of such blobs rows are in the order of reading."""
    return _READ.pack(task, part) + data


def unnumbered(data: bytes) -> pa.Buffer:
    """The Arrow IPC of a blob that knows where it was read."""
    return pa.py_buffer(data).slice(_READ.size)


def with_lives(batch: Batch) -> pa.Table:
    """The rows of a batch with their lives, if they have any, as two columns more."""
    if batch.lives is None:
        return batch.table
    return batch.table.append_column(ENDS, pa.array(batch.lives.ends)).append_column(OLDS, pa.array(batch.lives.olds))


def unpack_batch(schema: Schema, data: bytes | pa.Buffer) -> Batch:
    """A batch of Arrow IPC, with the lives that travel beside its rows."""
    table = unpack(data)
    if schema.lives is None:
        return Batch(schema, table=table)
    lives = Lives(*(np.asarray(table.column(name).to_numpy()) for name in (ENDS, OLDS)))
    return Batch(schema, table=table.select(schema.names), lives=lives)


def unpack_updates(schema: Schema, data: bytes) -> tuple[Batch, np.ndarray]:
    """Rows, and how many updates each stands for."""
    table = unpack(data)
    stands_for = np.asarray(table.column(STANDS).to_numpy())
    return Batch(schema, table=table.select(schema.names)), stands_for


@dataclass(frozen=True)
class Note:
    """What a part of a micro-batch tells every bucket besides its rows."""

    summary: Any = None
    dead: tuple[tuple[str, str], ...] = ()
    read: int = 0
    bound: int | None = None
    """A bound given from outside: the stream goes on only from here."""
    clock: int | None = None
    """What time it is, for a stream of which the clock may speak; in microseconds since 1970."""
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
