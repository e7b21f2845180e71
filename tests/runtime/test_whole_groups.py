"""Aggregates without a window: a group comes out once, with the promise that completes it, for any order and cut.

```
a 0    1     5          | final a 0 |  out at 5, the greatest time of its rows, living one tick
a 1       3        7    |           |  open: the result has come to 7 at most, whatever the bound is
```
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.errors import PlanError, QueryError
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation, groupwise, linear
from penstock.model.frontier import Frontier
from penstock.model.progress import punctuated
from penstock.model.tdb import TDB
from penstock.model.time import END_OF_TIME
from penstock.operators.aggregates import open_groups, partials, whole_groups
from penstock.operators.aggregates.functions import max_of
from penstock.operators.aggregates.open_groups import OpenGroups, page_of
from penstock.operators.aggregates.partials import Grouping
from penstock.plan.catalog import Catalog
from penstock.plan.closing import closing_bound
from penstock.plan.distribution import routes
from penstock.plan.nodes import GroupAggregate, Settle
from penstock.plan.planner import in_process, spark_batch, spark_streaming
from penstock.reference import evaluate
from penstock.sql.binder import bind
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.strategies import cuts
from tests.golden.cases import Spread
from tests.runtime.test_groupwise import ROWS, SCHEMA, Case, catalog, judged_by_row, promised

FINAL = [punctuated("p", per=["a", "b"], final=True), punctuated("p", per=["a"], final=True)]
Output = Batch | Punctuation
Key = tuple[Any, ...]

QUERIES = [
    ("SELECT a, b, count(*) AS n, sum(v) AS s, max(v) AS m FROM s GROUP BY a, b", ("a", "b")),
    ("SELECT a, b, avg(v) AS m, count(DISTINCT v) AS d, min(b) AS x FROM s WHERE v > 1 GROUP BY a, b", ("a", "b")),
    ("SELECT b, a FROM s GROUP BY b, a", ("b", "a")),
    ("SELECT x AS y, z, spread(w) AS s FROM (SELECT a AS x, b AS z, v + 1 AS w FROM s) i GROUP BY x, z", ("x", "z")),
    ("SELECT a, b, v % 2 AS odd, count(*) AS n FROM s GROUP BY a, b, odd", ("a", "b", "odd")),
]
"""The keys are the first columns of what is selected."""


@st.composite
def arrivals(draw: st.DrawFn) -> list[list[Row]]:
    rows = draw(ROWS)
    return [rows[c] for c in draw(cuts(len(rows)))]


def final_case(sql: str, batches: list[list[Row]], keys: Key) -> Case:
    return Case(sql, FINAL[0], batches, keys)


def with_user_aggregates(case: Case) -> tuple[Any, Catalog, TDB]:
    """The plan, its catalog, and what the oracle says."""
    own = catalog(case.progress)
    own.aggregates["spread"] = (Spread(), SCHEMA["v"].type)
    plan = bind(case.sql, own)
    data = case.judged().data
    late = [place for place, (_, is_late) in enumerate(data) if is_late]
    return plan, own, evaluate(plan, [("s", row) for row, _ in data], late=late, aggregates={"spread": Spread()})


every_form = pytest.mark.parametrize("form", ["rows", "arrow", "mixed"])


@pytest.mark.parametrize(("sql", "keys"), QUERIES)
@every_form
@given(batches=arrivals())
def test_a_group_comes_with_the_promise_that_completes_it(
    form: str, sql: str, keys: tuple[str, ...], batches: list[list[Row]]
) -> None:
    case = final_case(sql, batches, keys)
    plan, own, expected = with_user_aggregates(case)
    judged = case.judged()
    execution = LocalExecution(plan, own)
    outputs: list[Output] = []
    with mock.patch.object(partials, "MIN_COLUMNAR", 1), mock.patch.object(open_groups, "SPARE", 0):
        for number, batch in enumerate(case.inputs(form)):
            outputs += execution.feed("s", batch)
            said = [p for p in promised(judged, number) if p.constants]
            complete = {e: n for e, n in expected.items() if any(covers(p, e[0], keys) for p in said)}
            assert_same(TDB(complete), tdb_of(outputs))
        outputs += execution.close()
    assert_same(expected, tdb_of(outputs))
    assert_sound(outputs)


NAMES = {"x": "a", "z": "b"}


def covers(promise: Punctuation, row: Row, keys: Sequence[str]) -> bool:
    """Whether a promise on `a` and `b` is about the group that a result begins with."""
    group = dict(zip([NAMES.get(k, k) for k in keys], row, strict=False))
    return all(group[name] == value for name, value in promise.constants)


@every_form
@given(batches=arrivals())
def test_what_is_promised_of_results_is_prompt(form: str, batches: list[list[Row]]) -> None:
    """As a whole: the input's bound, and no more than the greatest times of open groups. Of groups: as they are."""
    case = final_case("SELECT a, b, count(*) AS n, max(ts) AS t FROM s GROUP BY a, b", batches, ("a", "b"))
    execution = case.execution()
    judged = case.judged()
    outputs: list[Output] = []
    taken: list[Row] = []
    late = iter(is_late for _, is_late in judged.data)
    for number, batch in enumerate(case.inputs(form)):
        outputs += execution.feed("s", batch)
        is_data = [row for row in case.batches[number] if row[4] is not True]
        taken += [row for row in is_data if not next(late)]
        promises = promised(judged, number)
        groups: dict[Key, int] = {}
        for row in taken:
            if not any(all(row[SCHEMA.index(n)] == v for n, v in p.constants) for p in promises if p.constants):
                groups[row[1:3]] = max(row[0], groups.get(row[1:3], row[0]))  # type: ignore[type-var]
        said = Frontier([item for item in outputs if isinstance(item, Punctuation)])
        assert said.bound("__time") == min([judged.bounds[number], *groups.values()])
        for promise in promises:
            if promise.constants:
                assert said.implies(Punctuation((("__time", END_OF_TIME),), promise.constants))
    assert_sound([*outputs, *execution.close()])


@given(batches=arrivals(), at=st.integers(0, 4), form=st.sampled_from(["rows", "arrow"]))
def test_a_restored_run_goes_on_as_if_nothing_had_happened(batches: list[list[Row]], at: int, form: str) -> None:
    case = final_case(QUERIES[3][0], batches, ("x", "z"))
    plan, own, expected = with_user_aggregates(case)
    first, second = (LocalExecution(plan, own) for _ in range(2))
    inputs = case.inputs(form)
    outputs = [item for batch in inputs[:at] for item in first.feed("s", batch)]
    second.restore(first.snapshot())
    outputs += [item for batch in inputs[at:] for item in second.feed("s", batch)] + second.close()
    assert_same(expected, tdb_of(outputs))
    assert_sound(outputs)


OVER_OTHERS = [
    "SELECT a, max(n) AS m FROM (SELECT a, b, count(*) AS n FROM s GROUP BY a, b) i GROUP BY a",
    "SELECT a, sum(n) AS m, max(window_end) AS e FROM "
    "(SELECT a, v, count(*) AS n [RANGE 4, SLIDE 2, WA ts] FROM s GROUP BY a, v) i GROUP BY a",
    "SELECT a, count(*) AS n FROM (SELECT DISTINCT a, b FROM s) i GROUP BY a HAVING n > 1",
    "SELECT DISTINCT n FROM (SELECT a, count(*) AS n FROM s GROUP BY a) i",
    "SELECT a, count(*) AS n, sum(v) AS t FROM s UNION z GROUP BY a",
    "SELECT a, count(*) AS n FROM s GROUP BY a UNION ALL SELECT a, sum(v) AS n FROM z WHERE v > 3 GROUP BY a",
]


@pytest.mark.parametrize("sql", OVER_OTHERS)
@given(left=ROWS, right=ROWS, data=st.data())
def test_groups_of_groups_and_of_unions_agree_with_the_oracle(
    sql: str, left: list[Row], right: list[Row], data: st.DataObject
) -> None:
    progress = FINAL[1]
    rows = {"s": without_b(left), "z": without_b(right)}
    own = catalog(progress, "s", "z")
    plan = bind(sql, own)
    execution = LocalExecution(plan, own)
    queues = {name: list(each) for name, each in rows.items() if name in execution.graph.sources}
    outputs: list[Output] = []
    whole = [(n, row) for n, each in rows.items() for row in judged_by_row(progress, [each]).on_time]
    while any(queues.values()):
        name = data.draw(st.sampled_from([n for n, q in queues.items() if q]))
        size = data.draw(st.integers(1, 6))
        batch = Batch(SCHEMA, queues[name][:size])
        outputs += execution.feed(name, Batch(SCHEMA, table=batch.table) if data.draw(st.booleans()) else batch)
        del queues[name][:size]
    outputs += execution.close()
    assert_same(evaluate(plan, whole), tdb_of(outputs))
    assert_sound(outputs)


def without_b(rows: list[Row]) -> list[Row]:
    """Where punctuation tells groups by `a` alone, one with a value in `b` would be ambiguous."""
    return [(*row[:2], None, *row[3:]) if row[4] else row for row in rows]


def test_a_result_starts_at_the_greatest_time_of_its_rows() -> None:
    rows = [(5, 0, "x", 1, None), (1, 0, "x", 2, None), (3, 1, "x", 3, None), (2, 0, None, None, True)]
    case = Case("SELECT a, count(*) AS n FROM s GROUP BY a", FINAL[1], [rows, [(9, 0, "x", 1, None)]])
    execution = case.execution()
    first, second = [execution.feed("s", batch) for batch in case.inputs("rows")]
    assert [e for o in first if isinstance(o, Batch) for e in o.elements()] == [pk.Insert((0, 2), 5, 6)]
    assert groupwise("__time", END_OF_TIME, a=0) in first
    assert second == []
    assert execution.late().to_pylist()[0]["bound"] is None  # it came after the end of its group
    last = execution.close()
    assert [e for o in last if isinstance(o, Batch) for e in o.elements()] == [pk.Insert((1, 1), 3, 4)]


def test_a_promise_that_is_not_final_says_what_it_can() -> None:
    """Of a group that is open, no more than where its result may start; of others all of it."""
    case = Case("SELECT a, count(*) AS n FROM s GROUP BY a", FINAL[1], [[(5, 0, "x", 1, None)]])
    execution = case.execution()
    execution.feed("s", case.inputs("rows")[0])
    assert execution.feed("s", groupwise("ts", 9, a=0)) == [groupwise("__time", 5, a=0)]
    assert execution.feed("s", groupwise("ts", 9, a=1)) == [groupwise("__time", 9, a=1)]
    assert execution.feed("s", linear("ts", 7)) == [linear("__time", 5)]
    moved = execution.feed("s", Batch(SCHEMA, [(12, 0, "x", 1, None)]))
    assert moved == [linear("__time", 7)]


def test_a_group_without_a_value_fails_by_itself() -> None:
    big = 2**31 - 1
    rows = [(1, 0, "x", big, None), (2, 1, "x", 1, None), (3, 0, "x", big, None)]
    sql = f"SELECT a, sum(v * {2**31}) AS s FROM s GROUP BY a"
    case = Case(sql, FINAL[1], [[*rows, (4, 0, "x", big, None)]])
    execution = case.execution()
    outputs = execution.feed("s", case.inputs("rows")[0]) + execution.close()
    assert [row[:2] for o in outputs if isinstance(o, Batch) for row in o.rows] == [(1, 2**31)]
    (letter,) = execution.dead_letters().to_pylist()
    assert letter["row"] == '{"ts": 4, "a": 0}'
    assert "overflow" in letter["reason"]
    assert execution.counts.failed == 1


@functools.cache
def flow() -> pk.Flow:
    made = pk.Flow()
    for name, per, final in (("both", ["a", "b"], True), ("one", ["a"], True), ("open", ["a"], False)):
        progress = pk.punctuated("p", per=per, final=final)
        made.stream(name, SCHEMA.arrow.empty_table(), time="ts", progress=progress)
    made.stream("plain", SCHEMA.arrow.empty_table(), time="ts")
    return made


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT a, count(*) AS n FROM both GROUP BY a", "GROUP BY a, b of which"),
        ("SELECT count(*) AS n FROM one", "GROUP BY a of which"),
        ("SELECT a, count(*) AS n FROM open GROUP BY a", "final=True"),
        ("SELECT a, count(*) AS n FROM one UNION plain GROUP BY a", "every stream"),
        ("SELECT c, count(*) AS n FROM (SELECT a + 1 AS c FROM one) i GROUP BY c", "GROUP BY a of which"),
        ("SELECT a + 1 AS c, count(*) AS n FROM one GROUP BY c", "GROUP BY a of which"),
        ("SELECT a, count(*) AS n FROM plain GROUP BY a", "GROUP BY columns of which"),
    ],
)
def test_groups_that_nothing_completes_are_refused(sql: str, named: str) -> None:
    with pytest.raises(QueryError, match="needs a window") as raised:
        flow().query(sql)
    assert named in str(raised.value.hint)


def test_a_time_among_the_keys_is_a_window_of_one_tick() -> None:
    assert flow().query("SELECT a, ts, count(*) AS n FROM one GROUP BY a, ts").schema.names[:3] == (
        "wid", "window_start", "window_end",
    )  # fmt: skip
    made = flow().query("SELECT a, count(*) AS n FROM one GROUP BY a")
    (node,) = [n for n in made.plan.walk() if isinstance(n, GroupAggregate)]
    with pytest.raises(PlanError, match="window of one tick"):
        GroupAggregate(node.input, ("ts",), ())


def test_how_it_is_planned() -> None:
    made: Any = flow().query("SELECT a AS g, b, count(*) AS n, max(v) AS wid FROM one GROUP BY a, b HAVING n > 1")
    assert [f.name for f in made.schema.visible] == ["g", "b", "n", "wid"]
    assert "whole groups by a, b" in made.explain()
    own = flow().catalog
    assert [str(e) for e in (routes(made.plan) or {})["one"]] == ["a", "b"]
    assert closing_bound(made.plan, 10) is None
    for planned in (in_process(made.plan, own), spark_batch(made.plan, own), spark_streaming(made.plan, own)):
        assert [p.algorithm for p in planned.walk() if isinstance(p.node, GroupAggregate)] == ["whole groups"]
    other: Any = flow().query("SELECT a, count(*) AS m FROM one GROUP BY a")
    assert other.properties.key == frozenset({"a"})
    assert not other.properties.ordered


def test_revisions_are_settled_first() -> None:
    made = pk.Flow().stream(
        "s", iter(()), time="ts", schema="ts bigint, a int, p boolean", lives=True,
        progress=pk.punctuated("p", per=["a"], final=True),
    )  # fmt: skip
    plan = made.query("SELECT a, count(*) AS n FROM s GROUP BY a").plan
    assert any(isinstance(n, Settle) for n in plan.walk())


# The groups of one page


@given(
    steps=st.lists(st.tuples(st.integers(0, 5), st.integers(-20, 20)) | st.integers(0, 5), max_size=60),
    spare=st.sampled_from([0, 64]),
)
def test_the_oldest_group_is_the_one_with_the_least_greatest_time(steps: list[Any], spare: int) -> None:
    schema = SCHEMA
    grouping = Grouping(schema, (1,), (0,), (max_of(schema["ts"].type, schema["ts"].type),))
    page = OpenGroups(grouping, (0,))
    known: dict[int, int] = {}
    with mock.patch.object(open_groups, "SPARE", spare):
        for step in steps:
            if isinstance(step, tuple):
                key, time = step
                page.add((key,), (key,), [time])
                known[key] = max(time, known.get(key, time))
            elif step in known:
                page.take([(step,)])
                del known[step]
            assert page.oldest() == min(known.values(), default=None)
            assert page.size == len(known)
            assert len(page._heap) <= 2 * max(len(known), 1) + spare + 1
    again = OpenGroups(grouping, (0,), page.all())
    assert again.oldest() == page.oldest()


def test_a_lot_lies_in_one_page_in_whatever_form_its_values_came() -> None:
    assert page_of((Decimal("1.50"), None), 64) == page_of((Decimal("1.5"), None), 64)


@given(rows=ROWS)
def test_single_rows_come_to_the_same_as_batches(rows: list[Row]) -> None:
    sql = "SELECT a, b, count(*) AS n, sum(v) AS t FROM s GROUP BY a, b"
    own = catalog(FINAL[0])
    single, whole = (LocalExecution(bind(sql, own), own) for _ in range(2))
    push = single.pusher("s")
    for row in rows:
        push(row)
    outputs = single.take() + single.close()
    assert_same(tdb_of(whole.feed("s", Batch(SCHEMA, rows)) + whole.close()), tdb_of(outputs))
    assert_sound(outputs)
    assert single.counts == whole.counts


def test_very_many_groups_come_in_portions() -> None:
    case = Case("SELECT a, count(*) AS n FROM s GROUP BY a", FINAL[1], [[(i, i, "x", 1, None) for i in range(1000)]])
    execution = case.execution()
    execution.feed("s", case.inputs("arrow")[0])
    with mock.patch.object(whole_groups, "PORTION", 3):
        outputs = execution.close()
    sizes = [len(o) for o in outputs if isinstance(o, Batch)]
    assert sum(sizes) == 1000
    assert max(sizes) <= 3
