"""Aggregates of whole groups on Spark: natively in batch, hosted as a stream, and what a run shows of promises."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.model.batch import Row, table_of
from penstock.model.schema import parse_type, schema_of
from penstock.plan.catalog import Catalog
from penstock.reference.arrivals import Arrivals
from penstock.verify.agreement import agreement
from tests.golden.cases import Spread
from tests.profiles import some_and_slow

pytestmark = pytest.mark.spark
SCHEMA = schema_of([("t", "timestamp"), ("a", "int"), ("b", "string"), ("v", "bigint"), ("p", "boolean")], "t")
PROGRESS = pk.punctuated("p", per=["a"], final=True)


def batches(seed: int) -> tuple[tuple[Row, ...], ...]:
    rng = random.Random(seed)
    made: list[Row] = []
    for i in range(60):
        group = rng.choice([0, 1, 2, 3, None])
        if rng.random() < 0.1:
            made.append((i * 1000 - 20_000, group, None, None, True))
        else:
            value = rng.choice([None, 2**62, rng.randint(0, 9)])
            made.append((i * 1000 - rng.randint(0, 30_000), group, rng.choice(["x", "y"]), value, None))
    return tuple(tuple(made[at : at + 12]) for at in range(0, 60, 12))


@pytest.mark.parametrize(
    ("sql", "seed"),
    some_and_slow(
        [
            ("SELECT a, count(*) AS n, max(t) AS last, avg(v) AS m, count(DISTINCT b) AS d FROM s GROUP BY a", 1),
            (
                "SELECT a, b, sum(v) AS total FROM s WHERE v IS NOT NULL GROUP BY a, b HAVING count(*) > 1",
                2,
            ),  # overflows
            ("SELECT a, spread(v) AS x FROM s GROUP BY a", 3),
            ("SELECT a, max(n) AS m FROM (SELECT a, b, count(*) AS n FROM s UNION z GROUP BY a, b) i GROUP BY a", 4),
        ],
        1,
    ),
)
def test_every_evaluator_agrees(sql: str, seed: int, spark: Any) -> None:
    catalog = Catalog()
    catalog.aggregates["spread"] = (Spread(), parse_type("bigint"))
    streams = [Arrivals(name, SCHEMA, PROGRESS, batches(seed + n)) for n, name in enumerate("sz")]
    found = agreement(sql, streams, catalog, spark=spark)
    assert all(verdict.agrees for verdict in found.verdicts), str(found)


def test_a_run_shows_what_was_promised(spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    rows: list[list[Row]] = [
        [(1, 0, "x", 5, None), (2, 1, "x", 6, None)],
        [(3, 0, None, None, True)],
        [(4, None, None, None, True)],
    ]
    for number, batch in enumerate(rows):
        pq.write_table(table_of(SCHEMA, batch), folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (1_000_000 + number, 1_000_000 + number))  # Spark reads oldest first
    frame = spark.readStream.schema(SCHEMA.ddl).option("maxFilesPerTrigger", 1).parquet(str(folder))
    flow = pk.Flow(spark, path=str(tmp_path / "flow")).stream("s", frame, time="t", progress=PROGRESS)
    query = flow.query("SELECT a, count(*) AS n FROM s GROUP BY a", name="groups")
    run = query.start(str(tmp_path / "out"), buckets=2)
    run.process_available()
    progress = run.progress
    assert progress.group_frontier == {"s": ({"of": {"a": 0}, "up_to": {"t": "end"}},)}
    assert progress.group_bounds == ({"of": {"a": 0}, "up_to": {"__time": "end"}},)
    assert (progress.frontier, progress.bound) == ({"s": "1970-01-01 00:00:00.000004"}, "1970-01-01 00:00:00.000002")
    assert "a 0 up to end" in dict(progress.rows())["complete of groups"]
    run.stop()
    again = query.start(str(tmp_path / "out"), buckets=2)
    again.process_available()
    assert again.progress.group_bounds == progress.group_bounds
    again.finish()
    assert sorted(pq.read_table(tmp_path / "out").to_pylist(), key=str) == [{"a": 0, "n": 1}, {"a": 1, "n": 1}]
    assert again.progress.ended
    assert again.progress.group_bounds == (), "everything is promised now"
