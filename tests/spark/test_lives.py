"""Streams with lives on Spark: revisions travel on the wire, and all evaluators come to the same events."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import penstock as pk
from penstock.model.batch import Row
from penstock.model.schema import schema_of
from penstock.reference.arrivals import Arrivals
from penstock.verify.agreement import agreement
from tests.profiles import some_and_slow

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

SCHEMA = schema_of([("vs", "bigint"), ("ve", "bigint"), ("v_old", "bigint"), ("k", "string"), ("v", "int")], "vs")
LIVES = ("vs", "ve", "v_old")
WINDOW = "SELECT k, count(*) AS n, sum(v) AS s, max(ve) AS last [RANGE 20, SLIDE 10, WA vs] FROM {} GROUP BY k"


def arrivals(name: str, seed: int) -> Arrivals:
    """Events that are told, moved and in part taken back, in batches; the same events for every seed."""
    rng = random.Random(seed)
    lanes: list[list[Row]] = []
    for i in range(60):
        vs, k, v = i, "ab"[i % 2], i % 5
        ends = [vs + rng.randrange(1, 15) for _ in range(rng.randrange(3))]
        final = vs if i % 7 == 3 else vs + 1 + i * 5 % 11
        path = [*ends, final] if final > vs or ends else [vs + 4, final]
        rows: list[Row] = [(vs, path[0], None, k, v)]
        for old, new in pairwise(path):
            if old != new:
                rows.append((vs, new, old, k, v))
        lanes.append(rows)
    order = sorted(range(60), key=lambda i: i + rng.randrange(6))
    told = [row for i in order for row in lanes[i]]
    cuts = [told[i : i + 35] for i in range(0, len(told), 35)]
    return Arrivals(name, SCHEMA, pk.bounded(40), tuple(tuple(c) for c in cuts), lives=LIVES)


@pytest.mark.parametrize(
    "sql",
    some_and_slow(
        [
            WINDOW.format("m"),
            WINDOW.format("s"),
            "SELECT vs, k FROM s WHERE v <> 2",
            "SELECT DISTINCT k FROM s",
            "SELECT vs, k, v FROM s [RANGE 12] WHERE v <> 2",
            "SELECT k, count(*) AS n [RANGE 20, SLIDE 10, WA vs] FROM (SELECT * FROM m [RANGE 7]) i GROUP BY k",
        ],
        2,
    ),
)
def test_evaluators_agree_over_revisions(sql: str, spark: Any) -> None:
    streams = [arrivals("s", 1), arrivals("a", 2), arrivals("b", 3)]
    found = agreement(sql, streams, spark=spark, merges={"m": ["a", "b"]})
    assert found.agrees, str(found)


def test_results_that_are_revised_are_a_changelog_that_can_be_read_back(spark: Any, tmp_path: Path) -> None:
    told = arrivals("s", 1)
    frame = spark.createDataFrame([r for b in told.batches for r in b], SCHEMA.ddl).coalesce(1)
    frame.write.parquet(str(tmp_path / "in"))
    flow = pk.Flow(spark, path=str(tmp_path / "flow"))
    source = spark.readStream.schema(SCHEMA.ddl).parquet(str(tmp_path / "in"))
    flow.stream("s", source, time="vs", progress=pk.bounded(40), lives=LIVES)
    query: Any = flow.query("SELECT vs, k FROM s", name="changes")
    run = query.start(str(tmp_path / "out"))
    try:
        run.finish()
    finally:
        run.stop()
    out = spark.read.parquet(str(tmp_path / "out"))
    assert out.columns == ["op", "vs", "k", "ve", "v_old"]
    assert {r.op for r in out.select("op").distinct().collect()} == {"insert", "update", "delete"}
    again = pk.Flow(spark).stream("s", out, time="vs", lives=("vs", "ve", "v_old", "op")).query("SELECT * FROM s")
    direct = pk.Flow(spark).stream("s", frame, time="vs", lives=LIVES).query("SELECT vs, k FROM s")
    assert sorted(map(tuple, again.df.collect())) == sorted(map(tuple, direct.df.collect()))
    assert len(direct.collect()) == 60 - len([i for i in range(60) if i % 7 == 3])
