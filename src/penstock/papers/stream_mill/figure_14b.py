"""Figure 14(b): latency of bursts, depth-first and breadth-first.

With c the mean step, a burst of n waits (n + 1) c on average depth-first and (1.5 n + 0.5) c breadth-first, as the
paper derives; c is measured in the same burst. Round-robin is breadth-first on a path.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from penstock.bench.claims import Claim, Report
from penstock.papers.plots import line_chart
from penstock.papers.stream_mill.burst_runs import Bursts, seen_of

FIGURE = "14b"
SIZES = (10, 50, 100, 500)
STEP = 0.0005
"""Seconds that an operator works for a row."""
TRIALS = 5
NEAR = 1.2
"""What is measured against what is derived, the greater against the lesser."""
FORMULAS: dict[str, Callable[[int], float]] = {
    "dfs": lambda n: n + 1,
    "bfs": lambda n: 1.5 * n + 0.5,
    "round_robin": lambda n: 1.5 * n + 0.5,
}


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Every size by every strategy; with `events`, those below it and itself."""
    rows: list[dict[str, Any]] = []
    claims: list[Claim] = []
    for size in SIZES if events is None else [each for each in SIZES if each < events] + [events]:
        for strategy, formula in FORMULAS.items():
            seen = seen_of(Bursts(size, TRIALS, STEP), strategy)
            steps, due = statistics.median(each.mean for each in seen), formula(size)
            rows.append({
                "burst": size, "strategy": strategy, "mean latency, steps": round(steps, 1), "by the formula": due,
                "step, ms": round(1000 * statistics.median(each.step for each in seen), 3),
            })  # fmt: skip
            say(f"14b: {rows[-1]}")
            near = max(steps / due, due / steps)
            claims.append(Claim(f"bursts of {size}, {strategy}: latency and formula, the greater against the lesser",
                                near, NEAR, "lower"))  # fmt: skip
    return Report("stream-mill-14b", rows, claims)


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Latency against the size of the burst, with what is derived."""
    lines = {
        strategy: [(row["burst"], row["mean latency, steps"]) for row in rows if row["strategy"] == strategy]
        for strategy in ("dfs", "bfs")
    }
    for strategy, formula in (("dfs", "(n + 1) c"), ("bfs", "(1.5 n + 0.5) c")):
        lines[formula] = [(row["burst"], row["by the formula"]) for row in rows if row["strategy"] == strategy]
    line_chart({"latency of bursts": lines}, "rows of a burst, n", "mean latency, steps c", path)
