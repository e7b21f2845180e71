"""Drives a query in stages in a process of its own, which is killed at a point of it, its JVM with it.

`python -m tests.spark.stage_driver HOME CASE [POINT CALLS]`, started as the leader of a process group. Points are those
of the query's functions, and in what the driver does at the end of a micro-batch:

- `reading`, `first`, `last`: in a worker, in the task that reads, that hosts the first stage, the last one.
- `staged`: in a worker, a file of results is written, and nobody knows of it.
- `evaluated`: all stages are done, their state is kept; no record is put.
- `recorded`: the record is put, its files have not got their names.
- `published`: everything of ours is done, and Spark has not committed the micro-batch.

`HOME/replay` says that a micro-batch that was interrupted is to be interrupted again, otherwise it is finished first,
and a new file makes the next. Without a point the query runs to its end, and the progress is printed as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from penstock.engines.spark.session import local_session
from tests.spark.driven import STEPS, lay
from tests.spark.modes import QUICK
from tests.spark.staged_queries import CASES, start
from tests.spark.staged_rows import SPLIT, write_file
from tests.spark.traps import Traps


def main(home: Path, name: str, point: str | None = None, calls: int = 1) -> int:
    traps, case = Traps(home / "traps"), CASES[name]
    settings = {**QUICK, **SPLIT, "spark.driver.memory": "1g"}
    spark = local_session("local[2]", **{key.replace(".", "__"): value for key, value in settings.items()})
    if point in STEPS:
        lay(point, traps, STEPS[point])
    if point is not None and (home / "replay").exists():
        traps.arm(point, calls)
    run = start(spark, home, case, traps, kills=os.getpgrp())
    run.process_available()
    if point is None:
        run.finish()
        print(json.dumps(dict(run.progress)))
        return 0
    traps.arm(point, calls)
    for seed, stream in enumerate(case.replicas):
        folder = home / "in" / stream
        write_file(folder, len(list(folder.glob("*.json"))), seed)
    run.process_available()
    return signal.SIGUSR1  # nobody has come to the point


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], *sys.argv[3:4], *map(int, sys.argv[4:5])))
