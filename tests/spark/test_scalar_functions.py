"""Scalar functions mean the same to Spark's own SQL, to its engine here, to the in-process engine and to the oracle."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import penstock as pk
from tests.judge import scalars
from tests.profiles import some_and_slow

pytestmark = pytest.mark.spark

SCHEMA = ", ".join(f"{name} {type_}" for name, type_ in scalars.SCHEMA.items())
PARTS = 4
"""Functions are asked for in as many queries: one of all of them takes Spark long to plan."""


def answers(rows: list[dict[str, Any]], expressions: list[str]) -> list[dict[int, str]]:
    """Of each expression its value in every row, as text: NaN is NaN, and 0.0 is not -0.0."""
    return [{row["t"]: repr(row[f"x{at}"]) for row in rows} for at in range(len(expressions))]


def items(expressions: list[str]) -> str:
    return ", ".join(f"{text} AS x{at}" for at, text in enumerate(expressions))


def ours(flow: Any, source: Any, expressions: list[str]) -> list[dict[int, str]]:
    q = flow.stream("s", source, time="t").query(f"SELECT t, {items(expressions)} FROM s")
    return answers(q.collect().to_pylist(), expressions)


@pytest.mark.parametrize("part", some_and_slow(range(PARTS), 1))
def test_every_function_means_what_it_means_in_spark(part: int, spark: SparkSession) -> None:
    rows = spark.createDataFrame(scalars.rows(), SCHEMA)
    rows.createOrReplaceTempView("scalar_rows")
    expressions = scalars.SAME_AS_SPARK[part::PARTS]
    table = rows.toArrow()
    judged = spark.sql(f"SELECT t, {items(expressions)} FROM scalar_rows").toArrow()
    wanted = answers(judged.to_pylist(), expressions)
    here, there = ours(pk.Flow(), table, expressions), ours(pk.Flow(spark), rows, expressions)
    for text, own, native, spark_s in zip(expressions, here, there, wanted, strict=True):
        assert own == spark_s, text
        assert native == spark_s, text


def test_logarithms_and_powers_are_the_same_on_both_engines_and_sparks_but_for_the_last_digit(
    spark: SparkSession,
) -> None:
    rows = spark.createDataFrame(scalars.rows(), SCHEMA)
    rows.createOrReplaceTempView("scalar_rows")
    texts = scalars.INEXACT
    judged = spark.sql(f"SELECT t, {items(texts)} FROM scalar_rows").toArrow().to_pylist()
    here, there = ours(pk.Flow(), rows.toArrow(), texts), ours(pk.Flow(spark), rows, texts)
    assert here == there
    for at, text in enumerate(texts):
        for row in judged:
            own, wanted = eval(here[at][row["t"]], {"nan": math.nan, "inf": math.inf}), row[f"x{at}"]
            assert (own is None) == (wanted is None), text
            assert own is None or own == pytest.approx(wanted, rel=1e-15, nan_ok=True), text


SQL = """
    SELECT split_part(k, '.', 2) AS g, count(*) AS n, max(round(c, 1)) AS c, max(get_json_object(k, '$.a.b[1]')) AS j,
        max(date_format(ts, 'yyyy-MM')) AS m, max(regexp_extract(k, '([a-z])X', 1)) AS x, max(log2(n)) AS l
    [RANGE 10, SLIDE 10, WA t] FROM s WHERE right(k, 1) <> 'b' AND k RLIKE '^[^ ]' GROUP BY split_part(k, '.', 2)
"""


def test_functions_before_a_window_in_streaming(spark: SparkSession, tmp_path: Path) -> None:
    table = spark.createDataFrame(scalars.rows(), SCHEMA).toArrow()
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "rows.parquet")
    frame = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    flow = pk.Flow(spark, path=str(tmp_path / "flow")).stream("s", frame, time="t")
    query: Any = flow.query(SQL, "q")
    told = query.explain()
    assert "natively" in told
    assert "split_part(k, '.', 2)" in told
    run = query.start(str(tmp_path / "out"))
    run.process_available()
    run.finish()
    found = pq.read_table(tmp_path / "out").to_pylist()
    wanted = pk.Flow().stream("s", table, time="t").query(SQL).collect().to_pylist()
    assert len(wanted) > 6
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))
