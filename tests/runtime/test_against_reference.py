"""The in-process engine against the oracle: any windows, groups, values, arrival and cuts give the same TDB."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.local.execution import LocalExecution
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.progress import bounded, ordered
from penstock.model.tdb import TDB
from penstock.operators.aggregates import columnar, partials, slide
from penstock.operators.aggregates.paned import PanedAggregate
from penstock.reference import evaluate, judge
from penstock.sql.binder import bind
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.strategies import sliding_windows
from tests.runtime.cases import (
    SCHEMA,
    Case,
    Output,
    catalog,
    clause,
    number_queries,
    plain_queries,
    rows,
    run,
    window_queries,
)

CASES = window_queries() | plain_queries()


every_form = pytest.mark.parametrize("form", ["rows", "arrow", "mixed"])


@every_form
@given(case=CASES)
def test_the_tdb_is_the_oracles(form: str, case: Case) -> None:
    with mock.patch.object(partials, "MIN_COLUMNAR", 1), mock.patch.object(columnar, "MIN_COLUMNAR", 1):
        outputs = case.run(form=form)
    assert_same(case.expected()[0], tdb_of(outputs))
    assert_sound(outputs)


@every_form
@pytest.mark.parametrize("aggregate", ["wid", "paned", "paned differential"])
@given(case=window_queries())
def test_every_way_to_aggregate_gives_the_same(aggregate: str, form: str, case: Case) -> None:
    with mock.patch.object(partials, "MIN_COLUMNAR", 1):
        outputs = case.run(aggregate, form)
    assert_same(case.expected()[0], tdb_of(outputs))


@every_form
@given(case=number_queries())
def test_columns_of_numbers_give_what_tables_give(form: str, case: Case) -> None:
    """Renumbering groups and widening sums are made to happen on small inputs."""
    with (
        mock.patch.object(columnar, "MIN_COLUMNAR", 1),
        mock.patch.object(columnar, "SPARE_CODES", 0),
        mock.patch.object(slide, "SAFE", 50),
    ):
        outputs = case.run("columnar", form)
    assert_same(case.expected()[0], tdb_of(outputs))
    assert_sound(outputs)


@given(case=window_queries())
def test_differential_panes_give_what_recombined_panes_give(case: Case) -> None:
    results = []
    for differential in (True, False):
        execution = case.execution("paned")
        for node in execution.graph.nodes:
            if isinstance(node.operator, PanedAggregate):
                exact = all(f.invert is not None for f in node.operator.grouping.functions)
                node.operator.differential = differential and exact
        results.append(run(execution, case.inputs()))
    assert_same(tdb_of(results[0]), tdb_of(results[1]))
    assert [p for p in results[0] if isinstance(p, Punctuation)] == [
        p for p in results[1] if isinstance(p, Punctuation)
    ]


@given(case=CASES, at=st.integers(0, 6), form=st.sampled_from(["rows", "arrow"]))
def test_a_restored_run_goes_on_as_if_nothing_had_happened(case: Case, at: int, form: str) -> None:
    inputs = case.inputs(form)
    first, second = case.execution(), case.execution()
    outputs = [item for batch in inputs[:at] for item in first.feed("s", batch)]
    second.graph.restore(first.graph.snapshot())
    outputs += run(second, inputs[at:])
    whole = run(case.execution(), inputs)
    assert_same(tdb_of(whole), tdb_of(outputs))
    assert [p for p in outputs if isinstance(p, Punctuation)] == [p for p in whole if isinstance(p, Punctuation)]


@given(case=window_queries())
def test_a_window_comes_with_the_punctuation_that_closes_it(case: Case) -> None:
    """After each batch, exactly the windows that end at or before the bound are out: none is early, none waits."""
    expected, bounds = case.expected()
    execution, outputs = case.execution(), []
    for batch, bound in zip(case.inputs(), bounds, strict=True):
        outputs += execution.feed("s", batch)
        assert_same(TDB({e: n for e, n in expected.items() if e[1] <= bound}), tdb_of(outputs))
    assert_sound(outputs + execution.close())


@given(left=rows(), right=rows(), data=st.data())
def test_a_union_of_two_streams_in_any_interleaving(left: list[Row], right: list[Row], data: st.DataObject) -> None:
    window = data.draw(sliding_windows())
    sql = f"SELECT k, count(*) AS n, sum(v) AS t {clause(window)} FROM s UNION z GROUP BY k"
    both = catalog(bounded(15), "s", "z")
    plan = bind(sql, both)
    execution = LocalExecution(plan, both)
    queues = {"s": list(left), "z": list(right)}
    outputs: list[Output] = []
    arrivals: list[tuple[str, Row]] = []
    for name, arrived in queues.items():
        judged = judge(bounded(15), 0, [arrived], granularity="row", domain=SCHEMA.domain)
        arrivals += [(name, row) for row in judged.on_time]
    while any(queues.values()):
        name = data.draw(st.sampled_from([n for n, q in queues.items() if q]))
        size = data.draw(st.integers(1, 4))
        outputs += execution.feed(name, Batch(SCHEMA, queues[name][:size]))
        del queues[name][:size]
    outputs += execution.close()
    assert_same(evaluate(plan, arrivals), tdb_of(outputs))
    assert_sound(outputs)


@given(rows())
def test_a_stream_that_is_read_twice_counts_its_rows_once(arrived: list[Row]) -> None:
    sql = "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA ts] FROM s UNION s"
    case = Case(sql, ordered(), [arrived])
    execution = case.execution()
    outputs = run(execution, case.inputs())
    assert_same(case.expected()[0], tdb_of(outputs))
    judged = judge(ordered(), 0, [arrived], granularity="row", domain=SCHEMA.domain)
    counts = execution.counts
    assert (counts.read, counts.on_time, counts.late) == (len(arrived), len(judged.on_time), len(judged.late))
    assert execution.late().num_rows == len(judged.late)


def row(time: int, d: float | None = None, at: int | None = None, k: str | None = None) -> Row:
    return (time, k, None, d, None, at)


def nan() -> float:
    return float("nan")


def results(sql: str, *batches: list[Row], form: str = "rows") -> TDB:
    with mock.patch.object(partials, "MIN_COLUMNAR", 1):
        return tdb_of(Case(sql, bounded(100), list(batches)).run(form=form))


@every_form
def test_nan_is_one_value(form: str) -> None:
    twice = [row(1, nan()), row(1, nan())]
    assert results("SELECT DISTINCT d FROM s", twice, twice, form=form).size == 1
    grouped = results("SELECT d, count(*) AS n [RANGE 9, SLIDE 9, WA ts] FROM s GROUP BY d", twice, twice, form=form)
    assert grouped == TDB([((0, 0, 9, nan(), 4), 9, 18)])
    counted = results("SELECT count(DISTINCT d) AS n [RANGE 9, SLIDE 9, WA ts] FROM s", twice, twice, form=form)
    assert counted == TDB([((0, 0, 9, 1), 9, 18)])


def test_nan_is_one_value_across_a_restart() -> None:
    sql = "SELECT d, count(*) AS n [RANGE 9, SLIDE 9, WA ts] FROM s GROUP BY d"
    case = Case(sql, bounded(100), [[row(1, nan())], [row(2, nan())]])
    first, second = case.execution(), case.execution()
    before, after = case.inputs()
    first.feed("s", before)
    second.graph.restore(first.graph.snapshot())
    assert tdb_of(run(second, [after])) == TDB([((0, 0, 9, nan(), 2), 9, 18)])


@every_form
def test_distinct_timestamps_are_counted_once_in_whatever_form_they_come(form: str) -> None:
    sql = "SELECT count(DISTINCT at) AS n [RANGE 9, SLIDE 9, WA ts] FROM s"
    assert results(sql, [row(1, at=7)], [row(2, at=7)], form=form) == TDB([((0, 0, 9, 1), 9, 18)])
