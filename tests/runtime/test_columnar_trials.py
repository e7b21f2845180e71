"""What trials of the columnar aggregates have found, so that it stays found."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.engines.local.shared import SharedExecution
from penstock.model.batch import Batch
from penstock.model.schema import schema_of
from penstock.plan import cost
from penstock.plan.planner import in_process

SCHEMA = schema_of([("ts", "bigint"), ("a", "int"), ("v", "bigint"), ("p", "boolean")], "ts")


def rows_in(outputs: list[Any]) -> list[Any]:
    return [row for out in outputs if isinstance(out, Batch) for row in out.rows]


def fed(execution: LocalExecution, rows: list[Any], form: str) -> list[Any]:
    batch = Batch(SCHEMA, rows)
    return execution.feed("s", Batch(SCHEMA, table=batch.table) if form == "arrow" else batch)


@pytest.mark.parametrize("form", ["rows", "arrow"])
def test_a_sum_overflows_also_where_groups_have_left_later_panes(form: str) -> None:
    """Six times 31 rows of 2**56 are more than 64 bits hold; other groups of their batches are done before them."""
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl, progress=pk.punctuated("p", per=["a"]))
    query: Any = flow.query("SELECT a, sum(v) AS s [RANGE 1000, SLIDE 10, WA ts] FROM s GROUP BY a")
    execution = query.execution()
    outputs: list[Any] = []
    for i in range(6):
        outputs += fed(execution, [(5, 0, 2**56, None)] * 31 + [(200 + 20 * i, i + 1, 1, None)], form)
        outputs += fed(execution, [(100_000, i + 1, None, True)], form)
    outputs += execution.close()
    assert not [row for row in rows_in(outputs) if row[3] == 0]
    assert "overflow" in str(execution.dead_letters().column("reason")[0])


@pytest.mark.parametrize("form", ["rows", "arrow"])
@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT z, count(*) AS n [RANGE 8, SLIDE 8, WA ts] FROM (SELECT ts, NULL AS z FROM s) i GROUP BY z",
            (None, 8),
        ),
        ("SELECT count(DISTINCT z) AS n [RANGE 8, SLIDE 8, WA ts] FROM (SELECT ts, NULL AS z FROM s) i", (0,)),
    ],
)
def test_a_column_may_be_nothing_but_null(sql: str, expected: tuple[Any, ...], form: str) -> None:
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl)
    query: Any = flow.query(sql)
    execution = query.execution()
    outputs = fed(execution, [(t, 0, 0, None) for t in range(40)], form)
    snapshot = execution.snapshot()
    execution = query.execution()
    execution.restore(snapshot)
    outputs += execution.close()
    assert [row[3:] for row in rows_in(outputs)] == [expected] * 5


@pytest.mark.parametrize("aggregates", ["count(*) AS n", "count(*) AS n, count(DISTINCT v) AS d"])
def test_rows_of_a_batch_may_be_as_far_apart_as_times_go(aggregates: str) -> None:
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl, progress=pk.bounded(rows=1000))
    query: Any = flow.query(f"SELECT a, {aggregates} [RANGE 1, SLIDE 1, WA ts] FROM s GROUP BY a")
    execution = query.execution()
    rows = [(t, 0, i % 2, None) for i in range(20) for t in (-(2**62), 2**62)]
    outputs = fed(execution, rows, "arrow") + execution.close()
    found = {row[0]: row[4:] for row in rows_in(outputs)}
    assert found == dict.fromkeys((-(2**62), 2**62), (20, 2) if "d" in aggregates.split() else (20,))


def test_a_run_of_several_queries_is_taken_up_with_the_algorithms_that_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a release had it in which distinct values were counted by another algorithm."""
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl)
    window = "[RANGE 20, SLIDE 10, WA ts] FROM s GROUP BY a"
    texts = {"d": f"SELECT a, count(DISTINCT v) AS n {window}", "c": f"SELECT a, count(*) AS n {window}"}
    plans = {name: flow.query(sql).plan for name, sql in texts.items()}
    with monkeypatch.context() as patch:
        known = cost.has_array_form
        patch.setattr(
            cost, "has_array_form", lambda n, c: known(n, c) and not any("DISTINCT" in str(a) for a in n.aggregates)
        )
        assert in_process(plans["d"], flow.catalog).inputs[0].algorithm != cost.COLUMNAR
        before = SharedExecution(flow.catalog, plans)
    before.feed("s", Batch(SCHEMA, [(t, t % 2, t % 3, None) for t in range(25)]))
    after = SharedExecution(flow.catalog, plans)
    after.restore(before.snapshot())
    outputs = after.close()
    found = {name: rows_in([out for n, out in outputs if n == name]) for name in plans}
    assert sorted(row[3:] for row in found["d"] if row[0] == 2) == [(0, 3), (1, 3)]
    assert sorted(row[3:] for row in found["c"] if row[0] == 2) == [(0, 8), (1, 7)]


def test_a_sum_of_floats_may_begin_with_nothing_but_nulls() -> None:
    """Two batches of one pane: in the first there is no value, and other groups of the second have theirs in full."""
    flow = pk.Flow().stream("s", [], time="ts", schema="ts bigint, a int, x double", progress=pk.bounded(1000))
    query: Any = flow.query("SELECT a, sum(x) AS s, avg(x) AS m [RANGE 10, SLIDE 10, WA ts] FROM s GROUP BY a")
    execution = query.execution()
    schema = schema_of([("ts", "bigint"), ("a", "int"), ("x", "double")], "ts")
    outputs: list[Any] = []
    for group, value in ((0, None), (1, 0.3125)):
        outputs += execution.feed("s", Batch(schema, table=Batch(schema, [(1, group, value)] * 40).table))
    assert rows_in(outputs + execution.close()) == [(0, 0, 10, 0, None, None), (0, 0, 10, 1, 12.5, 0.3125)]
