"""Conflation on Spark: the last value of every key comes, so many rows with each micro-batch, and none twice."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.errors import StreamError, UnsupportedError
from penstock.model.schema import BIGINT, STRING, Field, Schema
from penstock.reference.updates import last_values

pytestmark = pytest.mark.spark
SCHEMA = Schema((Field("ts", BIGINT), Field("k", STRING), Field("v", BIGINT)), time="ts")
DDL = "ts bigint, k string, v bigint"
Rows = list[tuple[int, str, int]]
WRITTEN = 1_700_000_000


def write(home: Path, number: int, rows: Rows) -> None:
    """Files are read in the order of their times, which are a second apart."""
    (home / "in").mkdir(exist_ok=True)
    partial = home / "in" / f".{number}"
    partial.write_text("\n".join(json.dumps(dict(zip(SCHEMA.names, row, strict=True))) for row in rows))
    os.utime(partial, (WRITTEN + number, WRITTEN + number))
    partial.rename(home / "in" / f"{number}.json")


def flow_of(spark: Any, home: Path, **options: Any) -> pk.Flow:
    frame = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).json(str(home / "in"))
    flow = pk.Flow(spark, path=str(home / "flow"))
    flow.stream("s", frame, time="ts", progress=pk.bounded(1000), update_key="k")
    return flow.conflate("calm", "s", **options)


def delivered(home: Path) -> Rows:
    """In the order of micro-batches, which is that of the names of files."""
    files = sorted((home / "out").glob("*.parquet"), key=lambda file: file.name.split("-")[2])
    return [tuple(row.values()) for file in files for row in pq.read_table(file).to_pylist()]


def random_rows(rng: random.Random, start: int, keys: int = 12) -> Rows:
    return [(start + rng.randint(-30, 30), f"k{rng.randrange(keys)}", start + at) for at in range(60)]


@pytest.mark.parametrize("policy", ["in_place", pytest.param("linecutting", marks=pytest.mark.slow)])
def test_what_waits_is_overwritten_and_all_of_it_comes_in_the_end(policy: str, spark: Any, tmp_path: Path) -> None:
    """Two starts; what is above the queue sees only what is handed on, at most so many with a micro-batch."""
    rng, came, seen = random.Random(policy), list[tuple[int, str, int]](), str(tmp_path / "seen")

    def counted(value: int) -> int:
        with open(seen, "a") as file:
            file.write(f"{value}\n")
        return value

    (tmp_path / "in").mkdir()
    for start in (0, 1):
        flow = flow_of(spark, tmp_path, policy=policy, budget=5)
        flow.function("counted", counted, "bigint", version="1")
        query: Any = flow.query("SELECT ts, k, counted(v) AS v FROM calm WHERE v <> 7", name="q")
        for number in (2 * start, 2 * start + 1):
            rows = random_rows(rng, 100 * number)
            came += rows
            write(tmp_path, number, rows)
        run = query.start(str(tmp_path / "out"), superseded=str(tmp_path / "superseded"))
        run.process_available()
        (queue,) = run.progress.queues
        assert (queue.waiting, queue.enqueued, queue.budget) == (0, len(came), 5)
        assert queue.dequeued == queue.delivered == queue.enqueued - queue.superseded - queue.older
        if start == 0:
            run.stop()
    # Micro-batches went on by the clock: no file asked for them, and Spark has no list of such files.
    assert not list((tmp_path / "flow" / "q" / "control").iterdir())
    lists = [file.read_text() for file in (tmp_path / "flow/q/checkpoint/sources").glob("*/*") if file.name.isdigit()]
    assert lists
    assert not any("/control/" in text for text in lists)
    assert queue.queue_staleness == queue.application_staleness == queue.unapplied == 0
    assert 0 < queue.average_queue_staleness < queue.average_application_staleness
    assert queue.older == next(each.older for each in run.progress.operators if "Conflate" in each.label)
    run.finish()
    assert (run.progress.counts.read, run.progress.counts.late) == (len(came), 0)
    rows = delivered(tmp_path)
    assert last_values(rows, SCHEMA, ["k"]) == last_values([r for r in came if r[2] != 7], SCHEMA, ["k"])
    for key in {row[1] for row in came}:
        times = [row[0] for row in rows if row[1] == key]
        assert times == sorted(times)
    passed = [json.loads(row["row"])["v"] for row in pq.read_table(tmp_path / "superseded").to_pylist()]
    assert Counter(passed) + Counter(r[2] for r in rows) == Counter(r[2] for r in came if r[2] != 7 or 7 in passed)
    calls = Path(seen).read_text().split()
    assert sorted(map(int, calls)) == sorted(row[2] for row in rows)
    files = Counter(file.name.split("-")[2] for file in (tmp_path / "out").glob("*.parquet"))
    assert max(len(pq.read_table(f)) for f in (tmp_path / "out").glob("*.parquet")) <= 5
    assert len(files) >= len(rows) / 5


def test_what_waits_is_read_by_its_key_and_is_stale(spark: Any, tmp_path: Path) -> None:
    """The second micro-batch would come in an hour; a run that is started again goes on at once.

    It is left as one that was killed between its record and Spark's commit, and whose rounds somebody cleared away.
    """
    rows = [(at, f"k{at % 9}", at) for at in range(60)]
    write(tmp_path, 0, rows)
    query: Any = flow_of(spark, tmp_path, budget=4, max_staleness="1 second").query("SELECT * FROM calm", name="q")
    run = query.start(str(tmp_path / "out"), trigger={"processingTime": "1 hour"})
    while not (tmp_path / "flow/q/checkpoint/commits/0").exists():
        assert not run.wait(0.1)
    (queue,) = run.progress.queues
    assert (queue.waiting, queue.dequeued, queue.superseded) == (5, 4, 51)
    assert queue.application_staleness == pytest.approx(queue.queue_staleness)
    fresh = {row[1] for row in delivered(tmp_path)}
    assert len(fresh) == 4
    for key in {row[1] for row in rows}:
        assert run.read(key) == {"ts": max(row[0] for row in rows if row[1] == key), "k": key, "v": ANY}
        told = run.staleness(key)
        assert (told["application_staleness"] == 0) == (told["unapplied"] == 0) == (key in fresh)
    assert run.read("nobody") is None
    assert run.staleness("nobody")["average_queue_staleness"] == 0
    run.stop()
    (tmp_path / "flow/q/checkpoint/commits/0").unlink()
    shutil.rmtree(tmp_path / "flow/q/rounds")
    run = query.start(str(tmp_path / "out"))
    run.process_available()
    assert sorted(delivered(tmp_path)) == sorted(last_values(rows, SCHEMA, ["k"]).values())
    assert run.progress.queues[0].application_staleness == 0
    assert all(run.staleness(key)["application_staleness"] == 0 for key in {row[1] for row in rows} - fresh)


def test_what_stands_above_a_queue_is_read_through(spark: Any, tmp_path: Path) -> None:
    """Of a key the newest row counts, waiting or not, as selections and projections make it, or leave it out.

    Three of five keys go on with the first micro-batch, all later. Zeros are one key, and times are told in UTC.
    """

    def put(number: int, rows: list[tuple[int, float, int]]) -> None:
        lines = [json.dumps({"at": f"2026-01-{day:02} 00:00:00", "k": k, "v": v}) for day, k, v in rows]
        (tmp_path / "in" / f"{number}.json").write_text("\n".join(lines))

    def read() -> list[Any]:
        return [found and found["twice"] for found in map(run.read, (0.0, -0.0, 1.5, 2.5, 3.5, 4.5, 9.5))]

    (tmp_path / "in").mkdir()
    put(0, [(1, -0.0, 0), (1, 1.5, 1), (1, 2.5, 2), (1, 3.5, 3), (2, -0.0, 4), (2, 1.5, 5), (2, 4.5, 6)])
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = spark.readStream.schema("at timestamp, k double, v bigint").json(str(tmp_path / "in"))
        flow = pk.Flow(spark, path=str(tmp_path / "flow"))
        flow.stream("s", frame, time="at", progress=pk.bounded("9 days"), update_key="k").conflate(
            "calm", "s", budget=3
        )
        query: Any = flow.query("SELECT k AS symbol, at, v * 2 AS twice FROM calm WHERE v <> 5", name="q")
        run = query.start(str(tmp_path / "out"), trigger={"processingTime": "1 hour"})
        while not (tmp_path / "flow/q/checkpoint/commits/0").exists():
            assert not run.wait(0.1)
        assert run.progress.queues[0].waiting == 2
        assert read() == [8, 8, None, 4, 6, 12, None]
        run.stop()
        put(1, [(3, 2.5, 5), (1, 3.5, 7)])
        run = query.start(str(tmp_path / "out"))
        run.process_available()
        assert read() == [8, 8, None, None, 14, 12, None]  # a row of the same time is newer if it came later
        assert run.read(0.0)["at"].isoformat() == "2026-01-02T05:00:00+00:00"  # midnight in New York
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_a_trigger_that_takes_what_is_there_hands_everything_on(spark: Any, tmp_path: Path) -> None:
    rows = random_rows(random.Random(3), 0)
    write(tmp_path, 0, rows)
    frame = spark.readStream.schema(DDL).json(str(tmp_path / "in"))
    query = pk.conflate(frame, time="ts", key="k", budget=1, path=str(tmp_path / "flow"), progress=pk.bounded(1000))
    run = query.start(str(tmp_path / "out"), trigger={"availableNow": True})
    run.wait()
    assert sorted(delivered(tmp_path)) == sorted(last_values(rows, SCHEMA, ["k"]).values())
    assert run.progress.queues[0].budget is None


def test_a_queue_behind_an_aggregate_in_a_stage_of_its_own_is_drained(spark: Any, tmp_path: Path) -> None:
    """Of the windows with each number of rows the last; their queue is called although its stage is sent nothing."""
    sizes = [size for size in range(1, 21) for _ in range(size)]
    write(tmp_path, 0, [(at, f"k{sizes[at % 210]}", at) for at in range(2100)])
    frame = spark.readStream.schema(DDL).json(str(tmp_path / "in"))
    flow = pk.Flow(spark, path=str(tmp_path / "flow"))
    flow.stream("s", frame, time="ts")
    flow.sql("CREATE VIEW counts AS SELECT k, count(*) AS n [RANGE 210, SLIDE 210, WA ts] FROM s GROUP BY k")
    flow.conflate("calm", "counts", key="n", budget=2)
    query: Any = flow.query("SELECT window_end, n, k FROM calm", name="q")
    assert "2 stages" in query.explain()
    run = query.start(str(tmp_path / "out"))
    run.finish()
    rows = delivered(tmp_path)
    assert {row[1]: (row[0], row[2]) for row in rows} == {size: (2100, f"k{size}") for size in range(1, 21)}
    assert run.progress.queues[0].waiting == 0
    assert run.progress.batches > 5


@pytest.mark.parametrize("windows", ["lazy", pytest.param("eager", marks=pytest.mark.slow)])
def test_windows_are_whole_or_not_there_at_all(windows: str, spark: Any, tmp_path: Path) -> None:
    """Budgets of rows cut windows over micro-batches, and two starts; aggregates stand on one another."""
    rng, came = random.Random(9), list[tuple[int, str, int]]()
    (tmp_path / "in").mkdir()
    frame = spark.readStream.schema(DDL).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    flow = pk.Flow(spark, path=str(tmp_path / "flow"))
    flow.stream("s", frame, time="ts", progress=pk.bounded(5), update_key="k")
    flow.conflate("whole", "s", windows=windows, budget=7)
    inner = "SELECT k, sum(v) AS v [RANGE 10, SLIDE 10, WA ts] FROM whole GROUP BY k"
    query: Any = flow.query(
        f"SELECT k, sum(v) AS v, count(*) AS n [RANGE 20, SLIDE 20, WA window_end] FROM ({inner}) i GROUP BY k",
        name="q",
    )
    for start in (0, 1):
        for number in (2 * start, 2 * start + 1):
            rows = [(40 * number + at // 3, f"k{rng.randrange(6)}", rng.randrange(9)) for at in range(120)]
            rng.shuffle(rows)
            rows = sorted(rows, key=lambda row: row[0] // 4)  # out of order, as far as is promised
            came += rows
            write(tmp_path, number, rows)
        run = query.start(str(tmp_path / "out"))
        run.process_available()
        assert run.progress.counts.late == 0
        if start == 0:
            run.stop()
    run.finish()
    all_windows: dict[tuple[int, str], int] = Counter()
    panes: dict[tuple[int, str], set[int]] = {}
    for ts, key, value in came:
        end = (ts // 10 + 1) * 10  # of the inner window, and its time
        outer = ((end // 20 + 1) * 20, key)
        all_windows[outer] += value
        panes.setdefault(outer, set()).add(end)
    found = {(row["window_end"], row["k"]): row for row in pq.read_table(tmp_path / "out").to_pylist()}
    assert len(found) == len(pq.read_table(tmp_path / "out"))
    for (end, key), row in found.items():
        assert (row["v"], row["n"]) == (all_windows[end, key], len(panes[end, key]))
    last = {key: max(end for end, own in panes if own == key) for _, key, _ in came}
    assert {key: max(end for end, own in found if own == key) for key in last} == last
    (queue,) = run.progress.queues
    assert (queue.enqueued, queue.policy) == (len(came), "in_place")
    assert queue.enqueued == queue.dequeued + queue.superseded + queue.older + queue.waiting
    assert len(found) < len(panes)  # some were passed over


def test_a_batch_comes_to_the_last_value_of_each_key(spark: Any) -> None:
    rows = random_rows(random.Random(5), 0)
    frame = spark.createDataFrame(rows, DDL)
    query = pk.conflate(frame, time="ts", key="k", max_staleness="1 second")
    assert [*map(tuple, (row.values() for row in query.collect().sort_by("k").to_pylist()))] == sorted(
        last_values(rows, SCHEMA, ["k"]).values(), key=lambda row: str(row[1])
    )
    assert query.counts["read"] == len(rows)


def test_what_is_refused_is_refused_at_once(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for options, told in (
        ({"every": "1 minute"}, "leave every and access out"),
        ({"policy": "append"}, "the source keeps the rows that wait"),
        ({"policy": "shedding"}, "the source keeps the rows that wait"),
        ({"adaptive": True}, "the source keeps the rows that wait"),
        ({"lives": True}, "without Spark"),
    ):
        with pytest.raises(UnsupportedError, match=told):
            flow_of(spark, tmp_path, **options).query("SELECT * FROM calm")
    bounded = pk.Flow(spark).stream("s", spark.createDataFrame([], DDL), time="ts", update_key="k")
    counted = "SELECT k, count(*) AS n [RANGE 5, SLIDE 5, WA ts] FROM calm GROUP BY k"
    with pytest.raises(UnsupportedError, match="not over bounded DataFrames"):
        bounded.conflate("calm", "s", windows="lazy").query(counted)
    by_windows: Any = flow_of(spark, tmp_path, windows="lazy").query(counted, name="w")
    with pytest.raises(StreamError, match="conflated by windows"):
        by_windows.start(str(tmp_path / "out"), superseded=str(tmp_path / "superseded"))
    query: Any = flow_of(spark, tmp_path).query("SELECT * FROM calm", name="q")
    with pytest.raises(UnsupportedError, match="knows how fast its consumer is"):
        _ = query.df
    with pytest.raises(StreamError, match="kept in a folder"):
        query.start(str(tmp_path / "out"), superseded=print)
    plain: Any = flow_of(spark, tmp_path).query("SELECT * FROM s", name="p")
    with pytest.raises(StreamError, match="a query without"):
        plain.start(str(tmp_path / "out"), superseded=str(tmp_path / "superseded"))
    with pytest.raises(StreamError, match="Only a run on Spark has a path"):
        pk.conflate([{"ts": 1, "k": "a"}], time="ts", key="k", path="x")
