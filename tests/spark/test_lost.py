"""What is lost while a query runs, its JVM or a worker, is told; and what cannot be done any more is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import penstock as pk
from penstock.errors import RunError, SourceError, StreamError
from tests.spark import jvm_driver

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text(json.dumps({"t": 1}))
    return tmp_path


@pytest.mark.slow
def test_a_run_whose_jvm_is_killed_says_so_and_its_lease_is_given_up(spark: Any, home: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "tests.spark.jvm_driver", str(home)], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr[-2000:]
    said = json.loads(told.stdout.splitlines()[-1])
    assert said["exception"].startswith("The JVM of Spark is gone.\n  where: query q\n  got:   ")
    assert (said["active"], said["status"], said["read"]) == (False, "failed", 1)
    assert said["start"].startswith("The JVM of Spark is gone.\n  where: query q\n  got:   ")
    assert said["process_available"] == said["wait"] == said["collect"] == "The JVM of Spark is gone."
    (home / "in" / "1.json").write_text(json.dumps({"t": 2}))
    run = jvm_driver.start(spark, home)  # another driver goes on at once
    run.process_available()
    run.stop()
    assert run.progress["read"] == 2


def test_a_stopped_run_does_nothing_more_and_says_so(spark: Any, home: Path) -> None:
    run = jvm_driver.start(spark, home)
    run.process_available()
    run.stop()
    for ask in (run.process_available, run.finish):
        with pytest.raises(RunError, match="The run is stopped"):
            ask()
    assert (run.progress["status"], run.exception) == ("stopped", None)


@pytest.mark.parametrize("bound", ["x", 10**30, 1.5, None, True])
def test_what_is_no_tick_is_refused_at_once(spark: Any, home: Path, bound: Any) -> None:
    run = jvm_driver.start(spark, home)
    with pytest.raises(StreamError, match=r"A bound is .*\n.*stream s\n"):
        run.punctuate("s", bound)
    run.stop()


def test_a_reader_that_spark_cannot_load_is_an_error_of_the_source(spark: Any, home: Path) -> None:
    reader = spark.readStream.format("json").schema("t bigint").option("path", f"file://{home}/missing")
    with pytest.raises(SourceError, match=r"Spark cannot read the stream\.\n.*stream s\n.*PATH_NOT_FOUND"):
        pk.Flow(spark, path=str(home / "flow")).stream("s", reader, time="t")


def test_a_worker_that_is_killed_is_told(spark: Any, home: Path) -> None:
    @F.udf("bigint")
    def killed(value: int) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return value

    frame = spark.readStream.schema("t bigint").json(f"file://{home}/in").withColumn("t", killed("t"))
    flow = pk.Flow(spark, path=str(home / "flow")).stream("s", frame, time="t", progress=pk.bounded(0))
    run = flow.query("SELECT t FROM s", name="q").start(str(home / "out"))
    with pytest.raises(RunError, match=r"A Python worker of Spark has died\.") as raised:
        run.process_available()
    assert "lack of memory" in raised.value.hint
    assert raised.value.got


def test_bytes_that_spark_puts_aside_are_written_as_in_process(spark: Any, home: Path) -> None:
    rows = [(1, bytearray(b"\xff")), (None, bytearray(b"\\xff")), (None, bytearray(b"\xff"))]
    frame = spark.createDataFrame(rows, "t bigint, b binary")
    query = pk.Flow(spark).stream("s", frame, time="t").query("SELECT t, b FROM s")
    there = sorted(json.loads(row.row)["b"] for row in query.dead_letters.collect())
    local: Any = pk.Flow().stream("s", [{"t": t, "b": bytes(b)} for t, b in rows], time="t").query("SELECT t, b FROM s")
    local.collect()
    assert (
        there == sorted(json.loads(row)["b"] for row in local.dead_letters["row"].to_pylist()) == ["/w==", "XHhmZg=="]
    )


def test_text_declared_as_bytes_is_base64_in_a_frame_too(spark: Any) -> None:
    frame = spark.createDataFrame([(1, "/w=="), (2, "no base64")], "t bigint, b string")
    query = pk.Flow(spark).stream("s", frame, time="t", schema="t bigint, b binary").query("SELECT b FROM s")
    assert query.collect()["b"].to_pylist() == [b"\xff"]
    assert [row.reason for row in query.dead_letters.collect()] == ["b is not a binary: 'no base64'"]


def test_what_is_no_number_is_null_as_a_decimal(spark: Any) -> None:
    values = [float("nan"), float("inf"), -float("inf")]
    sql = "SELECT CAST(d AS decimal(10,2)) AS x FROM s"
    local: Any = pk.Flow().stream("s", [{"t": t, "d": d} for t, d in enumerate(values)], time="t").query(sql)
    ours = (local.collect()["x"].to_pylist(), local.counts["failed"])
    spark.createDataFrame([(d,) for d in values], "d double").createOrReplaceTempView("doubles")
    theirs = [row.x for row in spark.sql("SELECT CAST(d AS decimal(10,2)) AS x FROM doubles").collect()]
    assert ours == (theirs, 0)
