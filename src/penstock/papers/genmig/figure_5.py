"""Figure 5: memory while a plan is replaced.

What is held does not depend on the clock, so values enter as fast as they can. Bytes are those of all state, as Python
has it, results that wait to come out among them. The paper counts the memory of values alone: `values` are those.
Before and after the migration strategies differ only if they purge by different rules, so what is compared is what they
have during it, and each one's increase against its own memory before.
"""

from __future__ import annotations

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
    Results,
    Running,
    Setting,
    equal_at,
)
from penstock.papers.plots import line_chart

FIGURE = "5"
SAMPLES = 50
MORE = 1.0


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Every strategy, one after the other."""
    setting = Setting(events or VALUES)
    rows: list[dict[str, Any]] = []
    first: Results | None = None
    for name, contender in CONTENDERS.items():
        results = Results()
        series = sampled(contender(setting, equal_at), setting, results)
        first = first or results
        first.check(results, name)
        rows.append(row_of(name, series))
        say(f"5: {dict(list(rows[-1].items())[:-1])}")
    return Report("genmig-5", rows, claims(rows))


def sampled(running: Running, setting: Setting, results: Results) -> list[tuple[int, int]]:
    """Bytes and values in each fiftieth of a run."""
    series: list[tuple[int, int]] = []
    begun = False
    every = max(setting.values // SAMPLES, 1)
    for at, (now, happens) in enumerate(setting.moments(running.schema)):
        if not begun and now >= setting.beginning:
            begun = True
            results.take(running.replace())
        results.take(running.given(happens))
        if (at + 1) % every == 0:
            series.append((running.bytes_held(), running.values_held()))
    return series


def row_of(name: str, series: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Means before the migration, in the two windows from its beginning on, and after them."""
    fifth = len(series) // 5

    def mean(part: Sequence[tuple[int, int]], which: int) -> int:
        return round(sum(each[which] for each in part) / max(len(part), 1))

    before, during, after = series[fifth : 2 * fifth], series[2 * fifth : 4 * fifth], series[4 * fifth :]
    return {
        "strategy": name,
        "bytes before": mean(before, 0), "bytes during": mean(during, 0), "bytes at most": max(s[0] for s in series),
        "bytes after": mean(after, 0), "values before": mean(before, 1), "values during": mean(during, 1),
        "series": [each[0] for each in series],
    }  # fmt: skip


def claims(rows: Sequence[dict[str, Any]]) -> list[Claim]:
    """Parallel Track needs more during a migration, also where it purges as we do."""
    by = {row["strategy"]: row for row in rows}
    return [
        Claim(f"bytes during a migration: {track} against {name}", by[track]["bytes during"] / by[name]["bytes during"],
              MORE, "higher")
        for name in (COALESCE, POINT)
        for track in (TRACK, TRACK_BY_ENDS)
    ]  # fmt: skip


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Bytes against time."""
    lines = {row["strategy"]: [(at, n / 1e6) for at, n in enumerate(row["series"])] for row in rows}
    line_chart({"state": lines}, f"time, run / {SAMPLES}", "MB", path)
