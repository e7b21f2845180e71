"""Expressions that Spark computes before rows go to Python: the answers are those of a computation by hand."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import penstock as pk

SQL = (
    "SELECT trim(k) AS kk, count(*) AS n, sum(d * 2) AS s, max(CASE WHEN v > 0 THEN v % z ELSE -v END) AS m "
    "[RANGE 10, SLIDE 10, WA ts] FROM main WHERE pmod(v, 7) <> 3 AND d > 1.5 GROUP BY trim(k)"
)
COLUMNS = "ts bigint, k string, v int, z int, d decimal(10,2)"
ARROW = pa.schema(
    [("ts", pa.int64()), ("k", pa.string()), ("v", pa.int32()), ("z", pa.int32()), ("d", pa.decimal128(10, 2))]
)
Row = dict[str, Any]


def made_rows(seed: int) -> list[list[Row]]:
    """Micro-batches with null times, rows that are late, and divisors that are zero or null."""
    rng = random.Random(seed)

    def row(batch: int) -> Row:
        late = 60 if rng.random() < 0.1 else 0
        return {
            "ts": None if batch == 1 and rng.random() < 0.02 else max(0, batch * 100 + rng.randrange(100) - late),
            "k": rng.choice(["aß", " b ", "c", None]),
            "v": rng.choice([*range(-50, 50), None]),
            "z": rng.choice([0, 1, 2, 3, None]) if rng.random() < 0.2 else 7,
            "d": rng.choice([None, Decimal(rng.randrange(1000)) / 100]),
        }

    return [[row(batch) for _ in range(300)] for batch in range(3)]


def by_hand(batches: list[list[Row]]) -> tuple[Counter[tuple[Any, ...]], Counter[str]]:
    groups: dict[tuple[int, str | None], list[tuple[Decimal | None, int | None]]] = {}
    counts: Counter[str] = Counter()
    bound = -(2**63)
    for batch in batches:
        timed = [row for row in batch if row["ts"] is not None]
        counts["dead"] += len(batch) - len(timed)
        on_time = [row for row in timed if row["ts"] >= bound]
        counts["late"] += len(timed) - len(on_time)
        counts["on_time"] += len(on_time)
        bound = max([bound, *(row["ts"] - 5 for row in timed)])
        for row in on_time:
            v, z, d = row["v"], row["z"], row["d"]
            if v is None or v % 7 == 3 or d is None or d <= Decimal("1.5"):
                continue
            if v > 0 and z == 0:
                counts["failed"] += 1
                continue
            made = -v if v <= 0 else None if z is None else v % z
            key = row["k"] if row["k"] is None else row["k"].strip(" ")
            groups.setdefault((row["ts"] // 10, key), []).append((d * 2, made))
    result: Counter[tuple[Any, ...]] = Counter()
    for (wid, key), values in groups.items():
        most = [m for _, m in values if m is not None]
        result[wid, key, len(values), sum(d for d, _ in values if d), max(most, default=None)] += 1
    return result, counts


def test_answers_are_those_by_hand(spark: SparkSession, tmp_path: Path) -> None:
    batches = made_rows(3)
    (tmp_path / "in").mkdir()
    for at, rows in enumerate(batches):
        path = tmp_path / "in" / f"{at}.parquet"
        pq.write_table(pa.Table.from_pylist(rows, ARROW), path)
        os.utime(path, (1000 + at, 1000 + at))
    frame = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    flow = pk.Flow(spark, path=str(tmp_path / "flow"))
    flow.stream("main", frame, time="ts", progress=pk.bounded(5))
    query: Any = flow.query(SQL, "q")
    told = [line for line in query.explain().splitlines() if "natively" in line]
    assert len(told) == 2
    assert "(pmod(v, 7) <> 3) AND (d > 1.5)" in told[1]
    assert "CASE" in told[0]
    run = query.start(str(tmp_path / "out"))
    run.process_available()
    run.finish()
    expected, counts = by_hand(batches)
    found = pq.read_table(tmp_path / "out").to_pylist()
    assert Counter((r["window_start"] // 10, r["kk"], r["n"], r["s"], r["m"]) for r in found) == expected
    progress = run.progress.counts
    assert {name: getattr(progress, name) for name in ("on_time", "late", "dead", "failed")} == dict(counts)
    late = [json.loads(row.row) for row in run.late.collect()]
    assert len(late) == counts["late"]
    assert {tuple(row) for row in late} == {tuple(ARROW.names)}
    dead = run.dead_letters.collect()
    reasons = Counter(row.reason for row in dead)
    assert reasons["ts is null"] == counts["dead"]
    assert len(dead) == counts["dead"] + counts["failed"]
    assert all(tuple(json.loads(row.row)) == tuple(ARROW.names) for row in dead)


def test_a_session_that_means_something_else_computes_nothing_before(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.readStream.schema(COLUMNS).parquet(str(tmp_path))
    flow = pk.Flow(spark, path=str(tmp_path / "flow"))
    flow.stream("main", frame, time="ts", progress=pk.bounded(5))
    query: Any = flow.query(SQL, "q")
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        assert "natively" not in query.explain()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", str(before))
