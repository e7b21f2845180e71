"""Nexmark's queries by Apache Flink: SQL over one file of events, in a local mini cluster.

    .bench/flink/bin/python benchmarks/peers/flink_nexmark.py events.csv benchmarks/nexmark/flink results q0,q1,…

Settings, and what is in the time and what is not, are as in `flink_windows.py`. Each query runs twice over all events:
first its results are written to a folder of its own, by which they are compared, and the JVM compiles; then it is timed
with results that go nowhere, as in Flink's own suite. What q13 looks up is in `side_input.csv` beside the events.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from flink_windows import SETTINGS, find_java
from pyflink.table import EnvironmentSettings, TableDescriptor, TableEnvironment

_MADE = re.compile(r"CREATE TEMPORARY (VIEW|TABLE) (\w+)")


def statements(path: Path) -> list[str]:
    return [each.strip() for each in path.read_text().split(";") if each.strip()]


def insert(tables: TableEnvironment, select: str, sink: TableDescriptor) -> float:
    result = tables.sql_query(select).execute_insert(sink)
    result.wait()
    seconds: float = result.get_job_client().get_job_execution_result().result().get_net_runtime() / 1000
    return seconds


def run(tables: TableEnvironment, path: Path, results: Path, side_input: Path) -> dict[str, object]:
    *made, select = statements(path)
    for statement in made:
        tables.execute_sql(statement.replace("{side_input}", side_input.as_uri()))
    folder = results / path.stem
    files = TableDescriptor.for_connector("filesystem").option("path", folder.as_uri()).format("csv").build()
    insert(tables, select, files)
    columns = list(tables.sql_query(select).get_schema().get_field_names())
    seconds = insert(tables, select, TableDescriptor.for_connector("blackhole").build())
    for kind, name in reversed(_MADE.findall(" ".join(made))):
        tables.execute_sql(f"DROP TEMPORARY {kind} {name}")
    return {"seconds": seconds, "columns": columns}


def main(events: str, queries: str, results: str, names: str) -> None:
    find_java()
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in SETTINGS.items():
        tables.get_config().set(key, value)
    for statement in statements(Path(queries) / "streams.sql"):
        tables.execute_sql(statement.replace("{uri}", Path(events).absolute().as_uri()))
    side, folder = Path(events).absolute().with_name("side_input.csv"), Path(results).absolute()
    print(json.dumps({name: run(tables, Path(queries) / f"{name}.sql", folder, side) for name in names.split(",")}))


if __name__ == "__main__":
    main(*sys.argv[1:5])
