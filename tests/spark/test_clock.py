"""On Spark too the clock speaks for streams that are silent, by a source whose position is the time."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.engines.spark.clock import WAKES
from penstock.errors import CheckpointError, RunError
from penstock.model.time import SECOND
from penstock.storage.files import place_of
from penstock.storage.log import Record, RecordLog

pytestmark = pytest.mark.spark

DDL = "ts timestamp, k int"
Q1_2 = """
    SELECT count(*) AS n [RANGE 60 seconds, SLIDE 60 seconds, WA ts]
    FROM (SELECT ts, k FROM main UNION ALL SELECT ts, k FROM control)
"""
SECONDS = "SELECT count(*) AS n [RANGE 1 second, SLIDE 1 second, WA ts] FROM main"
PATIENCE = 120.0
HOUR = timedelta(hours=1)


def write(folder: Path, times: list[datetime]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"ts": t.isoformat(), "k": 1}) for t in times]
    number = len(list(folder.glob("*.json")))
    staged = folder / f".{number}"
    staged.write_text("\n".join(lines) + "\n")
    os.utime(staged, (1_000_000 + number, 1_000_000 + number))  # Spark reads oldest first
    staged.rename(folder / f"{number:03}.json")


def read(spark: Any, folder: Path, **options: Any) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    reader = spark.readStream.schema(DDL)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.json(str(folder))


def until(run: Any, holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE
    while not holds():
        run.reached(10**9)  # which raises what the run has failed with
        assert time.monotonic() < ends, run.progress
        time.sleep(0.05)


def last(home: Path, name: str) -> Record | None:
    return RecordLog(place_of(str(home / "flow" / name)) / "log").last()


def counted(folder: Path) -> dict[datetime, int]:
    """Rows by the end of their window."""
    rows = [row for file in folder.glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    assert len({row["window_end"] for row in rows}) == len(rows)
    return {row["window_end"].replace(tzinfo=UTC): row["n"] for row in rows}


def hour(since: datetime) -> tuple[list[datetime], dict[datetime, int]]:
    """A row every ten seconds, and how many are in each minute."""
    times = [since + timedelta(seconds=s) for s in range(0, 3600, 10)]
    return times, {since + timedelta(minutes=m): 6 for m in range(1, 61)}


def test_a_control_stream_that_is_silent_for_an_hour_delays_no_minute(spark: Any, tmp_path: Path) -> None:
    since = datetime.now(UTC).replace(second=0, microsecond=0) - 2 * HOUR
    times, expected = hour(since)
    expected[since + timedelta(minutes=1)] += 1
    flow = pk.Flow(spark, path=str(tmp_path / "flow"))
    for name, own in (("main", times), ("control", [since])):
        write(tmp_path / name, own)
        flow.stream(name, read(spark, tmp_path / name), time="ts", lull="2 minutes")
    run = flow.query(Q1_2, name="q").start(str(tmp_path / "out"))
    try:
        until(run, lambda: counted(tmp_path / "out") == expected)
        until(run, lambda: (record := last(tmp_path, "q")) is not None and record.state[WAKES] is None)
        assert not list((tmp_path / "flow" / "q" / "control").iterdir()), "no file is written for a tick"
        write(tmp_path / "main", [datetime.now(UTC), since])
        until(run, lambda: run.progress.counts.read == len(times) + 3)
        counts = run.progress.counts
        assert (counts.on_time, counts.late) == (len(times) + 2, 1), "what is not too old is on time"
    finally:
        run.stop()


def test_external_times_go_on_as_the_clock_does(spark: Any, tmp_path: Path) -> None:
    since = datetime.now(UTC).replace(microsecond=0) - 5 * HOUR
    write(tmp_path / "main", [since, since + timedelta(seconds=0.5)])
    flow = pk.Flow(spark, path=str(tmp_path / "flow"))
    flow.stream("main", read(spark, tmp_path / "main"), time="ts", timestamps=pk.external(skew="100 milliseconds"))
    run = flow.query(SECONDS, name="q").start(str(tmp_path / "out"))
    try:
        until(run, lambda: counted(tmp_path / "out") == {since + timedelta(seconds=1): 2})
        record = last(tmp_path, "q")
        assert record is not None
        own = record.trackers["main"]["outside"]
        # Its times are hours behind, and have gone on for no longer than the run has.
        assert own < int((since + HOUR).timestamp()) * SECOND
    finally:
        run.stop()


def test_rows_that_have_come_and_were_not_read_yet_are_not_late(spark: Any, tmp_path: Path) -> None:
    since = datetime.now(UTC).replace(microsecond=0) - HOUR
    for n in range(6):
        write(tmp_path / "main", [since + timedelta(seconds=n)])
    flow = pk.Flow(spark, path=str(tmp_path / "flow"))
    flow.stream("main", read(spark, tmp_path / "main", maxFilesPerTrigger=1), time="ts", lull=0)
    run = flow.query(SECONDS, name="q").start(str(tmp_path / "out"))
    try:
        until(run, lambda: len(counted(tmp_path / "out")) == 6)
        assert run.progress.counts.late == 0
        write(tmp_path / "main", [since])
        until(run, lambda: run.progress.counts.late == 1)
    finally:
        run.stop()


def test_a_tick_that_is_done_again_is_the_same(spark: Any, tmp_path: Path) -> None:
    since = datetime.now(UTC).replace(microsecond=0) - HOUR
    write(tmp_path / "main", [since])
    flow = pk.Flow(spark, path=str(tmp_path / "flow"))
    flow.stream("main", read(spark, tmp_path / "main"), time="ts", lull="1 second")
    marker, out = str(tmp_path / "failed"), str(tmp_path / "rows")

    def fails_once(frame: Any, number: int) -> None:
        rows = [row.asDict()["n"] for row in frame.collect()]
        if not Path(marker).exists():
            Path(marker).touch()
            raise ValueError("the first time")
        Path(out).write_text(json.dumps(rows))

    run = flow.query(SECONDS, name="q").start(fails_once)
    with pytest.raises(RunError, match="the first time"):
        run.wait(PATIENCE)
    offsets = tmp_path / "flow" / "q" / "checkpoint" / "offsets"
    interrupted = max(int(file.name) for file in offsets.iterdir() if file.name.isdigit())
    tick = json.loads((offsets / str(interrupted)).read_text().splitlines()[-1])["now"]
    again = flow.query(SECONDS, name="q").start(fails_once)
    try:
        until(again, lambda: Path(out).exists() and again.progress.batches > interrupted)
        record = RecordLog(place_of(str(tmp_path / "flow" / "q")) / "log").read(interrupted)
        assert record.trackers["main"]["outside"] == tick - SECOND
        assert json.loads(Path(out).read_text()) == [1]
    finally:
        again.stop()


def test_the_clock_is_a_source_that_stays(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "main", [datetime.now(UTC)])

    def query(**options: Any) -> Any:
        flow = pk.Flow(spark, path=str(tmp_path / "flow"))
        return flow.stream("main", read(spark, tmp_path / "main"), time="ts", **options).query(SECONDS, name="q")

    run = query(lull="1 second").start(str(tmp_path / "out"))
    run.process_available()
    run.stop()
    with pytest.raises(CheckpointError, match="for whose silent streams the clock speaks"):
        query().start(str(tmp_path / "out"))
    run = query(lull="3 seconds").start(str(tmp_path / "out"))
    run.process_available()
    run.stop()


def test_a_timer_says_what_rows_have_reached(spark: Any, tmp_path: Path) -> None:
    """Rows of one micro-batch are out of order, and so are those of the next, before the timer fires again."""
    since = datetime.now(UTC).replace(microsecond=0) - HOUR
    write(tmp_path / "main", [since + timedelta(seconds=2), since])
    flow = pk.Flow(spark, path=str(tmp_path / "flow"))
    flow.stream("main", read(spark, tmp_path / "main"), time="ts", progress=pk.timer("1 second"))
    run = flow.query(SECONDS, name="q").start(str(tmp_path / "out"))
    try:
        until(run, lambda: counted(tmp_path / "out") == {since + timedelta(seconds=1): 1})
        until(run, lambda: (record := last(tmp_path, "q")) is not None and record.state[WAKES] is None)
        write(tmp_path / "main", [since, since + timedelta(seconds=2)])
        until(run, lambda: run.progress.counts.read == 4)
        assert run.progress.counts.late == 1
    finally:
        run.stop()
