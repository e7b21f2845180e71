"""Figure 5: application staleness beside queue staleness as load grows, of one key and of ten (section 5.1).

Updates come at even distances, each of a key by lot, to an IN-PLACE queue whose consumer takes one unit of time for a
row; load is how many come in that time. A row that was dequeued is delivered one cost later: the integrals of the two
measures differ per row by at least its wait, and by half a unit more at most. So whoever keeps the queue fresh keeps
the application fresh.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from penstock.bench.claims import Claim, Report
from penstock.operators.queues.choosing import queue_for
from penstock.papers.plots import line_chart
from penstock.papers.upstream.simulation import KEY, SCHEMA, Outcome, simulate, steady

FIGURE = "5"
SERVICES = 3000
LOADS = range(1, 11)
KEYS = (1, 10)


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Every load, with one key and with ten; `events` are rows served."""
    services = events or SERVICES
    found: dict[tuple[int, int], Outcome] = {}
    rows: list[dict[str, Any]] = []
    for keys in KEYS:
        for load in LOADS:
            queue = queue_for(SCHEMA, KEY, "in-place")
            found[keys, load] = outcome = simulate(queue, steady(load, keys, services), drains=True)
            rows.append(
                {
                    "keys": keys, "load": load, "queue staleness": round(outcome.queue, 3),
                    "application staleness": round(outcome.application, 3), "wait": round(outcome.wait, 3),
                    "difference a row": round(outcome.difference, 3), "unapplied updates": round(outcome.unapplied, 2),
                }
            )  # fmt: skip
        say(f"figure 5: {keys} keys")
    return Report("upstream-5", rows, _claims(found))


def _claims(found: dict[tuple[int, int], Outcome]) -> list[Claim]:
    above = [outcome.difference - outcome.wait for outcome in found.values()]
    most = max(LOADS)
    one, ten = found[1, most], found[10, most]
    times = ten.queue / one.queue
    apart = (ten.application - ten.queue) / (one.application - one.queue)
    return [
        Claim("difference a row less its wait, the least of all loads", min(above), 0.0, "higher"),
        Claim("difference a row less its wait, the most of all loads", max(above), 0.5, "lower"),
        Claim("queue staleness of ten keys, times that of one, at load 10: no less", times, 9.0, "higher"),
        Claim("queue staleness of ten keys, times that of one, at load 10: no more", times, 11.0, "lower"),
        Claim("application less queue staleness of ten keys, times that of one, at load 10", apart, 1.1, "lower"),
    ]  # fmt: skip


def plot(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Both measures against load, a chart for one key and one for ten."""
    charts = {}
    for keys in KEYS:
        mine = [row for row in rows if row["keys"] == keys]
        charts[f"{keys} key{'s' * (keys > 1)}"] = {
            name: [(row["load"], row[name]) for row in mine] for name in ("application staleness", "queue staleness")
        }
    line_chart(charts, "load", "staleness, in costs of a row", folder / "upstream-5.svg")
