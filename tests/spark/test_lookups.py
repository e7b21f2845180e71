"""Joins with tables: all evaluators agree, and a query that is started again goes by the table as it is then."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.model.batch import table_of
from penstock.model.schema import Schema, schema_of
from penstock.plan.catalog import Catalog
from penstock.plan.lookup_nodes import TableInfo
from penstock.reference.arrivals import Arrivals
from penstock.verify.agreement import EVALUATORS, agreement
from tests.profiles import some_and_slow
from tests.spark.test_agreement import INTEGER, TIMESTAMP, WITHOUT_STREAMING, arrivals, user_catalog
from tests.spark.test_restart import put

pytestmark = pytest.mark.spark

KINDS = ["JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
PLAIN = schema_of([("k", "string"), ("v", "bigint"), ("d", "double"), ("w", "int")])
SECOND = 1_000_000


def tables(rng: random.Random, schema: Schema) -> Catalog:
    """One with nulls and duplicates, and one with versions."""
    catalog = user_catalog()
    rows = [
        (rng.choice(["x", "y", None]), rng.choice([0, 1, 2, None]), rng.choice([0.0, 1.5, None]), rng.randint(0, 5))
        for _ in range(rng.randint(0, 8))
    ]
    catalog.add_table(TableInfo("b", PLAIN, content=table_of(PLAIN, rows)))
    time = str(schema["t"].type)
    versions = schema_of([("k", "string"), ("since", time), ("until", time), ("w", "int")], "since")
    tick = 1 if schema is INTEGER else SECOND
    made = [
        (rng.choice("xy"), start * tick, rng.choice([None, (start + 9) * tick]), rng.randint(0, 5))
        for start in rng.sample(range(-15, 45), 6)
    ]
    catalog.add_table(TableInfo("p", versions, ("k",), "since", "until", table_of(versions, made)))
    return catalog


def looked_up(rng: random.Random, kind: str) -> str:
    on = rng.choice(["a.k = b.k", "a.v = b.v AND a.k = b.k", "a.k = b.k AND a.v < b.w", "6 / b.w > a.v", "a.f = b.d"])
    if "SEMI" in kind or "ANTI" in kind:
        return f"SELECT a.k, a.v, a.t FROM a {kind} b ON {on}"
    return rng.choice([f"SELECT * FROM a {kind} b ON {on}", f"SELECT a.k, b.w + a.v AS w, t FROM a {kind} b ON {on}"])


def counted(rng: random.Random, kind: str) -> str:
    side = rng.choice("ab")
    kept = "LEFT JOIN" if kind == "LEFT JOIN" else "JOIN"
    return f"SELECT {side}.k AS k, count(*) AS n FROM a {kept} b ON a.k = b.k GROUP BY {side}.k, a.t"


def versioned(rng: random.Random, kind: str) -> str:
    more = rng.choice(["", " AND p.w > 2"])
    columns = "a.t, a.k" if "SEMI" in kind or "ANTI" in kind else "a.t, a.k, p.w, p.since"
    return f"SELECT {columns} FROM a {kind} p FOR SYSTEM_TIME AS OF a.t ON a.k = p.k{more}"


def case(seed: int) -> tuple[str, list[Arrivals], Catalog]:
    rng = random.Random(seed)
    schema = rng.choice([INTEGER, TIMESTAMP])
    kind = KINDS[seed // 3 % len(KINDS)]
    sql = (looked_up, versioned, counted)[seed % 3](rng, kind)
    return sql, [arrivals(rng, "a", schema)], tables(rng, schema)


@pytest.mark.parametrize("seed", some_and_slow(range(12), 1))
def test_all_evaluators_agree(seed: int, spark: Any) -> None:
    sql, streams, catalog = case(seed)
    found = agreement(sql, streams, catalog, EVALUATORS, spark)
    assert found.agrees, f"{sql}\n{found.render()}"


@pytest.mark.parametrize("seed", some_and_slow(range(100, 124), 4))
def test_batch_evaluators_agree(seed: int, spark: Any) -> None:
    sql, streams, catalog = case(seed)
    found = agreement(sql, streams, catalog, WITHOUT_STREAMING, spark)
    assert found.agrees, f"{sql}\n{found.render()}"


def test_a_frame_of_sparks_is_joined_natively(spark: Any) -> None:
    flow = pk.Flow(spark)
    flow.stream("s", spark.createDataFrame([(1, "a"), (2, "b")], "ts bigint, k string"), time="ts")
    flow.table("names", spark.createDataFrame([("a", "Anna"), ("c", "Carl")], "k string, name string"))
    query = flow.query("SELECT ts, name FROM s LEFT JOIN names USING (k)")
    assert "Spark, native: by what is equal" in query.explain()
    assert sorted(query.collect().to_pylist(), key=lambda row: row["ts"]) == [
        {"ts": 1, "name": "Anna"},
        {"ts": 2, "name": None},
    ]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([("a", 1), ("a", 1)], "Two versions of a key start together."),
        ([(None, 1)], "A key of the table is null."),
        ([("a", None)], "A row of the table cannot be read."),
    ],
)
def test_versions_that_cannot_be_told_apart_are_refused(spark: Any, rows: list[Any], told: str) -> None:
    frame = spark.createDataFrame(rows, "k string, since bigint")
    with pytest.raises(pk.PenstockError, match=told):
        pk.Flow(spark).table("t", frame, key="k", valid_from="since")


def test_a_stream_is_no_table(spark: Any, tmp_path: Path) -> None:
    frame = spark.readStream.schema("k string").json(str(tmp_path))
    with pytest.raises(pk.PenstockError, match="A table is no stream"):
        pk.Flow(spark).table("t", frame)


def test_a_query_that_is_started_again_goes_by_the_table_as_it_is_then(spark: Any, tmp_path: Path) -> None:
    def begin(price: int) -> Any:
        (tmp_path / "in").mkdir(exist_ok=True)
        flow = pk.Flow(spark, path=str(tmp_path / "flow"))
        frame = spark.readStream.schema("ts bigint, k string").json(str(tmp_path / "in"))
        flow.stream("s", frame, time="ts", progress=pk.bounded(0))
        flow.table("prices", [{"k": "a", "price": price}])
        sql = "SELECT k, sum(price) AS total [RANGE TUMBLING 10, WA ts] FROM s JOIN prices USING (k) GROUP BY k"
        return flow.query(sql, name="totals").start(str(tmp_path / "out"))

    put(tmp_path, 0, {"ts": 1, "k": "a"}, {"ts": 2, "k": "b"})
    first = begin(100)
    first.process_available()
    first.stop()
    put(tmp_path, 1, {"ts": 3, "k": "a"}, {"ts": 11, "k": "a"})
    second = begin(7)
    second.finish()
    second.stop()
    found = pq.read_table(tmp_path / "out").to_pylist()
    assert sorted((row["window_end"], row["total"]) for row in found) == [(10, 107), (20, 7)]
