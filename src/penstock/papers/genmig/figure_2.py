"""Figure 2: a duplicate elimination is pushed below a join, and Parallel Track tells snapshots twice.

The inputs are not in the paper's text. Ours are A at 10 and 50, B at 20 and 70, a window of 100, the migration at 40:
they have the events that the example names, (a, [20, 121)) of B, (a, [50, 151)) of A, and the results (a, [50, 121))
and (a, [111, 121)). Every snapshot is compared with the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from penstock.bench.claims import Claim, Report
from penstock.model.batch import Batch
from penstock.model.elements import linear
from penstock.model.lives import Lives
from penstock.model.schema import BIGINT, Schema
from penstock.model.snapshots import snapshot_at
from penstock.model.tdb import TDB, tdb
from penstock.model.time import END_OF_TIME
from penstock.operators.intervals.distinct import IntervalDistinct
from penstock.operators.intervals.join import HashJoin
from penstock.operators.intervals.layout import START, interval_schema
from penstock.operators.migration.box import Box, Node
from penstock.operators.migration.migrating import Migrating
from penstock.operators.migration.parallel_track import ParallelTrack
from penstock.operators.operator import Output
from penstock.reference.snapshot_plans import Distinct, Input, Join

FIGURE = "2"
WINDOW, MOMENT = 100, 40
ARRIVALS = ((0, 10), (1, 20), (0, 50), (1, 70))
"""Stream and start of each event."""
PLAN = Distinct(Join(Input(0), Input(1), ((0, 0),)))
NAMED = range(111, 121)
"""The snapshots that the paper names."""


def run(events: int | None, say: Callable[[str], None]) -> Report:
    """Both strategies over the example; there is nothing to be made larger."""
    made = {"Parallel Track": parallel_track(), "GenMig": genmig()}
    rows: list[dict[str, Any]] = []
    wrong: dict[str, list[int]] = {}
    for name, results in made.items():
        wrong[name] = wrong_snapshots(results)
        told = ", ".join(f"[{vs}, {ve})" for _, vs, ve in sorted(results, key=lambda event: event[1:]))
        span = f"{wrong[name][0]} to {wrong[name][-1]}" if wrong[name] else "none"
        rows.append({"strategy": name, "results": told, "wrong snapshots": len(wrong[name]), "which": span})
        say(f"2: {rows[-1]}")
    named = len(set(NAMED) & set(wrong["Parallel Track"]))
    return Report("genmig-2", rows, [
        Claim("wrong snapshots of Parallel Track among 111 to 120", named, len(NAMED), "higher"),
        Claim("wrong snapshots of GenMig", len(wrong["GenMig"]), 0, "lower"),
    ])  # fmt: skip


def old_plan(schema: Schema) -> Box:
    """δ(A ⋈ B)."""
    join = HashJoin(schema, schema, [(0, 0)])
    return Box(Node(IntervalDistinct(join.schema), (Node(join, (0, 1)),)), 2)


def new_plan(schema: Schema) -> Box:
    """δ(A) ⋈ δ(B)."""
    below = [Node(IntervalDistinct(schema), (port,)) for port in (0, 1)]
    return Box(Node(HashJoin(schema, schema, [(0, 0)]), tuple(below)), 2)


def parallel_track() -> TDB:
    """What comes of it."""
    schema = interval_schema([BIGINT], generations=True)
    track = ParallelTrack(old_plan(schema), [schema] * 2)
    return _results(track, schema, lambda: track.replace(new_plan(schema)))


def genmig() -> TDB:
    """What comes of it."""
    schema = interval_schema([BIGINT])
    running = Migrating(old_plan(schema), [schema] * 2)
    return _results(running, schema, lambda: running.replace(new_plan(schema), [0, 0], lifetime=WINDOW + 1))


def _results(running: Migrating | ParallelTrack, schema: Schema, replace: Callable[[], Iterable[Output]]) -> TDB:
    outputs: list[Output] = []
    is_replaced = False
    for port, start in ARRIVALS:
        if start > MOMENT and not is_replaced:
            outputs += replace()
            is_replaced = True
        for each in (0, 1):
            outputs += running.punctuate(each, linear(START, start))
        row = (1, 0, start) if len(schema) == 3 else (1, start)
        ends = Lives.of_inserts(np.array([start + WINDOW + 1], np.int64))
        outputs += running.process(port, Batch(schema, [row], lives=ends))
    for each in (0, 1):
        outputs += running.punctuate(each, linear(START, END_OF_TIME))
    return tdb(e for each in outputs if isinstance(each, Batch) for e in each.elements())


def wrong_snapshots(results: TDB) -> list[int]:
    """The instants at which the results are not those of the plan."""
    streams = [[((1,), vs, vs + WINDOW + 1) for port, vs in ARRIVALS if port == own] for own in (0, 1)]
    return [t for t in range(200) if snapshot_at(results, t) != PLAN.at(streams, t)]
