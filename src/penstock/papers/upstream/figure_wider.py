"""Group-by wider than the update key, against the oracle (named in section 8).

The update key is the symbol, the aggregate groups by symbol and venue: windows of a symbol are passed over whole, with
those of all its venues. Every result is held against what the reference says of all rows, and of every symbol all
results of its last window must come. A row takes a cost, and one comes every fifth of it. Time is simulated, in the
engine's own graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import penstock as pk
from penstock.bench.claims import Claim, Report
from penstock.papers.plots import line_chart
from penstock.papers.upstream.by_hand import COST, ByHand
from penstock.reference import evaluate

FIGURE = "wider"
ROWS, SYMBOLS, LOAD = 400, 4, 5
VENUES = (1, 2, 4, 8)
MODES = ("lazy", "eager")
SQL = "SELECT symbol, venue, slow_sum(price) AS total [RANGE 20, SLIDE 10, WA ts] FROM calm GROUP BY symbol, venue"


class SlowSum:
    """A sum that takes its time."""

    def __init__(self, works: Callable[[], None] | None) -> None:
        """`works` is called for every row."""
        self.works = works

    def lift(self, value: int) -> int:
        """A row."""
        if self.works is not None:
            self.works()
        return value

    def combine(self, left: int, right: int) -> int:
        """Of both."""
        return left + right

    def lower(self, total: int) -> int:
        """The sum."""
        return total


AGGREGATES = {"slow_sum": SlowSum(None)}


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Every number of venues, both window modes; `events` are rows that come."""
    rows = []
    for venues in VENUES:
        rows += [{"venues": venues, "windows": mode, **judged(venues, mode, events or ROWS)} for mode in MODES]
        say(f"wider: {venues} venues")
    claims = [
        Claim("results that the oracle does not have", sum(row["not the oracle's"] for row in rows), 0, "lower"),
        Claim(
            "results of a symbol's last window that did not come",
            sum(row["last ones missing"] for row in rows),
            0,
            "lower",
        ),
        Claim(
            "part of the results that were passed over, the least",
            min(row["passed over"] for row in rows),
            0.3,
            "higher",
        ),
    ]
    return Report(f"upstream-{FIGURE}", rows, claims)


def judged(venues: int, mode: str, count: int) -> dict[str, Any]:
    """What came, beside what the reference has."""
    random = np.random.default_rng(venues)
    drawn = zip(random.integers(0, SYMBOLS, count).tolist(), random.integers(0, venues, count).tolist(), strict=True)
    given = [(at, f"S{symbol}", f"V{venue}", at % 7) for at, (symbol, venue) in enumerate(drawn)]
    clock = ByHand("trades")
    out = _query(mode, clock.works)
    clock.play(out.execution(), [at * COST // LOAD for at in range(count)], given, None)
    true = Counter(
        payload
        for payload, _, _ in evaluate(
            _query(mode, None).plan, [("trades", row) for row in given], aggregates=AGGREGATES
        )
    )
    found = Counter(tuple(row) for _, row in clock.out)
    missing = 0
    for symbol in {payload[3] for payload in true}:
        last = max(int(str(payload[2])) for payload in true if payload[3] == symbol)
        missing += sum(payload not in found for payload in true if (payload[3], payload[2]) == (symbol, last))
    ages = [at / COST * LOAD - row[2] for at, row in clock.out]  # type: ignore[operator]
    return {
        "results of all rows": sum(true.values()),
        "came": sum(found.values()),
        "not the oracle's": sum((found - true).values()),
        "last ones missing": missing,
        "passed over": round(1 - sum(found.values()) / sum(true.values()), 3),
        "age when it came, ticks": round(float(np.mean(ages)), 1),
    }


def _query(mode: str, works: Callable[[], None] | None) -> Any:
    flow = pk.Flow().stream(
        "trades", [], schema="ts BIGINT, symbol STRING, venue STRING, price BIGINT", time="ts", update_key="symbol"
    )
    flow.aggregate("slow_sum", SlowSum(works), "bigint", version="1")
    return flow.conflate("calm", "trades", windows=mode).query(SQL)


def plot(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """What was passed over and how old results are, by venues."""
    charts = {
        title: {mode: [(r["venues"], r[title]) for r in rows if r["windows"] == mode] for mode in MODES}
        for title in ("passed over", "age when it came, ticks")
    }
    line_chart(charts, "venues of a symbol", "", folder / f"upstream-{FIGURE}.svg")
