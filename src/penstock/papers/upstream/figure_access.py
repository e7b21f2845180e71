"""Access rates: "GOOG every minute, GM every hour" (named in section 8), met at least cost.

Twenty keys update at four times the rate that their consumer can follow. Of five a value is wanted every ten costs, of
five every fifty, of ten every two hundred: together two thirds of what the consumer can do. With `access`, a key costs
one row a period. Without it the consumer works all the time and every key comes every twenty costs, too rarely for some
and too often for others; at one rate for all (`every`), the rate that some need is more than the consumer can do.

A period is met if the next value comes within the period, the time until the key updates, and a turn of all keys. The
least cost is a row for every period. Time is simulated, in the engine's own graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import penstock as pk
from penstock.bench.claims import Claim, Report
from penstock.papers.plots import line_chart
from penstock.papers.upstream.by_hand import COST, ByHand

FIGURE = "access"
SERVICES, LOAD = 2000, 4
PERIODS = [10] * 5 + [50] * 5 + [200] * 10
"""Of every key, in costs."""
NEXT_UPDATE = len(PERIODS) / LOAD
TURN = 4
"""Costs that a key may wait for others that are wanted at the same time, on top of that."""
RATES, NONE, ONE_RATE = "a rate for each", "no rates", "one rate for all"


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """With rates, without, and with one for all; `events` are rows that there is time for."""
    services = events or SERVICES
    access = {key: f"{period * COST} microseconds" for key, period in enumerate(PERIODS)}
    ways: dict[str, dict[str, Any]] = {
        RATES: {"access": access},
        NONE: {},
        ONE_RATE: {"every": f"{10 * COST} microseconds"},
    }
    rows: list[dict[str, Any]] = []
    for name, options in ways.items():
        served = played(services, options)
        for period in dict.fromkeys(PERIODS):
            gaps = np.concatenate([np.diff(served[key]) for key, own in enumerate(PERIODS) if own == period]) / COST
            rows.append(
                {
                    "access": name,
                    "wanted every": period,
                    "comes every": round(float(gaps.mean()), 2),
                    "periods met": round(float((gaps <= period + NEXT_UPDATE + TURN).mean()), 4),
                    "rows, times the least": round(len(gaps) / (services / period * PERIODS.count(period)), 3),
                    "part of the consumer's time": round(sum(map(len, served)) / services, 3),
                }
            )
        say(f"access: {name}")
    return Report(f"upstream-{FIGURE}", rows, _claims(rows))


def played(services: int, options: dict[str, Any]) -> list[list[int]]:
    """When a value of each key came."""
    keys = np.concatenate(
        [np.random.default_rng(n).permutation(len(PERIODS)) for n in range(services * LOAD // len(PERIODS))]
    )
    times = (np.arange(len(keys)) * COST // LOAD).tolist()
    query: Any = pk.conflate([], time="ts", key="key", schema="ts BIGINT, key BIGINT", **options)
    clock = ByHand("stream")
    clock.play(query.execution(), times, [(at, int(key)) for at, key in enumerate(keys)], clock.works)
    served: list[list[int]] = [[] for _ in PERIODS]
    for at, (_, key) in clock.out:
        if at <= times[-1]:
            served[key].append(at)  # type: ignore[call-overload]
    return served


def _claims(rows: Sequence[dict[str, Any]]) -> list[Claim]:
    mine = [row for row in rows if row["access"] == RATES]
    plain = next(row for row in rows if row["access"] == NONE)
    one = next(row for row in rows if row["access"] == ONE_RATE)
    return [
        Claim("with rates: periods that are met, the least", min(row["periods met"] for row in mine), 0.99, "higher"),
        Claim(
            "with rates: rows against one for every period, the most",
            max(row["rows, times the least"] for row in mine),
            1.0,
            "lower",
        ),
        Claim(
            "without: periods of the keys that are wanted most often that are met", plain["periods met"], 0.5, "lower"
        ),
        Claim("one rate for all: the same", one["periods met"], 0.5, "lower"),
        Claim(
            "the consumer's time, with rates against without",
            mine[0]["part of the consumer's time"] / plain["part of the consumer's time"],
            0.7,
            "lower",
        ),
    ]


def plot(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """How often values come, by how often they are wanted."""
    names = dict.fromkeys(row["access"] for row in rows)
    lines = {name: [(r["wanted every"], r["comes every"]) for r in rows if r["access"] == name] for name in names}
    line_chart(
        {"twenty keys, load 4": lines}, "wanted every, costs", "comes every, costs", folder / f"upstream-{FIGURE}.svg"
    )
