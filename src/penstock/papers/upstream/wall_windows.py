"""Figures 13 and 14 in the running graph on the wall clock: aggregates over a stream that is conflated by windows.

A row comes per tick of the clock, and an aggregate of our own sleeps for most of a tick with every row that it is
given; what is left of the tick is for all that the engine does. Staleness is seen from outside, in ticks: a window of a
key is whole when the source has given away a row of the key that is behind it, and is shown when the sink has got its
result. The source says so itself: behind every row it promises, of the key alone, that no earlier one comes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as pk
from penstock.bench.claims import Claim, Report
from penstock.operators.queues.extents import extents_of
from penstock.operators.queues.window_cells import Promise
from penstock.operators.queues.window_choosing import window_queue_for
from penstock.operators.windows.sliding import Sliding
from penstock.papers.plots import line_chart
from penstock.papers.upstream.figure_13 import SCHEMA
from penstock.papers.upstream.running import LATE, Answer, Source, area, together
from penstock.papers.upstream.simulation import COST, Arrivals, zipf
from penstock.papers.upstream.window_service import Arriving, Service

TICK = 0.02
SLEEP, PART = 0.9, 0.95
"""Which part of a tick the aggregate sleeps with a row, and which a row takes with all that the engine does."""
ROWS = 300
RANGES = {"tumbling": (5, 10, 20), "overlapping": (2, 5, 10)}
KEYS = 10
MANY_RANGES = (20, 30, 50)
SKEWS = {"in turn": None, "Zipf 0": 0.0, "Zipf 0.9": 0.9}
LAZY, EAGER = "LAZY", "EAGER"
Say = Callable[[str], None]


class SlowCount:
    """Counts rows, and takes its time with each."""

    def __init__(self, seconds: float) -> None:
        """So many for a row."""
        self.seconds = seconds

    def lift(self, value: int) -> int:
        """A row."""
        time.sleep(self.seconds)
        return 1

    def combine(self, left: int, right: int) -> int:
        """Rows of both."""
        return left + right

    def lower(self, count: int) -> int:
        """How many."""
        return count


def staleness(keys: np.ndarray, window: Sliding, tick: float = TICK) -> dict[str, float]:
    """How stale results of windows are on average, in ticks, in both modes; a row of a key comes every tick."""
    return together({mode: partial(_staleness_once, keys, window, mode.lower(), tick) for mode in (LAZY, EAGER)})


def _staleness_once(keys: np.ndarray, window: Sliding, mode: str, tick: float) -> float | None:
    source = Source(Arrivals(np.arange(len(keys)) * COST, keys), tick)
    shown: list[tuple[int, int, float]] = []

    def sink(table: pa.Table) -> None:
        now = time.monotonic()
        shown.extend((row["key"], row["window_end"], now) for row in table.to_pylist())

    progress = pk.punctuated("is_promise", per=["key"])
    columns = "n BIGINT, key BIGINT, is_promise BOOLEAN"
    flow = pk.Flow().stream("main", _promising(source), time="n", schema=columns, progress=progress)
    flow.aggregate("slow_count", SlowCount(SLEEP * tick), "bigint")
    flow.conflate("calm", "main", key="key", windows=mode, budget=1)
    clause = f"[RANGE {window.range}, SLIDE {window.slide}, WA n]"
    run = flow.query(f"SELECT key, slow_count(n) AS rows {clause} FROM calm GROUP BY key").start(sink)
    source.last.wait()
    end = source.came[-1]
    source.stopped.set()
    run.stop()
    if source.is_disturbed or time.monotonic() - end > LATE + 10 * tick:
        return None
    return seen_of_windows(keys, source.came, shown, window, end) / tick


def _promising(source: Source) -> Iterator[dict[str, Any]]:
    """Every row, and behind it that no earlier one of its key comes."""
    for row in source.rows():
        yield {**row, "is_promise": False}
        yield {**row, "is_promise": True}


def seen_of_windows(
    keys: np.ndarray, came: Sequence[float], shown: Sequence[tuple[int, int, float]], window: Sliding, end: float
) -> float:
    """Staleness on average over time and keys, by when rows came and which results (key, end of window) were seen."""
    total, different = 0.0, np.unique(keys).tolist()
    for key in different:
        own = np.flatnonzero(keys == key)
        behind = {stop: int(np.searchsorted(own, stop)) for stop in range(window.slide, len(came), window.slide)}
        ends = [
            stop
            for stop, after in behind.items()
            if np.searchsorted(own, stop - window.range) < after < len(own) and own[after] < len(came)
        ]
        place = {stop: at for at, stop in enumerate(ends)}
        answers: list[Answer] = [(place[stop], at) for k, stop, at in shown if k == key and stop in place]
        total += area([came[own[behind[stop]]] for stop in ends], answers, end)
    return total / (len(different) * (end - came[0]))


def simulated(keys: np.ndarray, window: Sliding, mode: str) -> float:
    """The same on the simulated clock, with as much of a tick for a row."""
    scale = 100
    queue = window_queue_for(SCHEMA, ["key"], extents_of([window]), mode, promise=Promise.ORDERED)

    arriving: list[Arriving] = [(at * scale, (at, key)) for at, key in enumerate(keys.tolist())]
    Service(queue, int(PART * scale)).run(arriving, until=(len(keys) - 1) * scale)
    return queue.staleness((len(keys) - 1) * scale).average_application / scale


def figure_13(events: int | None, say: Say) -> Report:
    """One key, tumbling and overlapping windows; `events` are rows that come."""
    keys = np.zeros(events or ROWS, np.int64)
    rows: list[dict[str, Any]] = []
    for kind, ranges in RANGES.items():
        for range_ in ranges:
            window = Sliding(range_, range_ if kind == "tumbling" else 1)
            found = {name: float(f"{value:.4g}") for name, value in staleness(keys, window).items()}
            rows.append({"windows": kind, "range": range_, **found})
        say(f"figure 13, wall clock: {kind} windows")
    tumbling = [row for row in rows if row["windows"] == "tumbling"]
    slopes = [row[LAZY] / row["range"] for row in tumbling]
    claims = [
        Claim(
            "tumbling: LAZY per tick of the range, the most against the least", max(slopes) / min(slopes), 1.4, "lower"
        ),
        # Falling, as on the simulated clock, is less than what a clock on the wall can tell apart.
        Claim("tumbling: EAGER, in ticks, the most", max(row[EAGER] for row in tumbling), 0.01, "lower"),
        *(
            Claim(
                f"{kind}: LAZY against EAGER, the least",
                min(r[LAZY] / r[EAGER] for r in rows if r["windows"] == kind),
                1.2,
                "higher",
            )
            for kind in RANGES
        ),
    ]
    return Report("upstream-13-wall", rows, claims)


def figure_14(events: int | None, say: Say) -> Report:
    """Ten keys, in turn and by lot; `events` are rows that come."""
    rows: list[dict[str, Any]] = []
    for name, skew in SKEWS.items():
        keys = keys_of(skew, events or ROWS)
        for range_ in MANY_RANGES:
            window = Sliding(range_, 1)
            found = staleness(keys, window)
            expected = simulated(keys, window, "eager") / simulated(keys, window, "lazy")
            told = {mode: round(value, 3) for mode, value in found.items()}
            ratio = round(found[EAGER] / found[LAZY], 3)
            rows.append(
                {
                    "rows come": name,
                    "range": range_,
                    **told,
                    "EAGER against LAZY": ratio,
                    "simulated": round(expected, 3),
                }
            )
        say(f"figure 14, wall clock: {name}")
    apart = max(max(r["EAGER against LAZY"] / r["simulated"], r["simulated"] / r["EAGER against LAZY"]) for r in rows)
    least = {name: min(r["EAGER against LAZY"] for r in rows if r["rows come"] == name) for name in SKEWS}
    turn = max(row["EAGER against LAZY"] for row in rows if row["rows come"] == "in turn")
    return Report(
        "upstream-14-wall",
        rows,
        [
            Claim("in turn: EAGER against LAZY, the most", turn, 0.95, "lower"),
            *(Claim(f"{name}: EAGER against LAZY, the least", least[name], 1.0, "higher") for name in list(SKEWS)[1:]),
            Claim("the wall clock against the simulated one, either way, the most", apart, 1.5, "lower"),
        ],
    )


def keys_of(skew: float | None, rows: int) -> np.ndarray:
    """Which key each row is of."""
    if skew is None:
        return np.arange(rows) % KEYS
    shares = zipf(KEYS, skew)
    return np.random.default_rng(7).choice(KEYS, rows, p=shares / shares.sum())


def plot_13(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """A chart for tumbling and one for overlapping windows."""
    charts = {
        kind: {name: [(r["range"], r[name]) for r in rows if r["windows"] == kind] for name in (LAZY, EAGER)}
        for kind in RANGES
    }
    line_chart(charts, "range, ticks", "application staleness, ticks", path)


def plot_14(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """The ratio by both clocks."""
    charts = {
        title: {n: [(r["range"], r[title]) for r in rows if r["rows come"] == n] for n in SKEWS}
        for title in ("EAGER against LAZY", "simulated")
    }
    line_chart(charts, "range, ticks", "EAGER against LAZY", path)
