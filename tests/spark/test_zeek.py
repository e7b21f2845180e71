"""Spark streaming on a real log: what is late is in `late`, and the rest is exact."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.verify.evaluators import tdb_of_table
from tests import zeek

pytestmark = [pytest.mark.spark, pytest.mark.slow]
FILES = 4


@pytest.mark.parametrize(("seconds", "is_late"), [(700, False), (30, True)])
def test_streaming_keeps_late_rows_and_is_exact_otherwise(
    spark: Any, tmp_path: Path, seconds: int, is_late: bool
) -> None:
    """The log in four micro-batches."""
    rows = zeek.dns_rows()
    table = zeek.dns_table(rows)
    size = -(-len(rows) // FILES)
    (tmp_path / "in").mkdir()
    for i in range(FILES):
        path = tmp_path / "in" / f"{i}.parquet"
        pq.write_table(table.slice(i * size, size), path)
        os.utime(path, (1_000_000 + i, 1_000_000 + i))
    stream = spark.readStream.schema("n bigint, ts timestamp, query string").option("maxFilesPerTrigger", 1)
    flow = pk.Flow(spark, path=str(tmp_path / "flow"))
    flow.stream("dns", stream.parquet(str(tmp_path / "in")), time="ts", progress=pk.bounded(f"{seconds} seconds"))
    query = flow.query(zeek.SQL, name=f"zeek_{is_late}".lower())
    run = query.start(str(tmp_path / "out"), late=str(tmp_path / "late"))
    run.finish()

    late = zeek.late_numbers(spark.read.parquet(str(tmp_path / "late")).toArrow()) if is_late else zeek.Counter()
    progress = run.progress
    assert (progress["read"], progress["late"], progress["dead"]) == (len(rows), len(late), 0)
    assert progress["on_time"] == len(rows) - len(late)
    expected = zeek.behind_by_batch([rows[i * size : (i + 1) * size] for i in range(FILES)], seconds)
    assert (late, bool(expected)) == (expected, is_late)
    assert not late - zeek.behind(rows, 30), "what is late by micro-batch is late by row"
    got = tdb_of_table(spark.read.parquet(str(tmp_path / "out")).drop("batch").toArrow(), query.form)
    assert not zeek.expected(query.plan, rows, expected).difference(got)
