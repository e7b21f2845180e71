"""Depth-first in batches of k: latency of a burst, and how often it is decided which operator runs next.

Latency is that of rows whose operators work, in mean steps; decisions are counted, and what a row takes is measured, of
rows for which operators hardly work at all.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import penstock as pk
from penstock.bench.claims import Claim, Report
from penstock.papers.plots import line_chart
from penstock.papers.stream_mill.burst_runs import Bursts, decisions_a_row, seen_of

FIGURE = "batches"
BATCHES = (1, 10, 100, 1000)
ROWS = 1000
STEP = 0.0001
TRIALS = 5
WAITS, FEWER = 1.3, 0.8


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Every k over bursts of `events` rows."""
    size = events or ROWS
    rows: list[dict[str, Any]] = []
    for batch in BATCHES:
        strategy = pk.dfs(batch=batch)
        working, idle = (seen_of(Bursts(size, TRIALS, step), strategy) for step in (STEP, 0.0))
        rows.append({
            "k": batch, "mean latency, steps": round(statistics.median(each.mean for each in working), 1),
            "decisions a row": round(decisions_a_row(size, strategy), 2),
            "a row, µs": round(1e6 * min(each.seconds for each in idle) / size, 1),
        })  # fmt: skip
        say(f"batches: {rows[-1]}")
    least, most = rows[0], rows[-1]
    claims = [
        Claim(f"mean latency in batches of {most['k']}, times that in batches of 1",
              most["mean latency, steps"] / least["mean latency, steps"], WAITS, "higher"),
        Claim(f"decisions a row in batches of {most['k']}, against batches of 1",
              most["decisions a row"] / least["decisions a row"], FEWER, "lower"),
    ]  # fmt: skip
    return Report("stream-mill-batches", rows, claims)


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Latency and decisions against k."""
    charts = {
        measure: {"dfs in batches": [(row["k"], row[measure]) for row in rows]}
        for measure in ("mean latency, steps", "decisions a row", "a row, µs")
    }
    line_chart(charts, "k", "", path, is_log_across=True)
