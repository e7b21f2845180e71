"""Nexmark's queries on Spark, in batch and started, give what DuckDB gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock as pk
from penstock.bench import nexmark
from penstock.bench.nexmark_events import make_events
from penstock.bench.nexmark_streams import DDL, write_parts
from tests.bench.test_nexmark import named, rows
from tests.profiles import some_and_slow

EVENTS = make_events(5000, seed=3)
JOINED = [query for query in nexmark.queries() if query.name in ("q4", "q5", "q7", "q9", "q23")]


@pytest.mark.slow
@named
def test_spark_gives_what_duckdb_gives(query: nexmark.NexmarkQuery, spark: SparkSession) -> None:
    pytest.importorskip("duckdb", reason="DuckDB is only installed for benchmarks")
    found, expected = query.script(EVENTS, pk.Flow(spark)).collect(), nexmark.by_duckdb(query, EVENTS)
    assert rows(found, expected.column_names) == rows(expected, expected.column_names)


@pytest.mark.parametrize("query", some_and_slow(JOINED, 1), ids=lambda q: q.name)
def test_started_queries_give_what_duckdb_gives(
    query: nexmark.NexmarkQuery, spark: SparkSession, tmp_path: Path
) -> None:
    pytest.importorskip("duckdb", reason="DuckDB is only installed for benchmarks")
    write_parts(EVENTS, tmp_path / "parts")
    reader = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 9).csv(str(tmp_path / "parts"))
    run: Any = query.script(reader, pk.Flow(spark, path=tmp_path / "flow")).query.start(tmp_path / "out")
    run.finish()
    assert run.progress["on_time"] == EVENTS.num_rows
    found, expected = pq.read_table(tmp_path / "out"), nexmark.by_duckdb(query, EVENTS)
    assert rows(found, expected.column_names) == rows(expected, expected.column_names)
