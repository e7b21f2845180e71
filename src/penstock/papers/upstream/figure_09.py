"""Figure 9: LINECUTTING beside IN-PLACE where some of ten keys update slowly (section 5.3).

Updates come at random times. Fast keys update ten or a hundred times as often as slow ones; load says how many updates
come in the time that one takes. Rates, cost and who waits are what the queue finds itself. A ratio above 1 says how
many times staler keys are under IN-PLACE, on average over all ten.

One slow key of ten is a tenth of what is averaged, so what LINECUTTING gains by it is little: that it gains anything is
told by many runs, whose lead on average is held against its standard error.

The paper gives no rates, and at ten to one its algorithm starves fast keys where slow ones are many: that is shown too,
as LINECUTTING without its guard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penstock.bench.claims import Claim, Report
from penstock.operators.queues.key_orders import InPlace
from penstock.operators.queues.linecutting import Linecutting
from penstock.operators.queues.queue import KeyOrder
from penstock.operators.queues.update_queue import UpdateQueue
from penstock.papers.plots import line_chart
from penstock.papers.upstream.simulation import KEY, SCHEMA, Arrivals, Outcome, poisson, simulate

FIGURE = "9"
SERVICES = 8000
KEYS = 10
LOADS = (2, 5, 10)
RATES = (10, 100)
SEEDS = 24
NO_WORSE = 1 / 1.05
"""Under LINECUTTING keys are never staler than under IN-PLACE by more than five percent."""


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Every number of slow keys, at every load, for both rates; `events` are rows served."""
    services = events or SERVICES
    rows: list[dict[str, Any]] = []
    for rate in RATES:
        for load in LOADS:
            for slow in range(KEYS + 1):
                shares = np.array([1.0] * slow + [float(rate)] * (KEYS - slow))
                told = compared(poisson(load, shares, services))
                rows.append({"rates": f"{rate}:1", "load": load, "slow keys": slow, **told})
            say(f"figure 9: {rate} to 1, load {load}")
    one = [_one_slow_key(load, services // 2) for load in LOADS]
    say(f"figure 9: one slow key, {SEEDS} runs at each load")
    return Report("upstream-9", [*rows, *one], [*_claims(rows), *_lead(one)])


def _one_slow_key(load: int, services: int) -> dict[str, Any]:
    """One slow key of ten at 100 to 1, over several runs: the lead on average, and how many standard errors it is."""
    shares = np.array([1.0] + [100.0] * (KEYS - 1))
    ratios = []
    for seed in range(1, SEEDS + 1):
        arrivals = poisson(load, shares, services, seed)
        ours, theirs = (simulate(UpdateQueue(SCHEMA, KEY, order), arrivals) for order in (Linecutting(), InPlace()))
        ratios.append(theirs.queue / ours.queue)
    error = float(np.std(ratios, ddof=1)) / SEEDS**0.5
    lead = float(np.mean(ratios)) - 1
    told = {"rates": f"100:1, {SEEDS} runs", "load": load, "slow keys": 1, "ratio": round(1 + lead, 4)}
    return {**told, "lead, in standard errors": round(lead / error, 2) if error else 0.0}


def _lead(one: Sequence[dict[str, Any]]) -> list[Claim]:
    return [
        Claim(
            f"100:1, load {row['load']}, one slow key, {SEEDS} runs: the lead in standard errors",
            row["lead, in standard errors"], 2.0, "higher",
        )
        for row in one
    ]  # fmt: skip


def compared(arrivals: Arrivals) -> dict[str, float]:
    """Queue staleness under the three orders, and how many times staler IN-PLACE is."""
    orders: dict[str, KeyOrder] = {
        "IN-PLACE": InPlace(), "LINECUTTING": Linecutting(), "unguarded": Linecutting(guarded=False),
    }  # fmt: skip
    found = {name: simulate(UpdateQueue(SCHEMA, KEY, order), arrivals) for name, order in orders.items()}
    return {
        **{name: round(outcome.queue, 4) for name, outcome in found.items()},
        "ratio": round(_ratio(found, "LINECUTTING"), 4),
        "ratio, unguarded": round(_ratio(found, "unguarded"), 4),
        "longest wait, times that under IN-PLACE": round(found["LINECUTTING"].longest / found["IN-PLACE"].longest, 2),
    }


def _ratio(found: dict[str, Outcome], name: str) -> float:
    return found["IN-PLACE"].queue / found[name].queue


def _claims(rows: Sequence[dict[str, Any]]) -> list[Claim]:
    mixed = [row for row in rows if 0 < row["slow keys"] < KEYS]
    alike = [abs(row["ratio"] - 1) for row in rows if row["slow keys"] in (0, KEYS)]
    claims = []
    for load in LOADS:
        mine = [row for row in mixed if row["rates"] == "100:1" and row["load"] == load]
        peak = max(mine, key=lambda row: row["ratio"])
        claims.append(
            Claim(f"100:1, load {load}, the least of 1 to 9 slow keys", min(r["ratio"] for r in mine), 1.0, "higher")
        )
        claims.append(
            Claim(f"100:1, load {load}, the peak, at {peak['slow keys']} slow keys", peak["ratio"], 1.1, "higher")
        )
    longest = max(row["longest wait, times that under IN-PLACE"] for row in rows)
    return [
        *claims,
        Claim("keys that update alike: how far from 1, at the worst", max(alike), 0.02, "lower"),
        Claim("anywhere, the least", min(row["ratio"] for row in rows), NO_WORSE, "higher"),
        Claim("the longest wait of a key, times that under IN-PLACE, at the worst", longest, 3.0, "lower"),
    ]


def plot(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """The ratio against the number of slow keys, a chart for each rate."""
    charts: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for rate in RATES:
        lines = charts.setdefault(f"{rate} to 1", {})
        for name, column in (("", "ratio"), (", unguarded", "ratio, unguarded")):
            for load in LOADS if not name else (5,):
                mine = [row for row in rows if row["rates"] == f"{rate}:1" and row["load"] == load]
                lines[f"load {load}{name}"] = [(row["slow keys"], row[column]) for row in mine]
    line_chart(charts, "slow keys of ten", "staleness, IN-PLACE / LINECUTTING", folder / "upstream-9.svg")
