"""Figures 16 and 17 in the running graph on the wall clock: the bytes of pages that a conflated stream holds.

A hundred keys by Zipf's law, a consumer that takes a fixed time for each row, and sources that are two to fifty times
as fast. Rows are large (16 KB), so that pages are a good part of what the process holds: what is told are the bytes
that the operating system gave for pages (`run.progress.queues`), on average over the run, and by how much the process
shrank, as the system counts it, when what waited was taken.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as pk
from penstock.bench.claims import Claim, Report
from penstock.operators.queues.page_pool import PAGE_BYTES
from penstock.papers.plots import line_chart
from penstock.papers.upstream.running import LATE, Source, undisturbed
from penstock.papers.upstream.simulation import COST, Arrivals, zipf

KEYS, SECONDS, ROWS = 100, 0.02, 150
THETAS = (0.0, 0.6, 0.9)
LOADS = (2, 5, 10)
SKEWED = 5
"""The load at which skews are compared."""
MEMORIES = {"on-demand": "on_demand", "naive": "naive"}
NOTE = "n" * 16_000
EFFECTIVE, HELD, SHRANK = "effective usage", "bytes of pages, average", "bytes that the process shrank by"
Say = Callable[[str], None]


def used(theta: float, load: int, memory: str, services: int = ROWS) -> dict[str, float]:
    """What a run took: effective usage and bytes of pages on average; and what the process gave back in the end."""
    return undisturbed(lambda: _used_once(theta, load, memory, services))


def _used_once(theta: float, load: int, memory: str, services: int) -> dict[str, float] | None:
    shares = zipf(KEYS, theta)
    rows = services * load
    keys = np.random.default_rng(int(theta * 10) + load).choice(KEYS, rows, p=shares / shares.sum())
    source = Source(Arrivals((np.arange(rows) * (COST / load)).astype(np.int64), keys), SECONDS, NOTE)
    hurry = threading.Event()

    def sink(table: pa.Table) -> None:
        hurry.wait(SECONDS)

    run = pk.conflate(
        source.rows(), time="n", key="key", schema="n BIGINT, key BIGINT, note STRING", budget=1, memory=memory
    ).start(sink)
    source.last.wait()
    queue = run.progress.queues[0]
    before = _resident()
    hurry.set()
    while run.progress.queues[0].waiting and not source.is_disturbed:
        time.sleep(0.001)
    after = _resident()
    late = time.monotonic() - source.came[-1] > LATE + KEYS * SECONDS
    source.stopped.set()
    run.stop()
    if source.is_disturbed or late:
        return None
    return {EFFECTIVE: queue.memory_usage, HELD: queue.average_memory, SHRANK: before - after, "held": queue.memory}


def _resident() -> int:
    """What the process holds, in bytes, as the operating system counts it."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def figure_16(events: int | None, say: Say) -> Report:
    """Every skew; `events` are rows served."""
    rows = [
        _row({"skew": theta}, name, used(theta, SKEWED, memory, events or ROWS))
        for theta in THETAS
        for name, memory in MEMORIES.items()
    ]
    say("figure 16, wall clock")
    naive = [row[EFFECTIVE] for row in rows if row["memory"] == "naive"]
    falls = sum(later < earlier for earlier, later in pairwise(naive))
    claims = [
        *_claims(rows),
        Claim(
            f"effective usage of naive memory falls with skew, in so many of {len(naive) - 1} steps",
            falls,
            len(naive) - 1,
            "higher",
        ),
    ]
    return Report("upstream-16-wall", rows, claims)


def figure_17(events: int | None, say: Say) -> Report:
    """Every load; `events` are rows served."""
    rows = [
        _row({"load": load}, name, used(THETAS[-1], load, memory, events or ROWS))
        for load in LOADS
        for name, memory in MEMORIES.items()
    ]
    say("figure 17, wall clock")
    naive = [row[EFFECTIVE] for row in rows if row["memory"] == "naive"]
    rises = sum(later > earlier for earlier, later in pairwise(naive))
    claims = [
        *_claims(rows),
        Claim(
            f"effective usage of naive memory rises with load, in so many of {len(naive) - 1} steps",
            rises,
            len(naive) - 1,
            "higher",
        ),
    ]
    return Report("upstream-17-wall", rows, claims)


def _row(which: dict[str, Any], name: str, found: dict[str, float]) -> dict[str, Any]:
    told = {HELD: round(found[HELD]), SHRANK: round(found[SHRANK]), "bytes of pages at that time": round(found["held"])}
    return {**which, "memory": name, EFFECTIVE: round(found[EFFECTIVE], 3), **told}


def _claims(rows: Sequence[dict[str, Any]]) -> list[Claim]:
    paged = [row for row in rows if row["memory"] == "on-demand"]
    naive = [row for row in rows if row["memory"] == "naive"]
    worst = max(ours[HELD] / theirs[HELD] for ours, theirs in zip(paged, naive, strict=True))
    # In all: what else the process takes meanwhile is a good part of the few pages of a single run.
    back = sum(row[SHRANK] for row in paged) / sum(row["bytes of pages at that time"] - PAGE_BYTES for row in paged)
    return [
        Claim("effective usage of on-demand paging, the least", min(r[EFFECTIVE] for r in paged), 1.0, "higher"),
        Claim("bytes of pages on average against naive, the most", worst, 0.999, "lower"),
        Claim(
            "the processes shrank by this part of their pages, but for one each that is kept, when all was taken",
            back,
            0.8,
            "higher",
        ),
    ]


def plot_16(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """By skew."""
    _plot(rows, "skew", path)


def plot_17(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """By load."""
    _plot(rows, "load", path)


def _plot(rows: Sequence[dict[str, Any]], across: str, path: Path) -> None:
    charts = {
        title: {name: [(r[across], r[title]) for r in rows if r["memory"] == name] for name in MEMORIES}
        for title in (EFFECTIVE, HELD)
    }
    line_chart(charts, across, "", path)
