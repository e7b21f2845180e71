"""LINECUTTING under the rates of Figure 8, and with slow keys that burst together (section 5.3).

A trading day: 3100 keys, of which the quickest updates 4305 times and the slowest once, in between by the power of the
rank that joins the two. The paper's data are not public, so this is a generator with their extremes; updates are spread
over the day at random, and load says how many come in the time that one takes.

Bursts: five keys update at random all the time, and five others all at once, every hundred costs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.bench.claims import Claim, Report
from penstock.papers.upstream.figure_09 import LOADS, NO_WORSE, compared
from penstock.papers.upstream.simulation import COST, Arrivals, poisson

FIGURE = "8"
SYMBOLS, MOST = 3100, 4305
DAYS = 2
BURST, EVERY = 5, 100
SERVICES = 6000


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Days and bursts at every load; `events` are updates of the quickest key, and rows served."""
    rows: list[dict[str, Any]] = []
    for load in LOADS:
        rows.append({"arrivals": "trading days", "load": load, **compared(trading_days(load, events or MOST))})
        rows.append({"arrivals": "bursts", "load": load, **compared(bursts(load, events or SERVICES))})
        say(f"figure 8: load {load}")
    claims = []
    for name in ("trading days", "bursts"):
        mine = [row for row in rows if row["arrivals"] == name]
        claims.append(Claim(f"{name}: the least of all loads", min(r["ratio"] for r in mine), NO_WORSE, "higher"))
        claims.append(Claim(f"{name}: the most of all loads", max(r["ratio"] for r in mine), 1.05, "higher"))
    return Report("upstream-8", rows, claims)


def trading_days(load: float, most: int = MOST, seed: int = 1) -> Arrivals:
    """Updates of days on which the quickest key updates `most` times and the slowest once."""
    power = np.log(most) / np.log(SYMBOLS)
    counts = np.maximum(1, np.round(most * np.arange(1, SYMBOLS + 1) ** -power)).astype(np.int64) * DAYS
    keys = np.repeat(np.arange(SYMBOLS), counts)
    random = np.random.default_rng(seed)
    random.shuffle(keys)
    times = np.sort(random.random(len(keys)) * len(keys) * COST / load).astype(np.int64)
    return Arrivals(times, keys)


def bursts(load: float, services: int, seed: int = 1) -> Arrivals:
    """Some keys at random, as many others all at once from time to time."""
    quick = poisson(load, np.ones(BURST), services, seed)
    starts = np.arange(EVERY // 2, services, EVERY) * COST
    times = np.concatenate([quick.times, np.repeat(starts, BURST)])
    keys = np.concatenate([quick.keys, np.tile(np.arange(BURST, 2 * BURST), len(starts))])
    order = np.argsort(times, kind="stable")
    return Arrivals(times[order], keys[order])
