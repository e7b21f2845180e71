"""Any session serves: what a query needs is given to the query, and the session stays as it was."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

import penstock as pk
from penstock.engines.spark.serving import (
    CHANGELOG,
    LARGE_TYPES,
    PARTITIONS,
    PLAIN_FILES,
    PROVIDER,
    ROCKSDB,
    query_settings,
    served,
)
from penstock.errors import StreamError
from tests.spark import scenario
from tests.spark.modes import session_beside

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


def plain(spark: Any) -> Any:
    """A session with Spark's defaults where the tests' session has others."""
    session = session_beside(spark)
    session.conf.set(PROVIDER, HDFS)
    session.conf.unset(CHANGELOG)
    session.conf.set(PARTITIONS, "200")
    session.conf.set(LARGE_TYPES, "true")
    return session


def test_a_session_with_the_default_state_store_runs_a_stream(spark: Any, tmp_path: Path) -> None:
    session = plain(spark)
    keys = (PROVIDER, CHANGELOG, PARTITIONS, LARGE_TYPES)
    before = {key: session.conf.get(key, None) for key in keys}
    scenario.write_files(tmp_path / "in")
    scenario.start(session, tmp_path).finish()
    assert scenario.output(tmp_path) == scenario.expected()
    assert {key: session.conf.get(key, None) for key in keys} == before


def test_a_stream_that_its_user_starts_is_refused_at_once(spark: Any, tmp_path: Path) -> None:
    session = plain(spark)
    frame = session.readStream.schema("t bigint").json(str(tmp_path))
    query = pk.Flow(session).stream("s", frame, time="t").query("SELECT count(*) AS n [RANGE 1, SLIDE 1, WA t] FROM s")
    for ask in (lambda: query.df, lambda: query.late, lambda: query.dead_letters):
        with pytest.raises(StreamError, match=r"state store cannot hold.*\n.*\n.*HDFSBacked.*\n.*q.start") as told:
            ask()
        assert f"spark.conf.set('{PROVIDER}', '{ROCKSDB}')" in told.value.hint
    session.conf.set(PROVIDER, ROCKSDB)
    assert query.df.isStreaming


def test_settings_are_put_back_when_a_start_fails(spark: Any) -> None:
    session = plain(spark)
    session.conf.unset(PARTITIONS)

    def fail() -> None:
        with served(session, lambda: {PARTITIONS: "3", PROVIDER: ROCKSDB}):
            assert session.conf.get(PARTITIONS) == "3"
            raise RuntimeError("no start")

    with pytest.raises(RuntimeError, match="no start"):
        fail()
    assert session.conf.get(PARTITIONS, None) is None
    assert session.conf.get(PROVIDER) == HDFS


def test_starts_side_by_side_do_not_take_each_others_settings_for_the_sessions(spark: Any, tmp_path: Path) -> None:
    session = plain(spark)
    session.conf.set(PARTITIONS, "7")
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"t": range(10), "k": [at % 3 for at in range(10)]}), tmp_path / "in" / "0.parquet")
    together = threading.Barrier(3)

    def start(name: str) -> int:
        flow = pk.Flow(session, path=str(tmp_path / "flows"))
        frame = session.readStream.schema("t bigint, k bigint").parquet(str(tmp_path / "in"))
        flow.stream("s", frame, time="t", progress=pk.bounded(3))
        query: Any = flow.query("SELECT k, count(*) AS n [RANGE 5, SLIDE 5, WA t] FROM s GROUP BY k", name)
        together.wait()
        run = query.start(str(tmp_path / name), buckets=2)
        run.process_available()
        run.stop()
        return len(
            [p for p in (tmp_path / "flows" / name / "checkpoint" / "state" / "0").iterdir() if p.name.isdigit()]
        )

    with ThreadPoolExecutor(3) as pool:
        assert [p for p in pool.map(start, "abc") if p != 2] == []
    assert session.conf.get(PARTITIONS) == "7"
    assert session.conf.get(PROVIDER) == HDFS


def test_a_session_that_says_nothing_has_sparks_defaults(spark: Any) -> None:
    session = plain(spark)
    session.conf.unset(PROVIDER)
    assert session.conf.get(PROVIDER) == HDFS
    assert query_settings(session, 2, named=False)[PROVIDER] == ROCKSDB


def test_what_a_session_says_already_is_left_alone(spark: Any) -> None:
    session = plain(spark)
    session.conf.set(PROVIDER, "com.example.BetterRocksDBStateStoreProvider")
    session.conf.set(PARTITIONS, "3")
    session.conf.set(LARGE_TYPES, "false")
    assert query_settings(session, 3, named=False) == {}


def test_a_checkpoint_on_a_disk_is_written_plainly_unless_the_session_says_how(spark: Any) -> None:
    session = plain(spark)
    manager, checksums = PLAIN_FILES
    for key in PLAIN_FILES:
        session.conf.unset(key)
    given = query_settings(session, 2, named=False, on_disk=True)
    assert given.items() >= PLAIN_FILES.items()
    assert not query_settings(session, 2, named=False).keys() & PLAIN_FILES.keys()
    session.conf.set(manager, "com.example.Manager")
    given = query_settings(session, 2, named=False, on_disk=True)
    assert manager not in given
    assert given[checksums] == "false"


def test_a_setting_that_cannot_be_given_is_told() -> None:
    class Fixed:
        """A session of which an administrator has fixed the settings."""

        class conf:
            @staticmethod
            def get(key: str, default: object = None) -> object:
                return default

            @staticmethod
            def set(key: str, value: str) -> None:
                raise PySparkException("[CANNOT_MODIFY_CONFIG] no")

            @staticmethod
            def unset(key: str) -> None:
                pass

    with (
        pytest.raises(StreamError, match=r"(?s)does not let.*CANNOT_MODIFY.*start the session with spark.x=1"),
        served(Fixed(), lambda: {"spark.x": "1"}),
    ):
        pass
