"""Queries in a session that keeps a log of its events: `python -m tests.spark.tasks_driver HOME`.

Four files a micro-batch, each read by a task of its own, two at a time, and four buckets. `HOME/queries.json` then has
Spark's id of each query, and `HOME/events` is the log.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import penstock as pk
from penstock.bench.event_log import event_log_settings
from penstock.bench.stages import PLANS
from penstock.engines.spark.session import local_session
from tests.spark.modes import QUICK

FILES = 4
"""Of a micro-batch."""
BATCHES = 2
ROWS = 20_000
"""Of a file."""
BUCKETS = 4
NAMES = ("without groups", "two groupings", "union of two aggregates", "one key has nine of ten")
UNCUT = "hosted whole"
"""A query that is not cut, for comparison: its rows go through an exchange as they are."""


def write_files(folder: Path, *, skewed: bool) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(1)
    for at in range(FILES * BATCHES):
        keys = rng.integers(0, 20, ROWS)
        columns = {
            "ts": pa.array(at // FILES * 100_000_000 + np.sort(rng.integers(0, 100_000_000, ROWS)), pa.timestamp("us")),
            "k": pa.array(np.where(rng.random(ROWS) < 0.9, 0, keys) if skewed else keys),
            "v": pa.array(rng.integers(0, 1_000_000, ROWS).astype(np.int32)),
        }
        pq.write_table(pa.table(columns), folder / f"{at}.parquet")
        os.utime(folder / f"{at}.parquet", (1_000 + at, 1_000 + at))
    return folder


def start(spark: Any, home: Path, folder: Path, name: str) -> Any:
    flow = pk.Flow(spark, path=home / name / "flow")
    reader = spark.readStream.schema("ts timestamp_ntz, k bigint, v int").option("maxFilesPerTrigger", FILES)
    frame = reader.parquet(str(folder))
    ahead = "1 day" if name == UNCUT else None
    flow.stream("main", frame, time="ts", progress=pk.bounded("1 second"), max_ahead=ahead)
    sql = PLANS.get(name, PLANS["grouped"]).replace("v % 1000", "v % 10")  # few groups, as there are few rows
    return flow.query(sql, "q").start(home / name / "out", buckets=None if name == "without groups" else BUCKETS)


def one_by_one(*folders: Path) -> dict[str, str]:
    """Settings with which Spark reads each file in a task of its own: two are too large for one."""
    largest = max(file.stat().st_size for folder in folders for file in folder.iterdir())
    return {"spark.sql.files.openCostInBytes": "1", "spark.sql.files.maxPartitionBytes": str(largest)}


def main(home: Path) -> None:
    (home / "events").mkdir()
    plain, skewed = (write_files(home / str(s), skewed=s) for s in (False, True))
    settings = {**QUICK, **one_by_one(plain, skewed), **event_log_settings(home / "events")}
    spark = local_session("local[2]", **{key.replace(".", "__"): value for key, value in settings.items()})
    ids = {}
    for name in (*NAMES, UNCUT):
        run = start(spark, home, skewed if name.startswith("one key") else plain, name)
        run.process_available()
        run.stop()
        ids[name] = str(run.streaming.id)
    spark.stop()
    (home / "queries.json").write_text(json.dumps(ids))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
