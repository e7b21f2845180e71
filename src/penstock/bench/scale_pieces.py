"""The pieces of a micro-batch on Spark that are plain Python, each timed alone in this process.

They are those that run: the mapper that judges rows, the graph of a stage with its pages as bytes, the writing of a
file of results, the record. What is the same however many rows, packets or groups there are is not asked here but of
Spark (`scale_spark`), so a constant is a difference between two runs, divided by what one has more than the other.
"""

from __future__ import annotations

import itertools
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.bench.data import START
from penstock.bench.scale_model import distinct
from penstock.engines.spark.host import HostedGraph, sorted_packets
from penstock.engines.spark.judging import JudgingMapper
from penstock.engines.spark.parts import PartReader
from penstock.engines.spark.state_pages import StatePages
from penstock.engines.spark.wire import PARTIALS, ROWS, Packet, dump, load, unpack
from penstock.flow.flow import Flow
from penstock.model.elements import linear
from penstock.model.letters import late_schema
from penstock.model.progress import bounded
from penstock.model.time import SECOND
from penstock.plan.nodes import Source
from penstock.plan.planner import spark_streaming
from penstock.storage.files import place_of
from penstock.storage.folders import Staging, describe
from penstock.storage.log import Record, RecordLog

RANGE, SLIDE = 60, 10
SQL = f"""SELECT k, count(*) AS n, max(v) AS m [RANGE {RANGE} seconds, SLIDE {SLIDE} seconds, WA ts]
    FROM main GROUP BY k"""
TWICE = f"SELECT max(n) AS most [RANGE {SLIDE} seconds, SLIDE {SLIDE} seconds, WA window_end] FROM ({SQL}) per_key"
"""An aggregate over it with other groups, which is a second stage."""
SCHEMA = "ts timestamp, k bigint, v int"
DISORDER = "1 second"
FEW_KEYS, SOME_KEYS, MANY_KEYS = 100, 5000, 10**9
FEW_BUCKETS, MANY_BUCKETS = 8, 256
LITTLE = 300
"""Rows that are few beside the groups there are, and enough to be taken as columns."""
TIMES = 5


def make_rows(rows: int, keys: int, at: float, length: float = SLIDE, seed: int = 0) -> pa.Table:
    """Rows of uniform keys, of so many seconds from a second on, in order."""
    rng = np.random.default_rng([seed, int(1000 * at)])
    times = START + int(at * SECOND) + np.sort(rng.integers(0, int(length * SECOND), rows))
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "k": pa.array(rng.integers(0, keys, rows), pa.int64()),
            "v": pa.array(rng.integers(0, 1_000_000, rows).astype(np.int32)),
        }
    )


def least(do: Callable[[], Any], times: int = TIMES) -> float:
    """The least of the seconds that this process is busy with it."""
    found = []
    for _ in range(times):
        started = time.process_time()
        do()
        found.append(time.process_time() - started)
    return min(found)


def slope(more: float, less: float, of: float) -> float:
    """A difference by what it is of; noise does not make it negative."""
    return max(0.0, more - less) / of


class StoredPages:
    """A map state in memory, under the names that Spark's has, that says how much was read and written."""

    def __init__(self) -> None:
        """Empty."""
        self.pages: dict[tuple[str], tuple[bytes]] = {}
        self.moved = 0

    def getValue(self, key: tuple[str]) -> tuple[bytes] | None:
        """A page."""
        found = self.pages.get(key)
        self.moved += 0 if found is None else len(found[0])
        return found

    def updateValue(self, key: tuple[str], page: tuple[bytes]) -> None:
        """Keep a page."""
        self.moved += len(page[0])
        self.pages[key] = page

    def removeKey(self, key: tuple[str]) -> None:
        """Forget a page."""
        self.pages.pop(key, None)


@dataclass(frozen=True)
class Took:
    """One micro-batch of one bucket."""

    seconds: float
    moved: int
    """Bytes of state, read and written."""
    results: pa.Table | None
    said: int
    """Packets for the driver."""


class Pieces:
    """The query, and its pieces."""

    def __init__(self) -> None:
        """Planned as it is when it is started."""
        flow = Flow().stream("main", iter(()), time="ts", schema=SCHEMA, progress=bounded(DISORDER))
        query: Any = flow.query(SQL)
        self.catalog, self.schema = query.catalog, query.form.schema
        self.planned = spark_streaming(query.plan, query.catalog, staged=True)
        twice: Any = flow.query(TWICE)
        self.twice = spark_streaming(twice.plan, twice.catalog, staged=True)
        (self.source,) = [p.node for p in self.planned.walk() if isinstance(p.node, Source)]

    def mapper(self, buckets: int) -> JudgingMapper:
        """What judges rows where they are read."""
        reader, late = PartReader(self.source.schema), late_schema(self.source.schema)
        return JudgingMapper(self.planned, self.source, self.catalog, buckets, reader, late, "")

    def sent(self, buckets: int, table: pa.Table, before: dict[str, Any] | None = None, task: int = 0) -> list[Packet]:
        """The packets of a task."""
        judged = self.mapper(buckets).judged(table.to_batches(), before or {}, task)
        return [Packet(**row) for batch in judged for row in batch.to_pylist()]

    # Where rows are read

    def reading(self, rows: int) -> dict[str, float]:
        """Judging rows that are brought down and rows that are not, and a packet."""

        def took(count: int, keys: int, buckets: int = FEW_BUCKETS) -> float:
            batches, mapper = make_rows(count, keys, 0).to_batches(), self.mapper(buckets)
            return least(lambda: list(mapper.judged(batches, {}, 0)))

        def size(kind: str, keys: int, buckets: int = FEW_BUCKETS) -> tuple[int, int]:
            found = self.sent(buckets, make_rows(rows, keys, 0))
            own = [p.body for p in found if p.kind == kind]
            notes = sum(len(p.body) for p in found if p.stage and p.kind != kind)
            return sum(map(len, own)) + notes, sum(unpack(body).num_rows for body in own)

        few, some, many = rows // 4, rows, size(ROWS, MANY_KEYS)
        less, more = size(PARTIALS, FEW_KEYS), size(PARTIALS, SOME_KEYS)
        packets = MANY_BUCKETS - FEW_BUCKETS
        wide = size(ROWS, MANY_KEYS, MANY_BUCKETS)
        spread = took(some, MANY_KEYS, MANY_BUCKETS) - took(some, MANY_KEYS)
        return {
            "reduce_row": slope(took(some, FEW_KEYS), took(few, FEW_KEYS), some - few),
            "send_row": slope(took(some, MANY_KEYS), took(few, MANY_KEYS), some - few),
            "make_packet": max(0.0, spread) / packets,
            "entry_bytes": (more[0] - less[0]) / (more[1] - less[1]),
            "packet_bytes": (wide[0] - many[0]) / packets,
            "row_bytes": (many[0] - FEW_BUCKETS * (wide[0] - many[0]) / packets) / rows,
        }

    # A stage

    def stage(self, rows: int, keys: int) -> dict[str, float]:
        """Taking in rows and entries, state and results; `keys` is how many groups a window nearly has."""
        bucket = HostedBucket(self)
        windows = RANGE // SLIDE
        closing = [bucket.take([make_rows(rows, keys, at * SLIDE)]) for at in range(3 * windows)]
        settled, at = closing[2 * windows :], 3 * windows * SLIDE + 1.0
        live = groups_of(bucket.state.pages, closing[-1].results)
        bucket.take([make_rows(LITTLE, keys, at, 0.1)])  # closes the last window
        calm = [bucket.take([make_rows(LITTLE, keys, at + i / 10, 0.1)]) for i in range(1, TIMES)]
        busy = [bucket.take([make_rows(2 * rows, keys, at + 1 + i / 10, 0.1)]) for i in range(TIMES)]
        page_byte = min(t.seconds / t.moved for t in calm)
        take_row = max(0.0, min(t.seconds - t.moved * page_byte for t in busy)) / (2 * rows)
        results = median(t.results.num_rows for t in settled if t.results is not None)
        made = min(t.seconds - t.moved * page_byte for t in settled) - rows * take_row
        written, result_bytes = self._file([t.results for t in settled if t.results is not None])
        return {
            "take_row": take_row,
            "page_byte": page_byte,
            "result_row": max(0.0, made) / results + written,
            "result_bytes": result_bytes,
            **live,
        }

    def taking(self, tasks: int) -> dict[str, float]:
        """Entries, and packets of many tasks; each has few rows and a note."""
        keys = SOME_KEYS

        def took(parts: int, rows: int) -> float:
            bucket = HostedBucket(self)
            bucket.take([make_rows(rows, keys, 0, 0.1, seed) for seed in range(parts)])
            again = [make_rows(rows, keys, 0.1, 0.1, seed) for seed in range(parts)]
            return min(bucket.take(again).seconds for _ in range(TIMES))

        few, many = took(1, 4 * keys), took(4, 4 * keys)
        entries = 3 * distinct(4 * keys, keys)
        return {
            "take_entry": slope(many, few, entries),
            "take_packet": slope(took(tasks, 1), took(1, 1), tasks - 1),
        }

    def _file(self, tables: list[pa.Table]) -> tuple[float, float]:
        """Seconds and bytes of a row in a file."""
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as home:
            staging = Staging(place_of(home), describe(self.schema))
            rows = sum(t.num_rows for t in tables)
            seconds = least(lambda: staging.write(tables), 2) / rows
            return seconds, max(p.stat().st_size for p in Path(home).iterdir()) / rows

    def promising(self, buckets: int) -> dict[str, float]:
        """What every bucket of a stage promises a bucket of the next."""
        before = HostedGraph(self.twice, self.catalog, buckets=buckets, stage=1)
        behind = HostedGraph(self.twice, self.catalog, buckets=buckets, stage=2)
        (send,) = before.sendings
        (sender,) = before.graph.sent
        time_of = str(sender.planned.node.schema.time)
        at = itertools.count(START, SLIDE * SECOND)

        def promise() -> None:
            bound = [linear(time_of, next(at))]
            told = [packet for bucket in range(buckets) for packet in itertools.islice(send.promise(bound, bucket), 1)]
            for _ in behind.run(sorted_packets(told, 2)[0]):
                pass

        return {"promise": least(promise) / buckets}

    # The driver

    def driver(self, buckets: int) -> dict[str, float]:
        """What each bucket has to tell, and its place in the record."""
        bucket = HostedBucket(self)
        bucket.take([make_rows(FEW_KEYS, FEW_KEYS, 0)])
        told = bucket.take([make_rows(FEW_KEYS, FEW_KEYS, SLIDE)])
        bodies = [dump((at, {"trackers": START})) for at in range(told.said * buckets)]
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as home:
            log = RecordLog(place_of(home))

            def put(number: int, entries: int) -> float:
                reached = {str(at): START for at in range(entries)}
                return least(lambda: log.put(Record("run", number, number, state={"reached": reached})), 1)

            few = min(put(number, 1) for number in range(TIMES))
            many = min(put(TIMES + number, buckets) for number in range(TIMES))
            sizes = sorted(p.stat().st_size for p in Path(home).iterdir())
        return {
            "driver_bucket": slope(many, few, buckets) + least(lambda: [load(body) for body in bodies]) / buckets,
            "record_bytes": (sizes[-1] - sizes[0]) / buckets,
        }


@dataclass
class HostedBucket:
    """The only bucket of the query's stage, with its pages as bytes."""

    pieces: Pieces
    state: StoredPages = field(default_factory=StoredPages)
    before: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Build the graph."""
        self.hosted = HostedGraph(self.pieces.planned, self.pieces.catalog, buckets=1, stage=1)

    def take(self, tables: Iterable[pa.Table]) -> Took:
        """One micro-batch, each table read by a task; what the tasks do is not timed."""
        packets = [p for task, t in enumerate(tables) for p in self.pieces.sent(1, t, self.before, task)]
        moved, started = self.state.moved, time.process_time()
        arrivals, passing = sorted_packets(packets, 1)
        pages = [StatePages(self.state, node) for node in self.hosted.graph.nodes]
        self.hosted.graph.attach(list(pages))
        given = [*passing, *self.hosted.run(arrivals)]
        for own in pages:
            own.flush()
        took = time.process_time() - started
        for known in [load(p.body) for p in given if p.kind == "progress"]:
            ((progress, outside),) = known["trackers"].values()
            self.before = {"progress": progress, "outside": outside}
        results = [unpack(p.body) for p in given if p.kind == "result"]
        return Took(
            took,
            self.state.moved - moved,
            pa.concat_tables(results) if results else None,
            sum(1 for p in given if p.kind != "result"),
        )


def groups_of(pages: dict[tuple[str], tuple[bytes]], results: pa.Table | None) -> dict[str, float]:
    """Bytes of state per group in a pane and per group in an open window, from pages and the last window's result."""
    assert results is not None
    sizes: Counter[bool] = Counter()
    groups = 0
    for (key,), (page,) in pages.items():
        is_pane = re.fullmatch(r".*/p\d+", key) is not None
        sizes[is_pane] += len(page)
        groups += len(load(page)[2][0]) if is_pane else 0  # of a pane, the codes of its groups
    return {"pane_bytes": sizes[True] / groups, "group_bytes": sizes[False] / results.num_rows}
