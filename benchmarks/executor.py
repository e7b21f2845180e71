"""What running the query graph costs, of two or more versions of the code side by side, in turn.

`python benchmarks/executor.py src [other/src …]`. Every round measures each tree in a process of its own, one after the
other, so that a machine that is not quiet disturbs all of them alike; of each case the least and the median of all
rounds are printed, with the ratio to the last tree. Rows are pushed one by one (through lanes alone; through a lane
that ends at a fork of three queries; into a join, which has no lane), and in batches of 1, 100 and 10,000 rows through
a graph of twelve queries.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

ROUNDS = 5
COLUMNS = "ts bigint, k bigint, v bigint"
WINDOW = "[RANGE 1000, SLIDE 1000, WA ts]"
LANE = (f"SELECT k, count(*) AS n {WINDOW} FROM (SELECT ts, k, v * 2 AS w FROM s WHERE v % 2 = 0) d GROUP BY k",)
FORK = ("SELECT ts, k FROM s WHERE v > 90", "SELECT ts, v + 1 AS w FROM s WHERE k = 3", "SELECT ts, k, v FROM s")
JOIN = ("SELECT a.ts, a.v FROM s a JOIN r b ON a.k = b.k AND a.ts = b.ts",)
MANY = (
    *(f"SELECT ts, k, v + {i} AS w FROM s WHERE v > {80 + i}" for i in range(4)),
    *(f"SELECT k, sum(v) AS n {WINDOW} FROM s WHERE v > {i} GROUP BY k" for i in range(4)),
    *(f"SELECT ts, k FROM s WHERE k = {i} UNION ALL SELECT ts, v FROM s WHERE v < {i}" for i in range(4)),
)


def measured(queries: tuple[str, ...], rows: int, size: int) -> float:
    """Nanoseconds of processor time a row; a size of 0 pushes rows one by one."""
    import penstock as pk
    from penstock.engines.local.shared import SharedExecution
    from penstock.model.batch import Batch

    flow = pk.Flow()
    for name in "sr":
        flow.stream(name, [], time="ts", schema=COLUMNS, progress=pk.bounded(10))
    run = SharedExecution(flow.catalog, {f"q{i}": flow.query(q).plan for i, q in enumerate(queries)})
    given = [(i // 10, i * 7 % 100, i * 7919 % 101) for i in range(rows)]
    schema = run.graph.sources["s"][0].operator.schema
    if size:
        batches = [Batch(schema, given[at : at + size]) for at in range(0, rows, size)]
        began = time.process_time_ns()
        for batch in batches:
            run.feed("s", batch)
        return (time.process_time_ns() - began) / rows
    push: Callable[[Any], None] = run.pusher("s")
    other: Callable[[Any], None] | None = run.pusher("r") if "r" in run.graph.sources else None
    began = time.process_time_ns()
    for at, row in enumerate(given):
        push(row)
        if other is not None:
            other(row)
        if at % 1000 == 999:
            run.take()
    return (time.process_time_ns() - began) / rows


CASES: dict[str, tuple[tuple[str, ...], int, int]] = {
    "single rows, a lane": (LANE, 200_000, 0),
    "single rows, a fork of three": (FORK, 30_000, 0),
    "single rows, a join": (JOIN, 8_000, 0),
    "batches of 1, twelve queries": (MANY, 2_000, 1),
    "batches of 100, twelve queries": (MANY, 60_000, 100),
    "batches of 10,000, twelve queries": (MANY, 1_000_000, 10_000),
}


def one_round() -> dict[str, float]:
    """All cases in this process."""
    return {case: measured(*args) for case, args in CASES.items()}


def main(trees: list[str]) -> None:
    """Print the table."""
    found: dict[str, dict[str, list[float]]] = {tree: {case: [] for case in CASES} for tree in trees}
    for number in range(ROUNDS):
        for tree in trees if number % 2 else trees[::-1]:
            environment = {**os.environ, "PYTHONPATH": os.path.abspath(tree)}
            done = subprocess.run(
                [sys.executable, __file__, "--round"], env=environment, check=True, capture_output=True, text=True
            )
            for case, cost in json.loads(done.stdout).items():
                found[tree][case].append(cost)
    print(f"{'ns per row: least, median':34}" + "".join(f"{tree[-24:]:>26}" for tree in trees))
    for case in CASES:
        least, middle = ({t: by(found[t][case]) for t in trees} for by in (min, statistics.median))
        cells = "".join(f"{least[t]:>9,.0f} {middle[t]:>7,.0f} {least[t] / least[trees[-1]]:>8.3f}" for t in trees)
        print(f"{case:34}{cells}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--round"]:
        print(json.dumps(one_round()))
    else:
        main(sys.argv[1:] or ["src"])
