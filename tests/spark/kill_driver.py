"""A replica in a process of its own: `python -m tests.spark.kill_driver HOME NAME`.

Three queries over `HOME/in`, one with windows, one with windows of these windows, which has two stages, and one that
passes rows through, each into a folder of its own. A query that fails, since a worker was killed, is started again in
the same session. Without its JVM the process ends; started again it goes on from its checkpoints. Once all queries have
started it says so in `HOME/ready_NAME`, with its process number. The query in stages has traps, in `HOME/traps_NAME`.

Replica `b` says that Spark is to write its checkpoint in its default way, and `a` says nothing.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import penstock as pk
from penstock.engines.spark.session import local_session
from penstock.errors import RunError
from tests.spark import scenario
from tests.spark.short_lived import SHORT_LIVED
from tests.spark.traps import Traps

PASSING = "SELECT ts, srcIP, len FROM main"
WINDOWED = scenario.SQL.format(condition="true")
POINTS = ("reading", "in_first", "in_last")
"""Where the query in stages can be caught: where rows are read, in its first stage, and in its last."""
STACKED = (
    "SELECT count(*) AS groups, sum(n) AS total, max(longest) AS longest [RANGE 20 seconds, SLIDE 10 seconds, "
    f"WA window_end] FROM ({scenario.SQL.format(condition='reading(len) = len')}) inner_windows WHERE in_first(n) = n "
    "HAVING in_last(count(*)) = count(*)"
)
QUERIES = {"windowed": WINDOWED, "passing": PASSING, "stacked": STACKED}
AS_SPARK_DOES = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "true",
}


def start(spark: Any, home: Path, name: str, query: str) -> Any:
    frame = (
        spark.readStream.schema("ts string, srcIP string, len int, _corrupt_record string")
        .option("maxFilesPerTrigger", 1)
        .json(str(home / "in"))
    )
    flow = pk.Flow(spark, path=f"file://{home}/flow_{name}")
    flow.stream("main", frame, time="ts", progress=scenario.PROGRESS)
    for point in POINTS:
        flow.function(point, Traps(home / f"traps_{name}").function(point), "bigint", version="1")
    return flow.query(QUERIES[query], name=query).start(f"file://{home}/{query}_{name}")


def main(home: Path, name: str) -> None:
    settings = {"spark.driver.memory": "1g", **SHORT_LIVED}
    if name == "b":
        settings |= AS_SPARK_DOES
    spark = local_session("local[1]", name, **{key.replace(".", "__"): value for key, value in settings.items()})
    runs = {query: start(spark, home, name, query) for query in QUERIES}
    (home / f"ready_{name}").write_text(str(os.getpid()))
    while True:
        for query, run in runs.items():
            if not run.is_active:
                with contextlib.suppress(RunError):
                    run.wait()
                print(f"{query} has failed and is started again: {run.exception}", flush=True)
                runs[query] = start(spark, home, name, query)
        time.sleep(0.2)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
