"""What the clock says of streams on Spark, silent ones and such with a timer: a source whose position is the time.

A position only moves while the last record says that something waits for a stream of which the clock may speak, and
then at most once in a while; so an idle query stays idle, and no file is written for a tick. Spark writes the position
down before the micro-batch begins, as it does for every source, so a micro-batch that is done again goes by the same
clock. Which streams were silent is known where rows are taken: one that has rows in the micro-batch is not. A timer
fires whether there are rows or not, after those of its micro-batch.

It is also what makes the next micro-batch while rows wait in update queues. Then it moves as soon as the record says
so, and tells the streams nothing if none of them goes by it. Spark asks a hundred times a second while nothing moves,
and not at all during a micro-batch: so records are looked at when it has not asked for a moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from penstock.engines.spark.mapper import notes
from penstock.engines.spark.trackers import reached_in, timer_due
from penstock.engines.spark.wire import Note, packed
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.model.timer import Timer
from penstock.model.timestamps import Silence
from penstock.operators.state import Pages
from penstock.plan.catalog import Catalog
from penstock.plan.closing import closing_bound
from penstock.plan.nodes import Node, Source
from penstock.storage.files import place_of
from penstock.storage.home import LOG
from penstock.storage.log import RecordLog

CLOCK = "penstock_clock"
"""The format of the source, and its name among those of a query."""
WAKES = "clock"
"""In a record: when the clock next says something that is waited for, in microseconds since 1970; None for never."""
ASKS = "asks"
"""In a record: whether rows wait in queues that may go on with the next micro-batch."""
PERIOD = 1.0
"""So many seconds pass between two looks at the clock."""
POLLED = 0.05
"""Whoever asks again in less than so many seconds has made no micro-batch in between."""
SILENT_SINCE = "silent_since"
"""The page of an entrance that says when its stream was first seen to be silent."""
SECOND = 1_000_000


def silences(plan: Node, catalog: Catalog) -> dict[str, Silence]:
    """The streams of a plan of which the clock may speak; of one with a timer alone, silence says nothing."""
    found: dict[str, Silence] = {}
    for node in plan.walk():
        if isinstance(node, Source):
            silence = catalog.streams[node.name.lower()].silence
            if silence is None and node.stamped and not node.latent:  # of a latent stream that is stamped at its entry
                silence = Silence(lull=0)
            if silence is not None or isinstance(node.progress, Timer):
                found[node.name] = silence or Silence()
    return found


class ClockSource(DataSource):
    """The clock as Spark's own kind of source; `home` is where the query lives whose records it looks at."""

    @classmethod
    def name(cls) -> str:
        """The format."""
        return CLOCK

    def schema(self) -> str:
        """The time, in microseconds since 1970."""
        return "now bigint"

    def streamReader(self, schema: Any) -> ClockReader:
        """What Spark asks for positions."""
        return ClockReader(self.options["home"], has_queues=self.options["queues"] == "true")


@dataclass
class Moment(InputPartition):
    """What is read: the time."""

    now: int


class ClockReader(DataSourceStreamReader):
    """Gives the time whenever somebody waits for it."""

    def __init__(self, home: str, *, has_queues: bool = False, clock: Callable[[], float] = time.time) -> None:
        """Of a query that lives there, with update queues or without."""
        self.log = RecordLog(place_of(home) / LOG)
        self.has_queues, self.clock = has_queues, clock
        self._asked = self._looked = self._told = float("-inf")

    def initialOffset(self) -> dict[str, int]:
        """Before any tick."""
        return {"now": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        """Where it was, or the time if that is waited for; clocks that go back are not followed."""
        now = self.clock()
        is_polled = not self.has_queues or 0 <= now - self._asked < POLLED
        self._asked = now
        if is_polled and 0 <= now - self._looked < PERIOD:
            return start
        self._looked = now
        last, ticks = self.log.last(), int(now * SECOND)
        state = last.state if last is not None and isinstance(last.state, Mapping) else {}
        if state.get(ASKS):
            return {"now": max(ticks, start["now"] + 1)}
        if 0 <= now - self._told < PERIOD:
            return start
        self._told = now
        wakes = state.get(WAKES)
        return {"now": ticks} if wakes is not None and ticks > max(wakes, start["now"]) else start

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Moment]:
        """The last time alone: it says more than those before it."""
        return [Moment(end["now"])] if end != start else []

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        """One row."""
        assert isinstance(partition, Moment)
        yield (partition.now,)


def clock_frame(
    spark: SparkSession, home: str, load: Callable[[Any], DataFrame], *, has_queues: bool = False
) -> DataFrame:
    """The clock of a query, as a streaming DataFrame that somebody loads."""
    spark.dataSource.register(ClockSource)
    return load(spark.readStream.format(CLOCK).option("home", home).option("queues", has_queues))


@dataclass(frozen=True)
class ClockMapper:
    """Tells every bucket what time it is to some streams; if to none, that there is a micro-batch."""

    buckets: int
    streams: tuple[str, ...]
    stream: str
    """Any stream of the query."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over the clock."""
        for batch in batches:
            for now in batch.column(0).to_pylist():
                for stream in self.streams:
                    yield packed(notes(stream, Note(clock=now), self.buckets))
                if not self.streams:
                    yield packed(notes(self.stream, Note(), self.buckets))


def bound_by_clock(silence: Silence, pages: Pages, by_rows: int, now: int) -> int:
    """What the clock allows of a stream that had no rows in a micro-batch.

    When its last row came is not known; that was before the first tick at which it was silent.
    """
    since = pages.get(SILENT_SINCE)
    if since is None:
        since = now
        pages.put(SILENT_SINCE, now)
    return silence.bound(by_rows, since, now)


@dataclass(frozen=True)
class Waiting:
    """What waits for the clock in a run, as its driver sees it."""

    plan: Node
    streams: Mapping[str, Silence]
    """Those of which the clock may speak."""

    def wakes(self, trackers: Mapping[str, Any], greatest: Mapping[str, int]) -> int | None:
        """When the clock next says something of use, if progress and greatest times of all streams are these."""
        starts = [time for stream, time in greatest.items() if stream]
        if not starts:
            return None
        needed = closing_bound(self.plan, max(starts))
        sources = {node.name: node for node in self.plan.walk() if isinstance(node, Source)}
        reached = {name: reached_in(trackers, sources[name]) for name in self.streams}
        behind = [name for name, bound in reached.items() if bound < (END_OF_TIME if needed is None else needed)]
        moves = [_moves(self.streams[name], reached[name]) for name in behind]
        moves += [timer_due(trackers, sources[name]) for name in behind]
        return min((each for each in moves if each is not None), default=None)


def _moves(silence: Silence, reached: int) -> int | None:
    """The last time at which the clock allows no more than what is reached; None if it never does."""
    if silence == Silence():
        return None
    if silence.skew is not None or silence.lull is None or reached == MIN_TICK:
        return 0
    return reached + silence.lull
