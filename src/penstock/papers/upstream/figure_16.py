"""Figure 16: how much memory is held and how much of it is used, as the keys' rates become skewed (section 7.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from penstock.bench.claims import Claim, Report
from penstock.papers.plots import line_chart
from penstock.papers.upstream.memory_grid import MEMORIES, RATES, RESULTS, THETAS, averaged, grid, worst

FIGURE = "16"
EFFECTIVE, USAGE = "effective usage", "average usage, locations"


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Every skew, on average over the rates; `events` are results delivered."""
    found = grid(events or RESULTS, say)
    rows: list[dict[str, Any]] = [
        {"skew": theta, **averaged(found, memory, [(theta, rate) for rate in RATES])}
        for theta in THETAS
        for memory in MEMORIES
    ]
    naive = [row[EFFECTIVE] for row in rows if row["memory"] == "naive"]
    falls = sum(later < earlier for earlier, later in pairwise(naive))
    least = min(usage.effective for (_, _, memory), usage in found.items() if memory == "on-demand")
    locations, pages = worst(found, "average_locations"), worst(found, "average_bytes")
    return Report(
        "upstream-16",
        rows,
        [
            Claim("effective usage of on-demand paging, the least anywhere", least, 1.0, "higher"),
            Claim("effective usage of naive memory falls with skew, in so many of 3 steps", falls, 3, "higher"),
            Claim("average usage in locations against naive, at the worst", locations, 0.999, "lower"),
            Claim("average usage in bytes of pages against naive, at the worst", pages, 1.0, "lower"),
        ],
    )


def plot(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Effective and average usage against skew."""
    charts = {
        title: {m: [(r["skew"], r[title]) for r in rows if r["memory"] == m] for m in MEMORIES}
        for title in (EFFECTIVE, USAGE)
    }
    line_chart(charts, "skew", "", folder / "upstream-16.svg")
