"""`penstock bench latency`: one tuple at a time, and how long after a punctuation its results are there.

In-process the bar is a bare Python loop that does the same work on the same tuples with a dict, and Bytewax where it is
installed. On Spark nothing is faster than a micro-batch, so what is measured is the micro-batch: of a query that only
filters, of Spark's own window aggregate, and of ours, each with Spark's settings as they come and with those of
`low_latency_settings`.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.bench.claims import Claim, Report
from penstock.bench.data import START
from penstock.bench.peers import python_of, run_script
from penstock.engines.local.execution import LocalExecution
from penstock.engines.spark.baseline import native_sliding_stream
from penstock.engines.spark.session import local_session, low_latency_settings
from penstock.flow.flow import Flow
from penstock.model.batch import Batch
from penstock.model.elements import linear
from penstock.model.progress import bounded
from penstock.model.time import MINUTE, SECOND

GROUPS = 1000
SPACING = 100
"""Microseconds between tuples."""
QUERY = """
    SELECT k, count(*) AS n [RANGE 60 seconds, SLIDE 60 seconds, WA ts]
    FROM (SELECT ts, k, v * 2 AS w FROM main WHERE v % 2 = 0) doubled GROUP BY k"""
COUNTS = {"window": "the same query", "final": "a count without event time"}
Say = Callable[[str], None]
Tuple = tuple[int, int, int]


def tuples(rows: int) -> list[Tuple]:
    """Time, key and value; every key has even and odd values."""
    return [(START + i * SPACING, i % GROUPS, i * 7919 % 1_000_003) for i in range(rows)]


def fresh() -> LocalExecution:
    """The query, running and empty."""
    schema = "ts timestamp, k bigint, v int"
    query: Any = (
        Flow()
        .stream("main", iter(()), time="ts", schema=schema, progress=bounded("1 second"))
        .query(QUERY)
    )  # fmt: skip
    execution: LocalExecution = query.execution()
    return execution


def push_all(given: list[Tuple]) -> tuple[float, dict[tuple[int, int], int]]:
    """Ours: seconds for all tuples, one call each, and the counts."""
    execution = fresh()
    push = execution.pusher("main")
    started = time.perf_counter()
    for row in given:
        push(row)
    seconds = time.perf_counter() - started
    found = [row for item in execution.close() if isinstance(item, Batch) for row in item.rows]
    return seconds, {(row[0], row[3]): row[4] for row in found}  # type: ignore[misc]


def bare_loop(given: list[Tuple]) -> tuple[float, dict[tuple[int, int], int]]:
    """What one would write by hand, without thought of lateness, nulls or types."""
    counts: dict[tuple[int, int], int] = {}
    started = time.perf_counter()
    for ts, k, v in given:
        if v % 2 == 0:
            doubled = (ts, k, v * 2)
            key = (doubled[0] // MINUTE, doubled[1])
            counts[key] = counts.get(key, 0) + 1
    return time.perf_counter() - started, counts


def punctuation_to_result(windows: int) -> Iterator[tuple[float, float]]:
    """Per window of `GROUPS` groups: seconds from its punctuation to its rows, ours and by a bare loop."""
    execution = fresh()
    push = execution.pusher("main")
    for window in range(windows):
        begin = START + window * MINUTE
        counts: dict[int, int] = {}
        for i in range(4 * GROUPS):
            push((begin + i * SPACING, i % GROUPS, 2 * i))
            counts[i % GROUPS] = counts.get(i % GROUPS, 0) + 1
        execution.take()
        bound = linear("ts", begin + MINUTE)
        started = time.perf_counter()
        outputs = execution.feed("main", bound)
        ours = time.perf_counter() - started
        wid = begin // MINUTE
        started = time.perf_counter()
        rows = []
        for k, n in counts.items():
            rows.append((wid, begin, begin + MINUTE, k, n))
        theirs = time.perf_counter() - started
        (batch,) = [item for item in outputs if isinstance(item, Batch)]
        if sorted(batch.rows) != sorted(rows):
            raise AssertionError("the rows that follow the punctuation are not those of the bare loop")
        yield ours, theirs


class LatencyBench:
    """One run of the benchmark."""

    def __init__(self, rows: int, master: str, say: Say) -> None:
        """`rows` tuples in-process; Spark gets a few small micro-batches."""
        self.rows, self.master, self.say = rows, master, say
        self.table: list[dict[str, Any]] = []
        self.claims: list[Claim] = []
        self.absent: list[str] = []

    def run(self) -> Report:
        """In-process, then Spark."""
        self._tuples()
        self._punctuation()
        self._micro_batches()
        return Report("latency", self.table, self.claims, self.absent)

    def _tell(self, what: str, **numbers: Any) -> None:
        self.table.append({"what": what, **numbers})
        self.say(f"{what}: " + ", ".join(f"{k} {v}" for k, v in numbers.items()))

    def _tuples(self) -> None:
        given = tuples(self.rows)
        ours, bare = [], []
        for _ in range(5):
            seconds, found = push_all(given)
            reference, expected = bare_loop(given)
            if found != expected:
                raise AssertionError("the counts are not those of the bare loop")
            ours.append(seconds)
            bare.append(reference)
        rate = self.rows / min(ours)
        self._tell("in-process, one tuple at a time", tuples_per_second=round(rate))
        self._tell("bare loop, one tuple at a time", tuples_per_second=round(self.rows / min(bare)))
        cost = min(ours) / min(bare)
        self.claims.append(Claim("in-process: a tuple through three operators, times a bare loop", cost, 6.0, "lower"))
        if python_of("bytewax") is None:
            self.absent.append("bytewax")
            return
        for kind, batch in (("window", 1), ("final", 1), ("window", 100_000), ("final", 100_000)):
            peer = run_script("bytewax", "tuples", str(min(self.rows, 200_000)), kind, str(batch))
            peer_rate = peer["rows"] / peer["seconds"]
            how = "one tuple at a time" if batch == 1 else "in batches"
            self._tell(f"Bytewax, {COUNTS[kind]}, {how}", tuples_per_second=round(peer_rate))
            if batch == 1:
                name = f"in-process: one tuple at a time against Bytewax, {COUNTS[kind]}, times faster"
                self.claims.append(Claim(name, rate / peer_rate, 4.0, "higher"))

    def _punctuation(self) -> None:
        measured = list(punctuation_to_result(60))[10:]
        ours, bare = (statistics.median(m[i] for m in measured) for i in (0, 1))
        self._tell("in-process, punctuation to 1000 rows", microseconds=round(ours * 1e6))
        self._tell("bare loop, punctuation to 1000 rows", microseconds=round(bare * 1e6))
        self.claims.append(
            Claim("in-process: punctuation to result at 1000 groups, times a bare loop", ours / bare, 3.0, "lower")
        )

    def _micro_batches(self) -> None:
        home = tempfile.mkdtemp(prefix="penstock-bench-")
        try:
            folder = small_files(home, 12)
            spark = local_session(self.master)
            for name, make in QUERIES.items():
                for kind, settings in (("default", {}), ("low latency", low_latency_settings())):
                    took = micro_batch(spark, folder, make, settings)
                    self._tell(f"Spark micro-batch, {name}, {kind} settings", milliseconds=round(took))
        finally:
            shutil.rmtree(home, ignore_errors=True)


def small_files(home: str, files: int) -> str:
    """A folder of small files, each the next minute of the stream."""
    folder = Path(home, "small")
    folder.mkdir()
    for i in range(files):
        begin = START + i * MINUTE
        table = pa.table(
            {
                "ts": pa.array([begin + j * SECOND // 20 for j in range(1000)], pa.timestamp("us", tz="UTC")),
                "k": pa.array([j % 100 for j in range(1000)], pa.int64()),
                "v": pa.array(range(1000), pa.int32()),
            }
        )
        path = folder / f"{i:03d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_000_000 + i, 1_000_000 + i))
    return str(folder)


def _stateless(spark: Any, frame: Any) -> Any:
    return frame.where("v % 2 = 0").select("ts", "k")


def _native(spark: Any, frame: Any) -> Any:
    return native_sliding_stream(frame.where("v % 2 = 0"), 60, 60, "1 second")


def _ours(spark: Any, frame: Any) -> Any:
    query: Any = Flow(spark).stream("main", frame, time="ts", progress=bounded("1 second")).query(QUERY)
    return query.df


QUERIES: dict[str, Callable[[Any, Any], Any]] = {
    "filter only": _stateless,
    "window()": _native,
    "ours": _ours,
}


def micro_batch(spark: Any, folder: str, make: Callable[[Any, Any], Any], settings: dict[str, str]) -> float:
    """The median duration of a micro-batch in milliseconds, the first ones left out."""
    before = {key: spark.conf.get(key, None) for key in settings}
    home = tempfile.mkdtemp(prefix="penstock-bench-")
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        frame = spark.readStream.schema("ts timestamp, k bigint, v int").option("maxFilesPerTrigger", 1).parquet(folder)
        stream = make(spark, frame).writeStream.format("noop").option("checkpointLocation", home)
        running = stream.trigger(availableNow=True).start()
        running.awaitTermination()
        took = [p.durationMs["triggerExecution"] for p in running.recentProgress if p.numInputRows]
        return float(statistics.median(took[4:]))
    finally:
        _restore(spark, before.items())
        shutil.rmtree(home, ignore_errors=True)


def _restore(spark: Any, settings: Iterable[tuple[str, str | None]]) -> None:
    for key, value in settings:
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)
