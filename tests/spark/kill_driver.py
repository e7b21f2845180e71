"""A replica in a process of its own: `python -m tests.spark.kill_driver HOME NAME`.

Two queries over `HOME/in`, one with windows and one that passes rows through, each into a folder of its own. It runs
until it is killed, or until a query has failed; started again it goes on from its checkpoints.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import penstock as pk
from penstock.engines.spark.session import local_session
from tests.spark import scenario

PASSING = "SELECT ts, srcIP, len FROM main"
WINDOWED = scenario.SQL.format(condition="true")
QUERIES = {"windowed": WINDOWED, "passing": PASSING}


def start(spark: Any, home: Path, name: str, query: str) -> Any:
    frame = (
        spark.readStream.schema("ts string, srcIP string, len int, _corrupt_record string")
        .option("maxFilesPerTrigger", 1)
        .json(str(home / "in"))
    )
    flow = pk.Flow(spark, path=f"file://{home}/flow_{name}")
    flow.stream("main", frame, time="ts", progress=scenario.PROGRESS)
    return flow.query(QUERIES[query], name=query).start(f"file://{home}/{query}_{name}")


def main(home: Path, name: str) -> None:
    spark = local_session("local[1]", name, spark__driver__memory="1g")
    runs = [start(spark, home, name, query) for query in QUERIES]
    while all(run.is_active for run in runs):
        time.sleep(0.2)
    for run in runs:
        run.wait(1)
    raise SystemExit("a query has stopped")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
