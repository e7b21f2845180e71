"""Windows in the words of Spark: the same as Spark's own over the same rows, in batch and as a stream."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock as pk
from penstock.model.progress import bounded
from penstock.model.schema import schema_of
from penstock.model.time import SECOND
from penstock.reference.arrivals import Arrivals
from penstock.verify.agreement import agreement
from tests.profiles import some_and_slow

pytestmark = pytest.mark.spark
SCHEMA = schema_of([("ts", "timestamp"), ("k", "string"), ("v", "int")], "ts")
LENGTHS = ["'10 seconds', '4 seconds'", "'7 seconds', '3 seconds', '2 seconds'", "'10 seconds'"]
FLINK = [
    "SELECT k, sum(v) AS x FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '4' SECONDS, INTERVAL '10' SECONDS)) "
    "GROUP BY window_start, window_end, k",
    "SELECT k, sum(v) AS x FROM s GROUP BY TUMBLE(ts, INTERVAL '5' SECONDS), k",
]


def rows(count: int = 60) -> list[tuple[int, str, int]]:
    chance = random.Random(5)
    return [(chance.randrange(-60, 60) * SECOND, chance.choice("ab"), chance.randrange(9)) for _ in range(count)]


@pytest.mark.parametrize("lengths", some_and_slow(LENGTHS, 1))
def test_windows_are_those_of_spark(spark: SparkSession, lengths: str) -> None:
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    given = [(epoch + dt.timedelta(microseconds=t), k, v) for t, k, v in rows()]
    frame = spark.createDataFrame(given, "ts timestamp, k string, v int")
    frame.createOrReplaceTempView("spark_rows")
    grouped = f"GROUP BY k, window(ts, {lengths})"
    theirs = spark.sql(f"SELECT window.start AS a, window.end AS b, k, sum(v) AS x FROM spark_rows {grouped}")
    flow = pk.Flow(spark).stream("s", frame, time="ts", progress=pk.bounded("5 minutes"))
    ours = flow.query(f"SELECT window.start AS a, window.end AS b, k, sum(v) AS x FROM s {grouped}").df
    assert sorted(map(tuple, ours.select("a", "b", "k", "x").collect())) == sorted(map(tuple, theirs.collect()))


@pytest.mark.parametrize("sql", some_and_slow(FLINK, 1))
def test_all_evaluators_agree_on_the_forms_of_flink(spark: SparkSession, sql: str) -> None:
    given = rows(24)
    stream = Arrivals("s", SCHEMA, bounded("5 minutes"), (tuple(given[:12]), tuple(given[12:])))
    found = agreement(sql, [stream], spark=spark)
    assert found.agrees, found


RISING = [
    "SELECT g, k, count(*) AS n FROM (SELECT t div 7 AS g, k FROM s) GROUP BY g, k",
    "SELECT sum(v) AS x [RANGE 3, SLIDE 2, WA g] FROM (SELECT floor(t / 7) AS g, v FROM s)",
    "SELECT k, sum(v) AS x FROM s GROUP BY t - t % 10, k",
]


@pytest.mark.parametrize("sql", some_and_slow(RISING, 1))
def test_all_evaluators_agree_on_groups_that_rise_with_the_time(spark: SparkSession, sql: str) -> None:
    schema = schema_of([("t", "bigint"), ("k", "string"), ("v", "int")], "t")
    given = [(t // SECOND, k, v) for t, k, v in rows(24)]
    stream = Arrivals("s", schema, bounded(30), (tuple(given[:12]), tuple(given[12:])))
    found = agreement(sql, [stream], spark=spark)
    assert found.agrees, found


SCRIPT = """
CREATE STREAM s (ts timestamp, k string, v int)
WITH (source = '{folder}/in', format = 'parquet', time = 'ts', progress = 'bounded 5 minutes'{more});
CREATE VIEW big AS SELECT ts, k, v FROM s WHERE v > 4;
CREATE SINK sums WITH (path = '{folder}/{out}');
INSERT INTO sums SELECT k, sum(v) AS x FROM big GROUP BY k, window(ts, '10 seconds');
"""


def test_a_script_on_spark_in_batch_and_as_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    given = [(epoch + dt.timedelta(microseconds=t), k, v) for t, k, v in rows()]
    spark.createDataFrame(given, "ts timestamp, k string, v int").coalesce(1).write.parquet(f"{tmp_path}/in")
    batch = SCRIPT.format(folder=tmp_path, more="", out="batch.parquet")
    pk.Flow(spark).sql(batch).run()
    expected = spark.read.parquet(f"{tmp_path}/batch.parquet").collect()
    assert len(expected) > 10
    more = ", streaming = true, spark.maxFilesPerTrigger = 1"
    flow = pk.Flow(spark, path=f"{tmp_path}/home")
    (run,) = flow.sql(SCRIPT.format(folder=tmp_path, more=more, out="stream")).start()
    run.finish()
    found = spark.read.parquet(f"{tmp_path}/stream").select(*expected[0].__fields__).collect()
    assert sorted(map(tuple, found)) == sorted(map(tuple, expected))
