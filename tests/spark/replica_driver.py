"""A replica in a process of its own: `python -m tests.spark.replica_driver HOME NAME FILES`.

Runs the query over `HOME/NAME` into `HOME/out_NAME`, so many files at a time, until there is a file `HOME/finish`; then
it closes its stream. It may be killed at any time, and goes on from its checkpoint when started again.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import penstock as pk
from penstock.engines.spark.session import local_session
from tests.spark.test_merge import SQL


def main(home: Path, name: str, files: int) -> None:
    spark = local_session("local[1]", name, spark__sql__shuffle__partitions="1", spark__driver__memory="1g")
    flow = pk.Flow(spark, path=str(home / f"flow_{name}"))
    reader = spark.readStream.schema("ts bigint, k string, v int").option("maxFilesPerTrigger", files)
    flow.stream("clean", reader.parquet(str(home / name)), time="ts", progress=pk.bounded(12))
    run = flow.query(SQL, name=f"counts_{name}").start(str(home / f"out_{name}"))
    while not (home / "finish").exists():
        if not run.is_active:
            run.wait()
        time.sleep(0.2)
    run.finish(for_good=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
