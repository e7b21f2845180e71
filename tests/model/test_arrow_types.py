"""Every Arrow type: what queries can use has its values, the rest passes by and is named when a query asks for it."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import penstock as pk
from penstock.errors import QueryError, StreamError

DAY = dt.date(2026, 1, 2)
NOON = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)
UUID = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"x" * 16, None], pa.binary(16)))

USABLE: list[tuple[pa.Array, str, list[Any]]] = [
    (pa.array([True, None]), "boolean", [True, None]),
    (pa.array([-1, None], pa.int8()), "tinyint", [-1, None]),
    (pa.array([-1, None], pa.int16()), "smallint", [-1, None]),
    (pa.array([-1, None], pa.int32()), "int", [-1, None]),
    (pa.array([-1, None], pa.int64()), "bigint", [-1, None]),
    (pa.array([255, None], pa.uint8()), "smallint", [255, None]),
    (pa.array([65_535, None], pa.uint16()), "int", [65_535, None]),
    (pa.array([2**32 - 1, None], pa.uint32()), "bigint", [2**32 - 1, None]),
    (pa.array([2**64 - 1, None], pa.uint64()), "decimal(20,0)", [Decimal(2**64 - 1), None]),
    (pa.array([np.float16(1.5), None], pa.float16()), "float", [1.5, None]),
    (pa.array([1.5, None], pa.float32()), "float", [1.5, None]),
    (pa.array([1.5, None], pa.float64()), "double", [1.5, None]),
    (pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)), "decimal(5,2)", [Decimal("1.50"), None]),
    (pa.array([Decimal("1.50"), None], pa.decimal256(38, 2)), "decimal(38,2)", [Decimal("1.50"), None]),
    (pa.array(["é", None]), "string", ["é", None]),
    (pa.array(["é", None], pa.large_string()), "string", ["é", None]),
    (pa.array(["é", None], pa.string_view()), "string", ["é", None]),
    (pa.array(["é", None]).dictionary_encode(), "string", ["é", None]),
    (pc.run_end_encode(pa.array(["é", None])), "string", ["é", None]),
    (pa.array([b"\xff", None]), "binary", [b"\xff", None]),
    (pa.array([b"\xff", None], pa.large_binary()), "binary", [b"\xff", None]),
    (pa.array([b"\xff", None], pa.binary_view()), "binary", [b"\xff", None]),
    (pa.array([b"\xff\x00", None], pa.binary(2)), "binary", [b"\xff\x00", None]),
    (pa.array([DAY, None], pa.date32()), "date", [DAY, None]),
    (pa.array([DAY, None], pa.date64()), "date", [DAY, None]),
    *[(pa.array([NOON, None], pa.timestamp(u, "UTC")), "timestamp", [NOON, None]) for u in ("s", "ms", "us", "ns")],
    (pa.array([NOON, None], pa.timestamp("us", "America/New_York")), "timestamp", [NOON, None]),
    *[
        (pa.array([dt.timedelta(seconds=-2), None], pa.duration(u)), "bigint", [-2_000_000, None])
        for u in ("s", "ms", "us", "ns")
    ],
    (pa.nulls(2), "string", [None, None]),
    (UUID, "binary", [b"x" * 16, None]),
    (pa.array([[1], None]), "array<bigint>", [[1], None]),
    (pa.array([[1], None], pa.large_list(pa.int32())), "array<int>", [[1], None]),
    (pa.array([[1], None], pa.list_(pa.uint8(), 1)), "array<smallint>", [[1], None]),
    (pa.array([{"a": 1}, None]), "struct<a:bigint>", [{"a": 1}, None]),
    (pa.array([[("a", 1)], None], pa.map_(pa.large_string(), pa.int64())), "map<string,bigint>", [[("a", 1)], None]),
    (pa.array([[["x", None]], None]), "array<array<string>>", [[["x", None]], None]),
]  # fmt: skip
UNUSABLE: list[pa.Array] = [
    pa.array([[1], None], pa.list_view(pa.int64())), pa.array([1, None], pa.time32("s")),
    pa.array([[dt.time(1)], None], pa.list_(pa.time32("s"))), pa.array([{}, None], pa.struct([])),
    pa.StructArray.from_arrays([pa.array([1, 2]), pa.array([1, 2])], ["a", "A"], mask=pa.array([False, True])),
    pa.array([1, None], pa.time64("ns")), pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
    pa.array([Decimal(1), None], pa.decimal256(50, 2)), pa.array([Decimal(100), None], pa.decimal128(5, -2)),
    pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1, None])]),
    pa.UnionArray.from_dense(pa.array([0, 0], pa.int8()), pa.array([0, 1], pa.int32()), [pa.array([1, None])]),
]  # fmt: skip


def flow_of(column: pa.Array) -> pk.Flow:
    return pk.Flow().stream("s", pa.table({"t": [1, 2], "x": column}), time="t")


@pytest.mark.parametrize(
    ("column", "type_", "values"), USABLE, ids=lambda v: str(v.type) if isinstance(v, pa.Array) else ""
)
def test_what_queries_can_use(column: pa.Array, type_: str, values: list[Any]) -> None:
    query: Any = flow_of(column).query("SELECT x FROM s")
    assert str(query.schema["x"].type) == type_
    result = query.collect()
    assert result["x"].to_pylist() == values
    assert query.counts["dead"] == 0
    if type_.startswith("map"):
        return
    counted: Any = flow_of(column).query("SELECT x, count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM s GROUP BY x")
    assert sorted(counted.collect()["n"].to_pylist()) == sorted(Counter(map(repr, values)).values())


@pytest.mark.parametrize("column", UNUSABLE, ids=lambda c: str(c.type))
def test_what_queries_cannot_use_passes_by(column: pa.Array) -> None:
    query: Any = flow_of(column).query("SELECT t FROM s")
    assert query.collect()["t"].to_pylist() == [1, 2]
    assert query.counts["dead"] == 0
    for sql in (
        "SELECT x FROM s",
        "SELECT t FROM s WHERE X IS NULL",
        "SELECT count(x) [RANGE 1, SLIDE 1, WA t] FROM s",
    ):
        with pytest.raises(QueryError) as caught:
            flow_of(column).query(sql)
        for part in ("a type that queries cannot use", f"x: {column.type}", "line 1, column"):
            assert part in caught.value.message
    with pytest.raises(QueryError, match=r"SELECT \* would take in columns of types that queries cannot use"):
        flow_of(column).query("SELECT * FROM s")
    declared: Any = pk.Flow().stream("s", pa.table({"t": [1, 2], "x": column}), time="t", schema="t bigint, x string")
    asked = declared.query("SELECT t, x FROM s")
    asked.collect()
    assert asked.counts["dead"] == len(column) - column.null_count if not isinstance(column, pa.UnionArray) else True


def test_a_column_that_cannot_be_the_time_is_said() -> None:
    for column in UNUSABLE:
        with pytest.raises(StreamError, match="The time column must be a timestamp, a date, an integer, or text"):
            pk.Flow().stream("s", pa.table({"t": column}), time="t")


def test_text_that_is_not_utf8_is_a_dead_letter() -> None:
    offsets, data = pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"a\xff")
    broken = pa.Array.from_buffers(pa.string(), 2, [None, offsets, data])
    for column in (broken, broken.dictionary_encode()):
        query: Any = flow_of(column).query("SELECT x FROM s")
        assert query.collect()["x"].to_pylist() == ["a"]
        assert query.dead_letters["reason"].to_pylist() == ["x is not a string: '\\\\xff'"]


def test_rows_with_nested_values_and_values_of_numpy() -> None:
    rows = [{"t": np.int64(1), "x": {"a": 1}, "f": np.float32(1.5), "b": np.bool_(True), "n": pd.NA}]
    query: Any = pk.Flow().stream("s", rows, time="t").query("SELECT t, f, b, n, x, x.a FROM s")
    assert query.collect().to_pylist() == [{"t": 1, "f": 1.5, "b": True, "n": None, "x": {"a": 1}, "a": 1}]


def test_frames_with_columns_of_every_kind() -> None:
    frame = pd.DataFrame({"t": [1, 2], "c": pd.Categorical(["a", "b"]), "o": [[1], None], "m": [1, "x"]})
    with pytest.raises(StreamError, match=r"types that do not go together(.|\n)*m: "):
        pk.Flow().stream("s", frame, time="t")
    query: Any = pk.Flow().stream("s", frame.drop(columns="m"), time="t").query("SELECT c FROM s")
    assert query.collect()["c"].to_pylist() == ["a", "b"]
    polars = pl.DataFrame({"t": [1], "l": [[1]], "s": [{"a": 1}], "at": [dt.time(1)], "d": [dt.timedelta(seconds=1)]})
    query = pk.Flow().stream("s", polars, time="t").query("SELECT t, d FROM s")
    assert query.collect().to_pylist() == [{"t": 1, "d": 1_000_000}]
