"""Count and max per key over sliding event-time windows, by Apache Flink: SQL's HOP function in a local mini cluster.

    .bench/flink/bin/python benchmarks/peers/flink_windows.py rows.parquet range_s slide_s limit

Parallelism two, objects reused, full network buffers, no checkpoints. Flink's wheel reads no parquet, so the rows are
first written as one CSV file. The job sums the fingerprint per window, in SQL, and writes these few sums.

In the time: the job by Flink's own account, from its start to its end, so deployment of the tasks, reading and parsing
the CSV file, the windows and the sums. Not in it: the JVM, planning, starting the mini cluster, writing the CSV file,
and two runs before it over at most half a million of the rows, which let the JVM compile (the first run takes twice as
long as the third).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from pyflink.table import EnvironmentSettings, TableEnvironment

START = 1_767_225_600
WARM = 500_000
SETTINGS = {
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "execution.buffer-timeout.enabled": "false",
    "table.local-time-zone": "UTC",
}
# A watermark of w says that no row of time w will come, hence the millisecond.
SOURCE = """
    CREATE TEMPORARY TABLE {name} (
        ms BIGINT, k BIGINT, v INT, ts AS TO_TIMESTAMP_LTZ(ms, 3),
        WATERMARK FOR ts AS ts - INTERVAL '5.001' SECOND
    ) WITH ('connector' = 'filesystem', 'path' = '{uri}', 'format' = 'csv')"""
SINK = """
    CREATE TEMPORARY TABLE {name} (a BIGINT, b BIGINT, c BIGINT, d BIGINT)
    WITH ('connector' = 'filesystem', 'path' = '{uri}', 'format' = 'csv')"""
QUERY = """
    INSERT INTO {sink}
    SELECT COUNT(*), SUM(n), SUM(CAST(m AS BIGINT)),
        SUM(CAST(MOD(wid * CAST(1000003 AS BIGINT) + k * 7919 + n * 31 + m, 1000000007) AS BIGINT))
    FROM (
        SELECT *, TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', window_end) / {slide} - 1 - {first} AS wid
        FROM (
            SELECT window_start, window_end, k, COUNT(*) AS n, MAX(v) AS m
            FROM TABLE(HOP(
                TABLE {source}, DESCRIPTOR(ts), INTERVAL '{slide}' SECOND(9), INTERVAL '{range}' SECOND(9)))
            GROUP BY window_start, window_end, k))
    GROUP BY window_start, window_end"""


def find_java() -> None:
    script = Path(__file__).resolve().parents[2] / "scripts" / "find-java.sh"
    if "JAVA_HOME" not in os.environ and script.exists():
        os.environ["JAVA_HOME"] = subprocess.run([script], capture_output=True, text=True, check=True).stdout.strip()


def run(
    tables: TableEnvironment, home: Path, rows: pa.Table, name: str, range_s: int, slide_s: int
) -> dict[str, object]:
    file, folder = home / f"{name}.csv", home / name
    pa.csv.write_csv(rows, file, pa.csv.WriteOptions(include_header=False))
    source, sink = f"source_{name}", f"sink_{name}"
    tables.execute_sql(SOURCE.format(name=source, uri=file.as_uri()))
    tables.execute_sql(SINK.format(name=sink, uri=folder.as_uri()))
    names = {"source": source, "sink": sink, "range": range_s, "slide": slide_s, "first": START // slide_s}
    result = tables.execute_sql(QUERY.format(**names))
    result.wait()
    job = result.get_job_client().get_job_execution_result().result()
    sums = [np.loadtxt(part, delimiter=",", dtype=np.int64, ndmin=2) for part in folder.glob("part-*")]
    found = np.concatenate(sums).sum(axis=0).tolist()
    return {"seconds": job.get_net_runtime() / 1000, "rows": rows.num_rows, "fingerprint": found}


def main(path: str, range_s: int, slide_s: int, limit: int) -> None:
    find_java()
    table = pq.read_table(path, columns=["ts", "k", "v"]).slice(0, limit)
    ms = pc.divide(table["ts"].cast(pa.int64()), 1000)
    rows = pa.table({"ms": ms, "k": table["k"], "v": table["v"]})
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in SETTINGS.items():
        tables.get_config().set(key, value)
    with tempfile.TemporaryDirectory(prefix="flink-windows-") as home:
        for i in range(2):
            run(tables, Path(home), rows.slice(0, WARM), f"warm{i}", range_s, slide_s)
        print(json.dumps(run(tables, Path(home), rows, "timed", range_s, slide_s)))


if __name__ == "__main__":
    main(sys.argv[1], *(int(x) for x in sys.argv[2:5]))
