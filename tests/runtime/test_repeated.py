"""What a query names once and reads twice is run once, where that cannot be told from running it twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.model.batch import Batch
from penstock.reference.evaluation import outcome
from penstock.runtime.graph import QueryGraph
from penstock.sql.binder import bind
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.strategies import cuts
from tests.runtime.cases import PROGRESS, Case, catalog, rows, run

COUNTED = "WITH x AS (SELECT k, count(*) AS n, max(v) AS m [RANGE 8, SLIDE 4, WA ts] FROM s WHERE v > 1 GROUP BY k)"
MOST = "(SELECT max(n) AS n, w FROM (SELECT n, window_end AS w FROM x) GROUP BY w)"
SHARED = {
    f"{COUNTED} SELECT a.k, b.n FROM x a JOIN x b ON a.window_end = b.window_end AND a.n >= b.n": "Aggregate count(*)",
    f"{COUNTED} SELECT a.k, a.n FROM x a JOIN {MOST} m ON m.w = a.window_end AND a.n = m.n": "Aggregate count(*)",
    "SELECT k, v FROM s WHERE v > 3 UNION ALL SELECT k, v FROM s WHERE v > 3": "Select",
    "SELECT a.k, b.d FROM s a JOIN s b ON a.k = b.k AND a.ts BETWEEN b.ts - 3 AND b.ts + 3": "Source",
    "WITH x AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY ts ORDER BY v) AS r FROM s) "
    "SELECT a.k, b.v FROM x a JOIN x b ON a.r = b.r AND a.ts = b.ts": "RowNumber",
}
"""Queries, and the beginning of what two nodes are called that are run once."""
APART = {
    "WITH x AS (SELECT ts, k, 10 div v AS q FROM s) SELECT a.q FROM x a JOIN x b ON a.k = b.k AND a.ts = b.ts": (
        "Project ts, k, (10 div v)"
    ),
    "WITH x AS (SELECT k, sum(v) AS n [RANGE 8, SLIDE 4, WA ts] FROM s GROUP BY k) SELECT a.n FROM x a JOIN x b "
    "ON a.window_end = b.window_end": "Aggregate sum",
    "SELECT k, count(*) AS n [RANGE 5 rows, SLIDE 2 rows, WA row-num] FROM s UNION s GROUP BY k": "Source",
}
"""The same of nodes that are not."""


def execution(sql: str, progress: Any = None) -> LocalExecution:
    own = catalog(progress or pk.bounded(5))
    return LocalExecution(bind(sql, own), own)


@pytest.mark.parametrize(("sql", "named"), [*SHARED.items(), *APART.items()])
def test_equal_parts_are_run_once_unless_they_may_fail_or_arrival_counts(sql: str, named: str) -> None:
    made = execution(sql)
    assert sum(node.label.startswith(named) for node in made.plan.walk()) == 2
    assert sum(node.label.startswith(named) for node in made.graph.nodes) == (1 if sql in SHARED else 2)
    assert len(QueryGraph(made.planned, made.builder).nodes) == len(list(made.plan.walk()))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    arrived = draw(rows(max_size=30))
    return Case(
        draw(st.sampled_from([*SHARED, *APART])), draw(PROGRESS), [arrived[c] for c in draw(cuts(len(arrived)))]
    )


@pytest.mark.parametrize("form", ["rows", "arrow", "mixed"])
@given(case=cases())
def test_the_tdb_is_the_oracles(form: str, case: Case) -> None:
    outputs = case.run(form=form)
    assert_same(case.expected()[0], tdb_of(outputs))
    assert_sound(outputs)


@given(case=cases(), at=st.integers(0, 6))
def test_a_snapshot_may_be_of_either_and_opens_in_either(case: Case, at: int) -> None:
    inputs = case.inputs("arrow")
    expected = case.expected()[0]
    for shared_first in (True, False):
        first, second = case.execution(), case.execution()
        apart = first if not shared_first else second
        graph = QueryGraph(apart.planned, apart.builder)
        graph.side, apart.graph = apart.graph.side, graph
        outputs = [item for batch in inputs[:at] for item in first.feed("s", batch)]
        second.graph.restore(first.graph.snapshot())
        assert_same(expected, tdb_of(outputs + run(second, inputs[at:])))


def test_a_row_that_fails_is_told_of_as_often_as_the_plan_reads_it() -> None:
    own = catalog(pk.ordered())
    plan = bind(next(iter(APART)), own)
    schema = own.streams["s"].schema
    row = tuple({"ts": 1, "v": 0}.get(name) for name in schema.names)
    made = LocalExecution(plan, own)
    made.feed("s", Batch(schema, [row]))
    assert made.dead_letters().num_rows == sum(outcome(plan, [("s", row)]).dead.values()) == 2
