"""Figure 15: promises by ETS arcs, against promises that go from operator to operator.

A union that keeps order, of a stream that always has a row and one that is silent and promises the time when it is
asked. Between the silent stream and the union are so many operators, selections and projections, that do nothing with a
promise. Both sources are asked in their turns, in the thread of the run, so that nothing but the run itself is in the
latency: from when a row was given to when the sink is given its result, which is when the promise has come through.
*The promise alone* is from when it was asked for to then. Rounds by arcs and as elements take turns, and of each the
round with the least median counts.

The graph of which a share is claimed is that with the most operators. In the paper too the difference is minimal on
simple graphs, and its 14% is of one graph. Of the smaller ones it is claimed that the share grows from one to the next.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

import penstock as pk
from penstock.bench.claims import Claim, Report
from penstock.papers.plots import line_chart
from penstock.papers.stream_mill.union_runs import SCHEMA, Clock, check_whole, watched

FIGURE = "15"
PASSED = (0, 2, 4, 8, 16)
ROWS = 1000
ROUNDS = 7
LESS = 0.14
WAYS = ("by arcs", "as elements")


@dataclass
class Given:
    """When the rows of a run were given, and how it is with the streams."""

    rows: int
    at: list[float]
    promised: float = 0.0
    """When the last promise was asked for."""
    is_begun: bool = False

    @property
    def is_over(self) -> bool:
        """Whether all rows were given."""
        return len(self.at) == self.rows


class Speaking:
    """A source that always has a row, until it has given all."""

    def __init__(self, given: Given) -> None:
        """It writes down when."""
        self.given, self.clock = given, Clock()

    def poll(self) -> Any:
        """The next row."""
        if self.given.is_over:
            return pk.END
        if not self.given.is_begun:
            return pk.IDLE
        self.given.at.append(time.perf_counter())
        return {"ts": self.clock.stamp(), "n": len(self.given.at) - 1, "v": 0}


class Silent:
    """A source that never has a row, and knows the time."""

    def __init__(self, given: Given) -> None:
        """It ends when the other one has."""
        self.given = given

    def poll(self) -> Any:
        """Nothing."""
        return pk.END if self.given.is_over else pk.IDLE

    def promise(self, now: int) -> int:
        """Nothing below now comes any more."""
        self.given.promised = time.perf_counter()
        return now


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Every number of operators; `events` rows are given in a round."""
    rows: list[dict[str, Any]] = []
    for passed in PASSED:
        rounds = [[latencies(passed, events or ROWS, by_arcs=each) for each in (True, False)] for _ in range(ROUNDS)]
        row: dict[str, Any] = {"operators passed": passed}
        for at, what in enumerate(("latency", "the promise alone")):
            by_arcs, as_elements = (min(each[way][at] for each in rounds) for way in (0, 1))
            row[f"{what} by arcs, µs"] = round(1e6 * by_arcs, 1)
            row[f"{what} as elements, µs"] = round(1e6 * as_elements, 1)
            row[f"{what}, less, %"] = round(100 * (1 - by_arcs / as_elements), 1)
        rows.append(row)
        say(f"15: {rows[-1]}")
    return Report("stream-mill-15", rows, _claims(rows))


def latencies(passed: int, rows: int, *, by_arcs: bool) -> tuple[float, float]:
    """Medians in seconds: from when a row was given to its result, and from when the promise was asked for."""
    given = Given(rows, [])
    whole: list[float] = []
    alone: list[float] = []

    def take(table: pa.Table) -> None:
        now = time.perf_counter()
        if not given.is_over:  # else the end lets it go on
            whole.extend(now - given.at[number] for number in table.column("n").to_pylist())
            alone.append(now - given.promised)

    flow = pk.Flow().stream("fast", Speaking(given), time="ts", schema=SCHEMA, progress=pk.ordered())
    flow.stream("slow", Silent(given), time="ts", schema=SCHEMA, progress=pk.ordered())
    run = flow.start({flow.query(sql_with(passed), name="union"): take})
    run.execution.use_ets_arcs(used=by_arcs)
    watched(run)
    given.is_begun = True
    run.wait()
    check_whole(run)
    return statistics.median(whole), statistics.median(alone)


def sql_with(passed: int) -> str:
    """A union of the stream that speaks and the silent one, with so many operators behind that."""
    slow = "slow"
    for number in range(passed // 2):
        slow = f"(SELECT ts, n, v + 1 AS v FROM {slow} s{number} WHERE v <> {number})"
    return f"SELECT * FROM fast UNION ALL SELECT * FROM {slow} s"


def _claims(rows: Sequence[dict[str, Any]]) -> list[Claim]:
    claims = []
    for what in ("latency", "the promise alone"):
        shares = [row[f"{what}, less, %"] / 100 for row in rows]
        claims.append(Claim(f"past {PASSED[-1]} operators: {what}, less by arcs", shares[-1], LESS, "higher"))
        step = min(after - before for before, after in pairwise(shares))
        claims.append(Claim(f"{what}: the least that is gained with more operators", step, 0.0, "higher"))
    return claims


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Both latencies against the operators that are passed."""
    charts = {}
    for what in ("latency", "the promise alone"):
        charts[f"{what}, µs"] = {
            way: [(row["operators passed"], row[f"{what} {way}, µs"]) for row in rows] for way in WAYS
        }
    line_chart(charts, "operators passed", "", path)
