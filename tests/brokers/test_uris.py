"""Sinks of brokers by their URIs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import penstock as pk
from penstock.errors import StreamError
from penstock.io.broker_uris import by_uri
from tests.brokers.test_kafka import read_back
from tests.flow.test_positions import TOTAL, by_hand, rows, told


def test_a_uri_names_a_sink() -> None:
    assert by_uri("kafka://a:1,b:2/t") == pk.kafka_sink("a:1,b:2", "t")
    assert by_uri("kafka://a:1/t?key=k&key=n") == pk.kafka_sink("a:1", "t", key=["k", "n"])
    assert by_uri("redis://:secret@a:1/0?stream=s") == pk.redis_sink("redis://:secret@a:1/0", "s")
    assert "secret" not in repr(by_uri("redis://:secret@a:1/0?stream=s"))
    for other in ("out.jsonl", "s3://bucket/x.parquet", Path("kafka:"), None, "kafka"):
        assert by_uri(other) is other


def test_uris_that_are_wrong_are_told() -> None:
    for uri, message in (
        ("kafka://a:1", "This URI names no topic"),
        ("kafka://a:1/t?acks=all", "A part of this URI is not known"),
        ("redis://a:1/0", "This URI names no stream"),
    ):
        with pytest.raises(StreamError, match=message):
            by_uri(uri)


def test_results_go_where_a_uri_says(kafka: str) -> None:
    given_rows = rows(20)
    flow = pk.Flow().stream("s", given_rows, time="t")
    flow.query(TOTAL).start(f"kafka://{kafka}/one-query?key=k").wait()
    flow.start({flow.query(TOTAL, name="n"): f"kafka://{kafka}/flow"}, late=f"kafka://{kafka}/late").wait()
    for topic in ("one-query", "flow"):
        assert told([json.loads(message.value()) for message in read_back(kafka, topic)]) == by_hand(given_rows)


def test_a_script_may_name_a_topic(kafka: str) -> None:
    given_rows = rows(20)
    flow = pk.Flow().stream("s", given_rows, time="t")
    script = f"CREATE SINK o WITH (path = 'kafka://{kafka}/script'); INSERT INTO o {TOTAL}"
    (run,) = flow.sql(script).start()
    run.wait()
    assert told([json.loads(message.value()) for message in read_back(kafka, "script")]) == by_hand(given_rows)
