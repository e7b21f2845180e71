"""Merging on Spark: DataFrames in, a DataFrame out; as a stream each replica has a progress of its own."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.model.elements import Adjust, Insert
from penstock.model.time import END_OF_TIME

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

ROWS = [(t, "xyz"[t % 3], t * 7 % 11) for t in range(300)]
SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.string()), ("v", pa.int32())])


def disordered(seed: int, disorder: int) -> list[tuple[int, str, int]]:
    rng = random.Random(seed)
    return sorted(ROWS, key=lambda row: row[0] + rng.randrange(disorder + 1))


def table(rows: list[tuple[int, str, int]]) -> pa.Table:
    return pa.Table.from_arrays([pa.array(c) for c in zip(*rows, strict=True)], schema=SCHEMA.remove_metadata())


def write_files(folder: Path, rows: list[tuple[int, str, int]], size: int, files: range | None = None) -> None:
    """A replica as a folder of files, so many rows each, oldest first."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [rows[i : i + size] for i in range(0, len(rows), size)]
    for number in files if files is not None else range(len(parts)):
        partial, path = folder / f".{number:03}", folder / f"{number:03}.parquet"
        pq.write_table(
            pa.table(
                {
                    "ts": pa.array([r[0] for r in parts[number]], pa.int64()),
                    "k": pa.array([r[1] for r in parts[number]]),
                    "v": pa.array([r[2] for r in parts[number]], pa.int32()),
                }
            ),
            partial,
        )
        os.utime(partial, (1_000 + number, 1_000 + number))
        partial.rename(path)


def frame(spark: Any, rows: list[tuple[int, str, int]]) -> Any:
    return spark.createDataFrame(rows, "ts bigint, k string, v int")


@pytest.mark.parametrize("key", [None, ["k"]])
def test_two_dataframes_are_one(key: list[str] | None, spark: Any) -> None:
    a, b = frame(spark, disordered(1, 9)), frame(spark, disordered(2, 5)[:250])
    merged = pk.merge([a, b], time="ts", progress=pk.bounded(20), key=key)
    assert sorted(tuple(r) for r in merged.collect()) == ROWS


A, B = ("A",), ("B",)
LEASES = {
    "phy1": [Insert(B, 8, END_OF_TIME), Insert(A, 6, 12), Adjust(B, 8, END_OF_TIME, 10)],
    "phy2": [Insert(A, 6, 7), Insert(B, 8, 15), Adjust(A, 6, 7, 12), Adjust(B, 8, 15, 10)],
}


def test_elements_with_adjusts(spark: Any) -> None:
    """The leases of the paper's Table II, as DataFrames of inserts and adjusts."""
    frames = {}
    for name, elements in LEASES.items():
        rows = [(e.vs, e.ve, getattr(e, "v_old", None), *e.payload) for e in elements]
        frames[name] = spark.createDataFrame(rows, "vs bigint, ve bigint, v_old bigint, user string")
    merged = pk.merge(frames, elements=True, key=["user"], policy="first seen", progress=pk.bounded(100))
    assert sorted(tuple(row) for row in merged.collect()) == [(6, "A", 12), (8, "B", 10)]


SQL = "SELECT k, count(*) AS n, sum(v) AS s [RANGE 40, SLIDE 20, WA ts] FROM clean GROUP BY k"


def expected() -> Counter[tuple[Any, ...]]:
    flow = pk.Flow().stream("clean", [dict(zip(SCHEMA.names, r, strict=True)) for r in ROWS], time="ts")
    result = flow.query(SQL).collect()
    return Counter(zip(*[result[c].to_pylist() for c in result.column_names], strict=True))


def start(spark: Any, home: Path) -> Any:
    flow = pk.Flow(spark, path=str(home / "flow"))
    for name, files in (("a", 1), ("b", 2)):
        reader = spark.readStream.schema("ts bigint, k string, v int").option("maxFilesPerTrigger", files)
        flow.stream(name, reader.parquet(str(home / name)), time="ts", progress=pk.bounded(12))
    return flow.merge("clean", ["a", "b"], key=["k"]).query(SQL, name="counts").start(str(home / "out"))


def output(home: Path) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for part in sorted((home / "out").glob("*.parquet")):
        result = pq.read_table(part, partitioning=None)
        found.update(zip(*[result[c].to_pylist() for c in result.column_names], strict=True))
    return found


def test_a_query_over_two_replicas_goes_on_after_a_restart(spark: Any, tmp_path: Path) -> None:
    """Other disorder, other files, other speed; one replica stops in the middle and only the other goes on."""
    fast, slow = disordered(3, 10), disordered(4, 3)
    write_files(tmp_path / "a", fast, 60, range(3))
    write_files(tmp_path / "b", slow, 25, range(4))
    first = start(spark, tmp_path)
    first.process_available()
    first.stop()
    write_files(tmp_path / "b", slow, 25, range(4, 12))
    second = start(spark, tmp_path)
    second.process_available()
    second.punctuate("b", END_OF_TIME)  # a has not come so far, and is not said to have
    second.process_available()
    second.stop()
    assert output(tmp_path) == expected()


@pytest.mark.parametrize("key", [None, ["k"]])
def test_floats_in_their_last_bits_are_one_row(key: list[str] | None, spark: Any) -> None:
    frames = []
    for noise in (0.0, 3e-16):
        rows = [(t, "xy"[t % 2], 0.1 * (t + 1) * (1 + noise)) for t in range(60)]
        frames.append(spark.createDataFrame(rows, "ts bigint, k string, x double"))
    merged = pk.merge(frames, time="ts", progress=pk.bounded(20), key=key)
    found = sorted(tuple(r) for r in merged.collect())
    assert [r[:2] for r in found] == [(t, "xy"[t % 2]) for t in range(60)]


def test_an_aggregate_over_revisions_counts_each_event_once(spark: Any) -> None:
    flow = pk.Flow(spark)
    for name, elements in LEASES.items():
        rows = [(e.vs, e.ve, getattr(e, "v_old", None), *e.payload) for e in elements]
        frame = spark.createDataFrame(rows, "vs bigint, ve bigint, v_old bigint, user string")
        flow.stream(name, frame, time="vs", progress=pk.bounded(100), lives=("vs", "ve", "v_old"))
    flow.merge("clean", list(LEASES), key=["user"], policy="first seen", elements=True)
    query: Any = flow.query("SELECT count(*) AS n, max(ve) AS last [RANGE 10, SLIDE 10, WA vs] FROM clean")
    assert "settled, since Ends takes no revisions" in query.explain()
    assert [(r["n"], r["last"]) for r in query.collect().to_pylist()] == [(2, 12)]


def test_what_replicas_differ_in_is_told_where_a_batch_is_hosted(spark: Any) -> None:
    flow = pk.Flow(spark)
    for name, third in (("a", 3), ("b", 99)):
        rows = [(t, "x", third if t == 3 else t) for t in range(8)]
        flow.stream(name, frame(spark, rows), time="ts", progress=pk.bounded(0))
    query: Any = flow.merge("m", ["a", "b"], key=["k"], driver="a").query("SELECT ts, k, v FROM m")
    assert sorted(r["v"] for r in query.collect().to_pylist()) == list(range(8))
    assert {(r.stream, r.reason, r.row) for r in query.dead_letters.collect()} == {
        ("a, b", "diverged: b has [3, 4) where the output has nothing: (3, 'x', 99)", '{"ts": 3, "k": "x", "v": 99}'),
        ("a, b", "diverged: b has nothing where the output has [3, 4): (3, 'x', 3)", '{"ts": 3, "k": "x", "v": 3}'),
    }
