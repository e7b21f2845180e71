"""Plain data as bytes: what pages, snapshots, records and notes between processes are made of.

Plain data is None, booleans, integers of any size, floats, text, bytes, `Decimal`, dates and times, lists, tuples,
sets, dictionaries with any plain key, `Counter`, numpy arrays and scalars, Arrow tables, and nothing else: an object of
a class is refused when it is written, since it could not be read by a release in which that class has changed. Reading
never runs code and never looks a name up: bytes that are not what `encode` wrote, or are cut short, are a
`CheckpointError`.

What comes back is equal and of the same types: a tuple is not a list, -0.0 is not 0.0, text may hold lone surrogates,
`NAN` is again the one NaN that is equal to itself.

The bytes are MessagePack: numbers, text and bytes natively, a list of them as an array; everything else as a map of one
entry, whose key says what its value stands for (`Form`). Lists of equally long tuples or lists are written column by
column, so that a table of groups costs a few passes in C instead of a call per group. MessagePack was chosen because
its reader makes nothing but plain values, it is written down and stable, and this way it keeps up with pickle
(`benchmarks/pages.py`). What is large is compressed: a page of a join on Spark is read in every micro-batch, through a
socket and a store that take longer for a byte than it takes to make two of one.
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from operator import itemgetter
from typing import Any

import msgpack
import numpy as np
import pyarrow as pa

from penstock.errors import CheckpointError
from penstock.model.values import NAN


class Form:
    """What the value of a map's one entry stands for; numbers are never given anew.

    Plain integers: an enumeration's members are slow as keys.
    """

    TUPLE = 1
    DICT = 2
    """Keys and values."""
    TUPLES = 3
    """A list of equally long tuples, as columns."""
    LISTS = 4
    """A list of equally long lists, as columns."""
    SET = 5
    FROZENSET = 6
    COUNTER = 7
    INTEGER = 8
    """Beyond 64 bits: two's complement, little-endian."""
    NAN = 9
    DECIMAL = 10
    DECIMALS = 11
    """A list of them."""
    DATE = 12
    DATETIME = 13
    TIME = 14
    TIMEDELTA = 15
    ARRAY = 16
    """Type, shape, little-endian bytes."""
    OBJECTS = 17
    """An array of Python's integers: shape, values."""
    SCALAR = 18
    TABLE = 19
    """Arrow IPC."""
    COMPRESSED = 20
    """What was written, and its length; always the outermost."""


class NotPlain(TypeError):
    """A value that cannot be kept; the message names its type."""


LARGE = 1 << 16
"""Bytes from which on what was written is compressed: wherever it goes, bytes cost more than making them fewer."""
CODEC = "zstd"
MIN_COLUMNS = 4
"""Shorter lists are written item by item."""
_ATOMS = frozenset({type(None), bool, int, float, str, bytes})
_FIXED = re.compile(r"[<|]([biuf][1248]|M8\[\w+\]|m8\[\w+\])")
_UNREADABLE = (
    ValueError, TypeError, LookupError, ArithmeticError, RecursionError, AttributeError, MemoryError, OSError,
    pa.ArrowException,
)  # fmt: skip


def encode(value: Any) -> bytes:
    """The bytes of plain data; anything else raises `NotPlain`."""
    try:
        written = _packer().pack(_written(value))
    except RecursionError:
        raise NotPlain("values nested too deeply, or within themselves") from None
    except ValueError as error:  # MessagePack's own limits
        raise NotPlain(str(error)) from None
    return bytes(written) if len(written) < LARGE else _compressed(written)


def decode(data: bytes, where: str = "") -> Any:
    """The plain data of bytes; `where` says, in an error, what was read."""
    try:
        return _unpacked(data)
    except _UNREADABLE as error:
        raise CheckpointError(
            "Saved state cannot be read: it is damaged, cut short, or of another kind.",
            where=where,
            got=f"{len(data)} bytes, {type(error).__name__}: {error}"[:300]
            if isinstance(data, bytes)
            else repr(data)[:80],
            hint="use an intact copy, or start anew without it",
        ) from None


def _compressed(written: bytes) -> bytes:
    smaller = pa.compress(written, CODEC, asbytes=True)
    if len(smaller) > len(written) * 0.9:  # not worth making it larger again
        return bytes(written)
    return bytes(_packer().pack({Form.COMPRESSED: [len(written), smaller]}))


def _decompressed(body: list[Any]) -> Any:
    size, smaller = body
    return _unpacked(pa.decompress(smaller, size, CODEC, asbytes=True))


def _unpacked(data: bytes) -> Any:
    return msgpack.unpackb(
        data, raw=False, use_list=True, strict_map_key=False, unicode_errors="surrogatepass", object_hook=_read
    )


def _packer() -> msgpack.Packer:
    return msgpack.Packer(use_bin_type=True, unicode_errors="surrogatepass", default=_wide, autoreset=True)


# Writing


def _written(value: Any) -> Any:
    """The value as numbers, text, bytes, arrays and maps of one entry."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    write = _WRITERS.get(kind)
    if write is not None:
        return write(value)
    if isinstance(value, np.generic):
        return {Form.SCALAR: _array_parts(np.asarray(value))}
    raise NotPlain(f"a value of type {kind.__module__}.{kind.__qualname__}")


def _wide(value: Any) -> Any:
    """What MessagePack asks for where it has no form of its own: only integers beyond 64 bits come here."""
    assert type(value) is int
    return {Form.INTEGER: value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)}


def _list(values: list[Any]) -> Any:
    kinds = set(map(type, values))
    if kinds <= _ATOMS:
        return values
    if len(kinds) == 1 and len(values) >= MIN_COLUMNS:
        (kind,) = kinds
        if kind is Decimal:
            return {Form.DECIMALS: [str(v) for v in values]}
        if kind is tuple or kind is list:
            widths = set(map(len, values))
            if len(widths) == 1 and 0 not in widths:
                form = Form.TUPLES if kind is tuple else Form.LISTS
                return {form: [_list(list(map(itemgetter(at), values))) for at in range(widths.pop())]}
    return [_written(v) for v in values]


def _array_parts(array: np.ndarray) -> list[Any]:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if _FIXED.fullmatch(little.dtype.str) is None:
        raise NotPlain(f"a numpy array of {array.dtype}")
    return [little.dtype.str, list(array.shape), little.tobytes()]


def _array(array: np.ndarray) -> dict[int, Any]:
    if array.dtype == object:
        return {Form.OBJECTS: [list(array.shape), _list(list(array.flat))]}
    return {Form.ARRAY: _array_parts(array)}


def _zone(zone: dt.tzinfo | None) -> Any:
    if zone is None:
        return None
    if type(zone) is dt.timezone:
        return zone.utcoffset(None) // dt.timedelta(microseconds=1)
    if type(zone) is zoneinfo.ZoneInfo and zone.key is not None:
        return zone.key
    raise NotPlain(f"a time zone of type {type(zone).__module__}.{type(zone).__qualname__}")


def _clock(value: dt.datetime | dt.time) -> list[Any]:
    return [value.hour, value.minute, value.second, value.microsecond, value.fold, _zone(value.tzinfo)]


def _table(table: pa.Table) -> dict[int, Any]:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return {Form.TABLE: bytes(sink.getvalue())}


def _pairs(form: int) -> Callable[[dict[Any, Any]], Any]:
    return lambda value: {form: [_list(list(value)), _list(list(value.values()))]}


_WRITERS: dict[type, Callable[[Any], Any]] = {
    list: _list,
    tuple: lambda value: {Form.TUPLE: _items(value)},
    dict: _pairs(Form.DICT),
    Counter: _pairs(Form.COUNTER),
    set: lambda value: {Form.SET: _list(list(value))},
    frozenset: lambda value: {Form.FROZENSET: _list(list(value))},
    type(NAN): lambda value: {Form.NAN: None},
    Decimal: lambda value: {Form.DECIMAL: str(value)},
    dt.date: lambda value: {Form.DATE: value.toordinal()},
    dt.datetime: lambda value: {Form.DATETIME: [value.toordinal(), *_clock(value)]},
    dt.time: lambda value: {Form.TIME: _clock(value)},
    dt.timedelta: lambda value: {Form.TIMEDELTA: [value.days, value.seconds, value.microseconds]},
    np.ndarray: _array,
    pa.Table: _table,
}


def _items(values: tuple[Any, ...]) -> list[Any]:
    return [_written(v) for v in values]


# Reading


def _read(entry: dict[Any, Any]) -> Any:
    ((form, body),) = entry.items()
    return _READERS[form](body)


def _to_array(body: list[Any]) -> np.ndarray:
    kind, shape, data = body
    if _FIXED.fullmatch(kind) is None:
        raise ValueError(f"an array of {kind!r}")
    return np.frombuffer(data, np.dtype(kind)).reshape(shape).copy()


def _to_objects(body: list[Any]) -> np.ndarray:
    shape, values = body
    flat = np.empty(len(values), object)
    for at, value in enumerate(values):
        flat[at] = value
    return flat.reshape(shape)


def _to_zone(zone: Any) -> dt.tzinfo | None:
    if zone is None:
        return None
    return zoneinfo.ZoneInfo(zone) if isinstance(zone, str) else dt.timezone(dt.timedelta(microseconds=zone))


def _to_time(body: list[Any]) -> dt.time:
    hour, minute, second, microsecond, fold, zone = body
    return dt.time(hour, minute, second, microsecond, _to_zone(zone), fold=fold)


def _to_datetime(body: list[Any]) -> dt.datetime:
    return dt.datetime.combine(dt.date.fromordinal(body[0]), _to_time(body[1:]))


def _to_table(body: bytes) -> pa.Table:
    table = pa.ipc.open_stream(pa.py_buffer(body)).read_all()  # text would be taken for a path
    table.validate(full=True)
    return table


def _to_pairs(body: list[Any]) -> dict[Any, Any]:
    keys, values = body
    return dict(zip(keys, values, strict=True))


_READERS: dict[Any, Callable[[Any], Any]] = {
    Form.TUPLE: tuple,
    Form.DICT: _to_pairs,
    Form.TUPLES: lambda columns: list(zip(*columns, strict=True)),
    Form.LISTS: lambda columns: list(map(list, zip(*columns, strict=True))),
    Form.SET: set,
    Form.FROZENSET: frozenset,
    Form.COUNTER: lambda body: Counter(_to_pairs(body)),
    Form.INTEGER: lambda body: int.from_bytes(body, "little", signed=True),
    Form.NAN: lambda body: NAN,
    Form.DECIMAL: Decimal,
    Form.DECIMALS: lambda body: [Decimal(text) for text in body],
    Form.DATE: dt.date.fromordinal,
    Form.DATETIME: _to_datetime,
    Form.TIME: _to_time,
    Form.TIMEDELTA: lambda body: dt.timedelta(*body),
    Form.ARRAY: _to_array,
    Form.OBJECTS: _to_objects,
    Form.SCALAR: lambda body: _to_array(body)[()],
    Form.TABLE: _to_table,
    Form.COMPRESSED: _decompressed,
}
