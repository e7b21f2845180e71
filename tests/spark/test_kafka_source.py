"""`pk.kafka` on Spark: Spark's own source where its package is there, else an error at once.

The package is not there in the tests, so what becomes of messages is judged on a DataFrame with the columns of Spark's
source.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as pk
from penstock.engines.spark.kafka import options_of, rows_of
from penstock.errors import PenstockError, SourceError, StreamError
from penstock.io.infer import parse_schema

pytestmark = pytest.mark.spark
SOURCE = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int, "
    "headers array<struct<key: string, value: binary>>"
)


def test_without_spark_s_package_it_is_told_at_once(spark: SparkSession) -> None:
    for options in ({}, {"until": "end"}):
        topic = pk.kafka("127.0.0.1:1", "t", **options)  # type: ignore[arg-type]
        with pytest.raises(SourceError, match="Spark's package for Kafka is not there") as absent:
            pk.Flow(spark).stream("s", topic, time="ts", schema="ts timestamp")
        assert "spark-sql-kafka-0-10" in absent.value.hint


def test_messages_become_rows(spark: SparkSession) -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    messages: list[Any] = [
        (b"k", b'{"t": 1, "v": 2.5}', "topic", 3, 7, at, 0, [("h", b"x")]),
        (None, b"not json", "topic", 3, 8, at, 0, None),
        (None, b'{"t": 12}', "topic", 3, 9, at, 0, None),
    ]
    columns = (
        "t bigint, v double, kafka_key string, kafka_partition int, kafka_offset bigint, kafka_timestamp timestamp, "
        "kafka_headers map<string,binary>"
    )
    frame = rows_of(spark.createDataFrame(messages, SOURCE), "json", parse_schema(columns, "t", None))
    query = pk.Flow(spark).stream("s", frame, time="t", schema=columns).query("SELECT * FROM s")
    found = query.collect().sort_by("t").to_pylist()
    assert found[0] == {
        "t": 1,
        "v": 2.5,
        "kafka_key": "k",
        "kafka_partition": 3,
        "kafka_offset": 7,
        "kafka_timestamp": at,
        "kafka_headers": [("h", b"x")],
    }
    assert [(row["t"], row["v"]) for row in found] == [(1, 2.5), (12, None)]
    assert [row["reason"] for row in query.dead_letters.collect()] == ["t is null"]
    raw = rows_of(
        spark.createDataFrame(messages, SOURCE), "bytes", parse_schema("kafka_offset bigint, kafka_value binary", None)
    )
    assert [bytes(row[1]) for row in raw.collect()] == [message[1] for message in messages]


def test_what_spark_is_asked_for() -> None:
    topic = pk.kafka("a:1,b:2", "t", start="latest", options={"security.protocol": "SSL"})
    assert options_of(topic) == {
        "kafka.bootstrap.servers": "a:1,b:2",
        "subscribe": "t",
        "startingOffsets": "latest",
        "kafka.security.protocol": "SSL",
        "includeHeaders": "true",
    }


def test_what_spark_does_not_do_is_told_at_once(spark: SparkSession, tmp_path: Path) -> None:
    def declared(source: Any, **options: Any) -> None:
        pk.Flow(spark).stream("s", source, time="t", **{"schema": "t bigint", **options})

    with pytest.raises(StreamError, match="begun at its earliest or latest messages"):
        declared(pk.kafka("a:1", "t", start={0: 1}))
    with pytest.raises(StreamError, match="between the latest message and the end is nothing"):
        declared(pk.kafka("a:1", "t", start="latest", until="end"))
    with pytest.raises(StreamError, match="columns of a topic are not known"):
        declared(pk.kafka("a:1", "t"), schema=None)
    with pytest.raises(StreamError, match="read as Spark reads JSON"):
        declared(pk.kafka("a:1", "t"), time_format="epoch_ms")
    with pytest.raises(StreamError, match="Spark has no source of Redis streams"):
        declared(pk.redis("redis://a:1", "t"))
    flow = pk.Flow(spark, path=str(tmp_path)).stream("s", [{"t": 1}], time="t")
    for sink in (pk.kafka_sink("a:1", "t"), "kafka://a:1/t"):
        with pytest.raises(PenstockError):
            flow.query("SELECT * FROM s").start(sink)
