"""Bounded DataFrames with a column that gives the order of arrival: judged and numbered as in-process."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest

import penstock as pk
from penstock.flow.flow import Flow
from penstock.operators.progress.lateness import AMBIGUOUS_REASON

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


SCHEMA = "seq int, t bigint, k string, v bigint"
EVERY = [
    pk.ordered(), pk.bounded(4), pk.bounded(rows=2), pk.estimated("20%", rows=15), pk.punctuated("k = 'p'"),
    pk.punctuated("k = 'p' AND 6 div v > 1"),
    pk.punctuated("k = 'p'", whole_stream=True),
]  # fmt: skip


def seen(query: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Results, late rows and dead letters, sorted."""
    tables = [
        query.collect(),
        *(x if isinstance(x, pa.Table) else x.toArrow() for x in (query.late, query.dead_letters)),
    ]
    results, late, dead = ([tuple(r.values()) for r in table.to_pylist()] for table in tables)
    late = [(stream, bound, json.loads(row)) for stream, bound, row in late]
    return sorted(results, key=repr), sorted(late, key=repr), sorted(dead, key=repr)


@pytest.mark.parametrize("progress", EVERY, ids=str)
@pytest.mark.parametrize("max_ahead", [None, 9])
def test_rows_are_judged_as_in_process(progress: Any, max_ahead: int | None, spark: Any) -> None:
    """Late, too far ahead, ambiguous, backwards, unjudged: the same rows for the same reasons, and each once."""
    rng = random.Random(f"{progress} {max_ahead}")
    rows = []
    for i in range(60):
        time = i + rng.randint(-6, 3) + (rng.random() < 0.1) * rng.choice([20, 1000])
        rows.append((i, time, rng.choice([None, "p"]), rng.choice([None, None, 0, 1, 5])))
    silent = [(*r[:3], None) if rng.random() < 0.5 else r for r in rows]
    frame = spark.createDataFrame(rng.sample(silent, 60), SCHEMA).repartition(3)
    known = {"time": "t", "progress": progress, "max_ahead": max_ahead}
    here = Flow().stream(
        "s", [dict(zip(("seq", "t", "k", "v"), r, strict=True)) for r in silent], schema=SCHEMA, **known
    )
    there = Flow(spark).stream("s", frame, arrival="seq", **known)
    sql = "SELECT t, k, v FROM s WHERE v > 0 UNION ALL SELECT t, k, v FROM s"
    expected, got = (seen(flow.query(sql)) for flow in (here, there))
    assert got == expected
    assert expected[1] or expected[2]
    assert bool(expected[2]) == (max_ahead is not None or isinstance(progress, type(pk.punctuated("k"))))


def test_rows_too_far_ahead_get_no_number(spark: Any) -> None:
    rows = [(0, 1, None, 1), (1, 100, None, 2), (2, 3, None, 4), (3, 4, None, 8)]
    frame = spark.createDataFrame(rows, SCHEMA)
    flow = Flow(spark).stream("s", frame, time="t", arrival="seq", max_ahead=10)
    query = flow.query("SELECT sum(v) AS s [RANGE 2 rows, SLIDE 2 rows, WA row-num] FROM s")
    assert sorted(tuple(r.values()) for r in query.collect().to_pylist()) == [(0, 0, 2, 5), (1, 2, 4, 8)]
    assert [r.reason for r in query.dead_letters.collect()] == ["more than 10 ahead of 1"]


def test_ambiguous_punctuation_dies_without_an_order_too(spark: Any) -> None:
    frame = spark.createDataFrame(
        [(0, 1, None, 1), (1, 2, "p", 2), (2, 3, "p", None)], "seq int, t bigint, k string, v int"
    )
    flow = Flow(spark).stream("s", frame.drop("seq"), time="t", progress=pk.punctuated("k = 'p'"), max_ahead=1)
    query = flow.query("SELECT t, v FROM s")
    assert [tuple(r) for r in query.df.collect()] == [(1, 1)]
    assert [(r.stream, r.operator, r.reason, r.row) for r in query.dead_letters.collect()] == [
        ("s", None, AMBIGUOUS_REASON, '{"t": 2, "k": "p", "v": 2}')
    ]
