"""What it costs that operators are timed and elements traced: with the sample and without, in turn, in one process.

`python benchmarks/sampling.py [rounds]`. The cases are those of `benchmarks/executor.py`. Every round runs each case
with the clocks of the host and without any, on fresh graphs, the order changing from round to round, with garbage
collection off while it is timed. Printed is the median of the ratios of the rounds, each of two runs side by side, and
what asking for the statistics takes. What counting alone costs (rows, what waits at most) is there in both: for that,
`python benchmarks/executor.py src other/src` compares with a version of the code that has none.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from executor import CASES, COLUMNS

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.model.batch import Batch
from penstock.runtime.sampling import Clocks

ROUNDS = 7


def measured(queries: tuple[str, ...], rows: int, size: int, *, sampled: bool) -> tuple[float, float]:
    """Nanoseconds of processor time a row, and milliseconds that asking takes; a size of 0 pushes rows one by one."""
    flow = pk.Flow()
    for name in "sr":
        flow.stream(name, [], time="ts", schema=COLUMNS, progress=pk.bounded(10))
    run = SharedExecution(flow.catalog, {f"q{i}": flow.query(q).plan for i, q in enumerate(queries)})
    if not sampled:
        run.graph.measure(Clocks())
    given = [(i // 10, i * 7 % 100, i * 7919 % 101) for i in range(rows)]
    schema = run.graph.sources["s"][0].operator.schema
    batches = [Batch(schema, given[at : at + size]) for at in range(0, rows, size)] if size else []
    streams = [run.pusher(name) for name in "sr" if name in run.graph.sources]
    gc.collect()
    gc.disable()
    began = time.process_time_ns()
    if size:
        for batch in batches:
            run.feed("s", batch)
    else:
        _push(run, streams, given)
    took = (time.process_time_ns() - began) / rows
    gc.enable()
    asked = time.perf_counter()
    run.statistics()
    return took, (time.perf_counter() - asked) * 1000


def _push(run: SharedExecution, streams: list[Callable[[Any], None]], given: list[Any]) -> None:
    for at, row in enumerate(given):
        for push in streams:
            push(row)
        if at % 1000 == 999:
            run.take()


def main(rounds: int) -> None:
    """Print the table."""
    print(f"{'processor time, ns per row':36}{'without':>10}{'sampled':>10}{'ratio':>8}{'asking, ms':>12}")
    for case, (queries, rows, size) in CASES.items():
        found: dict[bool, list[float]] = {True: [], False: []}
        asking = []
        for number in range(rounds):
            for sampled in (True, False) if number % 2 else (False, True):
                took, asked = measured(queries, rows // 2, size, sampled=sampled)
                found[sampled].append(took)
                asking.append(asked)
        ratio = statistics.median(a / b for a, b in zip(found[True], found[False], strict=True))
        cells = f"{min(found[False]):>10,.0f}{min(found[True]):>10,.0f}{ratio:>8.3f}{statistics.median(asking):>12.2f}"
        print(f"{case:36}{cells}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else ROUNDS)
