"""Patterns in the buckets of Spark's host, without Spark: what the oracle says."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import penstock as pk
from penstock.model.batch import Row, rows_of, table_of
from penstock.model.schema import schema_of
from penstock.reference.evaluation import evaluate
from tests.engines.hosted import HostedPlan, tables

pytestmark = pytest.mark.spark  # the host is pyspark's; no session is started
SCHEMA = schema_of([("ts", "bigint"), ("k", "string"), ("v", "int")], "ts")
QUERIES = {
    "recent": "SELECT x.v, y.v AS w, y.ts FROM SEQ(a AS x, b AS y) WHERE x.k = y.k",
    "chronicle": "SELECT x.v, y.v AS w, y.ts FROM SEQ(a AS x, b AS y) PARTITION BY k OVER [9 PRECEDING y] "
    "MODE CHRONICLE",
    "of one stream": "SELECT x.v, y.v AS w, z.ts FROM SEQ(a AS x, a AS y, a AS z) OVER [20 PRECEDING z] MODE "
    "CONTINUOUS WHERE x.k = y.k AND y.k = z.k AND x.v < 2 AND y.v > 1",
    "in one place": "SELECT x.v, y.v AS w FROM SEQ(a AS x, NOT b AS n, b AS y) OVER [9 PRECEDING y] MODE CUMULATIVE "
    "WHERE n.v = 3 AND y.v <> 3",
    "nothing": "SELECT x.v, x.ts FROM SEQ(a AS x, NOT b AS y) OVER [6 FOLLOWING x] WHERE x.k = y.k",
    "counted": "SELECT x.k, count(*) AS n [RANGE 10, SLIDE 5, WA y.ts] FROM SEQ(a AS x, b AS y) WHERE x.k = y.k "
    "GROUP BY x.k",
}  # fmt: skip


def rows(chance: random.Random) -> list[list[Row]]:
    """Five micro-batches of rows that are never late."""
    made: list[list[Row]] = []
    for at in range(1, 6):
        times = [10 * at + chance.randint(-8, 12) for _ in range(16)]
        made.append([(time, chance.choice(["a", "b", "c", None]), chance.randrange(5)) for time in times])
    return made


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("buckets", [1, 4])
@pytest.mark.parametrize("name", QUERIES)
def test_buckets_give_what_the_oracle_says(name: str, buckets: int, staged: bool) -> None:
    chance = random.Random(name)
    flow = pk.Flow()
    for stream in "ab":
        flow.stream(stream, SCHEMA.arrow.empty_table(), time="ts", progress=pk.bounded(25))
    query: Any = flow.query(QUERIES[name])
    hosted = HostedPlan(query.plan, flow.catalog, buckets, staged=staged)
    given = {stream: rows(chance) for stream in hosted.mappers}
    said = [
        each
        for at in range(5)
        for each in hosted.run_all({stream: [table_of(SCHEMA, own[at])] for stream, own in given.items()})
    ]
    early = sum(table.num_rows for table in tables(said, "result"))
    said += hosted.close()
    expected = evaluate(query.plan, [(stream, row) for stream, own in given.items() for part in own for row in part])
    width = len(query.plan.schema.visible)
    found = Counter(row[:width] for table in tables(said, "result") for row in rows_of(table))
    wanted: Counter[Row] = Counter()
    for (values, _, _), count in expected.items():
        wanted[values] += count
    assert found == wanted
    assert early > 0  # what is known comes out while the streams go on
    places = {bucket for bucket, kind, _ in said if kind == "result"}
    assert (len(places) > 1) == (buckets > 1 and name != "in one place")  # it is spread


@pytest.mark.parametrize("staged", [False, True])
def test_what_did_not_come_is_told_by_a_bound_alone(staged: bool) -> None:
    flow = pk.Flow()
    for stream in "ab":
        flow.stream(stream, SCHEMA.arrow.empty_table(), time="ts", progress=pk.bounded(25))
    query: Any = flow.query("SELECT x.k, x.ts FROM SEQ(a AS x, NOT b AS y) OVER [6 FOLLOWING x] WHERE x.k = y.k")
    hosted = HostedPlan(query.plan, flow.catalog, 2, staged=staged)
    rows_ = {"a": [(1, "x", 0), (2, "y", 0), (5, "x", 0)], "b": [(4, "x", 0)]}
    hosted.run_all({stream: [table_of(SCHEMA, own)] for stream, own in rows_.items()})
    assert not tables(hosted.run_all({}, {"b": 8}), "result")
    for bound, expected in ((9, [("y", 2)]), (12, [("x", 5)])):  # 2 + 6 and 5 + 6 have passed; no row has come
        found = tables(hosted.run_all({}, {"b": bound}), "result")
        assert [row[:2] for table in found for row in rows_of(table)] == expected
