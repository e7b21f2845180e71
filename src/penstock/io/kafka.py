"""A Kafka topic as a source and as a sink, by `confluent-kafka` (the extra `kafka`).

`pk.kafka(…)` says what is to be read; each run opens a reader of its own (`kafka_reader`). `pk.kafka_sink(…)` says
where results go. Nothing is asked of the brokers before a run starts.

A sink is at least once: a run that is killed and goes on from its last snapshot writes the results after it again. Each
message has the header `penstock-row`, the number of the row among all that the query ever wrote there, which is kept in
the snapshot: where the rows come again in the same order, as from one stream of one partition, a message that comes
twice has the same number. With `key=` it has the same key, so that a compacted topic keeps it once.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal

import pyarrow as pa

from penstock.errors import PenstockError, SourceError, StreamError
from penstock.io.messages import check_told, checked_form, settings_of
from penstock.io.seldom import Seldom
from penstock.model.conform import as_json
from penstock.model.elements import is_whole
from penstock.model.schema import Schema

OURS = ("enable.auto.commit", "enable.auto.offset.store", "enable.partition.eof", "auto.offset.reset")
"""Settings of a consumer that the positions depend on."""
PATIENCE = 60.0
"""So many seconds brokers have to take what was sent to them."""
ANSWER = 10.0
"""And to answer a question."""
ROW_HEADER = "penstock-row"
TEXT_OR_BYTES = ("string", "binary")
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "kafka_topic": ("string",),
    "kafka_partition": ("int", "bigint", "string"),
    "kafka_offset": ("bigint", "string"),
    "kafka_timestamp": ("timestamp",),
    "kafka_key": TEXT_OR_BYTES,
    "kafka_headers": ("map<string,binary>", "map<string,string>"),
    "kafka_value": ("binary", "string"),
}
"""What a schema may ask for beside the members of the value, with the types that it may have there."""


@dataclass(frozen=True)
class KafkaTopic:
    """What is read of a topic."""

    servers: str
    topic: str
    value: str = "json"
    start: str | Mapping[int, int] = "earliest"
    until: Literal["end"] | None = None
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """What can be wrong is said when it is written."""
        _check_place(self.servers, self.topic, self.options)
        checked_form(self.value, f"topic {self.topic}", "kafka_value")
        ours = [name for name in self.options if name in OURS]
        if ours:
            raise StreamError(
                "These settings are not free: positions are kept in snapshots and depend on them.",
                where=f"topic {self.topic}",
                got=", ".join(ours),
                hint="start='earliest', 'latest' or {partition: offset} says where to begin",
            )
        wrong = _wrong_start(self.start)
        if wrong:
            raise StreamError(
                "A topic is read from its earliest or latest messages, or from offsets by partition.",
                where=f"topic {self.topic}",
                got=f"start={self.start!r}"[:200] + f": {wrong}",
                hint="start='earliest', 'latest', or {0: 120, 1: 80}, whole numbers from 0 on; partitions that are not "
                "named are read from their earliest message",
            )
        if self.until not in (None, "end"):
            raise StreamError(
                "A topic is read for good or until its end.",
                where=f"topic {self.topic}",
                got=f"until={self.until!r}"[:200],
                hint="until='end' reads what is there when the run starts",
            )

    def check_columns(self, schema: Schema) -> None:
        """Refuse columns for what the broker tells that are of another type."""
        check_told(schema, COLUMNS, f"topic {self.topic}")

    def open_source(self, schema: Schema) -> Any:
        """A reader of the topic for one run."""
        from penstock.io.kafka_reader import KafkaReader

        return KafkaReader(self, schema)


def kafka(
    servers: str,
    topic: str,
    *,
    value: str = "json",
    start: str | Mapping[int, int] = "earliest",
    until: Literal["end"] | None = None,
    options: Mapping[str, Any] | None = None,
) -> KafkaTopic:
    """A Kafka topic as the source of a stream.

    Args:
        servers: brokers to begin with, `"host:9092,other:9092"`.
        topic: its name.
        value: `json`, an object whose members are columns, or `bytes`: the column `kafka_value`.
        start: where a run begins that does not go on from a snapshot: `earliest`, `latest`, or offsets by partition.
        until: `"end"` ends the stream with what is there when the run starts; else it has no end.
        options: further settings of librdkafka's consumer, such as `security.protocol`.
    """
    confluent()
    begun = dict(start) if isinstance(start, Mapping) else start
    return KafkaTopic(servers, topic, value, begun, until, settings_of(options, f"topic {topic}"[:200]))


@dataclass(frozen=True)
class KafkaTarget:
    """A topic that results go to."""

    servers: str
    topic: str
    key: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """What can be wrong is said when it is written."""
        _check_place(self.servers, self.topic, self.options)

    def open_sink(self, schema: pa.Schema | None) -> KafkaSink:
        """A producer for one run."""
        missing = [name for name in self.key if schema is not None and name not in schema.names]
        if missing:
            raise StreamError(
                "The key of a message is made of columns of the result.",
                where=f"topic {self.topic}",
                got=", ".join(missing),
                hint=f"the result has {', '.join(schema.names if schema is not None else ())}",
            )
        sink = KafkaSink(self)
        sink.reach()
        return sink


def kafka_sink(
    servers: str, topic: str, *, key: str | Sequence[str] = (), options: Mapping[str, Any] | None = None
) -> KafkaTarget:
    """A Kafka topic for results, late rows or dead letters; a row is a JSON object.

    Args:
        servers: brokers to begin with, `"host:9092,other:9092"`.
        topic: its name.
        key: columns whose values are the key of the message: of one its text, of several a JSON array.
        options: further settings of librdkafka's producer, such as `security.protocol` or `compression.type`.
    """
    confluent()
    names = (key,) if isinstance(key, str) else key
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise StreamError(
            "The key of a message is made of columns of the result.",
            where=f"topic {topic}"[:200],
            got=repr(key)[:200],
            hint="key='user', or key=['user', 'page']",
        )
    return KafkaTarget(servers, topic, tuple(names), settings_of(options, f"topic {topic}"[:200]))


class KafkaSink:
    """Sends rows to a topic; what the brokers refuse is told with the next table."""

    def __init__(self, target: KafkaTarget) -> None:
        """Of one run."""
        self.target = target
        self._rows = 0
        self._error: PenstockError | None = None
        self._producer: Any = None
        self._guard = threading.Lock()

    def write(self, table: pa.Table) -> None:
        """Send each row."""
        with self._guard:
            producer = self._connected()
            for row in table.to_pylist():
                self._send(producer, row)
            producer.poll(0)
            self._check()

    def reach(self) -> None:
        """Raise if the brokers are not there; what is sent later waits for them."""
        try:
            self._connected().list_topics(self.target.topic, timeout=ANSWER)
        except confluent().KafkaException as error:
            raise SourceError(
                "The Kafka brokers cannot be reached.",
                where=f"topic {self.target.topic}",
                got=str(error),
                hint=f"is {self.target.servers} right?",
            ) from error

    def _connected(self) -> Any:
        if self._producer is None:
            settings = {"enable.idempotence": True, "linger.ms": 5, **self.target.options}
            self._producer = confluent().Producer({**settings, "bootstrap.servers": self.target.servers, **logged()})
        return self._producer

    def _send(self, producer: Any, row: Mapping[str, Any]) -> None:
        headers = [(ROW_HEADER, str(self._rows).encode())]
        while True:
            try:
                producer.produce(
                    self.target.topic,
                    value=as_json(row).encode(),
                    key=self._key(row),
                    headers=headers,
                    on_delivery=self._delivered,
                )
            except BufferError:  # its queue is full, so it is waited for
                producer.poll(0.1)
                self._check()
                continue
            except confluent().KafkaException as error:  # it is refused before it is sent
                raise _refused(self.target.topic, str(error)) from error
            self._rows += 1
            return

    def _key(self, row: Mapping[str, Any]) -> bytes | None:
        if not self.target.key:
            return None
        values = [row[name] for name in self.target.key]
        if len(values) > 1:
            return json.dumps([json.loads(as_json({"v": value}))["v"] for value in values]).encode()
        value = values[0]
        if value is None or isinstance(value, bytes):
            return value
        return value.encode() if isinstance(value, str) else as_json({"v": value})[6:-1].strip('"').encode()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None and self._error is None:
            self._error = _refused(self.target.topic, str(error))

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def position(self) -> Any:
        """How many rows were sent; the brokers have all of them."""
        with self._guard:
            self._flush()
            return {"rows": self._rows}

    def resume(self, position: Any) -> None:
        """Count on from a position; what was sent after it stays in the topic."""
        self._rows = 0 if position is None else int(position["rows"])

    def _flush(self) -> None:
        left = 0 if self._producer is None else self._producer.flush(PATIENCE)
        self._check()
        if left:
            raise _refused(self.target.topic, f"{left} messages were not taken within {PATIENCE:g} seconds")

    def close(self) -> None:
        """Everything was sent."""
        with self._guard:
            self._flush()

    def abandon(self) -> bool:
        """The run was cut short; what was sent stays, and what was not is lost."""
        with self._guard:
            if self._producer is not None:
                self._producer.flush(ANSWER)
            return self._rows > 0


def logged() -> dict[str, Any]:
    """What a client has to say goes to the log and not to the terminal; of brokers that are away, once in a while."""
    return {"logger": Seldom(logging.getLogger("penstock.kafka"))}


def _refused(topic: str, got: str) -> SourceError:
    return SourceError(
        "Kafka did not take what was sent to a topic.",
        where=f"topic {topic}",
        got=got[:300],
        hint="look at the brokers, the rights of this client and the greatest size of a message",
    )


def _wrong_start(start: object) -> str:
    """What is wrong with where a topic is to be begun; nothing if that can be done."""
    if isinstance(start, str):
        return "" if start in ("earliest", "latest") else f"{start[:50]!r} is neither"
    if not isinstance(start, Mapping):
        return f"{type(start).__name__} is neither a text nor a mapping of partitions to offsets"
    if not start:
        return "no partition is named"
    for partition, offset in start.items():
        if not is_whole(partition) or partition < 0:
            return f"{partition!r:.50} ({type(partition).__name__}) is no number of a partition"
        if not is_whole(offset) or offset < 0:
            return f"{offset!r:.50} ({type(offset).__name__}) is no offset, in partition {partition}"
    return ""


def _check_place(servers: object, topic: object, options: Mapping[str, Any]) -> None:
    if not isinstance(servers, str) or not servers or not isinstance(topic, str) or not topic:
        raise StreamError(
            "A topic is named by its brokers and its name.",
            got=f"servers={servers!r}, topic={topic!r}"[:200],
            hint="pk.kafka('host:9092', 'packets')",
        )
    if "bootstrap.servers" in options:
        raise StreamError("The brokers are said once.", where=f"topic {topic}", hint="leave out bootstrap.servers")


def confluent() -> ModuleType:
    """The client, or an error that says how it is installed."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise StreamError(
            "Kafka needs the package confluent-kafka.", got=str(error)[:200], hint="pip install 'penstock[kafka]'"
        ) from None
    return confluent_kafka
