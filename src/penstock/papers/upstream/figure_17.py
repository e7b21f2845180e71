"""Figure 17: how much memory is held and how much of it is used, as load grows (section 7.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from penstock.bench.claims import Claim, Report
from penstock.papers.plots import line_chart
from penstock.papers.upstream.figure_16 import EFFECTIVE, USAGE
from penstock.papers.upstream.memory_grid import MEMORIES, OUT, RATES, RESULTS, THETAS, averaged, grid

FIGURE = "17"


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Every rate, on average over the skews; `events` are results delivered."""
    found = grid(events or RESULTS, say)
    rows: list[dict[str, Any]] = [
        {"load": rate / OUT, **averaged(found, memory, [(theta, rate) for theta in THETAS])}
        for rate in RATES
        for memory in MEMORIES
    ]
    naive = [row[EFFECTIVE] for row in rows if row["memory"] == "naive"]
    rises = sum(later > earlier for earlier, later in pairwise(naive))
    demand = [row[EFFECTIVE] for row in rows if row["memory"] == "on-demand"]
    return Report(
        "upstream-17",
        rows,
        [
            Claim("effective usage of on-demand paging, the least of all loads", min(demand), 1.0, "higher"),
            Claim("effective usage of naive memory rises with load, in so many of 5 steps", rises, 5, "higher"),
        ],
    )


def plot(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Effective and average usage against load."""
    charts = {
        title: {m: [(r["load"], r[title]) for r in rows if r["memory"] == m] for m in MEMORIES}
        for title in (EFFECTIVE, USAGE)
    }
    line_chart(charts, "load", "", folder / "upstream-17.svg")
