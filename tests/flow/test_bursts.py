"""`max_burst`: what a query's joins give out at a time, in-process: the same result, in smaller lots."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.errors import QueryError
from penstock.model.batch import Batch
from penstock.plan.nodes import Join
from penstock.plan.rules.smooth import is_smoothed, smoothed
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from tests.runtime.joins import JoinCase, join_cases, run

NEAR = "b.k = a.k AND b.ts BETWEEN a.ts AND a.ts + 5"


def flow() -> pk.Flow:
    made = pk.Flow()
    for name in "ab":
        made.stream(name, [], time="ts", schema="ts bigint, k bigint", progress=pk.bounded(0))
    return made


@given(case=join_cases(), burst=st.integers(1, 4), at=st.integers(0, 10))
def test_the_tdb_is_the_oracles(case: JoinCase, burst: int, at: int) -> None:
    plan = smoothed(case.plan, burst)
    first, second = (LocalExecution(plan, case.catalog) for _ in range(2))
    inputs = case.inputs()
    outputs = [item for name, batch in inputs[:at] for item in first.feed(name, batch)]
    second.restore(first.snapshot())
    outputs += run(second, inputs[at:])
    assert_same(case.expected(), tdb_of(outputs))
    assert_sound(outputs)


@pytest.mark.parametrize("kind", ["LEFT JOIN", "LEFT ANTI JOIN"])
def test_rows_come_a_few_at_a_time(kind: str) -> None:
    execution: Any = flow().query(f"SELECT a.ts, a.k FROM a {kind} b ON {NEAR}", max_burst=10).execution()
    left, right = (execution.graph.sources[name][0].plan.schema for name in "ab")
    execution.feed("a", Batch(left, [(t, t) for t in range(25)]))
    sizes = []
    for t in (1000, 1001, 1002, 1003):
        given = execution.feed("b", Batch(right, [(t, -1)]))
        sizes.append(sum(len(each) for each in given if isinstance(each, Batch)))
    assert max(sizes) <= 20  # with the row and with its bound
    assert sum(sizes) == 25


def test_a_checkpoint_does_not_mind_another_limit() -> None:
    query = f"SELECT a.ts, a.k FROM a LEFT JOIN b ON {NEAR}"
    first: Any = flow().query(query, max_burst=1).execution()
    left, right = (first.graph.sources[name][0].plan.schema for name in "ab")
    out = list(first.feed("a", Batch(left, [(t, t) for t in range(25)])))
    out += first.feed("b", Batch(right, [(1000, -1)]))
    second: Any = flow().query(query).execution()
    second.restore(first.snapshot())
    out += second.feed("b", Batch(right, [(1001, -1)]))
    assert sum(len(each) for each in out if isinstance(each, Batch)) == 25
    assert_sound(out)


def test_explain_says_so() -> None:
    query: Any = flow().query(f"SELECT a.k FROM a LEFT JOIN b ON {NEAR}", max_burst=10)
    assert "rows without a partner come out 10 at a time" in query.explain()
    assert [node.max_burst for node in query.plan.walk() if isinstance(node, Join)] == [10]
    assert all(is_smoothed(node) == isinstance(node, Join) for node in query.plan.walk())


@pytest.mark.parametrize("given", [0, -1, 1.5, "10", True])
def test_what_is_no_number_of_rows(given: Any) -> None:
    with pytest.raises(QueryError, match="number of rows") as raised:
        flow().query(f"SELECT a.k FROM a LEFT JOIN b ON {NEAR}", max_burst=given)
    assert "max_burst=1000" in str(raised.value.hint)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT a.k FROM a JOIN b ON {NEAR}",
        f"SELECT a.k FROM a LEFT SEMI JOIN b ON {NEAR}",
        "SELECT k FROM a",
        "SELECT a.k FROM a ASOF LEFT JOIN b ON a.k = b.k AND a.ts >= b.ts",
    ],
)
def test_where_nothing_comes_in_bursts(sql: str) -> None:
    with pytest.raises(QueryError, match="comes out in bursts") as raised:
        flow().query(sql, max_burst=10)
    assert raised.value.hint == "leave it out"
