"""Figure 14(a): latency of a union of 1000 and 0.5 rows a second, by what the slow stream says while it is silent.

The paper compares nothing with promises on demand, depth-first and breadth-first. Beside these are heartbeats, what the
clock may say of a stream by its declaration, and our own union, which keeps no order and so waits for nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import penstock as pk
from penstock.bench.claims import Claim, Report
from penstock.papers.plots import line_chart
from penstock.papers.stream_mill.union_runs import NOTHING, ON_DEMAND, Arrivals, Seen, Way, seen_of

FIGURE = "14a"
ROWS = 6000
"""Of the fast stream, on average."""
BEATS = (1, 10, 100, 1000)
"""Milliseconds from one heartbeat to the next."""
SLACK = "5 milliseconds"
"""How old rows may be when they come, and how much more than the last one the next may be delayed."""
BY_CLOCK = (
    Way("the clock on demand, internal timestamps", stamped_by_run=True),
    Way(f"the clock on demand, lull of {SLACK}", declared={"lull": SLACK}),
    Way(f"the clock on demand, external with a skew of {SLACK}", declared={"timestamps": pk.external(skew=SLACK)}),
)
STRATEGIES = ("dfs", "bfs")
ORDERED, AS_THEY_COME = "in order", "as they come"
CUT, ALIKE = 1000.0, 1.2
Case = tuple[str, str, str]


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Every way over the same arrivals; `events` are about so many rows of the fast stream."""
    arrivals = Arrivals.by_poisson(events or ROWS)
    found: dict[Case, Seen] = {}
    for union, way, strategy in cases():
        key = (union, way.name, strategy)
        found[key] = seen_of(arrivals, way, strategy, ordered=union == ORDERED)
        say(f"14a: {', '.join(key)}: {1000 * found[key].mean:.3f} ms")
    rows = [told(key, seen) for key, seen in found.items()]
    return Report("stream-mill-14a", rows, list(_claims(found)))


def cases() -> Iterator[tuple[str, Way, str]]:
    """The union, what the slow stream says, and the strategy."""
    for way in (NOTHING, ON_DEMAND):
        for strategy in STRATEGIES:
            yield ORDERED, way, strategy
    for way in (*BY_CLOCK, *(Way(beat(each), heartbeat=each / 1000) for each in BEATS)):
        yield ORDERED, way, "dfs"
    yield AS_THEY_COME, NOTHING, "dfs"


def beat(milliseconds: int) -> str:
    """The name of a way."""
    return f"heartbeats of {milliseconds} ms"


def told(key: Case, seen: Seen) -> dict[str, Any]:
    """A row of the table."""
    union, way, strategy = key
    milliseconds = {"mean latency, ms": seen.mean, "median, ms": seen.median, "p99, ms": seen.p99}
    return {
        "rows go on": union, "while silent": way, "strategy": strategy, "results": len(seen.latencies),
        **{name: round(1000 * each, 3) for name, each in milliseconds.items()},
        "rows held at most": seen.held, "promises": seen.promises,
    }  # fmt: skip


def _claims(found: Mapping[Case, Seen]) -> Iterator[Claim]:
    without = {strategy: found[ORDERED, NOTHING.name, strategy].mean for strategy in STRATEGIES}
    for strategy in STRATEGIES:
        times = without[strategy] / found[ORDERED, ON_DEMAND.name, strategy].mean
        yield Claim(f"{strategy}: mean latency with nothing, times that with promises on demand", times, CUT, "higher")
    apart = max(without.values()) / min(without.values())
    yield Claim("with nothing: mean latency of dfs and bfs, the greater against the lesser", apart, ALIKE, "lower")


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Latency and rows that wait against the distance of heartbeats; lines across for nothing and on demand."""
    by = {row["while silent"]: row for row in rows if row["rows go on"] == ORDERED and row["strategy"] == "dfs"}
    charts = {}
    for measure in ("mean latency, ms", "rows held at most", "promises"):
        lines = {"heartbeats": [(each, by[beat(each)][measure]) for each in BEATS]}
        for way in (NOTHING, ON_DEMAND):
            lines[way.name] = [(each, by[way.name][measure]) for each in (BEATS[0], BEATS[-1])]
        charts[measure] = lines
    line_chart(charts, "from one heartbeat to the next, ms", "", path, is_log=True, is_log_across=True)
