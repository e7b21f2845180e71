"""Rows as bytes, to lie on pages.

A tuple is its head and then its texts. The head is a bit per column that says whether it is null, the columns that have
a fixed width, and the lengths of those that have none: texts, bytes, and whatever else there is as plain data
(`model.plain`). It is padded to the size of a location (`page_pool.rounded`), so that there are few sizes.

A row alone is packed by `struct`, many are packed column by column; the bytes are the same.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Row, ticks_of
from penstock.model.nested import column_of, values_of
from penstock.model.plain import decode, encode
from penstock.model.schema import DATE, STRING, TIMESTAMP, Schema
from penstock.model.types import BIGINT, BINARY, BOOLEAN, DOUBLE, FLOAT, INT, SMALLINT, TINYINT, DataType
from penstock.operators.queues.page_pool import rounded

_FIXED = {
    BOOLEAN: "?", TINYINT: "b", SMALLINT: "h", INT: "i", BIGINT: "q", FLOAT: "f", DOUBLE: "d", TIMESTAMP: "q",
    DATE: "i",
}  # fmt: skip
_DTYPES = {"?": "?", "b": "i1", "h": "<i2", "i": "<i4", "q": "<i8", "f": "<f4", "d": "<f8"}
_EPOCH = dt.date(1970, 1, 1).toordinal()


class TupleCodec:
    """The tuples of one schema."""

    def __init__(self, schema: Schema) -> None:
        """Columns of fixed width first, in their order, then the others."""
        self.schema = schema
        types = [f.type for f in schema.fields]
        self._fixed = [i for i, type_ in enumerate(types) if type_ in _FIXED]
        self._others = [i for i, type_ in enumerate(types) if type_ not in _FIXED]
        self._dates = [i for i in self._fixed if types[i] == DATE]
        self._nulls = -(-len(types) // 8)
        codes = [_FIXED[types[i]] for i in self._fixed]
        self._struct = struct.Struct(f"<{self._nulls}s{''.join(codes)}{'I' * len(self._others)}")
        fields = [
            ("nulls", "u1", (self._nulls,)),
            *[(f"c{i}", _DTYPES[c]) for i, c in zip(self._fixed, codes, strict=True)],
        ]
        self._head = np.dtype([*fields, *[(f"l{i}", "<u4") for i in self._others]])
        self._no_nulls = bytes(self._nulls)
        self._is_text = not self._dates and all(types[i] == STRING for i in self._others)
        self._is_one_text = self._is_text and len(self._others) == 1 and len(self._fixed) > 1
        self._fixed_of: Callable[[Row], tuple[object, ...]] = itemgetter(*self._fixed) if self._is_one_text else tuple
        self._is_simple = not self._others and not self._dates and self._fixed == list(range(len(types)))

    # A row alone

    def encode_row(self, row: Row) -> bytes:
        """The bytes of a row."""
        if self._is_simple and None not in row:
            return self._struct.pack(self._no_nulls, *row)
        if self._is_one_text and None not in row:
            text: bytes = row[self._others[0]].encode("utf-8", "surrogatepass")  # type: ignore[attr-defined]
            return self._struct.pack(self._no_nulls, *self._fixed_of(row), len(text)) + text
        if self._is_text and None not in row:
            written = [row[i].encode("utf-8", "surrogatepass") for i in self._others]  # type: ignore[attr-defined]
            head = self._struct.pack(self._no_nulls, *[row[i] for i in self._fixed], *map(len, written))
            return b"".join([head, *written])
        nulls = sum(1 << i for i, value in enumerate(row) if value is None).to_bytes(self._nulls, "little")
        fixed = [_as_number(row[i]) for i in self._fixed]
        texts = [_as_bytes(row[i], self.schema.fields[i].type) for i in self._others]
        return b"".join([self._struct.pack(nulls, *fixed, *map(len, texts)), *texts])

    def decode_row(self, data: memoryview) -> Row:
        """The row of its bytes, which others may follow."""
        nulls, *values = self._struct.unpack_from(data)
        if self._is_simple and nulls == self._no_nulls:
            return tuple(values)
        row: list[object] = [None] * len(self.schema.fields)
        for i, value in zip(self._fixed, values, strict=False):
            row[i] = dt.date.fromordinal(value + _EPOCH) if i in self._dates else value
        start = self._struct.size
        for i, length in zip(self._others, values[len(self._fixed) :], strict=True):
            row[i] = _from_bytes(bytes(data[start : start + length]), self.schema.fields[i].type)
            start += length
        missing = int.from_bytes(nulls, "little")
        return tuple([None if missing >> i & 1 else value for i, value in enumerate(row)]) if missing else tuple(row)

    # Many

    def encode(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of rows one after the other, and where each starts, with the end at last."""
        rows = table.num_rows
        head = np.zeros(rows, self._head)
        columns = [_one_chunk(column) for column in table.columns]
        for i, column in enumerate(columns):
            if column.null_count:
                missing = np.asarray(pc.is_null(column).to_numpy(zero_copy_only=False))
                head["nulls"][:, i // 8] |= missing.astype(np.uint8) << (i % 8)
        for i in self._fixed:
            head[f"c{i}"] = _numbers(columns[i], self.schema.fields[i].type)
        texts = {i: _binary(columns[i], self.schema.fields[i].type) for i in self._others}
        size = np.full(rows, self._head.itemsize, np.int64)
        for i in self._others:
            head[f"l{i}"] = lengths = np.diff(texts[i][1])
            size += lengths
        return self._laid_out(head, [texts[i] for i in self._others], size)

    def _laid_out(
        self, head: np.ndarray, texts: Sequence[tuple[np.ndarray, np.ndarray]], size: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Heads and texts in their places."""
        width, rows = self._head.itemsize, len(head)
        kinds, which = np.unique(size, return_inverse=True)
        room = np.array([rounded(each) for each in kinds.tolist()], np.int64)[which]
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(room)])
        data = np.zeros(int(starts[-1]), np.uint8)
        flat = head.view(np.uint8).reshape(rows, width)
        if rows and room.min() == room.max():
            data.reshape(rows, -1)[:, :width] = flat
        elif rows:
            data[starts[:-1, None] + np.arange(width)] = flat
        place = starts[:-1] + width
        for content, offsets in texts:
            lengths = np.diff(offsets)
            data[np.repeat(place - offsets[:-1], lengths) + np.arange(len(content))] = content
            place = place + lengths
        return data, starts

    def decode(self, data: np.ndarray, starts: np.ndarray) -> pa.Table:
        """The rows of such bytes."""
        width, rows = self._head.itemsize, len(starts) - 1
        room = np.diff(starts)
        if rows and room.min() == room.max():
            flat = np.ascontiguousarray(data.reshape(rows, -1)[:, :width])
        else:
            flat = data[starts[:-1, None] + np.arange(width)]
        head = flat.reshape(-1).view(self._head)
        place = starts[:-1] + width
        columns: dict[int, pa.Array] = {}
        nulls = {i: (head["nulls"][:, i // 8] >> (i % 8) & 1).astype(np.bool_) for i in range(len(self.schema.fields))}
        for i in self._fixed:
            columns[i] = _column(head[f"c{i}"], nulls[i], self.schema.fields[i].type)
        for i in self._others:
            lengths = head[f"l{i}"].astype(np.int64)
            offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
            content = data[np.repeat(place - offsets[:-1], lengths) + np.arange(int(offsets[-1]))]
            columns[i] = _others(content, offsets, nulls[i], self.schema.fields[i].type)
            place = place + lengths
        return pa.Table.from_arrays([columns[i] for i in range(len(columns))], schema=self.schema.arrow)


# Values


def _as_number(value: object) -> object:
    if value is None:
        return 0
    return value.toordinal() - _EPOCH if isinstance(value, dt.date) else value


def _as_bytes(value: object, type_: DataType) -> bytes:
    if value is None:
        return b""
    if type_ == STRING:
        assert isinstance(value, str)
        return value.encode("utf-8", "surrogatepass")
    return bytes(value) if type_ == BINARY else encode(value)  # type: ignore[call-overload]


def _from_bytes(data: bytes, type_: DataType) -> object:
    if type_ == STRING:
        return data.decode("utf-8", "surrogatepass")
    return data if type_ == BINARY or not data else decode(data, "a tuple in a queue")


# Columns


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks)
        if column.num_chunks
        else (pa.array([], column.type))
    )


def _numbers(column: pa.Array, type_: DataType) -> np.ndarray:
    if type_ == TIMESTAMP:
        filled = pc.fill_null(column, pa.scalar(0, column.type)) if column.null_count else column
        return ticks_of(filled)
    if type_ == DATE:
        column = column.cast(pa.int32())
    if column.null_count:
        column = pc.fill_null(column, False if type_ == BOOLEAN else 0)
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _binary(column: pa.Array, type_: DataType) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of values that have no fixed width, one after the other, and where they start."""
    if type_ not in (STRING, BINARY):
        column = pa.array([_as_bytes(value, type_) for value in values_of(column)], pa.large_binary())
    binary = pa.large_binary()
    column = pc.fill_null(column.cast(pa.large_string() if type_ == STRING else binary).cast(binary), b"")
    _, offsets, content = column.buffers()
    at = np.frombuffer(offsets, np.int64, len(column) + 1, column.offset * 8) if offsets else np.zeros(1, np.int64)
    flat = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    return flat[at[0] : at[-1]], at - at[0]


def _column(values: np.ndarray, nulls: np.ndarray, type_: DataType) -> pa.Array:
    column = pa.array(np.ascontiguousarray(values), mask=nulls if nulls.any() else None)
    if type_ == TIMESTAMP:
        return column.cast(pa.timestamp("us")).cast(type_.arrow) if type_.arrow.tz is None else column.cast(type_.arrow)
    return column.cast(type_.arrow)


def _others(content: np.ndarray, offsets: np.ndarray, nulls: np.ndarray, type_: DataType) -> pa.Array:
    if type_ not in (STRING, BINARY):
        ends = offsets.tolist()
        parts = [content[lo:hi].tobytes() for lo, hi in pairwise(ends)]
        values = [None if missing else _from_bytes(p, type_) for p, missing in zip(parts, nulls.tolist(), strict=True)]
        return column_of(values, type_)
    present = pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None
    kind = pa.large_string() if type_ == STRING else pa.large_binary()
    buffers = [present, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(np.ascontiguousarray(content))]
    return pa.Array.from_buffers(kind, len(nulls), buffers).cast(type_.arrow)
