"""Figure 14: EAGER against LAZY windows of ten keys, by how rows of the keys come (section 6.3.2).

One row comes per tick and takes one tick; it is of the next key in turn, or of a key by lot with shares as in Zipf's
law. Windows are on the time of the source, a tick a row, slide by a tick, and are of one key: one is whole when a row
of its key comes that is behind it (6.2.1: "if and only if t closes a window for key K"). The order of keys is IN-PLACE.
Where the rows of a key come in turn, EAGER is served each of them as it comes. Where they come at random, a key idles
while rows of others come, and the window that it has committed to ends with a row of its own, whenever that comes;
LAZY commits to a window that is whole, and by then to the last of them.

The range is in ticks, of which a row of a key takes ten on average. Windows by lot are kept in such a share that their
rows take a part of the time, the better of two chosen for each point afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from penstock.bench.claims import Claim, Report
from penstock.operators.queues.extents import extents_of
from penstock.operators.queues.window_cells import Promise
from penstock.operators.queues.window_choosing import window_queue_for
from penstock.operators.windows.sliding import Sliding
from penstock.papers.plots import line_chart
from penstock.papers.upstream.figure_13 import LOT, SCHEMA
from penstock.papers.upstream.window_service import Arriving, Service

FIGURE = "14"
ROWS = 3000
KEYS = 10
RANGES = (20, 30, 40, 50, 70, 100)
IN_TURN = "in turn"
SKEWS = (0.0, 0.5, 0.9)
HEADROOMS = (0.5, 0.9)


def run(events: int | None, say: Callable[[str], None], ranges: Sequence[int] = RANGES) -> Report:
    """Every range with every way to come; `events` are rows that come."""
    size = events or ROWS
    rows: list[dict[str, Any]] = []
    for range_ in ranges:
        for skew in (None, *SKEWS):
            eager, lazy = (_staleness(range_, mode, skew, size) for mode in ("eager", "lazy"))
            lot = min(_staleness(range_, "shed", skew, size, part / range_) for part in HEADROOMS)
            told = {"EAGER": round(eager, 3), "LAZY": round(lazy, 3), LOT: round(lot, 3)}
            told["EAGER against LAZY"] = round(eager / lazy, 4)
            rows.append({"range": range_, "rows come": _name(skew), **told})
        say(f"figure 14: range {range_}")
    return Report("upstream-14", rows, _claims(rows, ranges))


def _name(skew: float | None) -> str:
    return IN_TURN if skew is None else f"Zipf {skew:g}"


def _arriving(skew: float | None, size: int) -> Iterator[Arriving]:
    """A row every tick."""
    shares = [1 / (key + 1) ** (skew or 0.0) for key in range(KEYS)]
    drawn = random.Random(7).choices(range(KEYS), shares, k=size)
    for at in range(size):
        yield at, (at, at % KEYS if skew is None else drawn[at])


def _staleness(range_: int, mode: str, skew: float | None, size: int, keep: float = 1.0) -> float:
    """How stale the application is on average."""
    extents = extents_of([Sliding(range_, 1)])
    queue = window_queue_for(
        SCHEMA, ["key"], extents, mode, "in-place", promise=Promise.ORDERED, keep=keep, complete_from=0
    )
    Service(queue, 1).run(_arriving(skew, size), until=size)
    return queue.staleness(size).average_application


def _claims(rows: Sequence[dict[str, Any]], ranges: Sequence[int]) -> list[Claim]:
    ratio = {(row["rows come"], row["range"]): row["EAGER against LAZY"] for row in rows}
    worst = max(ratio[IN_TURN, range_] for range_ in ranges)
    made = [Claim("in turn: EAGER against LAZY, the most", worst, 0.95, "lower")]
    for name in map(_name, SKEWS):
        least = min(ratio[name, range_] for range_ in ranges)
        steps = max(ratio[name, wider] / ratio[name, range_] for range_, wider in pairwise(ranges))
        made.append(Claim(f"{name}: EAGER against LAZY, the least", least, 1.0, "higher"))
        made.append(Claim(f"{name}: that from one range to the next, the most", steps, 0.98, "lower"))
    for mode in ("LAZY", "EAGER"):
        above = min(row[LOT] / row[mode] for row in rows)
        made.append(Claim(f"windows by lot against {mode}, the least", above, 1.1, "higher"))
    return made


def plot(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """The ratio against the range, a line for each way to come."""
    names = dict.fromkeys(row["rows come"] for row in rows)
    lines = {n: [(r["range"], r["EAGER against LAZY"]) for r in rows if r["rows come"] == n] for n in names}
    line_chart({"application staleness": lines}, "range, ticks", "EAGER against LAZY", folder / "upstream-14.svg")
