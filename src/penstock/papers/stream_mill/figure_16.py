"""Figure 16: how bursty the output of a sliding window over the union is, against its SLIDE.

Burstiness is (max - min) / mean of the results counted in each 0.02 s. With nothing from a slow stream that is silent,
the windows of seconds close together when its next row comes; with promises on demand each closes in its time. Windows
of the first moments are left out, and those that are open when the streams end; what the last row of the slow stream
lets out counts to the last 0.02 s. A SLIDE of 0.02 s is the longest of which each 0.02 s can have a result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.bench.claims import Claim, Report
from penstock.papers.plots import line_chart
from penstock.papers.stream_mill.union_runs import (
    NOTHING,
    ON_DEMAND,
    UNION,
    Arrivals,
    Playing,
    Way,
    check_whole,
    flow_of,
)  # fmt: skip

FIGURE = "16"
ROWS = 2000
SLIDES = (1, 2, 5, 10, 20)
"""In milliseconds."""
RANGE = 100
BIN = 0.02
BEGIN = 0.2
"""So many seconds after the first row of the slow stream windows are counted."""
FLAT, CUT = 5.0, 10.0
LEAST = 0.01
"""Less burstiness is not told apart from none."""


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Every SLIDE with and without promises; `events` are about so many rows of the fast stream."""
    arrivals = Arrivals.by_poisson(events or ROWS)
    rows: list[dict[str, Any]] = []
    for slide in SLIDES:
        for way in (NOTHING, ON_DEMAND):
            counts = results_counted(arrivals, way, slide)
            rows.append({
                "SLIDE, ms": slide, "while silent": way.name, "results": int(counts.sum()),
                "most in 0.02 s": int(counts.max()), "least": int(counts.min()),
                "burstiness": round(burstiness(counts), 2),
            })  # fmt: skip
            say(f"16: {rows[-1]}")
    return Report("stream-mill-16", rows, _claims(rows))


def burstiness(counts: np.ndarray) -> float:
    """The paper's; none where nothing came."""
    return float((counts.max() - counts.min()) / counts.mean()) if counts.any() else 0.0


def results_counted(arrivals: Arrivals, way: Way, slide: int) -> np.ndarray:
    """The results of each 0.02 s."""
    playing = Playing(arrivals)
    out: list[tuple[float, pa.Table]] = []
    flow = flow_of(playing, way)
    window = f"[RANGE {RANGE} MILLISECONDS, SLIDE {slide} MILLISECONDS, WA ts]"
    query = flow.query(f"SELECT count(*) AS c {window} FROM ({UNION}) u", name="windows")
    run = flow.start({query: lambda table: out.append((time.perf_counter(), table))})
    playing.begin()
    run.wait()
    check_whole(run)
    first, last = (playing.stamps[at] for at in (len(arrivals.fast), len(arrivals.fast) - 1))
    came, wanted = list[float](), first + timedelta(seconds=BEGIN)
    for when, table in out:
        closed = sum(wanted <= end <= last for end in table.column("window_end").to_pylist())
        came += [when] * closed
    bins = int((arrivals.slow[-1] - BEGIN) / BIN)
    at = (np.array(came) - playing.start - BEGIN) / BIN
    counts, _ = np.histogram(np.clip(at, 0, bins - 0.5), bins, (0, bins))
    return counts


def _claims(rows: Sequence[dict[str, Any]]) -> list[Claim]:
    by = {(row["SLIDE, ms"], row["while silent"]): row["burstiness"] for row in rows}
    flat = max(by[slide, ON_DEMAND.name] for slide in SLIDES)
    return [
        Claim("burstiness with promises on demand, the most of all SLIDEs", flat, FLAT, "lower"),
        *(
            Claim(f"SLIDE of {slide} ms: burstiness with nothing, times that with promises on demand",
                  by[slide, NOTHING.name] / max(by[slide, ON_DEMAND.name], LEAST), CUT, "higher")
            for slide in SLIDES
        ),
    ]  # fmt: skip


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Burstiness against SLIDE."""
    lines = {
        way.name: [(row["SLIDE, ms"], row["burstiness"]) for row in rows if row["while silent"] == way.name]
        for way in (NOTHING, ON_DEMAND)
    }
    line_chart({"burstiness of the output": lines}, "SLIDE, ms", "(max - min) / mean", path, is_log=True)
