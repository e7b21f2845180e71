"""Rows that follow one another: all evaluators agree, on Spark in batch and as a stream, and over a restart."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.model.schema import Schema
from penstock.verify.agreement import EVALUATORS, agreement
from tests.profiles import some_and_slow
from tests.spark.test_agreement import INTEGER, TIMESTAMP, WITHOUT_STREAMING, arrivals, user_catalog

pytestmark = pytest.mark.spark
MODES = ["RECENT", "CHRONICLE", "CONTINUOUS", "CUMULATIVE"]


def pattern(seed: int, schema: Schema) -> str:
    """Every context, of two streams or one, with keys or without, and with something that must not come."""
    rng = random.Random(seed)
    length = "12" if schema is INTEGER else "12 SECONDS"
    steps, last, direction = [
        ("a AS x, b AS y", "y", f"{length} PRECEDING y"),
        ("a AS x, NOT b AS y", "x", f"{length} FOLLOWING x"),
        ("a AS x, NOT b AS n, a AS y", "y", f"{length} PRECEDING y"),
        ("a AS x, b AS n, a AS y", "y", f"{length} PRECEDING y"),
    ][seed % 4]
    partition = rng.choice([" PARTITION BY k", ""])
    where = " WHERE x.v > -2" + ("" if last == "x" or seed % 4 == 0 else " AND n.v > 3")
    mode = MODES[(seed + seed // 4) % 4]
    chosen = rng.choice([f"x.v AS xv, x.t AS xt, {last}.k AS k, {last}.t", "*"])
    return f"SELECT {chosen} FROM SEQ({steps}){partition} OVER [{direction}] MODE {mode}{where}"


def check(seed: int, evaluators: Any, spark: Any) -> None:
    rng = random.Random(seed)
    schema = rng.choice([INTEGER, TIMESTAMP])
    sql = pattern(seed, schema)
    streams = [arrivals(rng, name, schema) for name in ("ab" if "b AS" in sql else "a")]
    found = agreement(sql, streams, user_catalog(), evaluators, spark)
    assert found.agrees, f"{sql}\n{found.render()}"


@pytest.mark.parametrize("seed", some_and_slow(range(16), 1))
def test_all_evaluators_agree(seed: int, spark: Any) -> None:
    check(seed, EVALUATORS, spark)


@pytest.mark.parametrize("seed", some_and_slow(range(100, 116), 1))
def test_batch_evaluators_agree(seed: int, spark: Any) -> None:
    check(seed, WITHOUT_STREAMING, spark)


def test_a_pattern_goes_on_where_it_was(spark: Any, tmp_path: Path) -> None:
    """Sequences that wait for their next step when the run is stopped are found after it."""
    rng = random.Random(3)
    rows = {name: [{"ts": i + rng.randint(-3, 3), "k": rng.randrange(3), "v": i} for i in range(60)] for name in "ab"}
    sql = (
        "SELECT x.ts AS t1, y.ts AS t2, x.v AS v1, y.v AS v2 FROM SEQ(a AS x, b AS y) OVER [20 PRECEDING y] "
        "MODE CHRONICLE WHERE x.k = y.k"
    )
    for half in (0, 1):
        flow = pk.Flow(spark, path=str(tmp_path / "flow"))
        for name in "ab":
            (tmp_path / name).mkdir(exist_ok=True)
            lines = map(json.dumps, rows[name][30 * half : 30 * half + 30])
            (tmp_path / name / f"{half}.json").write_text("\n".join(lines))
            frame = spark.readStream.schema("ts bigint, k int, v bigint").json(str(tmp_path / name))
            flow.stream(name, frame, time="ts", progress=pk.bounded(10))
        query: Any = flow.query(sql, name="q")
        run = query.start(str(tmp_path / "out"))
        run.process_available()
        if half == 0:
            run.stop()
    run.finish()
    here = pk.Flow()
    for name in "ab":
        here.stream(name, rows[name], time="ts", progress=pk.bounded(10), schema="ts bigint, k int, v bigint")
    expected = here.query(sql).collect().to_pylist()
    found = pq.read_table(tmp_path / "out").to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, expected))
    across = [row for row in found if row["v1"] < 30 <= row["v2"]]
    assert across
