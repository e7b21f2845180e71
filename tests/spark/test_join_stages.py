"""Joins in stages on Spark: across restarts, beside checkpoints of one stage, and what `explain` says."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as pk

pytestmark = pytest.mark.spark
SQL = (
    "SELECT b.g, count(*) AS n, sum(a.v) AS s [RANGE TUMBLING 20, WA a.ts] "
    "FROM l a JOIN r b ON a.k = b.k AND b.ts BETWEEN a.ts - 3 AND a.ts + 3 GROUP BY b.g"
)


def write(home: Path, number: int) -> None:
    """A file of each stream, of which time goes on from file to file."""
    for at, name in enumerate("lr"):
        rows = [(20 * number + i % 20, (7 * i + at) % 11, i % 3, i) for i in range(200)]
        columns = zip(*rows, strict=True)
        table = pa.table(dict(zip(("ts", "k", "g", "v"), map(pa.array, columns), strict=True)))
        (home / name).mkdir(exist_ok=True)
        pq.write_table(table, home / name / f"{number}.parquet")


def query(spark: Any, home: Path, sql: str = SQL, **stream: Any) -> Any:
    flow = pk.Flow(spark, path=home / "flow")
    for name in "lr":
        reader = spark.readStream.schema("ts bigint, k bigint, g bigint, v bigint").option("maxFilesPerTrigger", 1)
        flow.stream(name, reader.parquet(str(home / name)), time="ts", progress=pk.bounded(5), **stream)
    return flow.query(sql, "q")


def expected(home: Path) -> Counter[Any]:
    flow = pk.Flow()
    for name in "lr":
        flow.stream(name, pq.read_table(home / name), time="ts", progress=pk.bounded(1000))
    return Counter(tuple(row.values()) for row in flow.query(SQL).collect().to_pylist())


def came_out(home: Path) -> Counter[Any]:
    return Counter(tuple(row.values()) for row in pq.read_table(home / "out").to_pylist())


def stages(home: Path) -> list[Any]:
    return [end[2:4] for end in json.loads((home / "flow/q/manifest.json").read_text())["stages"]]


def test_a_join_goes_on_where_it_was(spark: Any, tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path, number)
        run = query(spark, tmp_path).start(tmp_path / "out")
        run.process_available()
        run.stop()
    assert sorted(stages(tmp_path)) == [[1, "keys"], [1, "keys"], [2, "keys"]]
    run = query(spark, tmp_path).start(tmp_path / "out")
    run.finish()
    assert run.progress["on_time"] == 1200
    read = {each.label.split()[0]: each.rows_in for each in run.progress.operators}
    assert read["Join"] == 1200
    assert came_out(tmp_path) == expected(tmp_path)


def test_one_that_began_in_one_stage_goes_on_in_it(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 0)
    with monkeypatch.context() as patch:
        patch.setattr("penstock.flow.spark.is_staged_at", lambda home: False)
        run = query(spark, tmp_path).start(tmp_path / "out")
        run.process_available()
        run.stop()
    write(tmp_path, 1)
    again = query(spark, tmp_path)
    assert "not cut into stages: the checkpoint is of a plan that was not" in again.explain().splitlines()[0]
    run = again.start(tmp_path / "out")
    run.finish()
    assert stages(tmp_path) == []
    assert came_out(tmp_path) == expected(tmp_path)


def test_explain_shows_where_a_join_is_cut_and_why_it_is_not(spark: Any, tmp_path: Path) -> None:
    write(tmp_path, 0)
    said = query(spark, tmp_path).explain()
    assert said.startswith("judged where rows are read, then hosted in 2 stages of ")
    assert "exchange to stage 1, by k" in said
    assert "exchange to stage 2, by b_g" in said
    uncut = query(spark, tmp_path, max_ahead=100).explain().splitlines()[0]
    assert uncut.endswith("; not cut into stages: max_ahead of l looks at all of its rows")
