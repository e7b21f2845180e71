"""`penstock bench stages`: micro-batches of queries that are started on Spark, with the folder of results written.

How long a micro-batch takes, the median of some after the first, is compared with a scan of the same files through
Python, which does nothing, and with Spark's own tumbling `window()` written to parquet: with many rows, with a quarter
of them, and with few; and with Flink SQL, as rows a second of large micro-batches. Then plans of which earlier releases
ran all in one place are compared with a grouped one: an aggregate without groups, one over another with other groups, a
union of two, and one key that has nine rows of ten. What each comes to is compared with the in-process engine.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.bench.claims import Claim, Report
from penstock.bench.data import DISORDER, SLIDE, START, make_rows
from penstock.bench.peers import python_of, run_peer
from penstock.engines.spark.baseline import native_sliding_stream, python_scan_stream
from penstock.errors import InternalError
from penstock.flow.flow import Flow
from penstock.model.progress import bounded
from penstock.model.time import SECOND

BATCHES = 9
WARM = 3
"""So many of them are not counted: a query's first micro-batches wait for workers."""
AT_ONCE = 2
"""Files of a micro-batch: each is read by a task."""
RATIOS = (1, 10, 60, 600)
LENGTH = 600
"""Seconds of event time in a micro-batch."""
FEW = 1000
Say = Callable[[str], None]


WINDOW = f"[RANGE {SLIDE} seconds, SLIDE {SLIDE} seconds,"


def per_key(ratio: int) -> str:
    """Count and max per key over windows of `ratio` slides."""
    window = f"[RANGE {ratio * SLIDE} seconds, SLIDE {SLIDE} seconds, WA ts]"
    return f"SELECT k, count(*) AS n, max(v) AS m {window} FROM main GROUP BY k"


PLANS = {
    "grouped": per_key(1),
    "without groups": f"SELECT count(*) AS n, max(v) AS m {WINDOW} WA ts] FROM main",
    "two groupings": f"SELECT max(n) AS n, max(m) AS m {WINDOW} WA window_end] FROM ({per_key(1)}) x",
    "union of two aggregates": (
        f"{per_key(1)} UNION ALL "
        f"SELECT v % 1000, count(*) AS n, max(v) AS m {WINDOW} WA ts] FROM main GROUP BY v % 1000"
    ),
    "one key has nine of ten": per_key(1),
}


def make_files(home: Path, rows: int, *, keys: int = 1000, skewed: bool = False) -> Path:
    """A folder with so many rows a micro-batch, of which none is late."""
    folder = home / f"{rows}-{keys}-{skewed}"
    folder.mkdir()
    rng = np.random.default_rng(1)
    for at in range(BATCHES * AT_ONCE):
        begin, size = START + at // AT_ONCE * LENGTH * SECOND, rows // AT_ONCE
        times = begin + np.sort(rng.integers(0, LENGTH * SECOND, size)) - rng.integers(0, DISORDER * SECOND, size)
        key = rng.integers(0, keys, size)
        if skewed:
            key[rng.random(size) < 0.9] = 0
        columns = {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "k": pa.array(key, pa.int64()),
            "v": pa.array(rng.integers(0, 1_000_000, size).astype(np.int32)),
        }
        path = folder / f"{at:03d}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1_000_000 + at, 1_000_000 + at))
    return folder


@dataclass
class StagesBench:
    """One run of the benchmark."""

    spark: Any
    rows: int
    """In a large micro-batch."""
    say: Say = print
    took: dict[tuple[str, int], float] = field(default_factory=dict)
    """Milliseconds of a micro-batch, by contestant and rows in it."""
    claims: list[Claim] = field(default_factory=list)

    def run(self) -> Report:
        """Everything, in one session."""
        home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
        absent = [] if python_of("flink") is not None else ["flink"]
        try:
            self._sizes(home)
            self._plans(home)
            if not absent:
                self._flink(home)
        finally:
            shutil.rmtree(home, ignore_errors=True)
        rows = [
            {"micro_batch": name, "rows": count, "milliseconds": round(ms)} for (name, count), ms in self.took.items()
        ]
        return Report("stages", rows, self.claims, absent)

    # Sizes of micro-batches

    def _sizes(self, home: Path) -> None:
        for count in (self.rows, self.rows // 4, FEW):
            folder = make_files(home, count)
            self._scan(folder)  # whoever comes first would wait for workers
            before = self._scan(folder)
            self._keep("Spark's window(), tumbling", count, self._window(folder))
            for ratio in RATIOS if count > FEW else (1,):
                self._keep(f"started, RANGE/SLIDE of {ratio}", count, self._started(folder, per_key(ratio)))
            self._keep("scan through Python", count, min(before, self._scan(folder)))
        large, middle = self.rows, self.rows // 4
        ours = [self.took[f"started, RANGE/SLIDE of {ratio}", large] for ratio in RATIOS]
        self._claim(f"Spark started: worst of {large:,} rows, times a scan", max(ours), "scan through Python", large, 2)
        tumbling = self.took["started, RANGE/SLIDE of 1", middle]
        faster = self.took["Spark's window(), tumbling", middle] / tumbling
        self.claims.append(
            Claim(f"Spark started: {middle:,} rows against window(), times faster", faster, 1.8, "higher")
        )
        few = self.took["started, RANGE/SLIDE of 1", FEW]
        self._claim(f"Spark started: {FEW:,} rows, times window()", few, "Spark's window(), tumbling", FEW, 1.25)

    def _claim(self, name: str, ms: float, than: str, rows: int, bar: float) -> None:
        self.claims.append(Claim(name, ms / self.took[than, rows], bar, "lower"))

    # Plans

    def _plans(self, home: Path) -> None:
        plain, skewed = home / f"{self.rows}-1000-False", make_files(home, self.rows, skewed=True)
        for name, sql in PLANS.items():
            folder = skewed if name.startswith("one key") else plain
            self._keep(name, self.rows, self._started(folder, sql))
        for name in list(PLANS)[1:]:
            rate = self.took["grouped", self.rows] / self.took[name, self.rows]
            self.claims.append(Claim(f"Spark started: {name}, rate of the grouped one's", rate, 0.7, "higher"))

    # Flink

    def _flink(self, home: Path) -> None:
        data = make_rows(str(home), 4 * self.rows)
        for ratio, bar in ((10, 0.9), (60, 1.0)):
            rate = run_peer("flink", data, ratio * SLIDE, SLIDE, data.count).rate
            self._keep(f"Flink SQL, RANGE/SLIDE of {ratio}", self.rows, 1000 * self.rows / rate)
            ours = 1000 * self.rows / self.took[f"started, RANGE/SLIDE of {ratio}", self.rows]
            self.claims.append(
                Claim(f"Spark started: {ratio} against Flink SQL, times faster", ours / rate, bar, "higher")
            )

    # Contestants

    def _keep(self, name: str, rows: int, ms: float) -> None:
        self.took[name, rows] = ms
        self.say(f"{name:32} {rows:9,} rows  {ms:7.0f} ms")

    def _frame(self, folder: Path) -> Any:
        reader = self.spark.readStream.schema("ts timestamp, k bigint, v int").option("maxFilesPerTrigger", AT_ONCE)
        return reader.parquet(str(folder))

    def _scan(self, folder: Path) -> float:
        return self._timed(python_scan_stream(self._frame(folder)), "noop")

    def _window(self, folder: Path) -> float:
        windows = native_sliding_stream(self._frame(folder), SLIDE, SLIDE, f"{DISORDER} seconds")
        return self._timed(windows, "parquet")

    def _timed(self, frame: Any, sink: str) -> float:
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as home:
            stream = frame.writeStream.outputMode("append").format(sink).option("checkpointLocation", f"{home}/c")
            stream = stream.option("path", f"{home}/out") if sink == "parquet" else stream
            running = stream.trigger(availableNow=True).start()
            running.awaitTermination()
            return middle_of(running)

    def _started(self, folder: Path, sql: str) -> float:
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as home:
            flow = Flow(self.spark, path=f"{home}/flow")
            flow.stream("main", self._frame(folder), time="ts", progress=bounded(f"{DISORDER} seconds"))
            run: Any = flow.query(sql, "q").start(f"{home}/out")
            run.process_available()
            took = middle_of(run.streaming)
            run.finish()
            self._check(folder, sql, pq.read_table(f"{home}/out"))
            return took

    def _check(self, folder: Path, sql: str, given: pa.Table) -> None:
        """The same rows come of it in-process."""
        flow = Flow().stream("main", pq.read_table(folder), time="ts", progress=bounded("1 day"))
        expected = flow.query(sql).collect()
        order = [(name, "ascending") for name in expected.column_names]
        if not given.select(expected.column_names).cast(expected.schema).sort_by(order).equals(expected.sort_by(order)):
            raise InternalError("What Spark has written is not what comes out in-process.", where=sql)


def middle_of(running: Any) -> float:
    """The median of how long a query's micro-batches took, after the first ones."""
    with_rows = [p for p in running.recentProgress if p.numInputRows > 0]
    return float(median(p.batchDuration for p in with_rows[WARM:]))
