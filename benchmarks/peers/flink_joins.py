"""Two streams joined by key within a band of time, by Apache Flink: SQL's interval join in a local mini cluster.

    .bench/flink/bin/python benchmarks/peers/flink_joins.py left.parquet right.parquet band_ms

Settings, what is in the time and what is not are as in `flink_windows.py`. Pairs are summed per minute of the left
time, in SQL, and these few sums are written.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from flink_windows import SETTINGS, SINK, SOURCE, START, find_java
from pyflink.table import EnvironmentSettings, TableEnvironment

WARM = 100_000
QUERY = """
    INSERT INTO {sink}
    SELECT COUNT(*), SUM(lv), SUM(rv), SUM(CAST(mixed AS BIGINT))
    FROM TABLE(TUMBLE(TABLE {pairs}, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY window_start, window_end"""
PAIRS = """
    CREATE TEMPORARY VIEW {pairs} AS
    SELECT l.ts AS ts, CAST(l.v AS BIGINT) AS lv, CAST(r.v AS BIGINT) AS rv,
        MOD(l.ms - CAST({start} AS BIGINT), 1000003) * 31 + MOD(r.ms - CAST({start} AS BIGINT), 1000003) * 7 AS mixed
    FROM {left} l JOIN {right} r ON l.k = r.k
        AND r.ts BETWEEN l.ts AND l.ts + INTERVAL '{seconds}.{milliseconds:03d}' SECOND"""


def run(tables: TableEnvironment, home: Path, sides: list[pa.Table], name: str, band: int) -> dict[str, object]:
    names = [f"left_{name}", f"right_{name}"]
    for side, rows in zip(names, sides, strict=True):
        file = home / f"{side}.csv"
        pa.csv.write_csv(rows, file, pa.csv.WriteOptions(include_header=False))
        tables.execute_sql(SOURCE.format(name=side, uri=file.as_uri()))
    pairs, sink, folder = f"pairs_{name}", f"sink_{name}", home / name
    said = {"pairs": pairs, "left": names[0], "right": names[1], "start": START * 1000}
    tables.execute_sql(PAIRS.format(**said, seconds=band // 1000, milliseconds=band % 1000))
    tables.execute_sql(SINK.format(name=sink, uri=folder.as_uri()))
    result = tables.execute_sql(QUERY.format(sink=sink, pairs=pairs))
    result.wait()
    job = result.get_job_client().get_job_execution_result().result()
    sums = [np.loadtxt(part, delimiter=",", dtype=np.int64, ndmin=2) for part in folder.glob("part-*")]
    return {"seconds": job.get_net_runtime() / 1000, "fingerprint": np.concatenate(sums).sum(axis=0).tolist()}


def read(path: str) -> pa.Table:
    table = pq.read_table(path, columns=["ts", "k", "v"])
    ms = pc.divide(table["ts"].cast(pa.int64()), 1000)
    return pa.table({"ms": ms, "k": table["k"], "v": table["v"]})


def main(left: str, right: str, band: int) -> None:
    find_java()
    sides = [read(left), read(right)]
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in SETTINGS.items():
        tables.get_config().set(key, value)
    with tempfile.TemporaryDirectory(prefix="flink-joins-") as home:
        for i in range(2):
            run(tables, Path(home), [side.slice(0, WARM) for side in sides], f"warm{i}", band)
        print(json.dumps(run(tables, Path(home), sides, "timed", band)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
