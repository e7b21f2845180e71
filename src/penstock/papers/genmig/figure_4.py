"""Figure 4: results a second while a plan is replaced, in real time.

Values enter when it is their time by the clock, a hundred a second on each stream. A bin is a fiftieth of the run, a
second of the paper's. The migration takes as long as two plans are there; it is told in windows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.bench.claims import Claim, Report
from penstock.papers.genmig.join_runs import (
    COALESCE,
    CONTENDERS,
    POINT,
    TRACK,
    VALUES,
    Results,
    Running,
    Setting,
    equal_at,
)
from penstock.papers.plots import line_chart

FIGURE = "4"
BINS = 50
ONE, TWO, BOTH = 1.05, 1.9, 1.8
BURST, SMOOTH, NEVER_LESS = 4.0, 2.0, 0.4


@dataclass
class Seen:
    """What a run in real time came to."""

    counts: list[int] = field(default_factory=lambda: [0] * BINS)
    took: float = 0.0
    """In windows."""
    behind: float = 0.0
    """Seconds that the run was late at most."""
    results: Results = field(default_factory=Results)


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Every strategy, one after the other."""
    setting = Setting(events or VALUES)
    seen: dict[str, Seen] = {}
    rows: list[dict[str, Any]] = []
    for name, contender in CONTENDERS.items():
        seen[name] = in_real_time(contender(setting, equal_at), setting)
        seen[TRACK].results.check(seen[name].results, name)
        rows.append(row_of(name, seen[name]))
        say(f"4: {dict(list(rows[-1].items())[:-1])}")
    return Report("genmig-4", rows, claims(rows))


def in_real_time(running: Running, setting: Setting) -> Seen:
    """Every value in its time."""
    seen, begun, ended = Seen(), None, None
    start = time.perf_counter()
    second = 1000.0
    for now, happens in setting.moments(running.schema):
        due = start + now / second
        waiting = due - time.perf_counter()
        if waiting > 0:
            time.sleep(waiting)
        seen.behind = max(seen.behind, -waiting)
        came = 0
        if begun is None and now >= setting.beginning:
            begun = time.perf_counter()
            came = seen.results.take(running.replace())
        came += seen.results.take(running.given(happens))
        at = time.perf_counter()
        seen.counts[min(int((at - start) * second * BINS / setting.length), BINS - 1)] += came
        if begun is not None and ended is None and not running.operator.is_migrating:
            ended = at
    assert begun is not None
    seen.took = ((ended or time.perf_counter()) - begun) * second / setting.window
    return seen


def row_of(name: str, seen: Seen) -> dict[str, Any]:
    """What is told of a run: of the two windows from the beginning of the migration on, and of the time after them."""
    begins, window = 2 * BINS // 5, BINS // 5
    during, after = seen.counts[begins : begins + 2 * window], seen.counts[begins + 2 * window + 1 :]
    before = seen.counts[begins - window : begins]
    usual = sum(before) / len(before)
    second = seen.counts[begins + window + 1 : begins + 2 * window - 1]  # it may end within the last bin
    return {
        "strategy": name,
        "migration, windows": round(seen.took, 2),
        "results a bin before": round(usual, 1),
        "least during": min(during),
        "in the second window": sum(second),
        "most in a bin": max(seen.counts),
        "results a bin after": round(sum(after) / max(len(after), 1), 1),
        "behind, s": round(seen.behind, 3),
        "series": seen.counts,
    }


def claims(rows: Sequence[dict[str, Any]]) -> list[Claim]:
    """The paper's: w against 2w, an output that is smooth against one that stops and bursts."""
    by = {row["strategy"]: row for row in rows}
    track = by[TRACK]
    usual, by_track = track["results a bin before"] or 1.0, track["migration, windows"]
    made = [
        Claim("Parallel Track: windows that its migration takes", by_track, TWO, "higher"),
        Claim("Parallel Track: results in the second window", track["in the second window"], 0, "lower"),
        Claim("Parallel Track: the most in a bin, times the usual", track["most in a bin"] / usual, BURST, "higher"),
    ]
    for name in (COALESCE, POINT):
        row = by[name]
        own = row["results a bin before"] or 1.0
        took = row["migration, windows"]
        made += [
            Claim(f"{name}: windows that its migration takes", took, ONE, "lower"),
            Claim(f"{name}: Parallel Track takes so many times as long", by_track / took, BOTH, "higher"),
            Claim(f"{name}: the most in a bin, times the usual", row["most in a bin"] / own, SMOOTH, "lower"),
            Claim(f"{name}: the least in a bin, times the usual", row["least during"] / own, NEVER_LESS, "higher"),
        ]
    return made


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Results against time."""
    lines = {row["strategy"]: list(enumerate(row["series"])) for row in rows}
    line_chart({"results": lines}, f"time, run / {BINS}", "results", path)
