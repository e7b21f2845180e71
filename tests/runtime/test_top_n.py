"""ROW_NUMBER() OVER: rows of tumbling windows in an order of their own, against the oracle, for any order and cut.

```
v      5 7 1 7 | 3     4        window [0, 10) closes when the bound is 10:
rn     3 1 4 2 | 1     2        numbers by v DESC, ties by the whole row
```
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.errors import PlanError, QueryError
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.tdb import TDB
from penstock.operators.windows import row_number
from penstock.plan.closing import closing_bound
from penstock.plan.nodes import Node, RowNumber
from penstock.plan.planner import in_process, spark_batch
from penstock.reference import evaluate
from penstock.sql.binder import bind
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.strategies import cuts
from tests.runtime.cases import PROGRESS, Case, catalog, rows, run

ORDERS = [
    "v",
    "v DESC",
    "d DESC, k",
    "d NULLS LAST",
    "k DESC NULLS FIRST, d",
    "c, v DESC",
    "at DESC",
    "v + 1, upper(k)",
]
NUMBER = "ROW_NUMBER() OVER (PARTITION BY ts ORDER BY v)"
TUMBLE = "TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), {length}))"
OF_AGGREGATES = (
    "SELECT k, n, m FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY n DESC, {order}) AS r FROM "
    "(SELECT k, v, d, c, at, count(*) AS n, max(v) AS m, window_end FROM {windows} "
    "GROUP BY k, v, d, c, at, window_start, window_end)) WHERE r < 3"
)


@st.composite
def top_queries(draw: st.DrawFn) -> Case:
    order, keys = draw(st.sampled_from(ORDERS)), draw(st.sampled_from(["", ", k", ", k, v", ", d", ", upper(k)"]))
    windows = TUMBLE.format(length=draw(st.sampled_from([1, 5, 12])))
    over = "ROW_NUMBER() OVER (PARTITION BY {by}" + f"{keys} ORDER BY {order})"
    numbered = f"SELECT *, {over.format(by='window_start, window_end')} AS rn FROM {windows}"
    sql = draw(
        st.sampled_from(
            [
                numbered,
                f"SELECT k, v, rn, window_end FROM ({numbered}) WHERE rn <= 2",
                f"SELECT v, d FROM ({numbered}) WHERE 1 = rn AND v > 2",
                f"SELECT ts, k, d FROM (SELECT ts, k, d, {over.format(by='ts')} AS x FROM s WHERE v > 1) WHERE x <= 1",
                f"SELECT k, v FROM (SELECT k, v, {over.format(by='ts div 7')} AS x FROM s) WHERE x < 2",
                OF_AGGREGATES.format(order=order, windows=windows),
            ]
        )
    )
    arrived = draw(rows(max_size=30))
    return Case(sql, draw(PROGRESS), [arrived[c] for c in draw(cuts(len(arrived)))])


def small(few: int, pieces: int) -> Any:
    """With pieces so small that they are put together on small inputs."""
    return mock.patch.multiple(row_number, FEW_ROWS=few, LOOSE_ROWS=few + 2, PIECES=pieces)


@pytest.mark.parametrize("form", ["rows", "arrow", "mixed"])
@given(case=top_queries(), few=st.integers(1, 4), pieces=st.integers(1, 3))
def test_the_tdb_is_the_oracles(form: str, case: Case, few: int, pieces: int) -> None:
    with small(few, pieces):
        outputs = case.run(form=form)
    assert_same(case.expected()[0], tdb_of(outputs))
    assert_sound(outputs)


@given(case=top_queries(), at=st.integers(0, 6), form=st.sampled_from(["rows", "arrow"]))
def test_a_restored_run_goes_on_as_if_nothing_had_happened(case: Case, at: int, form: str) -> None:
    inputs = case.inputs(form)
    first, second = case.execution(), case.execution()
    outputs = [item for batch in inputs[:at] for item in first.feed("s", batch)]
    second.graph.restore(first.graph.snapshot())
    outputs += run(second, inputs[at:])
    assert_same(case.expected()[0], tdb_of(outputs))


@given(case=top_queries())
def test_a_window_comes_with_the_punctuation_that_closes_it(case: Case) -> None:
    expected, bounds = case.expected()
    if "div" in case.sql or "WHERE r <" in case.sql:  # their ends are on another scale, or one tick after the window's
        return
    execution, outputs = case.execution(), []
    for batch, bound in zip(case.inputs(), bounds, strict=True):
        outputs += execution.feed("s", batch)
        assert_same(TDB({e: n for e, n in expected.items() if e[1] <= bound}), tdb_of(outputs))
    assert_sound(outputs + execution.close())


def numbered(plan: Node) -> RowNumber:
    (found,) = [node for node in plan.walk() if isinstance(node, RowNumber)]
    return found


@pytest.mark.parametrize(
    ("condition", "most"),
    [
        ("rn <= 10", 10), ("rn < 10", 9), ("rn = 1", 1), ("3 >= rn", 3), ("3 > rn", 2), ("rn <= 5 AND v > 1", 5),
        ("rn <= 5 AND rn < 3", 2), ("rn < -7", 0), ("rn >= 2", None), ("rn <= 5 OR v > 1", None), ("v <= 5", None),
        ("rn <= v", None),
    ],
)  # fmt: skip
def test_the_number_that_is_asked_for_is_told_to_who_numbers(condition: str, most: int | None) -> None:
    inner = "SELECT v, ROW_NUMBER() OVER (PARTITION BY ts ORDER BY v) AS rn FROM s"
    for sql in (
        f"SELECT v FROM ({inner}) WHERE {condition}",
        f"SELECT v FROM (SELECT v, rn FROM ({inner})) WHERE {condition}",
    ):
        assert numbered(bind(sql, catalog(pk.ordered()))).most == most


def test_rows_after_the_first_are_not_held() -> None:
    own = catalog(pk.bounded(10**6))
    sql = "SELECT v FROM (SELECT v, ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY v) AS r FROM " + TUMBLE.format(
        length=10**6
    )
    plan = bind(sql + ") WHERE r <= 3", own)
    case = Case(sql + ") WHERE r <= 3", pk.bounded(10**6), [])
    execution = case.execution()
    schema = execution.graph.sources["s"][0].plan.schema
    some = {f.name: pa.nulls(100, f.type.arrow) for f in schema.fields} | {
        "ts": pa.array(range(100)),
        "v": pa.array(range(100), schema["v"].type.arrow),
    }
    for _ in range(40):
        execution.feed("s", Batch(schema, table=pa.table(some, schema=schema.arrow)))
    (operator,) = [n.operator for n in execution.graph.nodes if isinstance(n.operator, row_number.RowNumberOperator)]
    held = [operator.pages.get(f"t{number}").num_rows for number, _, _ in operator.pages.get("held")]
    assert sum(held) <= 100 * row_number.PIECES + 3
    assert [row[0] for out in execution.close() if isinstance(out, Batch) for row in out.rows] == [0, 0, 0]
    assert closing_bound(plan, 5) == 10**6
    assert spark_batch(plan, own).is_hosted
    assert in_process(plan, own).walk()


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) FROM s", "needs a window"),
        ("SELECT ROW_NUMBER() OVER (ORDER BY v) FROM s", "needs a window"),
        ("SELECT ROW_NUMBER() OVER (PARTITION BY ts) FROM s", "numbered in an order"),
        ("SELECT rank() OVER (PARTITION BY ts ORDER BY v) FROM s", "OVER is not supported"),
        ("SELECT 1 + ROW_NUMBER() OVER (PARTITION BY ts ORDER BY v) FROM s", "OVER is not supported"),
        ("SELECT k FROM s WHERE ROW_NUMBER() OVER (PARTITION BY ts ORDER BY v) < 2", "OVER is not supported here"),
        (f"SELECT {NUMBER}, {NUMBER} FROM s", "once"),
        ("SELECT k, count(*), ROW_NUMBER() OVER (PARTITION BY ts ORDER BY k) FROM s GROUP BY ts, k", "not both"),
        (f"SELECT ROW_NUMBER() OVER (PARTITION BY k ORDER BY v) FROM {TUMBLE.format(length=5)}", "numbered by window"),
        ("SELECT ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY v) FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), 2, 6))",
         "do not overlap"),
        (f"SELECT {NUMBER} AS n FROM s [RANGE TUMBLING 5, WA ts]", "not supported here"),
        (f"SELECT {NUMBER[:-1]} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM s", "not supported"),
        ("SELECT ROW_NUMBER() OVER (PARTITION BY ts ORDER BY v NULLS) FROM s", ""),
    ],
)  # fmt: skip
def test_what_is_no_top_n_is_refused_by_name(sql: str, told: str) -> None:
    with pytest.raises(QueryError) as caught:
        bind(sql, catalog(pk.ordered()))
    assert told in caught.value.message


def test_windows_of_another_column_or_that_overlap_are_no_node() -> None:
    node = numbered(bind("SELECT ROW_NUMBER() OVER (PARTITION BY ts ORDER BY v) AS n FROM s", catalog(pk.ordered())))
    with pytest.raises(PlanError, match="tumbling windows"):
        replace(node, window=replace(node.window, range=2))


def test_who_joins_by_the_window_that_numbers_are_of() -> None:
    """The end of a window is a time that others can be near to."""
    data = [
        {"ts": t, "k": k, "v": v} for t, k, v in [(1, "a", 5), (2, "b", 7), (11, "a", 1), (12, "b", 0), (25, "a", 3)]
    ]
    flow = pk.Flow().stream("s", data, time="ts", progress=pk.ordered())
    query = flow.query(
        """
        WITH best AS (
            SELECT k, v, window_end FROM (
                SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v DESC) AS rn
                FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), 10))
            ) WHERE rn = 1
        ), counted AS (
            SELECT count(*) AS n FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), 10)) GROUP BY window_start, window_end
        )
        SELECT b.k, b.v, c.n FROM best b JOIN counted c ON b.window_end = c.window_end
        """
    )
    assert [tuple(row.values()) for row in query.collect().to_pylist()] == [("b", 7, 2), ("a", 1, 2), ("a", 3, 1)]
    assert [p for p in query.elements() if isinstance(p, Punctuation)][-1].is_end


def test_nested_values_are_compared_part_by_part() -> None:
    """As the oracle does, and whether they come as rows or as columns."""
    values = [(2, None), (1,), None, (1, 5), (), (None, 3), (1, 4)]
    own = pk.Flow().stream("s", [], time="ts", schema="ts bigint, v int, a array<int>", progress=pk.ordered()).catalog
    plan = bind("SELECT a, ROW_NUMBER() OVER (PARTITION BY ts ORDER BY v DESC) AS n FROM s", own)
    schema = own.streams["s"].schema
    given_rows = [(1, 7, value) for value in values]
    for batch in (Batch(schema, given_rows), Batch(schema, table=Batch(schema, given_rows).table)):
        execution = LocalExecution(plan, own)
        outputs = [*execution.feed("s", batch), *execution.close()]
        found = {row[0]: row[1] for out in outputs if isinstance(out, Batch) for row in out.rows}
        assert sorted(found, key=lambda value: found[value]) == [None, (), (None, 3), (1,), (1, 4), (1, 5), (2, None)]
        assert_same(evaluate(plan, [("s", row) for row in given_rows]), tdb_of(outputs))


@pytest.mark.parametrize("condition", ["rn <= 0", "rn < 1", "rn = -3"])
def test_none_are_the_first_none(condition: str) -> None:
    rows = ({"ts": t, "k": t} for t in range(5000))
    flow = pk.Flow().stream("s", rows, time="ts", schema="ts bigint, k int", progress=pk.bounded(100_000))
    numbered = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY window_end ORDER BY k) AS rn FROM {TUMBLE.format(length=10)}"
    assert flow.query(f"SELECT ts, rn FROM ({numbered}) WHERE {condition}").collect().num_rows == 0
