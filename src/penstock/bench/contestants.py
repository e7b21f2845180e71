"""Who takes part in the window benchmark, and how each computes count and max per key over sliding windows.

Every contestant gives a fingerprint of its result: how many rows, the sum of the counts, the sum of the maxima, and a
sum over a mix of window, key, count and maximum. Equal fingerprints stand for equal results.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.bench.data import DISORDER, SLIDE, START, Rows
from penstock.engines.spark.baseline import native_sliding, native_sliding_stream
from penstock.flow.flow import Flow
from penstock.model.batch import Batch
from penstock.model.progress import bounded
from penstock.model.time import SECOND

MODULUS = 1_000_000_007
Fingerprint = tuple[int, int, int, int]
FIRST = START // SECOND // SLIDE


@dataclass(frozen=True)
class Timing:
    """How long a contestant took over how many rows, and what it came to."""

    seconds: float
    rows: int
    fingerprint: Fingerprint
    state_rows: int | None = None
    state_bytes: int | None = None

    @property
    def rate(self) -> float:
        """Rows a second."""
        return self.rows / self.seconds


def query(ratio: int) -> str:
    """Count and max per key over windows of `ratio` slides."""
    window = f"[RANGE {ratio * SLIDE} seconds, SLIDE {SLIDE} seconds, WA ts]"
    return f"SELECT k, count(*) AS n, max(v) AS m {window} FROM main GROUP BY k"


def fingerprint(wid: Any, k: Any, n: Any, m: Any) -> Fingerprint:
    """Of result columns as arrays; window ids count from the start of the data."""
    wid, k, n, m = (np.asarray(x).astype(np.int64) for x in (wid, k, n, m))
    inside = wid < FIRST + 1_000_000  # the far row's own windows are not part of the result
    wid, k, n, m = (x[inside] for x in (wid, k, n, m))
    mixed = ((wid - FIRST) * 1_000_003 + k * 7_919 + n * 31 + m) % MODULUS
    return len(wid), int(n.sum()), int(m.sum()), int(mixed.sum())


def in_process(rows: Rows, ratio: int) -> Timing:
    """Penstock in-process over an Arrow table."""
    flow = Flow().stream("main", rows.table, time="ts", progress=bounded(f"{DISORDER} seconds"))
    q: Any = flow.query(query(ratio))
    started = time.perf_counter()
    tables = [b.visible() for b in q.items() if isinstance(b, Batch)]
    seconds = time.perf_counter() - started
    result = pa.concat_tables(tables)
    return Timing(seconds, rows.count, fingerprint(*(result[c].to_numpy() for c in ("wid", "k", "n", "m"))))


def spark_batch(spark: Any, rows: Rows, ratio: int) -> Timing:
    """Penstock in Spark batch."""
    flow = Flow(spark).stream("main", rows.file, time="ts", progress=bounded(f"{DISORDER} seconds"))
    q: Any = flow.query(query(ratio))
    return _timed_batch(lambda: q.df, rows)


def spark_window(spark: Any, rows: Rows, ratio: int) -> Timing:
    """Spark's own window() in batch."""
    return _timed_batch(lambda: native_sliding(spark.read.parquet(rows.file), ratio * SLIDE, SLIDE), rows)


def _timed_batch(make: Callable[[], Any], rows: Rows) -> Timing:
    started = time.perf_counter()
    found = _collect_fingerprint(make())
    return Timing(time.perf_counter() - started, rows.count, found)


def _mixed() -> list[str]:
    inside = f"wid < {FIRST + 1_000_000}"
    mix = f"pmod((wid - {FIRST}) * 1000003L + k * 7919L + n * 31L + m, {MODULUS}L)"
    return [
        f"count_if({inside}) AS a",
        f"sum(if({inside}, n, 0)) AS b",
        f"sum(if({inside}, cast(m AS bigint), 0L)) AS c",
        f"sum(if({inside}, {mix}, 0L)) AS d",
    ]


def _collect_fingerprint(frame: Any) -> Fingerprint:
    row = frame.selectExpr("wid", "k", "n", "m").selectExpr(*_mixed()).collect()[0]
    return tuple(int(x or 0) for x in row)  # type: ignore[return-value]


def spark_streaming(spark: Any, rows: Rows, ratio: int) -> Timing:
    """Penstock in Spark streaming, in append mode."""

    def make(frame: Any) -> Any:
        flow = Flow(spark).stream("main", frame, time="ts", progress=bounded(f"{DISORDER} seconds"))
        q: Any = flow.query(query(ratio))
        return q.df

    return _timed_stream(spark, rows, make)


def spark_window_stream(spark: Any, rows: Rows, ratio: int) -> Timing:
    """Spark's own window() in streaming, in append mode under a watermark of the data's disorder."""
    return _timed_stream(spark, rows, lambda f: native_sliding_stream(f, ratio * SLIDE, SLIDE, f"{DISORDER} seconds"))


def _timed_stream(spark: Any, rows: Rows, make: Callable[[Any], Any]) -> Timing:
    home = tempfile.mkdtemp(prefix="penstock-bench-")
    found: list[Fingerprint] = []
    frame = (
        spark.readStream.schema("ts timestamp, k bigint, v int").option("maxFilesPerTrigger", 1).parquet(rows.folder)
    )

    def take(batch: Any, number: int) -> None:
        found.append(_collect_fingerprint(batch))

    try:
        started = time.perf_counter()
        stream = make(frame).writeStream.outputMode("append").foreachBatch(take)
        running = stream.option("checkpointLocation", home).trigger(availableNow=True).start()
        running.awaitTermination()
        seconds = time.perf_counter() - started
        operators = [list(p.stateOperators) for p in running.recentProgress]
        kept = max((sum(o.numRowsTotal for o in found) for found in operators), default=0)
        used = max((sum(o.memoryUsedBytes for o in found) for found in operators), default=0)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    total = tuple(sum(parts) for parts in zip(*found, strict=True))
    return Timing(seconds, rows.count, total, kept, used)


def duckdb_batch(rows: Rows, ratio: int) -> Timing:
    """DuckDB in batch over the same Arrow table, panes then a frame over a calendar of panes: a lower bound."""
    import duckdb

    main = rows.table  # noqa: F841 - DuckDB finds it by name
    last = rows.count and int(pc.max(pc.cast(rows.table["ts"], pa.int64())).as_py()) // SECOND // SLIDE
    sql = f"""
        WITH panes AS (
            SELECT k, epoch_us(ts) // {SECOND * SLIDE} AS p, count(*) AS n, max(v) AS m FROM main GROUP BY ALL),
        calendar AS (SELECT k, p FROM (SELECT DISTINCT k FROM panes), range({FIRST}, {last + ratio}) r(p)),
        windows AS (
            SELECT k, p AS wid, sum(n) OVER w AS n, max(m) OVER w AS m FROM calendar LEFT JOIN panes USING (k, p)
            WINDOW w AS (PARTITION BY k ORDER BY p ROWS BETWEEN {ratio - 1} PRECEDING AND CURRENT ROW))
        SELECT wid, k, CAST(n AS BIGINT) AS n, m FROM windows WHERE n > 0"""
    started = time.perf_counter()
    found = duckdb.sql(sql)
    assert found is not None
    result = found.to_arrow_table()
    seconds = time.perf_counter() - started
    return Timing(seconds, rows.count, fingerprint(*(result[c].to_numpy() for c in ("wid", "k", "n", "m"))))
