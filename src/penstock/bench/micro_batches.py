"""How long micro-batches on Spark take: of a started query, of Spark's own windows, of a scan that does nothing.

Files are dealt to micro-batches in order. How long a micro-batch takes is the median of a query's, after the first.
What a started query writes is compared with what comes out in-process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.bench.data import DISORDER, SLIDE
from penstock.engines.spark.baseline import native_sliding_stream, python_scan_stream
from penstock.errors import InternalError
from penstock.flow.flow import Flow
from penstock.model.progress import bounded

BATCHES = 9
WARM = 3
"""So many of them are not counted: a query's first micro-batches wait for workers."""
AT_ONCE = 2
"""Files of a micro-batch: each is read by a task."""


def per_key(ratio: int) -> str:
    """Count and max per key over windows of `ratio` slides."""
    window = f"[RANGE {ratio * SLIDE} seconds, SLIDE {SLIDE} seconds, WA ts]"
    return f"SELECT k, count(*) AS n, max(v) AS m {window} FROM main GROUP BY k"


def write_files(folder: Path, tables: Iterable[pa.Table]) -> None:
    """A file for each table, in their order."""
    folder.mkdir()
    for at, table in enumerate(tables):
        path = folder / f"{at:03d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_000_000 + at, 1_000_000 + at))


@dataclass(frozen=True)
class MicroBatches:
    """Queries over the files of a folder; milliseconds of a micro-batch of each."""

    spark: Any
    folder: Path
    key: str = "bigint"
    """The type of the keys."""

    def scan(self) -> float:
        """Rows are handed to Python, where they are counted."""
        return self._timed(python_scan_stream(self.frame()), "noop")

    def window(self) -> float:
        """Spark's own tumbling windows, written to parquet."""
        return self._timed(native_sliding_stream(self.frame(), SLIDE, SLIDE, f"{DISORDER} seconds"), "parquet")

    def started(self, sql: str) -> float:
        """A query that is started, with its folder written."""
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as home:
            flow = Flow(self.spark, path=f"{home}/flow")
            flow.stream("main", self.frame(), time="ts", progress=bounded(f"{DISORDER} seconds"))
            run: Any = flow.query(sql, "q").start(f"{home}/out")
            run.process_available()
            took = middle_of(run.streaming)
            run.finish()
            self._check(sql, pq.read_table(f"{home}/out"))
            return took

    def frame(self) -> Any:
        """The files as a stream."""
        schema = f"ts timestamp, k {self.key}, v int"
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", AT_ONCE)
        return reader.parquet(str(self.folder))

    def _timed(self, frame: Any, sink: str) -> float:
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as home:
            stream = frame.writeStream.outputMode("append").format(sink).option("checkpointLocation", f"{home}/c")
            stream = stream.option("path", f"{home}/out") if sink == "parquet" else stream
            running = stream.trigger(availableNow=True).start()
            running.awaitTermination()
            return middle_of(running)

    def _check(self, sql: str, given: pa.Table) -> None:
        """The same rows come of it in-process."""
        flow = Flow().stream("main", pq.read_table(self.folder), time="ts", progress=bounded("1 day"))
        expected = flow.query(sql).collect()
        order = [(name, "ascending") for name in expected.column_names]
        if not given.select(expected.column_names).cast(expected.schema).sort_by(order).equals(expected.sort_by(order)):
            raise InternalError("What Spark has written is not what comes out in-process.", where=sql)


def middle_of(running: Any) -> float:
    """The median of how long a query's micro-batches took, after the first ones."""
    with_rows = [p for p in running.recentProgress if p.numInputRows > 0]
    return float(median(p.batchDuration for p in with_rows[WARM:]))
