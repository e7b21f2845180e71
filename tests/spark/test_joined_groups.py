"""Joins on Spark of streams whose groups end, on the earlier time, by a key and in small bursts."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.model.batch import Row, table_of
from penstock.model.schema import Schema, schema_of
from penstock.plan.catalog import Catalog
from penstock.reference.arrivals import Arrivals
from penstock.verify.agreement import agreement
from tests.profiles import some_and_slow
from tests.spark.test_whole_groups import PROGRESS, SCHEMA, batches

pytestmark = pytest.mark.spark
NEAR = "b.a = a.a AND b.t BETWEEN a.t - INTERVAL 20 SECONDS AND a.t + INTERVAL 20 SECONDS"


@pytest.mark.parametrize(
    ("sql", "seed"),
    some_and_slow([
        (f"SELECT a.a, count(b.v) AS n FROM s a LEFT JOIN z b ON {NEAR} AND a.b = b.b GROUP BY a.a", 2),
        (f"SELECT a.a, count(*) AS n [RANGE TUMBLING 5 seconds, WA t] FROM (SELECT a.a, least(a.t, b.t) AS t "
         f"FROM s a JOIN z b ON {NEAR}) a GROUP BY a.a", 3),
        (f"SELECT a.a, count(*) AS n, max(b.t) AS last FROM s a JOIN z b ON {NEAR} GROUP BY a.a", 1),
    ], 1),
)  # fmt: skip
def test_every_evaluator_agrees(sql: str, seed: int, spark: Any) -> None:
    streams = [Arrivals(name, SCHEMA, PROGRESS, batches(seed + n)) for n, name in enumerate("sz")]
    found = agreement(sql, streams, Catalog(), spark=spark)
    assert all(verdict.agrees for verdict in found.verdicts), str(found)


ORDERS = schema_of([("ts", "bigint"), ("id", "bigint"), ("item", "string")], "ts")
PAYMENTS = schema_of([("ts", "bigint"), ("id", "bigint"), ("paid", "bigint")], "ts")


def written(folder: Path, schema: Schema, batches: list[list[Row]]) -> Path:
    folder.mkdir()
    for number, batch in enumerate(batches):
        pq.write_table(table_of(schema, batch), folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (1_000_000 + number, 1_000_000 + number))  # Spark reads oldest first
    return folder


def test_a_key_join_in_small_bursts_goes_on_after_a_restart(spark: Any, tmp_path: Path) -> None:
    """What is not paid waits for payments to come as far; then it comes two rows at a time in each bucket."""
    rng = random.Random(5)
    orders: list[list[Row]] = [[(10 * n + i, 10 * n + i, "x") for i in range(10)] for n in range(6)]
    payments: list[list[Row]] = [
        [(10 * n + i + 3, 10 * n + i, n) for i in range(10) if rng.random() < 0.4] for n in range(6)
    ]
    payments[3:] = [[(500 + n, -n, 0)] for n in range(3)]
    folders = written(tmp_path / "orders", ORDERS, orders), written(tmp_path / "payments", PAYMENTS, payments)
    sql = "SELECT o.id, p.paid FROM orders o LEFT JOIN payments p ON p.id = o.id AND p.ts BETWEEN o.ts AND o.ts + 50"
    local = pk.Flow()
    for name, folder in zip(("orders", "payments"), folders, strict=True):
        local.stream(name, str(folder / "*.parquet"), time="ts", progress=pk.bounded(30))
    expected = sorted(local.query(sql).collect().to_pylist(), key=str)

    def query() -> Any:
        flow = pk.Flow(spark, path=str(tmp_path / "flow"))
        for name, folder, schema in zip(("orders", "payments"), folders, (ORDERS, PAYMENTS), strict=True):
            frame = spark.readStream.schema(schema.ddl).option("maxFilesPerTrigger", 1).parquet(str(folder))
            flow.stream(name, frame, time="ts", progress=pk.bounded(30), unique="id")
        return flow.query(sql, name="unpaid", max_burst=2)

    assert "2 at a time" in query().explain()
    assert "id is unique on the other side" in query().explain()
    run = query().start(str(tmp_path / "out"), buckets=2, trigger={"once": True})
    run.process_available()
    run.stop()
    run = query().start(str(tmp_path / "out"), buckets=2)
    run.process_available()
    run.finish()
    found = sorted(spark.read.parquet(str(tmp_path / "out")).select("id", "paid").toArrow().to_pylist(), key=str)
    assert found == expected
