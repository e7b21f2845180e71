"""A run of very many micro-batches: files, time and the cost of looking at it stay what they were.

`PENSTOCK_BATCHES` says how many (`make months` asks for 5,000). Every micro-batch has results, and a late row.

An old run is judged by a young one beside it: once the first has done its micro-batches, it goes on while the same
query starts on a fresh path, in the same session. After a warm-up the two do micro-batches side by side, so that
whatever else the machine does strikes both, and the medians of the same stretch of time are compared. What the old run
took at its own beginning is printed, not judged: then the JVM was younger too, and the machine did other things.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import penstock as pk
from penstock.engines.spark.session import low_latency_settings
from tests.processes import wait
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
    "spark.sql.streaming.numRecentProgressUpdates": str(4 * SPAN),
    "spark.sql.streaming.stateStore.maintenanceInterval": "5s",
}
LATE = "CASE WHEN value % 20 = 0 THEN timestamp - INTERVAL 1 HOUR ELSE timestamp END AS ts"
SQL = {
    "windows": "SELECT k, count(*) AS n [RANGE 2 seconds, SLIDE 1 second, WA ts] FROM s GROUP BY k",
    "conflated": "SELECT ts, k FROM calm",
}


@pytest.fixture
def spark(spark: Any) -> Any:
    """The session with settings of its own, put back afterwards."""
    before = {key: spark.conf.get(key, None) for key in SETTINGS}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    yield spark
    for key, old in before.items():
        if old is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, old)


def start(spark: Any, home: Path, form: str) -> Any:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).option("numPartitions", 1)
    rows = source.option("advanceMillisPerBatch", 1000).load().selectExpr(LATE, "value % 3 AS k")
    flow = pk.Flow(spark, path=str(home / "flow"))
    key = {"update_key": "k"} if form == "conflated" else {}
    flow.stream("s", rows, time="ts", progress=pk.bounded("1 second"), **key)
    if key:
        flow.conflate("calm", "s", budget=2)  # of three keys, so one waits for the next micro-batch
    query: Any = flow.query(SQL[form], home.name)  # a session has one query of a name
    kept = pk.Retention(records=KEPT, late="5 seconds", compact=True)
    return query.start(str(home / "out"), retention=kept, buckets=1)


def files_in(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))


def until(run: Any, batches: int) -> None:
    while not run.reached(batches):
        time.sleep(0.3)
    assert run.is_active


def lasted(run: Any, first: int, last: int) -> dict[int, dict[str, Any]]:
    """How long some micro-batches took, step by step, in milliseconds, and when they began."""
    wanted = range(first, last)
    known: dict[int, dict[str, Any]] = {}

    def told() -> bool:
        """Spark tells of a micro-batch a moment after it has its record."""
        known.update((p["batchId"], p) for p in run.streaming.recentProgress)
        return last - 1 in known

    wait("progress", told, lambda: None, 60)
    assert set(wanted) <= set(known)
    return {n: known[n] for n in wanted}


def total(progress: dict[str, Any]) -> float:
    return float(progress["durationMs"]["triggerExecution"])


def side_by_side(old: Any, young: Any) -> tuple[float, float]:
    """The median times of the micro-batches that both runs did while the young one did its last ones, in seconds."""
    own = lasted(young, WARM, WARM + SPAN)
    begin, end = own[WARM]["timestamp"], own[WARM + SPAN - 1]["timestamp"]
    others = [p for p in old.streaming.recentProgress if begin <= p["timestamp"] <= end]
    assert len(others) >= SPAN / 2
    return median(map(total, others)) / 1000, median(map(total, own.values())) / 1000


def looks(*runs: Any) -> list[float]:
    """What it costs to ask for the progress of each, in milliseconds; who is asked first pays more, so they change."""
    taken: list[list[float]] = [[] for _ in runs]
    for turn in range(200):
        pairs = list(zip(runs, taken, strict=True))
        for run, times in pairs if turn % 2 else reversed(pairs):
            begin = time.perf_counter()
            assert run.progress["status"] == "running"
            times.append(1000 * (time.perf_counter() - begin))
    return list(map(median, taken))


def steps(done: dict[int, dict[str, Any]]) -> dict[str, float]:
    """The median of each step of a micro-batch, in milliseconds."""
    names = next(iter(done.values()))["durationMs"]
    return {name: median(p["durationMs"].get(name, 0) for p in done.values()) for name in names}


def counted(home: Path) -> dict[str, int]:
    parts = ("checkpoint", "checkpoint/sources", "log", "late", "dead", "control", "rounds")
    return {"out": files_in(home / "out"), **{part: files_in(home / "flow" / home.name / part) for part in parts}}


@pytest.mark.parametrize("form", SQL)
def test_nothing_grows(form: str, spark: Any, tmp_path: Path) -> None:
    old = start(spark, tmp_path / "old", form)
    until(old, WARM + SPAN)
    early = lasted(old, WARM, WARM + SPAN)
    (look_early,) = looks(old)
    until(old, BATCHES)
    last = old.progress["batches"]
    late = lasted(old, last - SPAN, last)
    files = counted(tmp_path / "old")
    raw = sum(map(total, late.values())) / sum(map(total, early.values()))
    print(
        f"\n{last} micro-batches; {SPAN} took {sum(map(total, early.values())) / 1000:.2f} s at first, "
        f"{sum(map(total, late.values())) / 1000:.2f} s at last ({raw:.2f}x); steps at last, ms: {steps(late)}; "
        f"a look {look_early:.2f} ms at first; files {files}",
        flush=True,
    )
    young = start(spark, tmp_path / "young", form)
    until(young, WARM + SPAN)
    look_old, look_young = looks(old, young)
    of_old, of_young = side_by_side(old, young)
    old.stop()
    young.stop()
    files_old, files_young = counted(tmp_path / "old"), counted(tmp_path / "young")
    print(
        f"side by side: a micro-batch {of_old:.3f} s old, {of_young:.3f} s young ({of_old / of_young:.2f}x); "
        f"a look {look_old:.2f} ms old, {look_young:.2f} ms young; files {files_old} old, {files_young} young"
    )
    assert of_old <= 1.2 * of_young
    assert look_old <= 1.2 * look_young + 0.1
    assert files_old["log"] <= KEPT
    assert files_old["late"] <= 200
    assert files_old["out"] <= 200
    assert files_old["checkpoint"] <= 1.5 * files_young["checkpoint"] + 50
    assert files_old["dead"] <= 10
    assert files_old["control"] == 0
    assert files_old["checkpoint/sources"] == files_young["checkpoint/sources"]
    assert files_old["rounds"] <= max(100, files_young["rounds"])
