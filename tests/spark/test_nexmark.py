"""Nexmark's queries on Spark, in batch, give what DuckDB gives."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import penstock as pk
from penstock.bench import nexmark
from penstock.bench.nexmark_events import make_events
from tests.bench.test_nexmark import named, rows

EVENTS = make_events(5000, seed=3)


@pytest.mark.slow
@named
def test_spark_gives_what_duckdb_gives(query: nexmark.NexmarkQuery, spark: SparkSession) -> None:
    pytest.importorskip("duckdb", reason="DuckDB is only installed for benchmarks")
    found, expected = query.script(EVENTS, pk.Flow(spark)).collect(), nexmark.by_duckdb(query, EVENTS)
    assert rows(found, expected.column_names) == rows(expected, expected.column_names)
