"""The run of a flow whose query is being replaced, with a snapshot of it that is kept: both plans are at work."""

from __future__ import annotations

from typing import Any

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.model.batch import Batch
from penstock.plan.nodes import Node
from tests.golden.cases import FOLDER

PATH = FOLDER / "replaced.snapshot"
OLD = "SELECT k, count(*) AS n [RANGE 20, SLIDE 10, WA ts] FROM s GROUP BY k"
NEW = "SELECT k, sum(v) AS n [RANGE 60, SLIDE 15, WA ts] FROM s GROUP BY k"
REPLACED, KEPT, COUNT = 40, 50, 160
"""After how many rows the query is replaced, and after how many the snapshot is taken; the split is beyond both."""


def plans() -> tuple[Any, Node, Node]:
    """The catalog, with the plans of both queries."""
    flow = pk.Flow().stream("s", [], time="ts", schema="ts bigint, k string, v bigint", progress=pk.bounded(10))
    old, new = (flow.query(sql) for sql in (OLD, NEW))
    return flow.catalog, old.plan, new.plan  # type: ignore[attr-defined]


def execution() -> SharedExecution:
    """A fresh run of the old query."""
    catalog, old, _ = plans()
    return SharedExecution(catalog, {"q": old})


def fed(run: SharedExecution, first: int, end: int) -> list[Any]:
    """What comes of some of the rows, which are out of order, in batches of seven."""
    rows = [(i + (i * 7) % 10, "ab"[i % 2], i) for i in range(first, end)]
    schema = run.graph.sources["s"][0].operator.schema
    given = [out for at in range(0, len(rows), 7) for out in run.feed("s", Batch(schema, rows[at : at + 7]))]
    return [element for _, element in given]


def until_kept(run: SharedExecution) -> list[Any]:
    """What the run gives until the snapshot is taken."""
    before = fed(run, 0, REPLACED)
    run.replace("q", plans()[2])
    return before + fed(run, REPLACED, KEPT)


def after_it(run: SharedExecution) -> list[Any]:
    """What it gives from there on."""
    return fed(run, KEPT, COUNT) + [element for _, element in run.close()]
