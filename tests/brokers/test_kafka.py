"""Kafka topics as sources and sinks, against the broker that librdkafka brings for such tests."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import SourceError, StreamError
from penstock.io import kafka as sinks_of_kafka
from penstock.io import kafka_reader
from penstock.io.infer import parse_schema
from penstock.io.kafka_reader import KafkaReader
from penstock.io.messages import Messages
from penstock.runtime.kept_positions import positions_in
from tests.brokers.conftest import own_broker
from tests.flow.test_positions import COLUMNS, TOTAL, by_hand, told
from tests.flow.test_positions import rows as made_rows
from tests.profiles import examples

NAMES = (f"topic-{number}" for number in itertools.count())
PARTITIONS = 4
"""Of every topic of the broker."""


def fill(servers: str, topic: str, rows: Sequence[Any], partitions: int = PARTITIONS, begin: int = 0) -> None:
    """Rows in turn to the partitions, written one second apart."""
    producer = Producer({"bootstrap.servers": servers})
    for number, row in enumerate(rows, start=begin):
        value = row if isinstance(row, bytes) or row is None else json.dumps(row).encode()
        producer.produce(topic, value=value, partition=number % partitions, timestamp=1_000_000 + 1000 * number)
    assert producer.flush(20) == 0


def read_back(servers: str, topic: str) -> list[Any]:
    """Everything that is in a topic, by a client of its own."""
    settings = {"group.id": "judge", "enable.partition.eof": True, "fetch.wait.max.ms": 20}
    consumer = Consumer({"bootstrap.servers": servers, **settings})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found: list[Any] = []
    ended = 0
    while ended < PARTITIONS:
        for message in consumer.consume(1000, timeout=1):
            ended += message.error() is not None
            found += [message] if message.error() is None else []
    consumer.close()
    return found


def flow_of(source: Any, columns: str = COLUMNS, **options: Any) -> pk.Flow:
    return pk.Flow().stream("s", source, time="t", schema=columns, **options)


def test_a_topic_is_read_to_its_end_in_the_order_of_time(kafka: str) -> None:
    """Messages were written to the partitions in turn; they come in the order in which they were written."""
    topic, rows = next(NAMES), made_rows(200)
    fill(kafka, topic, rows)
    query = flow_of(pk.kafka(kafka, topic, until="end"), progress=pk.ordered()).query("SELECT t FROM s")
    assert query.collect()["t"].to_pylist() == list(range(200))
    assert len(query.late) == 0
    assert query.collect().num_rows == 200  # another run reads it again


def test_what_the_broker_says_of_a_message_is_in_columns(kafka: str) -> None:
    topic = next(NAMES)
    producer = Producer({"bootstrap.servers": kafka})
    headers = [("h", b"x"), ("g", b"y")]
    for at, key in enumerate((b"a", None)):
        producer.produce(
            topic,
            value=b'{"t": %d}' % at,
            key=key,
            partition=2,
            timestamp=1234 + at,
            headers=headers,
        )
    producer.flush(20)
    columns = (
        "t bigint, kafka_topic string, kafka_partition int, kafka_offset bigint, kafka_timestamp timestamp, "
        "kafka_key string, kafka_headers map<string,binary>, kafka_value binary"
    )
    found = flow_of(pk.kafka(kafka, topic, until="end"), columns).query("SELECT * FROM s").collect().to_pylist()
    assert found[0] == {
        "t": 0,
        "kafka_topic": topic,
        "kafka_partition": 2,
        "kafka_offset": 0,
        "kafka_timestamp": datetime(1970, 1, 1, 0, 0, 1, 234000, tzinfo=UTC),
        "kafka_key": "a",
        "kafka_headers": [("h", b"x"), ("g", b"y")],
        "kafka_value": b'{"t": 0}',
    }
    assert (found[1]["kafka_key"], found[1]["kafka_offset"]) == (None, 1)


@pytest.mark.parametrize(
    ("column", "found"),
    [
        ("kafka_partition bigint", 0), ("kafka_partition string", "0"), ("kafka_offset string", "1"),
        ("kafka_value string", '{"t": 7}'), ("KAFKA_Offset bigint", 1), ("Kafka_Key string", None),
        ("kafka_headers map<string,string>", []),
    ],
)  # fmt: skip
def test_columns_of_the_broker_may_be_text_and_are_named_in_any_case(kafka: str, column: str, found: object) -> None:
    topic = next(NAMES)
    fill(kafka, topic, [{"t": 6}, {"t": 7}], partitions=1)
    query = flow_of(pk.kafka(kafka, topic, until="end"), f"t bigint, {column}").query("SELECT * FROM s")
    assert query.collect()[column.split(maxsplit=1)[0]].to_pylist()[1] == found


@pytest.mark.parametrize(
    ("column", "hint"),
    [
        ("kafka_topic binary", "kafka_topic string"), ("kafka_partition smallint", "int or bigint or string"),
        ("kafka_offset int", "bigint or string"), ("kafka_timestamp bigint", "kafka_timestamp timestamp"),
        ("kafka_timestamp string", "CAST(kafka_timestamp AS …)"), ("kafka_key bigint", "string or binary"),
        ("kafka_headers string", "map<string,binary>"), ("kafka_headers map<string,int>", "map<string,string>"),
        ("kafka_value double", "binary or string"), ("Kafka_Offset double", "Kafka_Offset bigint"),
    ],
)  # fmt: skip
def test_columns_of_the_broker_that_cannot_be_so_are_told_when_they_are_declared(column: str, hint: str) -> None:
    for value in ("json", "bytes"):
        with pytest.raises(StreamError, match="A column that the broker tells is declared with another type") as wrong:
            flow_of(pk.kafka("127.0.0.1:1", "t", value=value), f"t bigint, {column}")
        assert (wrong.value.where, wrong.value.got) == ("topic t", column)
        assert hint in wrong.value.hint


def test_the_time_of_the_broker_has_a_form_of_its_own(kafka: str) -> None:
    topic = pk.kafka(kafka, "t")
    for column in ("kafka_timestamp bigint", "kafka_timestamp timestamp"):
        with pytest.raises(StreamError, match=r"is a timestamp already(?s:.*)leave out time_format"):
            pk.Flow().stream("s", topic, time="kafka_timestamp", schema=column, time_format="epoch_ms")
    with pytest.raises(StreamError, match="declared with another type") as wrong:
        pk.Flow().stream("s", topic, time="kafka_timestamp", schema="kafka_timestamp bigint")
    assert wrong.value.got == "kafka_timestamp bigint, as the time"


def test_a_value_that_is_no_text_is_a_dead_letter_where_the_schema_says_text(kafka: str) -> None:
    topic = next(NAMES)
    fill(kafka, topic, [b"\xff", b"text"], partitions=1)
    flow = pk.Flow().stream(
        "s", pk.kafka(kafka, topic, value="bytes", until="end"), time="kafka_offset",
        schema="kafka_offset bigint, kafka_value string",
    )  # fmt: skip
    query = flow.query("SELECT kafka_value FROM s")
    assert query.collect()["kafka_value"].to_pylist() == ["text"]
    (reason,) = query.dead_letters["reason"].to_pylist()
    assert reason.startswith("the key, a header or the value is not UTF-8")


def test_values_may_be_bytes(kafka: str) -> None:
    topic = next(NAMES)
    fill(kafka, topic, [b"\x00\xff", b"two"], partitions=1)
    columns = "kafka_offset bigint, kafka_value binary"
    flow = pk.Flow().stream(
        "s", pk.kafka(kafka, topic, value="bytes", until="end"), time="kafka_offset", schema=columns
    )
    assert flow.query("SELECT kafka_value FROM s").collect()["kafka_value"].to_pylist() == [b"\x00\xff", b"two"]


def test_what_is_malformed_is_a_dead_letter_with_its_place(kafka: str) -> None:
    topic = next(NAMES)
    bad = [b"not json", b"[1]", None, {"t": "noon", "v": 1}, {"v": 2}, b"\xff"]
    fill(kafka, topic, [{"t": 1, "v": 1}, *bad, {"t": 2, "v": 1}], partitions=1)
    query = flow_of(pk.kafka(kafka, topic, until="end")).query("SELECT t FROM s")
    assert query.collect()["t"].to_pylist() == [1, 2]
    reasons = query.dead_letters["reason"].to_pylist()
    place = f"(topic {topic}, partition 0, offset {{}})"
    assert [reason[reason.index("(topic") :] for reason in reasons] == [place.format(n) for n in (1, 2, 3, 6, 4, 5)]
    assert reasons[1].startswith("the value is not a JSON object: an array")
    assert reasons[2].startswith("the value is not a JSON object: null")
    assert query.dead_letters["row"].to_pylist()[0] == "not json"
    assert query.counts["dead"] == 6


def test_partitions_have_progress_of_their_own(kafka: str) -> None:
    """One partition is far behind the others in its own time: nothing of it is late."""
    topic = next(NAMES)
    fill(kafka, topic, [{"t": number // 4 + 1000 * (number % 4 != 0), "k": 0, "v": 1} for number in range(80)])
    columns = f"{COLUMNS}, kafka_partition int"
    progress = pk.per_source("kafka_partition", sources=list(range(PARTITIONS)))
    query = flow_of(pk.kafka(kafka, topic, until="end"), columns, progress=progress).query(TOTAL)
    assert sum(query.collect()["n"].to_pylist()) == 80
    assert query.counts["late"] == 0


@examples(5)
@given(st.lists(st.integers(1, 120), max_size=3))
def test_a_run_goes_on_at_the_offsets_of_its_snapshot(
    kafka: str, tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    topic, rows, home = next(NAMES), made_rows(120), tmp_path_factory.mktemp("home")
    written = 0
    for cut in [*sorted(cuts), 120]:
        fill(kafka, topic, rows[written:cut], begin=written)
        written = cut
        flow = flow_of(pk.kafka(kafka, topic), progress=pk.ordered())
        run = flow.start({flow.query(TOTAL, name="n"): home / "out.jsonl"}, snapshots=home / "kept")
        while run.progress["read"] < written - sum(kept for kept in [_read_before(home)]):
            run.process_available()
        run.stop() if cut != 120 else run.finish(for_good=True)
        (home / "read").write_text(str(written))
    found = [json.loads(line) for line in (home / "out.jsonl").read_text().splitlines()]
    assert told(found) == by_hand(rows)


def _read_before(home: Path) -> int:
    file = home / "read"
    return int(file.read_text()) if file.exists() else 0


def reader_of(kafka: str, topic: str, columns: str = COLUMNS, **options: Any) -> KafkaReader:
    return KafkaReader(pk.kafka(kafka, topic, **options), parse_schema(columns, "t", None))


def polled(reader: KafkaReader, count: int) -> list[int]:
    """The times of so many messages, or of all until the end."""
    found: list[int] = []
    while len(found) < count:
        given = reader.poll()
        if given is pk.END:
            break
        if isinstance(given, Messages):
            found += [row["t"] for row in given.rows]  # type: ignore[misc]
    return found


def test_where_a_run_begins(kafka: str) -> None:
    topic = next(NAMES)
    fill(kafka, topic, made_rows(40))
    first = reader_of(kafka, topic, start="latest")
    assert first.position()["offsets"] == dict.fromkeys(range(4), 10)
    fill(kafka, topic, [{"t": 99}], partitions=1)
    assert polled(first, 1) == [99]
    assert first.position()["offsets"] == {0: 11, 1: 10, 2: 10, 3: 10}
    some = reader_of(kafka, topic, start={0: 10, 1: 9, 2: 10}, until="end")
    assert sorted(polled(some, 100)) == [3 + 4 * n for n in range(9)] + [37, 39, 99]
    for reader in (first, some):
        reader.close()
        assert reader.poll() is pk.END


def test_the_end_is_where_it_was_when_the_run_began(kafka: str) -> None:
    topic = next(NAMES)
    fill(kafka, topic, made_rows(10))
    reader = reader_of(kafka, topic, until="end")
    fill(kafka, topic, made_rows(50))
    assert sorted(polled(reader, 100)) == list(range(10))
    empty = reader_of(kafka, topic, until="end")
    empty.seek(empty.position() | {"offsets": dict(empty._ends)})
    assert empty.poll() is pk.END


def test_what_waits_for_its_turn_is_not_part_of_the_position(kafka: str) -> None:
    """Each time what was handed over and the position agree; a second reader gives exactly the rest."""
    topic = next(NAMES)
    fill(kafka, topic, made_rows(3000))
    reader = reader_of(kafka, topic)
    before = polled(reader, 1)
    position = reader.position()
    assert sum(position["offsets"].values()) == len(before) < 3000
    rest = reader_of(kafka, topic)
    rest.seek(position)
    assert before + polled(rest, 3000 - len(before)) == list(range(3000))


def test_partitions_wait_for_one_another(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Much of one partition is older than anything of another; it is fetched in pieces, and comes in order."""
    monkeypatch.setattr(kafka_reader, "FETCHED", 50)
    monkeypatch.setattr(kafka_reader, "TOGETHER", 20)
    topic = next(NAMES)
    producer = Producer({"bootstrap.servers": kafka})
    for t in range(400):
        producer.produce(topic, value=b'{"t": %d}' % t, partition=0 if t < 300 else 1 + t % 3, timestamp=10_000 + t)
    producer.flush(20)
    assert polled(reader_of(kafka, topic), 400) == list(range(400))


def test_a_partition_that_is_new_is_read_from_its_beginning(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = next(NAMES)
    fill(kafka, topic, made_rows(40))
    old = reader_of(kafka, topic)
    snapshot = {"topic": topic, "offsets": {0: 10, 1: 10}}  # of a time when there were two
    old.seek(snapshot)
    assert sorted(polled(old, 20)) == [t for t in range(40) if t % 4 > 1]

    seconds = [0.0]
    listed = KafkaReader._listed
    monkeypatch.setattr(KafkaReader, "_listed", lambda self: listed(self)[:2])
    reader = KafkaReader(pk.kafka(kafka, topic), parse_schema(COLUMNS, "t", None), clock=lambda: seconds[0])
    assert sorted(polled(reader, 20)) == [t for t in range(40) if t % 4 < 2]
    monkeypatch.setattr(KafkaReader, "_listed", listed)
    assert reader.poll() is pk.IDLE
    seconds[0] += kafka_reader.LOOK_EVERY
    assert sorted(polled(reader, 20)) == [t for t in range(40) if t % 4 > 1]
    assert reader.position()["offsets"] == dict.fromkeys(range(4), 10)


def test_positions_that_cannot_be_gone_on_from_are_told(kafka: str) -> None:
    topic = next(NAMES)
    fill(kafka, topic, made_rows(8))
    reader = reader_of(kafka, topic)
    with pytest.raises(SourceError, match="Messages after the snapshot are not there any more") as lost:
        reader.seek({"topic": topic, "offsets": {0: 7}})
    assert lost.value.got == "offset 7, while the broker has 0 to 2"
    with pytest.raises(SourceError, match="Messages after the snapshot are not there any more"):
        reader.seek({"topic": topic, "offsets": {9: 1}})
    with pytest.raises(SourceError, match="The snapshot was taken of another source"):
        reader.seek({"topic": "other", "offsets": {}})


def test_brokers_that_are_not_there_are_told(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(kafka_reader, "ANSWER", 0.2)
        with pytest.raises(SourceError, match="The Kafka brokers cannot be reached") as unreached:
            flow_of(pk.kafka("127.0.0.1:1", "t")).query(TOTAL).collect()
    assert "127.0.0.1:1" in unreached.value.hint
    with monkeypatch.context() as patched:
        patched.setattr(sinks_of_kafka, "ANSWER", 0.2)
        query = pk.Flow().stream("s", [{"t": 1}], time="t").query("SELECT t FROM s")
        with pytest.raises(SourceError, match="The Kafka brokers cannot be reached") as unreached:
            query.start(pk.kafka_sink("127.0.0.1:1", "t"))
    assert "127.0.0.1:1" in unreached.value.hint
    with pytest.raises(SourceError, match="There is no such topic"):
        reader_of(kafka, "nobody-wrote-here")
    with pytest.raises(SourceError, match="The Kafka client cannot be made"):
        reader_of(kafka, "t", options={"no.such.setting": 1})


@pytest.mark.parametrize(
    ("start", "wrong"),
    [
        ({"0": 1000}, "'0' (str) is no number of a partition"),
        ({0: "1000"}, "'1000' (str) is no offset, in partition 0"),
        ({0: 1.5}, "1.5 (float) is no offset, in partition 0"),
        ({0: -1}, "-1 (int) is no offset, in partition 0"),
        ({0: "latest"}, "'latest' (str) is no offset, in partition 0"),
        ({True: 1}, "True (bool) is no number of a partition"),
        ({-1: 1}, "-1 (int) is no number of a partition"),
        ({}, "no partition is named"),
        (1000, "int is neither a text nor a mapping of partitions to offsets"),
        ([1000], "list is neither a text nor a mapping of partitions to offsets"),
        (np.array([1, 2]), "ndarray is neither a text nor a mapping of partitions to offsets"),
        (None, "NoneType is neither a text nor a mapping of partitions to offsets"),
        ("Latest", "'Latest' is neither"),
    ],
    ids=repr,
)
def test_a_start_that_is_none_is_told_with_what_is_wrong(start: Any, wrong: str) -> None:
    with pytest.raises(StreamError, match="A topic is read from its earliest or latest messages") as told:
        pk.kafka("127.0.0.1:1", "t", start=start)
    assert told.value.got == f"start={start!r}: {wrong}"
    assert "{0: 120, 1: 80}" in told.value.hint


@pytest.mark.parametrize("until", ["end", None])
@pytest.mark.parametrize(
    ("start", "got"),
    [
        ({0: 1000}, "start= names offset 1000 of partition 0, of which the broker has 0 to 2"),
        ({1: 2, 0: 3}, "start= names offset 3 of partition 0, of which the broker has 0 to 2"),
        ({9: 0}, "start= names partition 9, while the topic has 0 to 3"),
    ],
)
def test_a_start_that_is_not_there_is_told(kafka: str, start: Any, got: str, until: Any) -> None:
    topic = next(NAMES)
    fill(kafka, topic, made_rows(8))
    query = flow_of(pk.kafka(kafka, topic, start=start, until=until)).query(TOTAL)
    with pytest.raises(SourceError, match="The topic cannot be begun there") as told:
        query.start([]).wait(60)
    assert (told.value.where, told.value.got) == (f"topic {topic}", got)
    reader = reader_of(kafka, topic, start=start)
    reader.seek({"topic": topic, "offsets": dict.fromkeys(range(4), 1)})  # a run that goes on does not begin there
    assert sorted(polled(reader, 4)) == [4, 5, 6, 7]


def test_a_start_is_that_of_the_moment_in_which_it_was_given(kafka: str) -> None:
    start = {0: 1}
    topic = pk.kafka(kafka, "t", start=start)
    start[0] = 5
    assert topic.start == {0: 1}
    assert pk.kafka(kafka, "t", start={np.int64(0): np.int64(2)}).start == {0: 2}


@pytest.mark.parametrize("sink", ["list", "topic"])
def test_a_broker_that_goes_away_is_told_once_and_not_all_the_time(
    sink: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is away until the client has tried in vain for many times."""
    made: list[KafkaReader] = []
    monkeypatch.setattr(KafkaReader, "__init__", _noted(KafkaReader.__init__, made))
    caplog.set_level("INFO", "penstock")
    with own_broker() as (broker, address):
        topic = next(NAMES)
        fill(address, topic, made_rows(8))
        target: Any = [] if sink == "list" else pk.kafka_sink(address, "out")
        run = flow_of(pk.kafka(address, topic)).query("SELECT t FROM s").start(target)
        while run.progress["read"] < 8:
            run.process_available()
        monkeypatch.setattr(sinks_of_kafka, "ANSWER", 0.2)
        broker.kill()
        broker.wait()
        tried = 0
        until = time.monotonic() + 60
        while tried < 40:
            assert time.monotonic() < until
            assert not run.wait(0.05)
            tried = sum(said.since for said in made[0]._log._said.values())
        run.stop()
    lines = [record.getMessage() for record in caplog.records if record.name != "penstock.run"]
    assert any("Connection refused" in line and "it is tried again" in line for line in lines)
    assert len(lines) <= 12, lines
    assert "Connection refused" not in capfd.readouterr().err


def test_what_is_written_wrong_is_told_at_once(kafka: str) -> None:
    for options, message in (
        ({"value": "avro"}, "Messages are read as JSON or as bytes"),
        ({"start": "noon"}, "A topic is read from its earliest or latest messages"),
        ({"start": {0: -1}}, "A topic is read from its earliest or latest messages"),
        ({"until": "noon"}, "A topic is read for good or until its end"),
        ({"options": {"enable.auto.commit": True}}, "These settings are not free"),
        ({"options": {"bootstrap.servers": "x"}}, "The brokers are said once"),
    ):
        with pytest.raises(StreamError, match=message):
            pk.kafka(kafka, "t", **options)  # type: ignore[arg-type]
    with pytest.raises(StreamError, match="A topic is named by its brokers and its name"):
        pk.kafka(kafka, "")
    with pytest.raises(StreamError, match="columns of an iterable are not known"):
        pk.Flow().stream("s", pk.kafka(kafka, "t"), time="t")
    with pytest.raises(StreamError, match="plain rows, without lives"):
        flow_of(pk.kafka(kafka, "t"), lives=True)


# Sinks


def test_results_late_rows_and_dead_letters_go_to_topics(kafka: str) -> None:
    out, late, dead = next(NAMES), next(NAMES), next(NAMES)
    last = {"t": 30, "k": 0, "v": 0}
    given_rows: list[Any] = [*made_rows(20), {"t": 3, "k": 0, "v": 0}, {"t": None, "k": 1, "v": 1}, last]
    flow = flow_of(given_rows)
    target = pk.kafka_sink(kafka, out, key=["window_end", "k"])
    sides = {"late": pk.kafka_sink(kafka, late), "dead_letters": pk.kafka_sink(kafka, dead)}
    flow.query(TOTAL).start(target, **sides).wait()
    found = [(json.loads(m.key()), json.loads(m.value())) for m in read_back(kafka, out)]
    assert told([row for _, row in found]) == by_hand([*made_rows(20), last])
    assert all(key == [row["window_end"], row["k"]] for key, row in found)
    assert [json.loads(json.loads(m.value())["row"])["t"] for m in read_back(kafka, late)] == [3]
    assert [json.loads(m.value())["reason"] for m in read_back(kafka, dead)] == ["t is null"]


def test_a_row_that_is_written_again_has_the_same_number(kafka: str, tmp_path: Path) -> None:
    """At least once, and by the numbers it is known which rows came twice."""
    topic, out, rows = next(NAMES), next(NAMES), made_rows(100)
    fill(kafka, topic, rows, partitions=1)
    for _ in range(2):
        flow = flow_of(pk.kafka(kafka, topic, until="end"))
        sink = pk.kafka_sink(kafka, out, key="k")
        run = flow.start({flow.query(TOTAL, name="n"): sink}, snapshots=tmp_path / "kept", every="1 hour")
        run.wait()
        kept = sorted((tmp_path / "kept").glob("snapshot-*"))
        kept[-1].unlink()  # the run was killed before its last snapshot: the first one is of its beginning
    messages = read_back(kafka, out)
    numbered: dict[bytes, set[tuple[bytes, bytes]]] = {}
    for message in messages:
        numbered.setdefault(dict(message.headers())["penstock-row"], set()).add((message.key(), message.value()))
    assert len(messages) == 2 * len(numbered)
    assert all(len(same) == 1 for same in numbered.values())
    assert told([json.loads(value) for same in numbered.values() for _, value in same]) == by_hand(rows)
    assert Counter(message.key() for message in messages).keys() == {b"0", b"1", b"2"}


def test_what_a_topic_does_not_take_is_told(kafka: str) -> None:
    rows = [{"t": 1, "k": 1, "v": 1, "long": "x" * 2_000_000}]
    flow = pk.Flow().stream("s", rows, time="t")
    sink = pk.kafka_sink(kafka, next(NAMES))
    with pytest.raises(SourceError, match="Kafka did not take what was sent"):
        flow.query("SELECT * FROM s").start(sink).wait()
    with pytest.raises(StreamError, match="The key of a message is made of columns of the result") as wrong:
        flow.query("SELECT t FROM s").start(pk.kafka_sink(kafka, "t", key="k"))
    assert wrong.value.hint == "the result has t"


def test_positions_of_a_topic_are_offsets_by_partition(kafka: str) -> None:
    topic = next(NAMES)
    fill(kafka, topic, made_rows(8))
    flow = flow_of(pk.kafka(kafka, topic, until="end"))
    run = flow.start({flow.query(TOTAL, name="n"): []})
    run.wait()
    assert positions_in(run.snapshot()) == {"s": {"topic": topic, "offsets": dict.fromkeys(range(4), 2)}}


def test_a_client_is_let_go_whatever_becomes_of_the_run(kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end, when it is stopped, when it fails, and when another stream cannot be opened."""
    made: list[KafkaReader] = []
    monkeypatch.setattr(KafkaReader, "__init__", _noted(KafkaReader.__init__, made))
    topic = next(NAMES)
    fill(kafka, topic, made_rows(8))
    flow_of(pk.kafka(kafka, topic, until="end")).query(TOTAL).collect()
    with flow_of(pk.kafka(kafka, topic)).query(TOTAL).start([]) as run:
        run.process_available()
    monkeypatch.setattr(KafkaReader, "_add", _gone)
    with pytest.raises(SourceError, match="The source of a stream failed"):
        flow_of(pk.kafka(kafka, topic)).query(TOTAL).start([]).wait()
    two = flow_of(pk.kafka(kafka, topic)).stream("z", pk.kafka(kafka, "no-such-topic"), time="t", schema=COLUMNS)
    with pytest.raises(SourceError, match="There is no such topic"):
        two.query("SELECT t FROM s UNION z").start([]).wait()
    assert [reader._is_closed for reader in made] == [True] * 5


def _noted(begin: Any, made: list[KafkaReader]) -> Any:
    def noted(self: KafkaReader, *args: Any, **options: Any) -> None:
        made.append(self)
        begin(self, *args, **options)

    return noted


def _gone(self: KafkaReader, *args: Any) -> None:
    raise OSError("gone")
