"""A run that has failed says so, and says why first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import penstock as pk
from penstock.engines.spark.failure import explained
from penstock.errors import RunError, SourceError

SQL = "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM s"


def worker(text: str) -> str:
    """How Spark tells of an error in a Python worker, in its outline."""
    return (
        "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] An "
        "error occurred in the user provided function in foreach batch sink. Reason: An exception was raised by the "
        "Python Proxy. Return Message: Traceback (most recent call last):\n"
        '  File "/x/py4j/clientserver.py", line 1, in _call_proxy\n    call()\n'
        "pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:\n"
        f"Traceback (most recent call last):\n{text}\n\nJVM stacktrace:\n\tat org.apache.spark.X(X.scala:1)\n"
    )


def test_our_own_error_keeps_its_four_parts() -> None:
    original = SourceError("A file is bad.", where="line 1\n         two\n         ^", got="garbage", hint="mend it")
    text = worker(f'  File "/x/host.py", line 3, in run\n    go()\npenstock.errors.SourceError: {original}')
    error = explained(text, "talkers")
    assert (error.what, error.got, error.hint) == ("A file is bad.", "garbage", "mend it")
    assert error.where == "query talkers: line 1\n         two\n         ^"
    assert str(error).splitlines()[0] == "A file is bad."
    assert error.stack == text


def test_another_error_is_told_with_the_line_that_raised_it() -> None:
    error = explained(worker('  File "/home/me/job.py", line 7, in parse\n    x\nmy.own.Boom: not a number'), "q")
    assert error.what == "Boom: not a number"
    assert error.where == "query q, /home/me/job.py, line 7, in parse"
    assert "run.exception.stack" in error.hint


@pytest.mark.parametrize(
    "text", ["ModuleNotFoundError: No module named 'penstock'", "X: [PYTHON_VERSION_MISMATCH] 3.9"]
)
def test_workers_of_another_python_are_told_how_to_get_the_right_one(text: str) -> None:
    assert "PYSPARK_PYTHON=" in explained(worker(f'  File "/x", line 1, in f\n    x\n{text}'), "q").hint


def test_what_spark_says_itself_and_the_cause_below_it() -> None:
    text = (
        "Py4JJavaError: An error occurred while calling o1.collectToPython.\n"
        ": org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Error while reading file a.parquet.\n"
        "\tat org.apache.spark.X(X.scala:1)\n"
        "Caused by: java.lang.RuntimeException: a.parquet is not a Parquet file\n\tat y\n"
    )
    error = explained(text, "q")
    assert error.what.startswith("[FAILED_READ_FILE.NO_HINT] Error while reading file a.parquet.")
    assert error.got == "RuntimeException: a.parquet is not a Parquet file"
    assert explained("something else\nmore", "q").what == "something else"


@pytest.mark.parametrize(
    "cause",
    [
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
        "java.io.EOFException",
        "java.net.SocketException: Connection reset",
        "org.apache.spark.SparkException: EOFException occurred while reading the port number from pyspark.daemon's "
        "stdout",
    ],
)
def test_a_worker_that_died_is_told(cause: str) -> None:
    text = (
        "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure\n"
        f"Caused by: {cause}\n\tat org.apache.spark.X(X.scala:1)\n"
    )
    error = explained(text, "talkers")
    assert (error.what, error.where) == ("A Python worker of Spark has died.", "query talkers")
    assert error.got == cause.removeprefix("org.apache.spark.").removeprefix("java.io.").removeprefix("java.net.")
    assert "lack of memory" in error.hint


@pytest.mark.parametrize("cause", ["java.io.EOFException: Stream ended prematurely", "java.lang.NullPointerException"])
def test_state_that_cannot_be_read_is_told_as_that_and_not_as_a_worker_that_died(cause: str) -> None:
    text = (
        "An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):\n"
        '  File "/x/clientserver.py", line 1, in _call_proxy\n    call()\n'
        "py4j.protocol.Py4JJavaError: An error occurred while calling o1.getResult.\n"
        ": org.apache.spark.SparkException: Exception thrown in awaitResult: Job aborted due to stage failure\n"
        "Caused by: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during "
        f"loading state.  SQLSTATE: 58030\n\tat org.apache.spark.X(X.scala:1)\nCaused by: {cause}\n\tat y\n"
    )
    error = explained(text, "q")
    assert (error.what, error.where) == (
        "State of the query in Spark's checkpoint is damaged or gone.",
        "query q, checkpoint/state",
    )
    assert cause.rpartition("java.")[2].partition(".")[2] in error.got
    assert error.hint.startswith("restore the home of the query as a whole")


@pytest.mark.parametrize(
    "text",
    [
        "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: java.io.IOException: No space left on "
        "device SQLSTATE: XXKST",
        "Job aborted due to stage failure\nCaused by: org.apache.spark.SparkException: "
        "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.  SQLSTATE: 58030\n"
        "\tat org.apache.spark.X(X.scala:1)\nCaused by: java.io.IOException: No space left on device\n\tat y\n",
    ],
)
def test_a_disk_that_is_full_is_told_as_that_and_not_as_damage(text: str) -> None:
    error = explained(text, "q")
    assert (error.what, error.where) == ("There is no space left on a disk.", "query q")
    assert "No space left on device" in error.got
    assert "it goes on where it was" in error.hint


def test_the_file_of_state_is_named_where_spark_names_it() -> None:
    said = "[CANNOT_LOAD_STATE_STORE.X] Error reading state file of file:/a b/checkpoint/state/0/0/1.changelog does not"
    assert explained(said, "q").where == "query q, checkpoint/state"  # a name with spaces is not guessed
    assert explained(said.replace("a b", "a"), "q").where == "query q, /a/checkpoint/state/0/0/1.changelog"


@pytest.mark.parametrize(
    ("cause", "advice"),
    [
        ("org.apache.spark.SparkException: Python worker failed to connect back.", "SPARK_LOCAL_IP=127.0.0.1"),
        ('java.io.IOException: Cannot run program "python9": error=2, No such file', "there is no python9 where"),
    ],
)
def test_workers_that_cannot_be_reached_or_started_come_with_advice(cause: str, advice: str) -> None:
    error = explained(f"[STREAM_FAILED] Query [id = 1] terminated with exception: x\nCaused by: {cause}\n\tat y\n", "q")
    assert error.what == cause.rpartition("org.apache.spark.")[2].removeprefix("java.io.")
    assert advice in error.hint
    assert "PYSPARK_PYTHON" in error.hint


def test_a_python_that_does_not_start_is_told() -> None:
    died = "TransformWithStateInPySpark driver worker exited unexpectedly (crashed) SQLSTATE: XXKST"
    error = explained(f"[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: {died}", "q")
    assert error.what == "The Python that Spark asks for the state of the query did not start, or has died."
    assert died in error.got
    assert "PYSPARK_PYTHON" in error.hint


def test_a_number_of_the_system_is_told_with_its_meaning() -> None:
    for text in ("[Errno 28] Error writing bytes to file", "[Errno 28] No space left on device"):
        error = explained(worker(f'  File "/x", line 1, in f\n    x\nOSError: {text}'), "q")
        assert error.what.count("No space left on device") == 1
        assert error.what.startswith(f"OSError: {text}")


def broken_sink(frame: Any, number: int) -> None:
    raise OSError("disk full")


def refusing_sink(frame: Any, number: int) -> None:
    raise SourceError("The table is locked.", where="table x", got="a lock", hint="unlock it")


def failing() -> Callable[[int], int]:
    """Made here, so that workers on other machines get it by value."""

    def boom(value: int) -> int:
        raise ValueError(f"boom at {value}")

    return boom


CASES: dict[str, tuple[str, Callable[[Any], Any], Any, str, str]] = {
    "function": (
        "json",
        lambda f: f.withColumn("t", F.udf(failing(), "bigint")("t")),
        None,
        "ValueError: boom at 1",
        "in boom",
    ),
    "sink": ("json", lambda f: f, broken_sink, "OSError: disk full", "in broken_sink"),
    "own": ("json", lambda f: f, refusing_sink, "The table is locked.", "query q: table x"),
    "spark": ("parquet", lambda f: f, None, "[FAILED_READ_FILE", "query q"),
}


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES)
def test_a_failed_run_says_why(spark: Any, tmp_path: Path, case: str) -> None:
    kind, change, sink, reason, where = CASES[case]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0").write_text(json.dumps({"t": 1}))
    frame = change(spark.readStream.schema("t bigint").format(kind).load(str(tmp_path / "in")))
    flow = pk.Flow(spark, path=str(tmp_path / "flow")).stream("s", frame, time="t", progress=pk.bounded(0))
    run = flow.query(SQL, name="q").start(sink or str(tmp_path / "out"))
    with pytest.raises(RunError) as raised:
        run.finish()
    assert str(raised.value).startswith(reason)
    assert where in raised.value.where
    assert len(raised.value.stack.splitlines()) > 10
    error = run.exception
    assert error is not None
    assert str(error).startswith(reason)
    assert run.progress["status"] == "failed"
    assert run.progress["reason"].startswith(reason)
    for ask in (run.process_available, run.wait, lambda: run.reached(99)):
        with pytest.raises(RunError):
            ask()


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_run_that_has_not_failed_says_that(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    frame = spark.readStream.schema("t bigint").json(str(tmp_path / "in"))
    flow = pk.Flow(spark, path=str(tmp_path / "flow")).stream("s", frame, time="t")
    run = flow.query(SQL, name="q").start(str(tmp_path / "out"))
    assert (run.exception, run.progress["status"], run.progress["reason"]) == (None, "running", None)
    run.stop()
    assert (run.exception, run.progress["status"], run.progress["reason"]) == (None, "stopped", None)
