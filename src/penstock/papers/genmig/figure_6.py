"""Figure 6: how long the whole run takes if values enter as fast as they can, with a costly condition.

Strategies run in turn, several rounds, and the least time of each is told, so that what else a machine does befalls
all. The slope of a curve is the output rate.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from penstock.bench.claims import Claim, Report
from penstock.papers.genmig.join_runs import (
    COALESCE,
    CONTENDERS,
    POINT,
    TRACK,
    TRACK_BY_ENDS,
    VALUES,
    Costly,
    Results,
    Running,
    Setting,
)
from penstock.papers.plots import line_chart

FIGURE = "6"
ROUNDS = 3
POINTS = 50
MORE = 1.0


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Every strategy in every round."""
    setting = Setting(events or VALUES)
    curves: dict[str, list[tuple[float, int]]] = {}
    first: Results | None = None
    for turn in range(ROUNDS):
        for name, contender in CONTENDERS.items():
            results = Results()
            curve = saturated(contender(setting, Costly), setting, results)
            first = first or results
            first.check(results, name)
            if name not in curves or curve[-1][0] < curves[name][-1][0]:
                curves[name] = curve
            say(f"6: round {turn + 1}, {name}: {curve[-1][0]:.2f} s")
    rows = [
        {"strategy": name, "time, s": round(curve[-1][0], 2), "results": curve[-1][1],
         "series": [(round(at, 3), n) for at, n in curve]}
        for name, curve in curves.items()
    ]  # fmt: skip
    return Report("genmig-6", rows, claims({name: curve[-1][0] for name, curve in curves.items()}))


def saturated(running: Running, setting: Setting, results: Results) -> list[tuple[float, int]]:
    """Time by the clock and results so far, at every fiftieth of the values."""
    curve: list[tuple[float, int]] = []
    moments = list(setting.moments(running.schema))
    every = max(len(moments) // POINTS, 1)
    total, begun = 0, False
    gc.collect()
    start = time.perf_counter()
    for at, (now, happens) in enumerate(moments):
        if not begun and now >= setting.beginning:
            begun = True
            total += results.take(running.replace())
        total += results.take(running.given(happens))
        if (at + 1) % every == 0 or at + 1 == len(moments):
            curve.append((time.perf_counter() - start, total))
    return curve


def claims(times: dict[str, float]) -> list[Claim]:
    """Parallel Track takes longer, and joining at T something."""
    return [
        Claim(f"time: {TRACK} against {COALESCE}", times[TRACK] / times[COALESCE], MORE, "higher"),
        Claim(f"time: {TRACK_BY_ENDS} against {COALESCE}", times[TRACK_BY_ENDS] / times[COALESCE], MORE, "higher"),
        Claim(f"time: {COALESCE} against {POINT}", times[COALESCE] / times[POINT], MORE, "higher"),
    ]


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Results so far against time."""
    lines = {row["strategy"]: row["series"] for row in rows}
    line_chart({"results so far": lines}, "time, s", "results", path)
