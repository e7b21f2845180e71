"""Settings that a query needs, given to that query alone.

A streaming query copies its session's settings when it starts and lives with the copy; DataFrames belong to the session
they were made in, so a query cannot run in another. What a query needs is therefore set on the session for the moment
of the start and put back at once, whatever happens; settings that were not set are unset again. Starts of one process
take turns, and what a session says is looked at within a turn, so that no start takes another's settings for the
session's. A thread of the user's that reads a setting in that moment would see the values; nothing else does.

What is set, and why:
- the state store: the default one cannot host an operator with state of its own shape. One that its user chose is kept
  if it can; the only one that is known not to is the default.
- as many shuffle partitions as the plan has buckets, so that each has one; a checkpoint keeps its number.
- plain Arrow types for text and bytes, which is what the hosted graph reads.
- with named sources, the settings that let sources come and go later; they must be on from the first checkpoint.
- where the checkpoint is on a disk, that its files are written plainly and renamed, without files of check-sums beside
  them: in Spark's default way, through Hadoop's file context, every rename starts a process. A session that says how
  is kept to.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark.errors import PySparkException

from penstock.errors import StreamError

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
PARTITIONS = "spark.sql.shuffle.partitions"
EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
OFFSET_FORMAT = "spark.sql.streaming.offsetLog.formatVersion"
LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"
PLAIN_FILES = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
"""How a checkpoint is written on a disk: files are renamed by this process, and have no check-sums beside them."""
_TURNS = threading.RLock()


def query_settings(spark: Any, buckets: int, *, named: bool, on_disk: bool = False) -> dict[str, str]:
    """What a hosted query needs and its session does not say already; `on_disk` is where its checkpoint is."""
    wanted = {PARTITIONS: str(buckets), LARGE_TYPES: "false"}
    if on_disk:
        wanted |= {key: value for key, value in PLAIN_FILES.items() if spark.conf.get(key, None) is None}
    if not can_host(spark):
        wanted[PROVIDER] = ROCKSDB
        if spark.conf.get(CHANGELOG, None) is None:
            wanted[CHANGELOG] = "true"
    if named:
        wanted |= {EVOLUTION: "true", OFFSET_FORMAT: "2"}
    return {key: value for key, value in wanted.items() if spark.conf.get(key, None) != value}


def can_host(spark: Any) -> bool:
    """Whether the session's state store can hold the state of a hosted graph."""
    return not said(spark, PROVIDER).endswith(".HDFSBackedStateStoreProvider")


def check_can_host(spark: Any, name: str) -> None:
    """Refuse a session that cannot run a query which its user starts himself."""
    if not can_host(spark):
        raise StreamError(
            "The session's state store cannot hold the state of this query.",
            where=name,
            got=f"{PROVIDER}={said(spark, PROVIDER)}",
            hint=f"q.start(…), which serves any session; or spark.conf.set('{PROVIDER}', '{ROCKSDB}')",
        )


def said(spark: Any, key: str) -> str:
    """What a setting of a session is, also where that is Spark's default, while no query starts."""
    with _TURNS:
        return str(spark.conf.get(key))


@contextlib.contextmanager
def served(spark: Any, settings: Callable[[], Mapping[str, str]]) -> Iterator[None]:
    """The session with some settings, for as long as it takes to start a query; which, is asked when it is its turn."""
    with _TURNS:
        before: dict[str, str | None] = {}
        try:
            for key, value in settings().items():
                before[key] = spark.conf.get(key, None)
                _set(spark, key, value)
            yield
        finally:
            for key, old in before.items():
                if old is None:
                    spark.conf.unset(key)
                else:
                    spark.conf.set(key, old)


def _set(spark: Any, key: str, value: str) -> None:
    try:
        spark.conf.set(key, value)
    except PySparkException as error:
        raise StreamError(
            "The session does not let a query have a setting that it needs.",
            where=key,
            got=str(error).splitlines()[0],
            hint=f"start the session with {key}={value}",
        ) from None
