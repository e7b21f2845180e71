"""Reads a topic for one run, in a position of its own: an offset for each partition.

Consumer groups have no part in it: nothing is committed to the brokers, since positions belong to the snapshot.

Partitions are read in step, by the brokers' timestamps: the next message is the oldest of those that come next in their
partitions, and none is taken before it is known of every partition what comes next, or that nothing does yet. So a
backlog comes in about the order in which it was written, and no partition runs ahead of another because it was fetched
first. What was fetched and waits for its turn is not part of the position. A partition whose broker cannot be reached
holds the others back until it can.

New partitions are looked for once in a while, beside the reading, and read from their beginning.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heapreplace
from typing import Any

from penstock.errors import PenstockError, SourceError, reason_of
from penstock.io.kafka import ANSWER, COLUMNS, KafkaTopic, confluent, logged
from penstock.io.messages import Messages, told_columns
from penstock.io.seldom import Seldom
from penstock.model.schema import Schema
from penstock.runtime.polled import END, IDLE

TOGETHER = 1000
"""At most so many messages are handed over at once."""
FETCHED = 10_000
"""A partition with so many messages that wait for others is not fetched from meanwhile."""
LOOK_EVERY = 30.0
"""So many seconds pass before new partitions are looked for again."""
FIXED = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
}
LOGGER = logging.getLogger("penstock.sources")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class KafkaReader:
    """One run's reading of a topic."""

    def __init__(self, topic: KafkaTopic, schema: Schema, clock: Callable[[], float] = time.monotonic) -> None:
        """Connect, and find the partitions."""
        self.topic, self.where = topic, f"topic {topic.topic}"
        self._told = told_columns(schema, COLUMNS)
        self._clock = clock
        self._log = Seldom(LOGGER)
        self._kafka = confluent()
        self._next: dict[int, int] = {}
        """Per partition, the offset behind the last message that was handed over."""
        self._ends: dict[int, int] = {}
        """Where each partition ends, if it is read until then."""
        self._wrong: PenstockError | None = None
        """Why it cannot be begun where it should, unless it is put elsewhere by `seek`."""
        self._ready: dict[int, deque[Any]] = {}
        self._at_end: set[int] = set()
        self._paused: set[int] = set()
        self._guard = threading.Lock()
        self._is_closed = False
        self._looked = clock()
        self._looking: threading.Thread | None = None
        self._found: list[int] = []
        settings = {"group.id": "penstock", **topic.options, "bootstrap.servers": topic.servers, **FIXED}
        try:
            self._consumer = self._kafka.Consumer({**settings, **logged(), "error_cb": self._warn})
        except Exception as error:  # a setting that librdkafka does not know
            raise self._failed("The Kafka client cannot be made.", error, "look at options=") from error
        try:
            listed = self._listed()
            for partition in listed:
                low, high = self._bounds(partition)
                self._next[partition] = self._start(partition, low, high)
                if topic.until is not None:
                    self._ends[partition] = high
            self._check_named(listed)
        except BaseException:
            self.close()
            raise
        self._is_assigned = False

    # Where it is

    def position(self) -> Any:
        """The next offset of each partition."""
        return {"topic": self.topic.topic, "offsets": dict(self._next)}

    def seek(self, position: Any) -> None:
        """Go on from the offsets of a snapshot; partitions that are new since then begin with their first message."""
        offsets = position.get("offsets") if isinstance(position, dict) else None
        if not isinstance(offsets, dict) or position.get("topic") != self.topic.topic:
            raise SourceError(
                "The snapshot was taken of another source.",
                where=self.where,
                got=repr(position)[:200],
                hint="go on with the topic that it was taken of, or start anew with another folder",
            )
        self._wrong = None
        for partition in {*self._next, *offsets}:
            if partition not in self._next:
                raise self._lost(partition, f"offset {offsets[partition]}, of a partition that is not there")
            low, high = self._bounds(partition)
            at = offsets.get(partition, low)
            if not low <= at <= high:
                raise self._lost(partition, f"offset {at}, while the broker has {low} to {high}")
            self._next[partition] = at

    def _lost(self, partition: int, got: str) -> SourceError:
        return SourceError(
            "Messages after the snapshot are not there any more.",
            where=f"{self.where}, partition {partition}",
            got=got,
            hint="they were deleted, or the topic was made anew: start over with another folder of snapshots, and let "
            "the topic keep its messages for longer than a run may stand still",
        )

    def _start(self, partition: int, low: int, high: int) -> int:
        start = self.topic.start
        if isinstance(start, str):
            return low if start == "earliest" else high
        at = int(start.get(partition, low))
        if not low <= at <= high:
            self._wrong = self._wrong or self._no_start(
                f"offset {at} of partition {partition}, of which the broker has {low} to {high}",
                "an offset that is there, or leave the partition out to begin at its earliest message",
            )
        return at

    def _check_named(self, listed: Sequence[int]) -> None:
        unknown = [] if isinstance(self.topic.start, str) else [p for p in self.topic.start if p not in listed]
        if unknown:
            self._wrong = self._wrong or self._no_start(
                f"partition {unknown[0]}, while the topic has {_span(listed)}", "name partitions that it has"
            )

    def _no_start(self, got: str, hint: str) -> SourceError:
        return SourceError("The topic cannot be begun there.", where=self.where, got=f"start= names {got}", hint=hint)

    # What the brokers say

    def _listed(self) -> list[int]:
        try:
            found = self._consumer.list_topics(self.topic.topic, timeout=ANSWER).topics[self.topic.topic]
        except self._kafka.KafkaException as error:
            raise self._failed(
                "The Kafka brokers cannot be reached.", error, f"is {self.topic.servers} right?"
            ) from error
        if found.error is not None or not found.partitions:
            raise self._failed("There is no such topic.", found.error, "create it, or look at its name and your rights")
        return sorted(found.partitions)

    def _bounds(self, partition: int) -> tuple[int, int]:
        """The first offset that is there, and the one behind the last."""
        asked = self._kafka.TopicPartition(self.topic.topic, partition)
        try:
            low, high = self._consumer.get_watermark_offsets(asked, timeout=ANSWER)
        except (self._kafka.KafkaException, TypeError) as error:  # None if there was no answer in time
            raise self._failed(
                "The Kafka brokers do not say what a partition has.", error, "is its leader up?"
            ) from error
        return low, high

    def _failed(self, what: str, error: object, hint: str) -> SourceError:
        return SourceError(what, where=self.where, got=str(error)[:300], hint=hint)

    def _warn(self, error: Any) -> None:
        self._log.warning("%s: %s; it is tried again", self.where, error)

    # Reading

    def poll(self) -> Any:
        """The messages whose turn it is; never waits."""
        with self._guard:
            if self._wrong is not None:
                raise self._wrong
            if self._is_closed or self._is_over():
                return END
            self._look_for_new()
            if not self._is_assigned:
                self._take_up(self._next)
                self._is_assigned = True
            while True:
                fetched = self._consumer.consume(TOGETHER, timeout=0)
                for message in fetched:
                    self._fetched(message)
                self._pace()
                found = self._taken()
                if found is not None or not fetched:  # what was fetched may all be of one partition
                    return found or IDLE

    def _is_over(self) -> bool:
        return bool(self._ends) and all(self._is_done(partition) for partition in self._next)

    def _is_done(self, partition: int) -> bool:
        """Whether a partition that is read until its end has come to it; the last offsets may be of no message."""
        end = self._ends.get(partition, 0)
        waits = self._ready.get(partition)
        if waits:
            return bool(self._ends) and waits[0].offset() >= end
        return bool(self._ends) and (self._next[partition] >= end or partition in self._at_end)

    def _take_up(self, partitions: Iterable[int]) -> None:
        """Begin to fetch partitions from where they are."""
        places = [self._kafka.TopicPartition(self.topic.topic, p, self._next[p]) for p in partitions]
        self._ready |= {place.partition: deque() for place in places}
        self._consumer.incremental_assign(places)

    def _fetched(self, message: Any) -> None:
        error, partition = message.error(), message.partition()
        if error is None:
            self._ready[partition].append(message)
            self._at_end.discard(partition)
        elif error.code() == self._kafka.KafkaError._PARTITION_EOF:
            self._at_end.add(partition)
        elif error.code() == self._kafka.KafkaError._AUTO_OFFSET_RESET:
            raise self._lost(partition, str(error))
        elif error.fatal() or not error.retriable():
            raise self._failed("Kafka refuses to be read.", error, "look at the brokers and the rights of this client")
        else:
            self._warn(error)

    def _taken(self) -> Messages | None:
        """As far as it is known of every partition what comes next, the oldest first."""
        going = [p for p in self._ready if not self._is_done(p)]
        if any(self._is_awaited(p) for p in going):
            return None
        heads = [(self._ready[p][0].timestamp()[1], p) for p in going if self._ready[p]]
        heapify(heads)
        found, count = Messages(), 0
        while heads and count < TOGETHER:
            partition = heads[0][1]
            waits = self._ready[partition]
            self._add(found, waits.popleft())
            count += 1
            if waits and not self._is_done(partition):
                heapreplace(heads, (waits[0].timestamp()[1], partition))
            elif waits or not self._is_awaited(partition):
                heappop(heads)
            else:
                break
        return found if count else None

    def _is_awaited(self, partition: int) -> bool:
        """Whether it is not known yet what comes next in a partition.

        That nothing does is known from its end at the time of the last answer, or because the broker has said so, which
        it does when it has waited for more in vain.
        """
        if self._ready[partition] or partition in self._at_end:
            return False
        place = self._kafka.TopicPartition(self.topic.topic, partition)
        known = self._consumer.get_watermark_offsets(place, cached=True)
        return not known or self._next[partition] < known[1] or known[1] < 0

    def _pace(self) -> None:
        """Fetch no more of partitions of which much waits for others."""
        full = {p for p, ready in self._ready.items() if len(ready) >= FETCHED}
        some = {p for p in self._paused if len(self._ready[p]) < TOGETHER}
        if full - self._paused:
            self._consumer.pause([self._kafka.TopicPartition(self.topic.topic, p) for p in full - self._paused])
        if some:
            self._consumer.resume([self._kafka.TopicPartition(self.topic.topic, p) for p in some])
        self._paused = (self._paused | full) - some

    def _add(self, found: Messages, message: Any) -> None:
        """Hand a message over."""
        partition, offset = message.partition(), message.offset()
        self._next[partition] = offset + 1
        place = f"topic {self.topic.topic}, partition {partition}, offset {offset}"
        try:
            told = {name: self._tell(what, type_, message) for name, (what, type_) in self._told.items()}
        except UnicodeDecodeError as error:
            found.bury(f"the key, a header or the value is not UTF-8: {error}", message.value(), place)
            return
        if self.topic.value == "json":
            found.add(message.value(), told, place)
        else:
            found.add_row(told, place)

    def _tell(self, name: str, type_: str, message: Any) -> object:
        """What is known of a message; as text where the schema says so."""
        match name:
            case "kafka_topic":
                return self.topic.topic
            case "kafka_partition":
                return _number(message.partition(), is_text=type_ == "string")
            case "kafka_offset":
                return _number(message.offset(), is_text=type_ == "string")
            case "kafka_timestamp":
                kind, milliseconds = message.timestamp()
                return _EPOCH + timedelta(milliseconds=milliseconds) if kind else None
            case "kafka_key":
                return _text(message.key(), is_text=type_ == "string")
            case "kafka_headers":
                is_text = type_ == "map<string,string>"
                return {key: _text(value, is_text=is_text) for key, value in message.headers() or ()}
            case _:
                return _text(message.value(), is_text=type_ == "string")

    # New partitions

    def _look_for_new(self) -> None:
        if self._found:
            fresh = [p for p in self._found if p not in self._next]
            self._found = []
            if fresh and not self._ends:
                LOGGER.info("%s: new partitions: %s", self.where, fresh)
                self._next |= dict.fromkeys(fresh, 0)
                if self._is_assigned:
                    self._take_up(fresh)
        if not self._ends and self._clock() - self._looked >= LOOK_EVERY and self._looking is None:
            self._looked = self._clock()
            self._looking = threading.Thread(target=self._look, name=f"penstock-{self.where}", daemon=True)
            self._looking.start()

    def _look(self) -> None:
        """In a thread of its own, since the answer may take long."""
        try:
            self._found = self._listed()
        except (SourceError, RuntimeError) as error:  # it is asked again; RuntimeError: it was closed meanwhile
            self._log.warning("%s: new partitions cannot be looked for: %s", self.where, reason_of(error))
        finally:
            self._looking = None

    def close(self) -> None:
        """Let the brokers go."""
        with self._guard:
            if not self._is_closed:
                self._is_closed = True
                self._consumer.close()


def _span(listed: Sequence[int]) -> str:
    return f"{listed[0]} to {listed[-1]}" if len(listed) > 1 else f"{listed[0]} alone"


def _number(value: int, *, is_text: bool) -> object:
    return str(value) if is_text else value


def _text(value: bytes | None, *, is_text: bool) -> object:
    return value.decode() if is_text and value is not None else value
