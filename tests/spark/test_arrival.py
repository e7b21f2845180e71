"""Bounded DataFrames with a column that gives the order of arrival: judged and numbered as in-process."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as pk
from penstock.flow.flow import Flow

pytestmark = pytest.mark.spark

ROWS = [
    {"seq": 5, "t": 9, "k": None, "v": 10},
    {"seq": 1, "t": 1, "k": None, "v": 1},
    {"seq": 7, "t": 2, "k": None, "v": 100},
    {"seq": 9, "t": 10, "k": None, "v": 1000},
    {"seq": 8, "t": 50, "k": "punct", "v": 7},
]
NUMBERED = "SELECT sum(v) AS s [RANGE 2 rows, SLIDE 2 rows, WA row-num] FROM s WHERE v <> 10"


def flows(spark: Any, progress: Any) -> list[Flow]:
    ordered = sorted(ROWS, key=lambda row: row["seq"])  # type: ignore[arg-type,return-value]
    schema = "seq int, t bigint, k string, v bigint"
    frame = spark.createDataFrame([tuple(r.values()) for r in ROWS], schema).repartition(2)
    return [
        Flow().stream("s", ordered, time="t", progress=progress, schema=schema),
        Flow(spark).stream("s", frame, time="t", progress=progress, arrival="seq"),
    ]


def test_rows_are_numbered_in_the_order_of_arrival(spark: Any) -> None:
    """Before WHERE, and late ones too: numbers 0 (t 1), 1 (t 9), 2 (t 2, behind), 3 (t 50), 4 (t 10, behind)."""
    for flow in flows(spark, pk.ordered()):
        query = flow.query(NUMBERED)
        rows = sorted(tuple(r.values()) for r in query.collect().to_pylist())
        assert rows == [(0, 0, 2, 1), (1, 2, 4, 107), (2, 4, 6, 1000)]
        late = query.late
        assert (late.num_rows if flow.engine == "local" else late.count()) == 0


def test_punctuation_with_a_value_condemns_nobody(spark: Any) -> None:
    for flow in flows(spark, pk.punctuated("k = 'punct'")):
        query = flow.query("SELECT t, v FROM s")
        assert sorted(r["t"] for r in query.collect().to_pylist()) == [1, 2, 9, 10]
    for flow in flows(spark, pk.punctuated("k = 'punct'", whole_stream=True)):
        query = flow.query("SELECT t, v FROM s")
        assert sorted(r["t"] for r in query.collect().to_pylist()) == [1, 2, 9]
