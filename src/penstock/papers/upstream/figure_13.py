"""Figure 13: LAZY and EAGER windows of one key as windows grow, beside windows by lot (section 6.3.1).

One row comes per tick and takes one tick. With tumbling windows there is no overload: what LAZY costs is that it begins
when a window is whole, which takes as long as the window; EAGER has one row left to process by then, whatever the
window. With windows that slide by 1 the load is the range, since nothing is shared among windows: an append queue of
all windows falls behind for good, windows by lot (a share of `1 / load` times a headroom, the best of several chosen
for each range afterwards) come late and at random, and update queues commit to the most recent one.

Staleness is that of the application, in ticks: how long ago the first window was whole of those that no result shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from penstock.bench.claims import Claim, Report
from penstock.model.schema import schema_of
from penstock.operators.queues.extents import extents_of
from penstock.operators.queues.window_cells import Promise
from penstock.operators.queues.window_choosing import window_queue_for
from penstock.operators.windows.sliding import Sliding
from penstock.papers.plots import line_chart
from penstock.papers.upstream.window_service import Service

FIGURE = "13"
ROWS = 4000
SCHEMA = schema_of([("ts", "bigint"), ("key", "bigint")], "ts")
RANGES = {"tumbling": (5, 10, 20, 40, 80), "overlapping": (2, 5, 10, 20, 40)}
HEADROOMS = (0.5, 0.8, 1.0)
LAZY, EAGER, LOT, ALL = "LAZY", "EAGER", "windows by lot", "append"


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Every range, tumbling and sliding by 1; `events` are rows that come."""
    size = events or ROWS
    rows: list[dict[str, Any]] = []
    for kind, ranges in RANGES.items():
        for range_ in ranges:
            window = Sliding(range_, range_ if kind == "tumbling" else 1)
            of = partial(_staleness, window, size)
            found = {LAZY: of("lazy"), EAGER: of("eager"), ALL: of("append")}
            found[LOT] = min(of("shed", part * window.slide / range_) for part in HEADROOMS)
            rows.append({"windows": kind, "range": range_, **{name: round(value, 4) for name, value in found.items()}})
        say(f"figure 13: {kind} windows")
    return Report("upstream-13", rows, list(_claims(rows)))


def _staleness(window: Sliding, size: int, mode: str, keep: float = 1.0) -> float:
    """How stale the application is on average."""
    queue = window_queue_for(
        SCHEMA, ["key"], extents_of([window]), mode, promise=Promise.STRICTLY, keep=keep, complete_from=0
    )
    Service(queue, 1).run(((t, (t, 0)) for t in range(size)), until=size)
    return queue.staleness(size).average_application


def _claims(rows: Sequence[dict[str, Any]]) -> list[Claim]:
    tumbling = [row for row in rows if row["windows"] == "tumbling"]
    slopes = [row[LAZY] / row["range"] for row in tumbling]
    steps = [after[EAGER] / before[EAGER] for before, after in pairwise(tumbling)]
    made = [
        Claim(
            "tumbling: LAZY per tick of the range, the most against the least", max(slopes) / min(slopes), 1.1, "lower"
        ),
        Claim("tumbling: EAGER from one range to the next, the most", max(steps), 0.75, "lower"),
    ]
    for kind in RANGES:
        mine = [row for row in rows if row["windows"] == kind]
        above = min(row[LAZY] / row[EAGER] for row in mine)
        made.append(Claim(f"{kind}: LAZY against EAGER, the least", above, 1.5, "higher"))
    sliding = [row for row in rows if row["windows"] == "overlapping"]
    for name in (LAZY, EAGER):
        least = min(row[LOT] / row[name] for row in sliding)
        made.append(Claim(f"overlapping: windows by lot against {name}, the least", least, 1.1, "higher"))
    return made


def plot(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """A chart for tumbling and one for overlapping windows; without the append queue, which is far above."""
    charts = {}
    for kind, shown in (("tumbling", (LAZY, EAGER)), ("overlapping", (LOT, LAZY, EAGER))):
        mine = [row for row in rows if row["windows"] == kind]
        charts[kind] = {name: [(row["range"], row[name]) for row in mine] for name in shown}
    line_chart(charts, "range, ticks", "application staleness, ticks", folder / "upstream-13.svg")
