"""SQL's row patterns by Apache Flink, over one file of a log: what each query gives, for comparison.

    .bench/flink/bin/python benchmarks/peers/flink_patterns.py log.csv queries.json results

The file has milliseconds, user, what and a number that no two rows share, without a header; rows come at most five
seconds late. `queries.json` has MATCH_RECOGNIZE clauses by name; each result is a folder of CSV files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from flink_windows import SETTINGS, find_java
from pyflink.table import EnvironmentSettings, TableDescriptor, TableEnvironment

LOG = """
    CREATE TEMPORARY TABLE log (
        ms BIGINT, usr STRING, what STRING, n BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3),
        WATERMARK FOR ts AS ts - INTERVAL '5.001' SECOND
    ) WITH ('connector' = 'filesystem', 'path' = '{uri}', 'format' = 'csv')"""


def main(log: str, queries: str, results: str) -> None:
    find_java()
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in SETTINGS.items():
        tables.get_config().set(key, value)
    tables.execute_sql(LOG.format(uri=Path(log).absolute().as_uri()))
    for name, clause in json.loads(Path(queries).read_text()).items():
        folder = (Path(results).absolute() / name).as_uri()
        files = TableDescriptor.for_connector("filesystem").option("path", folder).format("csv").build()
        tables.sql_query(f"SELECT * FROM log MATCH_RECOGNIZE ({clause})").execute_insert(files).wait()


if __name__ == "__main__":
    main(*sys.argv[1:4])
