"""Drives a conflated query in a process of its own, which is killed at a point of it, its JVM with it.

`python -m tests.spark.queue_driver HOME FORM [POINT CALLS]`, started as the leader of a process group. The query is
conflated by its rows, in one order of keys or another, or by its windows, as the form says. With a point a new file of
rows is there before the query starts, so that it is killed while rows of it wait; without one the query runs to its
end, and the progress is printed as JSON. Points:

- `handing`: in a worker, while rows are handed on that have waited for a micro-batch at least.
- `evaluated`: all is done, the state is kept; no record is put.
- `recorded`: the record is put, its files have not got their names, and there is no next micro-batch.
- `published`: everything of the record is done, and there is no next micro-batch.
- `ticked`: the next micro-batch is asked for, and Spark has not committed this one.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import penstock as pk
from penstock.engines.spark.queue_rounds import QueueRounds
from penstock.engines.spark.session import local_session
from tests.spark.driven import STEPS, lay
from tests.spark.modes import QUICK
from tests.spark.traps import Traps

DRIVERS = {**STEPS, "ticked": (QueueRounds, "end")}
KEYS, ROWS, RANGE = 23, 300, 50
FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "rows": ({"budget": 6}, "SELECT ts, k, handing(v) AS v FROM calm"),
    "linecutting": ({"budget": 6, "policy": "linecutting"}, "SELECT ts, k, handing(v) AS v FROM calm"),
    "windows": (
        {"budget": 6, "windows": "lazy"},
        "SELECT window_end, k, handing(v) AS v, n FROM "
        f"(SELECT k, sum(v) AS v, count(*) AS n [RANGE {RANGE}, SLIDE {RANGE}, WA ts] FROM calm GROUP BY k) w",
    ),
}
"""How each form is conflated, and what is asked of it."""


def rows_of(number: int) -> list[dict[str, Any]]:
    """The rows of a file: keys in an uneven order, some rows older than what came before them."""
    made = []
    for at in range(ROWS):
        ts = number * ROWS + at
        made.append({"ts": ts - 40 if at % 11 == 7 else ts, "k": (at * at + number) % KEYS, "v": ts})
    return made


def write_file(home: Path, number: int) -> None:
    folder = home / "in"
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{number}"
    partial.write_text("\n".join(map(json.dumps, rows_of(number))))
    partial.rename(folder / f"{number}.json")


def start(spark: Any, home: Path, form: str, handing: Any, **how: Any) -> Any:
    options, text = FORMS[form]
    frame = spark.readStream.schema("ts bigint, k int, v bigint").json(str(home / "in"))
    flow = pk.Flow(spark, path=str(home / "flow"))
    flow.stream("s", frame, time="ts", progress=pk.bounded(100), update_key="k")
    flow.conflate("calm", "s", **options)
    flow.function("handing", handing, "bigint", version="1")
    query: Any = flow.query(text, name="q")
    if "windows" not in options:
        how["superseded"] = str(home / "superseded")
    return query.start(str(home / "out"), **how)


def main(home: Path, form: str, point: str | None = None, calls: int = 1) -> int:
    traps = Traps(home / "traps")
    spark = local_session("local[2]", **{key.replace(".", "__"): value for key, value in QUICK.items()})
    if point is not None:
        write_file(home, len(list((home / "in").glob("*.json"))))
        if point in DRIVERS:
            lay(point, traps, DRIVERS[point])
            traps.arm(point, calls)
    run = start(spark, home, form, traps.function("handing", kills=os.getpgrp()))
    if point is not None and point not in DRIVERS:
        while not any(queue.waiting for queue in run.progress.queues):
            time.sleep(0.01)
        traps.arm(point, calls)
    run.process_available()
    if point is not None:
        return signal.SIGUSR1  # nobody has come to the point
    run.finish()
    print(json.dumps(dict(run.progress)))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:4], *map(int, sys.argv[4:5])))
