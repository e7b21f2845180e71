"""Figures 5, 7 and 9 in the running graph on the wall clock, beside what the simulated clock says of the same arrivals.

A point is a run of a few seconds, so there are few of them; the random shedding is the one that a conflated stream has
(`policy="shedding"`), with its own headroom. Claims are those of the simulated figures, and that both clocks agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penstock.bench.claims import Claim, Report
from penstock.operators.queues.choosing import queue_for
from penstock.papers.plots import line_chart
from penstock.papers.upstream.figure_07 import AQ, BARS, FIFO, IN_PLACE, RLS
from penstock.papers.upstream.figure_09 import NO_WORSE
from penstock.papers.upstream.running import seen
from penstock.papers.upstream.simulation import KEY, SCHEMA, Arrivals, poisson, simulate, steady

SERVICES = 400
LOADS = (2, 5, 10)
KEYS = (1, 10)
POLICIES = {
    AQ: ("append", "append"),
    RLS: ("shedding", "shed"),
    FIFO: ("fifo", "fifo"),
    IN_PLACE: ("in_place", "in-place"),
}
SLOW = (0, 3, 6, 9, 10)
SLOW_LOAD = 5
AGREES = 1.5
"""How many times the one clock's staleness the other's may be."""
Say = Callable[[str], None]


def figure_5(events: int | None, say: Say) -> Report:
    """Application and queue staleness of one key and of ten, IN-PLACE; `events` are rows served."""
    rows: list[dict[str, Any]] = []
    for keys in KEYS:
        for load in LOADS:
            arrivals = steady(load, keys, events or SERVICES)
            found = seen(arrivals, "in_place")["in_place"]
            simulated = simulate(queue_for(SCHEMA, KEY, "in-place"), arrivals)
            rows.append(
                {
                    "keys": keys,
                    "load": load,
                    "queue staleness": round(found.queue, 3),
                    "application staleness": round(found.application, 3),
                    "as the run tells it": round(found.live, 3),
                    "simulated": round(simulated.application, 3),
                    "cost, ms": round(found.cost * 1000, 2),
                }
            )
        say(f"figure 5, wall clock: {keys} keys")
    by = {(row["keys"], row["load"]): row for row in rows}
    most = LOADS[-1]
    one, ten = by[1, most], by[10, most]
    apart = [row["application staleness"] - row["queue staleness"] for row in rows]
    return Report(
        "upstream-5-wall",
        rows,
        [
            Claim("application less queue staleness, in costs, the least", min(apart), 0.3, "higher"),
            Claim("application less queue staleness, in costs, the most", max(apart), 1.25, "lower"),
            Claim(
                "queue staleness of ten keys, times that of one, at load 10: no less",
                ten["queue staleness"] / one["queue staleness"],
                5.0,
                "higher",
            ),
            Claim(
                "queue staleness of ten keys, times that of one, at load 10: no more",
                ten["queue staleness"] / one["queue staleness"],
                15.0,
                "lower",
            ),
            _agreement([(row["application staleness"], row["simulated"]) for row in rows]),
        ],
    )


def figure_7(events: int | None, say: Say) -> Report:
    """Append queues, random shedding and update queues at three loads; `events` are rows served."""
    rows: list[dict[str, Any]] = []
    pairs: list[tuple[float, float]] = []
    for keys in KEYS:
        for load in LOADS:
            arrivals = steady(load, keys, events or SERVICES)
            told: dict[str, Any] = {"keys": keys, "load": load}
            found = seen(arrivals, *[policy for policy, _ in POLICIES.values()])
            for name, (policy, simulated) in POLICIES.items():
                told[name] = round(found[policy].application, 3)
                if name != RLS:
                    pairs.append((told[name], simulate(queue_for(SCHEMA, KEY, simulated), arrivals).application))
            rows.append(told)
        say(f"figure 7, wall clock: {keys} keys")
    longer = steady(LOADS[0], 10, 2 * (events or SERVICES))
    twice = seen(longer, "append")["append"].application / next(
        r[AQ] for r in rows if (r["keys"], r["load"]) == (10, LOADS[0])
    )
    claims = [
        Claim(
            "IN-PLACE against FIFO, ten keys, the most",
            max(r[IN_PLACE] / r[FIFO] for r in rows if r["keys"] == 10),
            1.0,
            "lower",
        ),
        *(
            Claim(
                f"random shedding against IN-PLACE, {r['keys']} key{'s' * (r['keys'] > 1)}, load {r['load']}",
                r[RLS] / r[IN_PLACE],
                BARS[r["load"]],
                "higher",
            )
            for r in rows
        ),
        Claim("append: a run twice as long", twice, 1.7, "higher"),
        _agreement(pairs),
    ]
    return Report("upstream-7-wall", rows, claims)


def figure_9(events: int | None, say: Say) -> Report:
    """LINECUTTING beside IN-PLACE at rates of 100 to 1, by slow keys of ten; `events` are rows served."""
    rows: list[dict[str, Any]] = []
    for slow in SLOW:
        arrivals = mixed(slow, (events or 2 * SERVICES))
        found = {policy: each.queue for policy, each in seen(arrivals, "in_place", "linecutting").items()}
        simulated = {
            name: simulate(queue_for(SCHEMA, KEY, name), arrivals).queue for name in ("in-place", "linecutting")
        }
        rows.append(
            {
                "slow keys": slow,
                "IN-PLACE": round(found["in_place"], 3),
                "LINECUTTING": round(found["linecutting"], 3),
                "ratio": round(found["in_place"] / found["linecutting"], 3),
                "ratio, simulated": round(simulated["in-place"] / simulated["linecutting"], 3),
            }
        )
        say(f"figure 9, wall clock: {slow} slow keys")
    peak = max(rows, key=lambda row: row["ratio"])
    return Report(
        "upstream-9-wall",
        rows,
        [
            Claim(f"100:1, load 5, the peak, at {peak['slow keys']} slow keys", peak["ratio"], 1.1, "higher"),
            Claim("anywhere, the least", min(row["ratio"] for row in rows), NO_WORSE, "higher"),
        ],
    )


def mixed(slow: int, services: int) -> Arrivals:
    """Updates of ten keys at random times, of which so many update a hundredth as often."""
    return poisson(SLOW_LOAD, np.array([1.0] * slow + [100.0] * (10 - slow)), services)


def _agreement(pairs: Sequence[tuple[float, float]]) -> Claim:
    """How far the clocks are apart, where they are furthest."""
    apart = max(max(wall / simulated, simulated / wall) for wall, simulated in pairs)
    return Claim("the wall clock against the simulated one, either way, the most", apart, AGREES, "lower")


def plot_5(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Both measures and the simulated one."""
    names = ("application staleness", "queue staleness", "simulated")
    _by_keys(rows, names, "staleness, in costs of a row", path, is_log=False)


def plot_7(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """All queues."""
    _by_keys(rows, tuple(POLICIES), "application staleness, in costs of a row", path, is_log=True)


def plot_9(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """The ratio by both clocks."""
    lines = {name: [(row["slow keys"], row[name]) for row in rows] for name in ("ratio", "ratio, simulated")}
    line_chart({"100 to 1, load 5": lines}, "slow keys of ten", "staleness, IN-PLACE / LINECUTTING", path)


def _by_keys(rows: Sequence[dict[str, Any]], names: Sequence[str], up: str, path: Path, *, is_log: bool) -> None:
    charts = {}
    for keys in KEYS:
        mine = [row for row in rows if row["keys"] == keys]
        charts[f"{keys} key{'s' * (keys > 1)}"] = {name: [(row["load"], row[name]) for row in mine] for name in names}
    line_chart(charts, "load", up, path, is_log=is_log)
