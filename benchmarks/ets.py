"""What a promise costs by ETS arcs, against from operator to operator.

`python benchmarks/ets.py`. Stream Mill's Figure 15 on one path: a stream, so many selections and projections in turn
that do nothing with a promise, a window of ten ticks that is closed by it, and behind that two operators more that do
nothing with what the window promises (so that something is passed in the first row, too). The windows have no rows, so
that it is the promise that is measured and not what comes of it. Processor time for a promise to take effect, the least
of several rounds, by arcs and as elements in turn. The bar is the paper's: 14% less; and more, the more are passed.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import pairwise

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.model.elements import linear

PASSED = (0, 2, 4, 8, 16)
PROMISES = 1000
ROUNDS = 9
BAR = 0.14


def a_graph(passed: int, *, by_arcs: bool) -> SharedExecution:
    """The graph, with so many operators between the stream and the window."""
    sql = "s"
    for number in range(passed):
        what, where = ("v + 1 AS v", "") if number % 2 else ("v", f" WHERE v <> {number}")
        sql = f"(SELECT ts, {what} FROM {sql} d{number}{where})" if number else f"(SELECT ts, {what} FROM s{where})"
    flow = pk.Flow().stream("s", [], time="ts", schema="ts bigint, v bigint", progress=pk.bounded(10))
    text = f"SELECT sum(v) AS n [RANGE 10, SLIDE 10, WA ts] FROM {sql} q"
    run = SharedExecution(flow.catalog, {"q": flow.query(text).plan})
    run.use_ets_arcs(used=by_arcs)
    return run


def operators_between(run: SharedExecution) -> int:
    """How many there are between the stream and the window."""
    return sum(type(node.plan).__name__ in ("Select", "Project") for node in run.graph.nodes) - 1


def cost(run: SharedExecution, start: int) -> float:
    """Nanoseconds of processor time for a promise."""
    promises = [linear("ts", start + 10 * at) for at in range(PROMISES)]
    push = run.graph.push
    began = time.process_time_ns()
    for promise in promises:
        push("s", promise)
    return (time.process_time_ns() - began) / PROMISES


def measured(passed: int) -> tuple[int, float, float]:
    """How many operators there are, and what a promise costs by arcs and as an element."""
    by_arcs, as_elements = a_graph(passed, by_arcs=True), a_graph(passed, by_arcs=False)
    found: list[tuple[float, float]] = []
    for number in range(ROUNDS + 1):
        start = 10 * PROMISES * number
        pair = (cost(by_arcs, start), cost(as_elements, start))
        if number:  # the first is to warm up
            found.append(pair)
    ends = [[str(e) for _, e in run.take()] for run in (by_arcs, as_elements)]
    assert ends[0] == ends[1], "the results differ"
    return operators_between(by_arcs), min(a for a, _ in found), min(e for _, e in found)


def main() -> None:
    """Print the table, or one JSON object with `--json`."""
    rows = []
    for passed in PASSED:
        operators, by_arcs, as_elements = measured(passed)
        rows.append({"passed": operators, "arcs": by_arcs, "elements": as_elements, "less": 1 - by_arcs / as_elements})
    claims = [
        {"name": f"less past {row['passed']} operators", "value": row["less"], "bar": BAR, "better": "higher",
         "holds": row["less"] >= BAR}
        for row in rows if row["passed"]
    ]  # fmt: skip
    grows = all(a["less"] < b["less"] for a, b in pairwise(rows))
    claims.append({"name": "grows with the operators passed", "value": grows, "bar": True, "better": "higher",
                   "holds": grows})  # fmt: skip
    if "--json" in sys.argv[1:]:
        print(json.dumps({"rows": rows, "claims": claims}))
        return
    print(f"{'operators passed':>16}{'arcs, µs':>12}{'elements, µs':>14}{'less':>8}")
    for row in rows:
        print(f"{row['passed']:>16}{row['arcs'] / 1000:>12.1f}{row['elements'] / 1000:>14.1f}{row['less']:>8.0%}")
    print("holds" if all(claim["holds"] for claim in claims) else "does not hold", f"(bar {BAR:.0%})")


if __name__ == "__main__":
    main()
