"""Latency of bursts by strategy: a path of two operators that cost the same, by the wall clock.

`python benchmarks/bursts.py [rows]`. The paper's formulas: with c the mean step, a burst of n waits (n + 1) c on
average depth-first, and (1.5 n + 0.5) c breadth-first; batches of k are between them. c is measured in the same run:
the time that the burst takes, by two steps a row.
"""

from __future__ import annotations

import statistics
import sys
import time

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.model.batch import Batch
from penstock.runtime.strategies import Strategy, strategy_of

STEP = 0.0005
"""Seconds that an operator works for a row."""
TRIALS = 5


def latency(strategy: str | Strategy, rows: int) -> tuple[float, float]:
    """The mean latency of the rows of a burst, and the mean step, in seconds."""

    def work(value: int) -> int:
        until = time.perf_counter() + STEP
        while time.perf_counter() < until:
            pass
        return value

    flow = pk.Flow().stream("s", [], time="t", schema="t bigint, k bigint", progress=pk.punctuated("k < 0"))
    flow.function("work", work, "bigint")
    run = SharedExecution(flow.catalog, {"q": flow.query("SELECT t, work(k) AS w FROM s WHERE work(k) = 1").plan})
    run.use(strategy_of(strategy, "bursts"))
    schema = run.graph.sources["s"][0].operator.schema
    burst = [Batch(schema, [(t, 1)]) for t in range(rows)]
    began = time.perf_counter()
    came = [time.perf_counter() - began for _ in run.burst("s", burst)]
    return statistics.mean(came), came[-1] / (2 * rows)


def main(rows: int = 50) -> None:
    """Print the table."""
    print(f"bursts of {rows}: mean latency in steps, measured and by the formula")
    formulas = {"dfs": rows + 1.0, "bfs": 1.5 * rows + 0.5, "round_robin": 1.5 * rows + 0.5}
    batches = {str(k): pk.dfs(batch=k) for k in (2, 5, 10, 25, 50, 100) if k <= rows}
    for name, strategy in {
        **{n: n for n in formulas},
        **{f"dfs, batches of {k}": s for k, s in batches.items()},
    }.items():
        found = [latency(strategy, rows) for _ in range(TRIALS)]
        steps = statistics.median(mean / step for mean, step in found)
        due = formulas.get(name)
        print(f"{name:24}{steps:8.1f}" + ("" if due is None else f"{due:8.1f}  {steps / due - 1:+.1%}"))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
