"""A run of very many micro-batches: files, time and the cost of looking at it stay what they were.

`PENSTOCK_BATCHES` says how many (`make months` asks for 5,000). Every micro-batch has results, and a late row.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import penstock as pk
from penstock.engines.spark.session import low_latency_settings
from tests.spark import modes

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(modes.chosen() != "local", reason="measures one machine"),
]
BATCHES = int(os.environ.get("PENSTOCK_BATCHES", "400"))
WARM, SPAN, KEPT = 50, 100, 20
SETTINGS = {
    **low_latency_settings(),
    "spark.sql.streaming.minBatchesToRetain": str(KEPT),
    "spark.sql.streaming.numRecentProgressUpdates": str(2 * SPAN),
    "spark.sql.streaming.stateStore.maintenanceInterval": "5s",
}


def files_in(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))


def seconds(call: Callable[[], object], times: int = 20) -> float:
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return median(taken)


def lasted(run: Any, first: int, last: int) -> float:
    """How long some micro-batches took, in seconds."""
    known = {p["batchId"]: p["durationMs"]["triggerExecution"] for p in run.streaming.recentProgress}
    assert set(range(first, last)) <= set(known)
    return sum(known[n] for n in range(first, last)) / 1000


def until(run: Any, batches: int) -> None:
    while not run.reached(batches):
        time.sleep(0.05)
    assert run.is_active


def test_nothing_grows(spark: Any, tmp_path: Path) -> None:
    before = {key: spark.conf.get(key, None) for key in SETTINGS}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    try:
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).option("numPartitions", 1)
        rows = source.option("advanceMillisPerBatch", 1000).load()
        late = "CASE WHEN value % 20 = 0 THEN timestamp - INTERVAL 1 HOUR ELSE timestamp END AS ts"
        flow = pk.Flow(spark, path=str(tmp_path / "flow"))
        flow.stream("s", rows.selectExpr(late, "value % 3 AS k"), time="ts", progress=pk.bounded("1 second"))
        query: Any = flow.query(
            "SELECT k, count(*) AS n [RANGE 2 seconds, SLIDE 1 second, WA ts] FROM s GROUP BY k", "q"
        )
        kept = pk.Retention(records=KEPT, late="5 seconds", compact=True)
        run = query.start(str(tmp_path / "out"), retention=kept)
        until(run, WARM + SPAN)
        early, look = lasted(run, WARM, WARM + SPAN), seconds(lambda: run.progress)
        until(run, BATCHES // 2)
        middle = {name: files_in(tmp_path / name) for name in ("out", "flow")}
        until(run, BATCHES)
        last = run.progress["batches"]
        at_end = lasted(run, last - SPAN, last)
        look_again = seconds(lambda: run.progress)
        run.stop()
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
    counts = {name: files_in(tmp_path / name) for name in ("out", "flow")}
    print(
        f"{last} micro-batches; {SPAN} took {early:.2f} s at first, {at_end:.2f} s at last ({at_end / early:.2f}x); "
        f"progress {look * 1000:.2f} ms, then {look_again * 1000:.2f} ms; "
        f"files {middle} in the middle, {counts} at last"
    )
    assert at_end <= 1.2 * early
    assert look_again <= 1.5 * look + 0.002
    assert files_in(tmp_path / "flow/q/log") <= KEPT
    assert files_in(tmp_path / "flow/q/late") <= 200
    assert counts["out"] <= 200
    assert counts["flow"] <= 1.5 * middle["flow"] + 50
