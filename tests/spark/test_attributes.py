"""Several attributes that progress, on Spark: streaming and batch come to what the oracle says."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock as pk
from penstock.errors import UnsupportedError
from penstock.model.batch import Row
from penstock.model.progress import Progress, declared
from penstock.model.schema import progressing, schema_of
from penstock.reference.arrivals import Arrivals
from penstock.verify.agreement import agreement
from tests.profiles import some_and_slow

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

COLUMNS = [("ts", "timestamp"), ("seq", "bigint"), ("k", "string"), ("v", "int"), ("p", "boolean")]
SCHEMA = progressing(schema_of(COLUMNS, "ts"), ["ts", "seq"])
SECOND = 1_000_000


def arrivals(name: str, progress: Progress, seed: int) -> Arrivals:
    """Rows out of order in both attributes, punctuation for either or both, and some without an attribute."""
    rng = random.Random(seed)
    rows: list[Row] = []
    for i in range(90):
        ts, seq = (i + rng.randrange(-9, 4)) * SECOND, i + rng.randrange(-9, 4)
        if i % 10 == 7:
            kept = rng.randrange(3)
            rows.append((None if kept == 1 else ts, None if kept == 2 else seq, None, None, True))
        else:
            rows.append((ts, None if i % 23 == 5 else seq, "ab"[i % 2], i % 7, None))
    return Arrivals(name, SCHEMA, progress, tuple(tuple(rows[i : i + 18]) for i in range(0, len(rows), 18)))


SPOKEN = pk.punctuated("p")
PROGRESS = {
    "apart": {"ts": pk.bounded("4 seconds"), "seq": pk.bounded(3)},
    "joint": {"ts": pk.bounded("9 seconds"), "seq": SPOKEN, ("ts", "seq"): SPOKEN},
}


WINDOW = "SELECT k, count(*) AS n, sum(v) AS s [RANGE 10, SLIDE 5, WA seq] FROM s GROUP BY k"
ROWS = "SELECT ts, seq, k FROM s WHERE v > 1"


@pytest.mark.parametrize(
    ("sql", "how"), some_and_slow([(WINDOW, "apart"), (ROWS, "joint"), (WINDOW, "joint"), (ROWS, "apart")], 2)
)
def test_evaluators_agree(sql: str, how: str, spark: Any) -> None:
    progress = declared(PROGRESS[how], "ts")
    found = agreement(sql, [arrivals("s", progress, 3)], spark=spark)
    assert found.agrees, found.render()
    assert found["spark streaming"].got is not None
    assert found["spark streaming"].got.late.size > 0


def test_a_window_on_another_attribute_comes_with_its_bound_and_late_rows_name_theirs(
    spark: Any, tmp_path: Path
) -> None:
    """
    seq   1  2  | 12      | 3          RANGE 10 closes with 12, and 3 is late by seq though its time is not
    ts    0  50 | 51      | 52
    """
    folder = tmp_path / "in"
    folder.mkdir()
    for at, rows in enumerate([[(0, 1), (50, 2)], [(51, 12)], [(52, 3)]]):
        table = pa.table({"ts": pa.array([t for t, _ in rows]), "seq": pa.array([s for _, s in rows])})
        pq.write_table(table, folder / f"{at}.parquet")
        os.utime(folder / f"{at}.parquet", (1_000_000_000 + at, 1_000_000_000 + at))  # the oldest is read first
    frame = spark.readStream.schema("ts bigint, seq bigint").option("maxFilesPerTrigger", 1).parquet(str(folder))
    flow = pk.Flow(spark, path=str(tmp_path / "flow"))
    flow.stream("s", frame, time="ts", progress={"ts": pk.ordered(), "seq": pk.ordered()})
    query = flow.query("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA seq] FROM s", name="by_seq")
    run = query.start(str(tmp_path / "out"), late=str(tmp_path / "late"))
    try:
        run.process_available()
        assert [row.n for row in spark.read.parquet(str(tmp_path / "out")).collect()] == [2]
        assert [row.bound for row in spark.read.parquet(str(tmp_path / "late")).collect()] == ["seq >= 12"]
    finally:
        run.stop()


def test_an_order_of_arrival_in_batch_is_refused(spark: Any) -> None:
    frame = spark.createDataFrame([(1, 1, 1)], "ts bigint, seq bigint, n bigint")
    progress = {"ts": pk.ordered(), "seq": pk.ordered()}
    flow = pk.Flow(spark).stream("s", frame, time="ts", arrival="n", progress=progress)
    with pytest.raises(UnsupportedError, match="cannot follow the order of an arrival column") as caught:
        flow.query("SELECT ts FROM s")
    assert "several attributes that progress" in caught.value.message
