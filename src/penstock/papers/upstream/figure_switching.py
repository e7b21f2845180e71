"""From append to update and back with load (named in section 8): a load step, and nothing lost or re-ordered.

Ten keys, half the load that the consumer can follow, then five times as much as it can, then half again. The queue that
switches (`adaptive`) hands on every row as long as the line is short, and of each key the newest once it is not. Beside
it are a queue of all rows and one of the newest only. Time is simulated, in the engine's own graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import penstock as pk
from penstock.bench.claims import Claim, Report
from penstock.model.batch import Row
from penstock.papers.plots import line_chart
from penstock.papers.upstream.by_hand import COST, ByHand
from penstock.reference.updates import owed

FIGURE = "switching"
SERVICES, KEYS = 1200, 10
LOADS = (0.5, 5.0, 0.5)
PARTS = 12
"""Parts of the run of which each is told."""
WAYS: dict[str, dict[str, Any]] = {
    "switching": {"adaptive": True, "max_staleness": f"{50 * COST} microseconds"},
    "append": {"policy": "append"},
    "update": {},
}


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """All three queues; `events` are rows that there is time for."""
    times, rows = arrivals(events or SERVICES)
    told: list[dict[str, Any]] = []
    faults: dict[str, tuple[int, bool]] = {}
    for name, options in WAYS.items():
        query: Any = pk.conflate([], time="ts", key="key", schema="ts BIGINT, key BIGINT", **options)
        clock = ByHand("stream")
        clock.play(query.execution(), times, rows, clock.works)
        faults[name] = (
            _reordered(clock.out),
            owed(rows, [row for _, row in clock.out], query.schema, ["key"]) is not None,
        )
        told += [{"queue": name, **part} for part in _parts(times, clock.out)]
        say(f"switching: {name}")
    return Report(f"upstream-{FIGURE}", told, _claims(told, faults))


def arrivals(services: int) -> tuple[list[int], list[Row]]:
    """Three parts of equal length, each with its load; rows at even distances, of keys by lot."""
    length, times = services * COST // 3, []
    for at, load in enumerate(LOADS):
        times += [at * length + int(n * COST / load) for n in range(int(length * load / COST))]
    keys = np.random.default_rng(3).integers(0, KEYS, len(times)).tolist()
    return times, [(number, key) for number, key in enumerate(keys)]


def _parts(times: Sequence[int], out: Sequence[tuple[int, Row]]) -> list[dict[str, Any]]:
    """Of every part of the run: which part of its rows came, and how old they were then."""
    length = times[-1] / PARTS
    came: dict[int, int] = {row[0]: at for at, row in out}  # type: ignore[misc]
    found = []
    for part in range(PARTS):
        mine = [n for n, at in enumerate(times) if part * length <= at < (part + 1) * length]
        ages = [(came[n] - times[n]) / COST for n in mine if n in came]
        told = {"time, costs": round((part + 1) * length / COST), "rows that came": round(len(ages) / len(mine), 3)}
        found.append({**told, "age, costs": round(float(np.mean(ages)), 2) if ages else None})
    return found


def _reordered(out: Sequence[tuple[int, Row]]) -> int:
    """How many rows came behind a newer one of their key."""
    newest: dict[object, int] = {}
    wrong = 0
    for _, row in out:
        number, key = int(str(row[0])), row[1]
        wrong += newest.get(key, -1) > number
        newest[key] = max(newest.get(key, -1), number)
    return wrong


def _claims(rows: Sequence[dict[str, Any]], faults: dict[str, tuple[int, bool]]) -> list[Claim]:
    mine = [row for row in rows if row["queue"] == "switching"]
    append = [row for row in rows if row["queue"] == "append"]
    third = PARTS // 3
    calm = [*mine[:third], *mine[-third + 1 :]]  # the first part after the step takes what was left
    peak = max(row["age, costs"] for row in mine if row["age, costs"] is not None)
    return [
        Claim("rows that came behind a newer one of their key", faults["switching"][0], 0, "lower"),
        Claim("keys' last values: something is missing (1) or not (0)", int(faults["switching"][1]), 0, "lower"),
        Claim(
            "part of the rows that came before the step, and after it",
            min(row["rows that came"] for row in calm),
            1.0,
            "higher",
        ),
        Claim(
            "part of the rows that came at five times the load",
            max(row["rows that came"] for row in mine[third + 1 : 2 * third]),
            0.5,
            "lower",
        ),
        Claim(
            "the age of rows at its worst, against an append queue",
            peak / max(row["age, costs"] for row in append),
            0.1,
            "lower",
        ),
        Claim("the same, in costs: half of what is allowed, and the rest of a line", peak, 50.0, "lower"),
    ]


def plot(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Ages and shares over time."""
    charts = {
        title: {
            name: [(r["time, costs"], r[title]) for r in rows if r["queue"] == name and r[title] is not None]
            for name in WAYS
        }
        for title in ("age, costs", "rows that came")
    }
    line_chart(charts, "time, costs", "", folder / f"upstream-{FIGURE}.svg")
