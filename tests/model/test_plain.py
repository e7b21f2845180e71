"""Plain data comes back as it was, whatever it is; anything else is refused, and bytes that are none are an error."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import datetime as dt
import enum
import math
import os
import pickle
import random
import struct
import zoneinfo
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from penstock.errors import CheckpointError
from penstock.model.plain import NotPlain, decode, encode
from penstock.model.values import NAN, canonical


def _equals_itself(value: Any) -> bool:
    return (
        value.is_finite()
        if isinstance(value, Decimal)
        else not (isinstance(value, float) and math.isnan(value) and value is not NAN)
    )


ZONES = st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=-3, minutes=-30)), zoneinfo.ZoneInfo("Europe/Berlin")])
TEXT = st.text(st.characters(codec=None, categories=None))  # lone surrogates among them
ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**200), 2**200)
    | st.floats()
    | st.just(NAN)
    | TEXT
    | st.binary()
    | st.decimals()
    | st.dates()
    | st.datetimes()
    | st.datetimes(timezones=ZONES)
    | st.times()
    | st.timedeltas()
)
KEYS = st.recursive(
    ATOMS.filter(_equals_itself), lambda inner: st.tuples(inner, inner) | st.frozensets(inner), max_leaves=4
)
ARRAYS = npst.arrays(
    npst.boolean_dtypes() | npst.integer_dtypes() | npst.unsigned_integer_dtypes() | npst.floating_dtypes(),
    npst.array_shapes(min_dims=0, min_side=0),
)
VALUES = st.recursive(
    ATOMS | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=8)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=8)
        | st.sets(KEYS, max_size=8)
        | st.lists(st.tuples(inner, inner), max_size=8)
        | st.lists(st.lists(inner, min_size=2, max_size=2), max_size=8)
    ),
    max_leaves=40,
)


def identical(a: Any, b: Any) -> bool:
    """Equal, and of the same types all the way down."""
    if type(a) is not type(b):
        return False
    if a is NAN:
        return b is NAN
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    if isinstance(a, np.ndarray):
        if a.dtype == object:
            return a.shape == b.shape and all(map(identical, a.flat, b.flat))
        return a.shape == b.shape and a.dtype.newbyteorder("<") == b.dtype and np.array_equal(a, b, equal_nan=True)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(identical, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and all(identical(x, y) for x, y in zip(a.items(), b.items(), strict=True))
    if isinstance(a, set | frozenset):
        return a == b and {*map(type, a)} == {*map(type, b)}
    if isinstance(a, dt.datetime | dt.time):
        return a.replace(tzinfo=None) == b.replace(tzinfo=None) and a.tzinfo == b.tzinfo and a.fold == b.fold
    return str(a) == str(b) if isinstance(a, Decimal) else bool(a == b)


@given(VALUES)
@example([(1, 2), (3, 4), (5, 6), (7, 2**70)])
@example({("a", NAN): [(0.5, 1), None], ("b", NAN): [(-0.0, 2), 7]})
@example([math.nan, math.inf, -math.inf, -0.0])
@example(["\ud800", "a\0b", ""])
@example([(), (), (), ()])
@example([Decimal("1.50"), Decimal("NaN"), Decimal("-0"), Decimal("1E+400"), Decimal("sNaN")])
@example((2**63 - 1, -(2**63), 2**63, 2**64, -(2**63) - 1, 1 << 4000))
def test_anything_plain_comes_back_as_it_was(value: Any) -> None:
    assert identical(value, decode(encode(value)))


def test_arrays_come_back_writable_and_object_arrays_keep_wide_numbers() -> None:
    wide = np.array([2**70, -1, None], object)
    found = decode(encode({"a": np.arange(3), "w": wide, "s": np.float32(1.5), "big": np.array([1, 2], ">i4")}))
    found["a"][0] = 7
    assert found["a"].tolist() == [7, 1, 2]
    assert identical(wide, found["w"])
    assert type(found["s"]) is np.float32
    assert found["big"].tolist() == [1, 2]


def test_tables_and_counters_come_back() -> None:
    table = pa.table(
        {"a": pa.array([1, None], pa.int32()), "b": [["x"], None], "t": pa.array([0, 1], pa.timestamp("us", "UTC"))}
    )
    found = decode(encode([table, collections.Counter("abba")]))
    assert found[0].equals(table)
    assert found[0].schema == table.schema
    assert type(found[1]) is collections.Counter
    assert found[1] == collections.Counter("abba")


def test_a_nan_that_is_a_key_is_found_again() -> None:
    found = decode(encode({(canonical(math.nan),): 1}))
    assert (
        found[
            canonical(
                float("nan"),
            ),
        ]
        == 1
    )


class Colour(enum.IntEnum):
    RED = 1


@dataclasses.dataclass(frozen=True)
class Pair:
    left: int


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (Pair(1), "Pair"),
        ([Pair(1)] * 5, "Pair"),
        ({"a": (1, Colour.RED)}, "Colour"),
        (collections.namedtuple("Point", "x y")(1, 2), "Point"),
        (collections.deque([1]), "deque"),
        (collections.defaultdict(int), "defaultdict"),
        (pd.Timestamp("2026-01-01"), "Timestamp"),
        (np.array(["a"]), "<U1"),
        (np.array([Pair(1)], object), "Pair"),
        (bytearray(b"a"), "bytearray"),
        (1j, "complex"),
        (len, "builtin_function_or_method"),
        (int, "type"),
        (dt.datetime(2026, 1, 1, tzinfo=type("Here", (dt.tzinfo,), {})()), "time zone of type .*Here"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_by_its_type(value: Any, named: str) -> None:
    with pytest.raises(NotPlain, match=named):
        encode(value)


def test_what_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append((endless,))
    with pytest.raises(NotPlain, match="nested"):
        encode(endless)


def test_what_is_nested_too_deeply_is_refused_or_read_back() -> None:
    deep: Any = 1
    for _ in range(3000):
        deep = (deep,)
    with pytest.raises(NotPlain):
        encode(deep)


class Bomb:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_a_pickle_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read"):
        decode(pickle.dumps(Bomb(tmp_path / "ran")))
    assert not (tmp_path / "ran").exists()


CRAFTED = [
    {99: 1}, {"TUPLE": [1]}, {1: 5}, {1: [1], 2: [1]}, {},
    {2: [[1], [1, 2]]}, {2: [[[1]], [1]]}, {3: [[1], [1, 2]]}, {5: [[1]]}, {7: [[[]], [1]]},
    {8: "text"}, {10: "x"}, {12: 0}, {13: [1]}, {13: [1, 25, 0, 0, 0, 0, None]}, {15: ["a"]},
    {14: [0, 0, 0, 0, 0, "../../etc/passwd"]}, {14: [0, 0, 0, 0, 0, "/etc/passwd"]},
    {16: ["|O8", [1], b"12345678"]}, {16: ["<i8", [2], b"1"]}, {16: ["<i8", [10**12], b"12345678"]},
    {17: [[3], [1]]}, {18: ["<i8", [1, 1], b"123"]}, {19: b"junk"}, {19: "/etc/passwd"},
]  # fmt: skip


@pytest.mark.parametrize("crafted", CRAFTED, ids=repr)
def test_crafted_bytes_are_an_error(crafted: Any) -> None:
    with pytest.raises(CheckpointError, match="cannot be read"):
        decode(msgpack.packb(crafted, strict_types=False))


@given(VALUES, st.data())
def test_what_is_cut_short_is_an_error(value: Any, data: st.DataObject) -> None:
    whole = encode(value)
    with pytest.raises(CheckpointError):
        decode(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(st.binary() | st.binary().map(lambda b: encode([b, 1])[:-1] + b), st.integers(0, 255))
def test_garbage_is_read_as_plain_data_or_refused(garbage: bytes, extra: int) -> None:
    for data in (garbage, garbage + bytes([extra]), bytes([0x81, extra]) + garbage):
        with contextlib.suppress(CheckpointError):  # and nothing else
            decode(data)


def test_the_error_says_where() -> None:
    with pytest.raises(CheckpointError) as caught:
        decode(b"", "snapshot of x")
    assert "where: snapshot of x" in str(caught.value)
    assert "got:   0 bytes" in str(caught.value)
    assert "try:   use an intact copy" in str(caught.value)


@pytest.mark.parametrize("value", [np.arange(50_000), ["text"] * 50_000, b"\0" * 200_000])
def test_what_is_large_is_written_in_fewer_bytes(value: Any) -> None:
    written = encode([1, value])
    assert len(written) < 0.9 * len(pickle.dumps(value))
    first, found = decode(written)
    assert first == 1
    assert np.array_equal(found, value)


def test_what_cannot_be_made_smaller_is_written_as_it_is() -> None:
    value = random.Random(1).randbytes(200_000)
    assert encode(value).endswith(value)


@given(st.data())
def test_what_is_large_and_damaged_is_an_error_or_plain_data(data: st.DataObject) -> None:
    written = bytearray(encode(["text"] * 50_000))
    at = data.draw(st.integers(0, len(written) - 1))
    written[at] ^= data.draw(st.integers(1, 255))
    try:
        found = decode(bytes(written))
    except CheckpointError:
        return
    assert encode(found), "what is read is plain data"
