"""Spark sessions: what Penstock asks of one, and a pleasant one for a single machine.

Only Spark's public API is used, so a session may also be a Spark Connect client. Any session serves. Times are in UTC
whatever its zone (`utc.py`), a query gets the settings that it needs (`serving.py`), and where a setting would change
what Spark's own operators answer, a batch is hosted instead, which means the same in every session and is slower.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from penstock.engines.spark.serving import CHANGELOG, PLAIN_FILES, PROVIDER, ROCKSDB
from penstock.errors import StreamError

_MEANING = {"spark.sql.ansi.enabled": "true", "spark.sql.decimalOperations.allowPrecisionLoss": "true"}
"""Under other values Spark's expressions have other results, or other types."""


COLLECTOR = "-XX:+UseParallelGC"
"""A collector of garbage that works in between, not beside: the few cores of one machine belong to its tasks."""


def check_session(spark: object) -> None:
    """Refuse what is no session."""
    if getattr(spark, "conf", None) is None or not hasattr(spark, "createDataFrame"):
        raise StreamError(
            "Not a Spark session.", got=type(spark).__name__, hint="pk.Flow(SparkSession.builder.getOrCreate())"
        )


def other_meaning(spark: SparkSession) -> str | None:
    """The setting under which Spark's own expressions do not mean what they mean here, if there is one."""
    for key, value in _MEANING.items():
        found = str(spark.conf.get(key)).lower()
        if found != value:
            return f"{key}={found}"
    return None


def local_session(
    master: str = "local[2]", name: str = "penstock", *, remote: str | None = None, **settings: str
) -> SparkSession:
    """A quiet session with few partitions and state in RocksDB; settings use `__` for dots.

    With `remote` it is a Spark Connect client: of a server at `sc://host:port`, or of one started here for `local[2]`.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(name)
    builder = builder.master(master) if remote is None else builder.remote(remote)
    for key, value in {**session_settings(), **{k.replace("__", "."): v for k, v in settings.items()}}.items():
        builder = builder.config(key, value)
    with _java_named(), _quiet_start(), warnings.catch_warnings():
        # A Connect client sets everything again once its server is up, and some of that can only be set before.
        warnings.filterwarnings("ignore", "Failed to set spark", UserWarning)
        return builder.getOrCreate()


def session_settings() -> dict[str, str]:
    """The settings of a local session; also good values for a session of your own."""
    log4j = Path(__file__).with_name("log4j2.properties")
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "3g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{log4j} {COLLECTOR}",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.shuffle.partitions": "2",
        PROVIDER: ROCKSDB,
        CHANGELOG: "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.execution.pyspark.udf.faulthandler.enabled": "false",
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / "penstock-warehouse"),
    }


def low_latency_settings() -> dict[str, str]:
    """What makes micro-batches shorter, for streaming queries of your own whose checkpoints are on a disk.

    A query that Penstock starts there has them already (`serving`).
    """
    return {**PLAIN_FILES, CHANGELOG: "true"}


@contextlib.contextmanager
def _java_named() -> Iterator[None]:
    """Without a Java that Spark can use, say so."""
    try:
        yield
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise StreamError(
            "Spark could not be started: there is no Java that it can use.",
            got=f"JAVA_HOME={os.environ.get('JAVA_HOME') or 'not set'}",
            hint="install Java 17 or 21 and set JAVA_HOME to it, or run in-process: --engine local, pk.Flow()",
        ) from error


@contextlib.contextmanager
def _quiet_start() -> Iterator[None]:
    """Keep what the JVM prints while it starts out of the terminal; if the start fails, show it."""
    if os.environ.get("PENSTOCK_SPARK_LOG"):
        yield
        return
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        except BaseException:
            os.dup2(saved, 2)
            log.seek(0)
            sys.stderr.write(log.read().decode("utf-8", "replace"))
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)
