"""As-of joins and joins of several streams in the buckets of Spark's host, without Spark: what the oracle says."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import penstock as pk
from penstock.model.batch import Row, rows_of, table_of
from penstock.model.schema import schema_of
from penstock.plan.join_nodes import Join, Latest
from penstock.plan.nodes import MultiJoin
from penstock.reference.evaluation import evaluate
from tests.engines.hosted import HostedPlan, tables

pytestmark = pytest.mark.spark  # the host is pyspark's; no session is started
SCHEMA = schema_of([("ts", "bigint"), ("k", "string"), ("v", "int")], "ts")
QUERIES = {
    "the latest": "SELECT a.k, a.v, b.v AS w, b.ts AS bt FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts >= b.ts",
    "the latest few": "SELECT a.v, b.v AS w FROM a, b [ROWS 3, PA k, WA ts] WHERE b.k = a.k AND a.v < b.v",
    "the latest of all": "SELECT a.v, b.v AS w FROM a ASOF JOIN b [ROWS 2] ON a.ts > b.ts",
    "several": "SELECT /*+ MULTIWAY_JOIN */ a.v, b.v AS w, c.v AS x FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN "
    "a.ts - 3 AND a.ts + 4 JOIN c ON c.k = a.k AND c.ts BETWEEN b.ts AND b.ts + 5 AND c.v <> a.v",
    "several with a pair of nothing in common": "SELECT a.v, b.v AS w, c.v AS x FROM a JOIN b ON b.ts = a.ts JOIN c ON "
    "c.k = a.k AND c.v = b.v AND c.ts BETWEEN b.ts - 3 AND b.ts + 5",
}  # fmt: skip


def rows(chance: random.Random) -> list[list[Row]]:
    """Five micro-batches of rows that are never late."""
    made: list[list[Row]] = []
    for at in range(1, 6):
        times = [10 * at + chance.randint(-8, 12) for _ in range(16)]
        made.append([(time, chance.choice(["a", "b", "c", None]), chance.randrange(5)) for time in times])
    return made


@pytest.mark.parametrize("buckets", [1, 4])
@pytest.mark.parametrize("name", QUERIES)
def test_buckets_give_what_the_oracle_says(name: str, buckets: int) -> None:
    chance = random.Random(name)
    flow = pk.Flow()
    for stream in "abc":
        flow.stream(stream, SCHEMA.arrow.empty_table(), time="ts", progress=pk.bounded(25))
    query: Any = flow.query(QUERIES[name])
    hosted = HostedPlan(query.plan, flow.catalog, buckets)
    joins = [p.node for p in hosted.planned.walk() if isinstance(p.node, MultiJoin | Join)]
    assert [isinstance(join, MultiJoin) for join in joins] == ["several" in name]
    assert all(isinstance(join.near, Latest) for join in joins if isinstance(join, Join))
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
    if name != "the latest of all" and "nothing in common" not in name:
        assert (len(hosted.hosts) > 1) == (buckets > 1)  # it is spread
