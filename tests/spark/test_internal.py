"""On Spark rows are stamped with the time of their micro-batch, which a micro-batch that is done again has as well."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.errors import CheckpointError, RunError, StreamError, UnsupportedError
from penstock.model.time import SECOND
from tests.spark.test_clock import PATIENCE, last, until

pytestmark = pytest.mark.spark

DDL = "k string, v int"
SECONDS = timedelta(seconds=1)
COUNT = "SELECT k, count(*) AS n [RANGE 1 second, SLIDE 1 second, WA ts] FROM s GROUP BY k"


def write(folder: Path, *rows: tuple[str, int]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    staged = folder / f".{len(list(folder.iterdir()))}"
    staged.write_text("\n".join(json.dumps({"k": k, "v": v}) for k, v in rows) + "\n")
    staged.rename(folder / f"{staged.name[1:]}.json")


def flow_of(spark: Any, folder: Path, **options: Any) -> pk.Flow:
    folder.mkdir(parents=True, exist_ok=True)
    frame = spark.readStream.schema(DDL).json(str(folder))
    flow = pk.Flow(spark, path=str(folder.parent / "flow"))
    return flow.stream("s", frame, time="ts", **{"timestamps": pk.internal(), **options})


def read(folder: Path) -> list[dict[str, Any]]:
    return [row for file in folder.glob("*.parquet") for row in pq.read_table(file).to_pylist()]


def test_windows_of_stamps_close_by_the_clock(spark: Any, tmp_path: Path) -> None:
    began = datetime.now(UTC)
    write(tmp_path / "s", ("a", 1), ("b", 2), ("a", 3))
    run = flow_of(spark, tmp_path / "s").query(COUNT, name="q").start(str(tmp_path / "out"))
    try:
        until(run, lambda: sorted((row["k"], row["n"]) for row in read(tmp_path / "out")) == [("a", 2), ("b", 1)])
        (end,) = {row["window_end"] for row in read(tmp_path / "out")}
        assert began < end.replace(tzinfo=UTC) < datetime.now(UTC) + timedelta(seconds=1)
        assert run.progress.counts.late == 0
    finally:
        run.stop()


@pytest.mark.parametrize("sql", [COUNT, "SELECT ts, k FROM s WHERE v > 0"], ids=["windows", "stateless"])
def test_stamps_do_not_go_back_with_the_clock(sql: str, spark: Any, tmp_path: Path) -> None:
    """The record says that more was reached than the clock says: as after it was set back by an hour."""
    folder, out = tmp_path / "s", tmp_path / "out"
    write(folder, ("a", 1))
    run = flow_of(spark, folder).query(sql, name="q").start(str(out))
    run.process_available()
    ahead = int((datetime.now(UTC) + timedelta(hours=1)).timestamp()) * SECOND
    run.punctuate("s", ahead)
    until(run, lambda: (r := last(tmp_path, "q")) is not None and r.trackers["s"]["outside"] == ahead)
    write(folder, ("b", 2))
    until(run, lambda: run.progress.counts.read == 2)
    assert run.progress.counts.late == 0
    assert run.progress.counts.on_time == 2
    run.finish()
    times = {row["k"]: row.get("ts", row.get("window_start")) for row in read(out)}
    assert times["b"].replace(tzinfo=UTC).timestamp() * SECOND == ahead


def test_a_micro_batch_that_is_done_again_has_the_same_stamps(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "s", ("a", 1), ("b", 2))
    marker, kept = tmp_path / "failed", tmp_path / "rows"

    def fails_once(frame: Any, number: int) -> None:
        rows = [row["ts"].isoformat() for row in frame.collect()]
        if rows and not marker.exists():
            marker.write_text(json.dumps(rows))
            raise ValueError("the first time")
        if rows:
            kept.write_text(json.dumps(rows))

    flow = flow_of(spark, tmp_path / "s")
    run = flow.query("SELECT ts, k FROM s", name="q").start(fails_once)
    with pytest.raises(RunError, match="the first time"):
        run.wait(PATIENCE)
    again = flow.query("SELECT ts, k FROM s", name="q").start(fails_once)
    try:
        until(again, kept.exists)
        assert json.loads(kept.read_text()) == json.loads(marker.read_text())
        assert len(set(json.loads(kept.read_text()))) == 1, "a micro-batch has one stamp"
    finally:
        again.stop()


def test_a_checkpoint_of_other_times_is_refused(spark: Any, tmp_path: Path) -> None:
    write(tmp_path / "s", ("a", 1))
    flow_of(spark, tmp_path / "s").query(COUNT, name="q").start(str(tmp_path / "out")).stop()
    frame = spark.readStream.schema(f"ts timestamp, {DDL}").json(str(tmp_path / "s"))
    flow = pk.Flow(spark, path=str(tmp_path / "flow")).stream("s", frame, time="ts", lull=0)
    with pytest.raises(CheckpointError, match="timestamps of stream s"):
        flow.query(COUNT, name="q").start(str(tmp_path / "out"))


def test_a_bounded_frame_cannot_be_stamped(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("a", 1)], DDL)
    with pytest.raises(StreamError, match="do not enter at any time") as found:
        pk.Flow(spark).stream("s", frame, time="ts", timestamps=pk.internal())
    assert "spark.readStream" in str(found.value)


@pytest.mark.parametrize(
    "option", [{"timestamps": pk.internal()}, {"timestamps": None, "progress": pk.timer("1 second")}]
)
def test_what_goes_by_the_clock_needs_a_home(option: dict[str, Any], spark: Any, tmp_path: Path) -> None:
    frame = spark.readStream.format("rate").load()
    flow = pk.Flow(spark).stream("s", frame, time="timestamp" if "progress" in option else "ts", **option)
    query = flow.query("SELECT value FROM s")
    with pytest.raises(UnsupportedError, match="need a query that lives in a home") as found:
        query.df  # noqa: B018 - it is refused
    assert "q.start(sink)" in str(found.value)


def test_rows_of_latent_streams_pass_without_a_time(spark: Any, tmp_path: Path) -> None:
    flow = flow_of(spark, tmp_path / "s", timestamps=pk.latent())
    write(tmp_path / "t", ("c", 3))
    frame = spark.readStream.schema(DDL).json(str(tmp_path / "t"))
    flow.stream("t", frame, time="ts", timestamps=pk.latent())
    write(tmp_path / "s", ("a", 1), ("b", 2))
    query = flow.query("SELECT k, v * 2 AS w FROM s WHERE v > 1 UNION ALL SELECT k, v FROM t", name="q")
    run = query.start(str(tmp_path / "out"))
    run.process_available()
    run.stop()
    assert sorted((row["k"], row["w"]) for row in read(tmp_path / "out")) == [("b", 4), ("c", 3)]


def test_rows_of_latent_streams_are_stamped_where_they_enter_if_an_operator_needs_a_time(
    spark: Any, tmp_path: Path
) -> None:
    began = datetime.now(UTC)
    flow = flow_of(spark, tmp_path / "s", timestamps=pk.latent())
    write(tmp_path / "t", ("a", 3))
    frame = spark.readStream.schema(DDL).json(str(tmp_path / "t"))
    flow.stream("t", frame, time="ts", timestamps=pk.latent())
    write(tmp_path / "s", ("a", 1), ("b", 2))
    both = "(SELECT ts, k FROM s WHERE v > 0 UNION ALL SELECT ts, k FROM t)"
    run = flow.query(COUNT.replace("FROM s", f"FROM {both}"), name="q").start(str(tmp_path / "out"))
    try:
        until(run, lambda: sum(row["n"] for row in read(tmp_path / "out")) == 3)
        found = read(tmp_path / "out")
        assert {row["k"] for row in found} == {"a", "b"}
        assert all(began < row["window_end"].replace(tzinfo=UTC) < datetime.now(UTC) + 2 * SECONDS for row in found)
        assert run.progress.counts.late == 0
    finally:
        run.stop()
