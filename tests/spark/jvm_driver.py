"""A query whose JVM is killed: `python -m tests.spark.jvm_driver HOME` prints what its run says then, as JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import penstock as pk
from penstock.errors import RunError
from tests.spark.modes import open_session


def start(spark: Any, home: Path) -> Any:
    return query(spark, home).start(f"file://{home}/out")


def query(spark: Any, home: Path) -> Any:
    frame = spark.readStream.schema("t bigint").json(f"file://{home}/in")
    flow = pk.Flow(spark, path=f"file://{home}/flow").stream("s", frame, time="t")
    return flow.query("SELECT t FROM s", name="q")


def main(home: Path) -> None:
    with open_session("local") as spark:
        again = query(spark, home)
        bounded = pk.Flow(spark).stream("s", spark.range(3), time="id").query("SELECT id FROM s", name="b")
        run = start(spark, home)
        run.process_available()
        jvm: Any = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
        os.kill(jvm.pid, signal.SIGKILL)
        jvm.wait()
        said: dict[str, Any] = {}
        for name in ("process_available", "wait"):
            try:
                getattr(run, name)()
            except RunError as error:
                said[name] = error.what
        said |= {"active": run.is_active, "exception": str(run.exception), "status": run.progress["status"]}
        said["read"] = run.progress["read"]
        try:
            run.stop()
        except RunError as error:
            said["stop"] = error.what
        try:
            again.start(f"file://{home}/out")
        except RunError as error:
            said["start"] = str(error)
        try:
            bounded.collect()
        except RunError as error:
            said["collect"] = error.what
        said["leases"] = sorted(p.name for p in (home / "flow" / "q").rglob("*lease*") if p.is_file())
        print(json.dumps(said), flush=True)
        os._exit(0)  # the session cannot be stopped any more


if __name__ == "__main__":
    main(Path(sys.argv[1]))
