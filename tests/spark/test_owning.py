"""One driver per query, one owner per folder, places as URIs, and outputs that anybody can read from the start."""

from __future__ import annotations

import base64
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import penstock as pk
from penstock.engines.spark.wire import load
from penstock.errors import CheckpointError, LeaseError, StorageError, StreamError
from tests.spark import scenario
from tests.spark.test_merge import ROWS, write_files

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
SQL = "SELECT ts, k, v FROM s WHERE v < 100"


def query(spark: Any, home: Path, flow: str = "flow", name: str = "q", sql: str = SQL) -> Any:
    made = pk.Flow(spark, path=f"file://{home}/{flow}")
    frame = spark.readStream.schema("ts bigint, k string, v int").parquet(f"file://{home}/in")
    made.stream("s", frame, time="ts", progress=pk.bounded(12))
    return made.query(sql, name=name)


@pytest.fixture
def rows(tmp_path: Path) -> list[tuple[int, str, int]]:
    write_files(tmp_path / "in", ROWS[:50], 50)
    return ROWS[:50]


def once(run: Any) -> Any:
    run.process_available()
    run.stop()
    return run


def test_a_second_driver_is_refused_until_the_first_has_stopped(spark: Any, tmp_path: Path, rows: Any) -> None:
    first = query(spark, tmp_path).start(f"file://{tmp_path}/out")
    with pytest.raises(LeaseError, match="Another driver is running here") as error:
        query(spark, tmp_path).start(f"file://{tmp_path}/out")
    assert error.value.where == str(tmp_path / "flow" / "q")
    once(first)
    assert once(query(spark, tmp_path).start(f"file://{tmp_path}/out")).progress["read"] == len(rows)


def test_uris_are_places_and_anybody_can_read_the_folder(spark: Any, tmp_path: Path, rows: Any) -> None:
    out = tmp_path / "out dir"
    run = query(spark, tmp_path).start(f"file://{out}")
    assert set(pd.read_parquet(out).columns) == {"ts", "k", "v"}
    once(run)
    expected = Counter(rows)
    assert Counter(tuple(r) for r in spark.read.parquet(f"file://{out}").collect()) == expected
    assert Counter(pd.read_parquet(out).itertuples(index=False, name=None)) == expected
    assert Counter(duckdb.sql(f"SELECT * FROM '{out}/*.parquet'").fetchall()) == expected
    assert Counter(duckdb.sql(f"SELECT * FROM '{out}/**/*.parquet'").fetchall()) == expected
    assert spark.read.parquet(f"file://{tmp_path}/flow/q/late").columns == ["stream", "bound", "row"]
    assert spark.read.parquet(f"file://{tmp_path}/flow/q/dead").columns[-2:] == ["reason", "row"]
    assert not [p for p in tmp_path.iterdir() if ":" in p.name]


def test_two_queries_cannot_share_a_folder(spark: Any, tmp_path: Path, rows: Any) -> None:
    first = query(spark, tmp_path).start(str(tmp_path / "out"))
    other = query(spark, tmp_path, name="other")
    with pytest.raises(StorageError, match="belongs to another run") as error:
        other.start(str(tmp_path / "out"))
    assert "results of q" in error.value.got
    with pytest.raises(StorageError, match="belongs to another run"):
        other.start(str(tmp_path / "new"), late=str(tmp_path / "out"))
    with pytest.raises(StreamError, match="Two outputs of a query go to one folder") as shared:
        other.start(str(tmp_path / "mine"), late=str(tmp_path / "mine"))
    assert shared.value.got == "results and late"
    once(first)


def test_a_query_begun_anew_does_not_write_into_its_old_output(spark: Any, tmp_path: Path, rows: Any) -> None:
    once(query(spark, tmp_path).start(str(tmp_path / "out")))
    shutil.rmtree(tmp_path / "flow")
    with pytest.raises(StorageError, match="belongs to another run") as error:
        query(spark, tmp_path).start(str(tmp_path / "out"))
    assert "delete it" in error.value.hint
    assert len(pd.read_parquet(tmp_path / "out")) == len(rows)


def test_an_output_that_was_emptied_is_told(spark: Any, tmp_path: Path, rows: Any) -> None:
    once(query(spark, tmp_path).start(str(tmp_path / "out")))
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(StorageError, match="A file that a record names is gone"):
        query(spark, tmp_path).start(str(tmp_path / "out"))


def test_results_can_go_to_another_folder_from_now_on(spark: Any, tmp_path: Path, rows: Any) -> None:
    once(query(spark, tmp_path).start(str(tmp_path / "out")))
    write_files(tmp_path / "in", ROWS, 50, range(1, 2))
    once(query(spark, tmp_path).start(str(tmp_path / "next")))
    assert sorted(pd.read_parquet(tmp_path / "next")["ts"]) == list(range(50, 100))
    write_files(tmp_path / "in", ROWS, 50, range(2, 3))
    once(query(spark, tmp_path).start(str(tmp_path / "out")))
    assert sorted(pd.read_parquet(tmp_path / "out")["ts"]) == [*range(50), *range(100, 150)]


@pytest.mark.parametrize("gone", ["checkpoint", "log"])
def test_a_log_and_a_checkpoint_of_different_moments_are_told(gone: str, spark: Any, tmp_path: Path, rows: Any) -> None:
    once(query(spark, tmp_path).start(str(tmp_path / "out")))
    shutil.rmtree(tmp_path / "flow" / "q" / gone)
    with pytest.raises(CheckpointError, match="not of the same moment"):
        query(spark, tmp_path).start(str(tmp_path / "out"))


@pytest.mark.parametrize("text", ["", '{"format": '])
def test_a_truncated_manifest_is_told(text: str, spark: Any, tmp_path: Path) -> None:
    home = tmp_path / "flow" / "q"
    home.mkdir(parents=True)
    (home / "manifest.json").write_text(text)
    (tmp_path / "in").mkdir()
    with pytest.raises(pk.PenstockError, match="damaged") as error:
        query(spark, tmp_path).start(str(tmp_path / "out"))
    assert "manifest.json" in error.value.hint


def test_a_name_cannot_leave_the_flow(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(StreamError, match="usable as a folder's"):
        query(spark, tmp_path, name="../x").start(str(tmp_path / "out"))


@pytest.mark.parametrize("place", ["nowhere://bucket/x", "dbfs:/x"])
def test_an_unknown_file_system_is_no_local_folder(place: str, spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(StorageError, match="no file system for this place"):
        query(spark, tmp_path).start(place)
    flow = pk.Flow(spark, path=place)
    frame = spark.readStream.schema("ts bigint").parquet(str(tmp_path / "in"))
    with pytest.raises(StorageError, match="no file system for this place"):
        flow.stream("s", frame, time="ts").query("SELECT ts FROM s").start(str(tmp_path / "out"))


def test_a_function_is_called_with_the_logs_number(spark: Any, tmp_path: Path, rows: Any) -> None:
    calls = tmp_path / "calls"  # over Spark Connect the function is called in another process

    def sink(frame: Any, number: int) -> None:
        with calls.open("a") as file:
            file.write(f"{number} {frame.count()}\n")

    once(query(spark, tmp_path).start(sink))
    write_files(tmp_path / "in", ROWS, 50, range(1, 2))
    run = once(query(spark, tmp_path).start(sink))
    assert calls.read_text().splitlines() == ["0 50", "1 50"]
    assert run.progress["batches"] == 2


def test_a_record_has_what_others_build_on(spark: Any, tmp_path: Path) -> None:
    scenario.write_files(tmp_path / "in", range(2))
    run = scenario.start(spark, tmp_path)
    run.process_available()
    progress = run.progress
    run.stop()
    record = json.loads((tmp_path / "flow/talkers/log/000000000001.json").read_text())
    assert (record["number"], record["batch"], record["generation"]) == (1, 1, 1)
    assert record["totals"]["read"] == progress["read"]
    assert record["frontier"] == progress["bound_ticks"]
    assert record["positions"][0].startswith("v")
    newest = scenario.START + 60 * scenario.SECOND
    assert record["greatest"] == {"main": newest, "": progress["bound_ticks"] - 10 * scenario.SECOND}
    assert load(base64.b64decode(record["trackers"]["main"]["state"])) == newest
    assert progress["bound"] == "2026-01-01 00:00:50"  # windows that end before are closed


def test_garbage_in_the_control_folder_is_a_dead_letter(spark: Any, tmp_path: Path, rows: Any) -> None:
    run = query(spark, tmp_path).start(str(tmp_path / "out"))
    control = tmp_path / "flow" / "q" / "control"
    texts = ["garbage \ud83d", '{"stream": "other", "bound": 3}', '{"stream": "s", "bound": "x"}', "[]"]
    for number, text in enumerate(texts):
        (control / f"{number}.json").write_text(text, errors="replace")
    run.process_available()
    run.punctuate("s", 1000)
    run.process_available()
    run.stop()
    dead = pd.read_parquet(tmp_path / "flow" / "q" / "dead")
    assert list(dead["reason"]) == ["not a bound of a stream, in the control folder"] * 4
    assert set(dead["row"]) == {"garbage ?", *texts[1:]}
    assert (run.progress["dead"], run.progress["read"], run.progress["bound_ticks"]) == (4, len(rows) + 4, 1000)
