"""Several queries on one update stream: what they have in common waits and runs once (named in section 8).

Each query calls an expensive function on the latest values of ten keys and keeps some of the results. *Shared*, they
read one conflated stream, and the graph runs queue and function once for all of them. *Apart*, each has a queue of its
own before a function of its own, and they take turns. Staleness is that of what the function has answered, seen from
outside, in costs of a call; time is simulated, in the engine's own graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import penstock as pk
from penstock.bench.claims import Claim, Report
from penstock.engines.local.shared import SharedExecution
from penstock.papers.plots import line_chart
from penstock.papers.upstream.by_hand import COST, ByHand
from penstock.papers.upstream.running import Answer, averaged

FIGURE = "sharing"
SERVICES, KEYS, LOAD = 400, 10, 3
QUERIES = (1, 2, 4, 8)
SHARED, APART = "shared", "apart"


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Every number of queries, both ways; `events` are calls that there is time for."""
    rows: list[dict[str, Any]] = []
    for count in QUERIES:
        told: dict[str, Any] = {"queries": count}
        for name in (SHARED, APART):
            stale, calls = played(count, events or SERVICES, is_shared=name == SHARED)
            told[f"staleness, {name}"], told[f"calls, {name}"] = round(stale, 3), calls
        rows.append(told)
        say(f"sharing: {count} queries")
    first, last = rows[0], rows[-1]
    claims = [
        Claim(
            f"shared: staleness with {last['queries']} queries against one",
            last[f"staleness, {SHARED}"] / first[f"staleness, {SHARED}"],
            1.05,
            "lower",
        ),
        *(
            Claim(
                f"apart against shared, {row['queries']} queries",
                row[f"staleness, {APART}"] / row[f"staleness, {SHARED}"],
                0.75 * row["queries"],
                "higher",
            )
            for row in rows[1:]
        ),
    ]
    return Report(f"upstream-{FIGURE}", rows, claims)


def played(count: int, services: int, *, is_shared: bool) -> tuple[float, int]:
    """How stale what the queries show is on average, and how many calls there were."""
    arrivals = (np.arange(services * LOAD) * COST // LOAD).tolist()
    keys = np.random.default_rng(1).integers(0, KEYS, len(arrivals))
    clock = ByHand("quotes")
    flow = pk.Flow().stream("quotes", [], schema="ts BIGINT, key BIGINT", time="ts", update_key="key")
    answers: dict[int, list[Answer]] = {}
    plans = {}
    for query in range(count):
        queue = 0 if is_shared else query
        if queue not in answers:
            answers[queue] = []
            flow.function(f"model{queue}", _model(clock, answers[queue]), returns="bigint", version="1")
            flow.conflate(f"calm{queue}", "quotes", max_staleness=f"{queue + 1} hours")
        below = f"SELECT ts, key, model{queue}(ts) AS value FROM calm{queue}"
        plans[f"q{query}"] = flow.query(f"SELECT * FROM ({below}) AS m WHERE value >= {query}", name=f"q{query}").plan
    execution = SharedExecution(flow.catalog, plans)
    clock.play(execution, arrivals, [(at, int(key)) for at, key in enumerate(keys)], None)
    end = float(arrivals[-1])
    stale = [averaged(keys, arrivals, found, end) / COST for found in answers.values()]
    return float(np.mean(stale)), sum(map(len, answers.values()))


def _model(clock: ByHand, answers: list[Answer]) -> Callable[[int], int]:
    def model(number: int) -> int:
        clock.works()
        answers.append((number, float(clock.now)))
        return number

    return model


def plot(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Staleness by queries."""
    lines = {name: [(row["queries"], row[f"staleness, {name}"]) for row in rows] for name in (SHARED, APART)}
    line_chart({"one stream": lines}, "queries", "staleness, in costs of a call", folder / f"upstream-{FIGURE}.svg")
