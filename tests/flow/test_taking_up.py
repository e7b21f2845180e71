"""A snapshot outlives what its state does not hang on: choices of algorithms, orders of unions, stateless operators."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import CheckpointError, StreamError
from penstock.model.batch import Batch
from penstock.plan.planner import in_process
from penstock.testing.asserts import assert_same, assert_sound, tdb_of

ALGORITHMS = ["wid", "paned", "paned differential", "columnar"]
SUMS = "SELECT k, count(*) AS n, sum(v) AS v [RANGE 6, SLIDE 2, WA t] FROM a GROUP BY k"
BOTH = "SELECT k, count(*) AS n [RANGE 6, SLIDE 2, WA t] FROM {} UNION {} UNION {} GROUP BY k"
Rows = list[tuple[int, str, int]]
rows = st.lists(st.tuples(st.integers(0, 30), st.sampled_from("xyz"), st.integers(-5, 5)), max_size=12)


def query(sql: str, **functions: Any) -> Any:
    flow = pk.Flow()
    for name in ("a", "b", "c"):
        flow.stream(name, [], time="t", schema="t bigint, k string, v int", progress=pk.bounded(4))
    for name, function in functions.items():
        flow.function(name, function, "int")
    return flow.query(sql)


def feed(run: Any, stream: str, given: Rows) -> list[Any]:
    schema = next(n for n in run.graph.nodes if n.stream == stream).operator.schema
    found: list[Any] = run.feed(stream, Batch(schema, given))
    return found


# A choice can flip


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(before=rows, after=rows)
def test_state_of_every_algorithm_is_taken_up_by_the_default_choice(algorithm: str, before: Rows, after: Rows) -> None:
    q = query(SUMS)
    whole, first, second = q.execution(), q.execution(in_process(q.plan, q.catalog, aggregate=algorithm)), q.execution()
    outputs = feed(first, "a", before)
    second.restore(first.snapshot())
    outputs += feed(second, "a", after) + second.close()
    assert_same(tdb_of(feed(whole, "a", before) + feed(whole, "a", after) + whole.close()), tdb_of(outputs))
    assert_sound(outputs)


def test_what_runs_by_the_saved_state_says_so_and_goes_on_saving_it() -> None:
    q = query(SUMS)
    first = q.execution(in_process(q.plan, q.catalog, aggregate="paned"))
    feed(first, "a", [(1, "x", 1), (9, "y", 2)])
    second, third = q.execution(), q.execution()
    assert "in-process: columnar, cost" in second.explain()
    second.restore(first.snapshot())
    assert (
        "in-process: paned differential as the saved state is, cost 22 against 60 for wid, 23 for paned"
        in second.explain()
    )
    third.restore(second.snapshot())
    assert "paned differential as the saved state is" in third.explain()
    assert "columnar, cost" in q.explain(), "a fresh execution is free to choose"


def test_an_execution_at_work_does_not_change_its_algorithm() -> None:
    q = query(SUMS)
    saved = q.execution(in_process(q.plan, q.catalog, aggregate="wid")).snapshot()
    pushed, fed = q.execution(), q.execution()
    pushed.pusher("a")
    feed(fed, "a", [(1, "x", 1)])
    told = {pushed: "another algorithm or order than this execution's", fed: "Rows were fed already"}
    for run, message in told.items():
        with pytest.raises(StreamError, match=message) as caught:
            run.restore(saved)
        assert "restore into a fresh q.execution()" in str(caught.value)
    fed.close()  # as if nothing had been tried


# Rewording


@given(before=rows, other=rows, after=rows, order=st.permutations("abc"))
def test_branches_of_a_union_may_change_places(before: Rows, other: Rows, after: Rows, order: list[str]) -> None:
    written, reordered = query(BOTH.format("a", "b", "c")), query(BOTH.format(*order))
    whole, first, second = written.execution(), written.execution(), reordered.execution()
    outputs = feed(first, "a", before) + feed(first, "b", other)
    second.restore(first.snapshot())
    expected = feed(whole, "a", before) + feed(whole, "b", other)
    for run, found in ((whole, expected), (second, outputs)):
        found.extend(feed(run, "c", after) + run.end("a"))
        found.extend(feed(run, "b", after) + run.close())
    assert_same(tdb_of(expected), tdb_of(outputs))
    assert_sound(outputs)


def test_a_union_whose_branches_name_columns_differently_keeps_its_order() -> None:
    one = "SELECT t, k AS x FROM a UNION ALL SELECT t, upper(k) AS y FROM b"
    other = "SELECT t, upper(k) AS y FROM b UNION ALL SELECT t, k AS x FROM a"
    with pytest.raises(CheckpointError, match="made by another query"):
        query(other).execution().restore(query(one).execution().snapshot())


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        (SUMS + " HAVING count(*) > 1", [("x", 2, 4)]),
        (SUMS.replace("sum(v) AS v", "sum(v) AS v, sum(v) * 2 AS doubled"), [("x", 2, 4, 8), ("y", 1, 7, 14)]),
        (SUMS.replace("sum(v) AS v", "f(sum(v)) AS v"), [("x", 2, -4), ("y", 1, -7)]),
        (SUMS.replace("k, count(*) AS n", "upper(k) AS k, count(*) AS n"), [("X", 2, 4), ("Y", 1, 7)]),
        (f"SELECT * FROM ({SUMS}) i WHERE n > 1", [("x", 2, 4)]),
    ],
)
def test_operators_without_state_may_come_over_one_that_has_it(changed: str, kept: list[Any]) -> None:
    first = query(SUMS).execution()
    feed(first, "a", [(0, "x", 1), (1, "x", 3), (1, "y", 7)])
    second = query(changed, f=lambda v: -v).execution()
    second.restore(first.snapshot())
    results = [o.visible().to_pylist() for o in second.close() if isinstance(o, Batch)]
    found = [tuple(row.values()) for batch in results for row in batch if row["window_end"] == 2]
    assert sorted(row[3:] for row in found) == kept


@pytest.mark.parametrize("taken", [True, False])
def test_results_of_another_query_are_not_passed_off_as_its_own(taken: bool) -> None:
    first = query(SUMS).execution()
    push = first.pusher("a")
    for t in (1, 20):
        push((t, "x", 1))
    if taken:
        first.take()
    second = query(SUMS + " HAVING count(*) > 1").execution()
    if taken:
        second.restore(first.snapshot())
        return
    with pytest.raises(CheckpointError, match="results that were not taken") as caught:
        second.restore(first.snapshot())
    assert "take() them before the snapshot" in str(caught.value)


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        (SUMS, f"SELECT DISTINCT * FROM ({SUMS}) i", "operator 1 of the plan: was none, is Distinct"),
        (f"SELECT DISTINCT * FROM ({SUMS}) i", SUMS, "operator 1 of the plan: was Distinct"),
        (BOTH.format("a", "b", "c"), BOTH.format("a", "b", "a"), "streams that are read: was a, b, c, is a, b"),
        (SUMS, SUMS.replace("FROM a", "FROM a WHERE v > 0"), "is Select (v > 0)"),
    ],
)
def test_state_that_is_missing_or_left_behind_is_refused(was: str, now: str, said: str) -> None:
    with pytest.raises(CheckpointError, match="made by another query") as caught:
        query(now).execution().restore(query(was).execution().snapshot())
    assert said in str(caught.value)


# What sub-queries call their columns

INNER = "SELECT t AS {t}, k AS {k}, v + 1 AS {v} FROM a WHERE v < 4"
PER_GROUP = f"SELECT {{k}} AS k, sum({{v}}) AS {{n}} [RANGE 6, SLIDE 2, WA {{t}}] FROM ({INNER}) i GROUP BY {{k}}"
OVER_WINDOWS = f"SELECT max({{n}}) AS top [RANGE 4, SLIDE 2, WA window_end] FROM ({PER_GROUP}) j"
WITH_A_UNION = f"SELECT DISTINCT {{k}} AS k FROM ({INNER} UNION ALL SELECT t, k, v AS other FROM b) i"
WORDED = {"t": "t", "k": "k", "v": "v", "n": "n"}
REWORDED = {"t": "w", "k": "x", "v": "y", "n": "z"}


@pytest.mark.parametrize("sql", [PER_GROUP.replace("{n}", "n"), OVER_WINDOWS, WITH_A_UNION])
@given(before=rows, after=rows)
def test_aliases_of_sub_queries_may_be_reworded(sql: str, before: Rows, after: Rows) -> None:
    written, reworded = query(sql.format(**WORDED)), query(sql.format(**REWORDED))
    whole, first, second, third = (q.execution() for q in (written, written, reworded, written))
    outputs = feed(first, "a", before)
    second.restore(first.snapshot())
    outputs += feed(second, "a", after)
    third.restore(second.snapshot())  # and back
    outputs += third.close()
    assert_same(tdb_of(feed(whole, "a", before) + feed(whole, "a", after) + whole.close()), tdb_of(outputs))
    assert_sound(outputs)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("SELECT v AS x, 2 * v AS y, t FROM a", "SELECT 2 * v AS x, v AS y, t FROM a"),  # what was x is y
        ("SELECT v AS x, 2 * v AS y, t FROM a", "SELECT 2 * v AS y, v AS x, t FROM a"),  # in another order
        ("SELECT v AS x, 2 * v AS y, t FROM a", "SELECT v AS x, 3 * v AS y, t FROM a"),
        ("SELECT v AS x, 2 * v AS y, t FROM a", "SELECT v AS x, 2 * v AS y, t FROM b"),
    ],
)
def test_names_that_change_what_is_meant_are_no_rewording(was: str, now: str) -> None:
    outer = "SELECT sum(x) AS x, max(y) AS y [RANGE 6, SLIDE 2, WA t] FROM ({}) i"
    with pytest.raises(CheckpointError, match="made by another query"):
        query(outer.format(now)).execution().restore(query(outer.format(was)).execution().snapshot())
    repeated = query(outer.format(was)).execution()
    repeated.restore(query(outer.format(was)).execution().snapshot())


@given(before=rows, after=rows)
def test_promises_of_groups_are_taken_up_under_other_names(before: Rows, after: Rows) -> None:
    """What was promised of a group before holds of it afterwards: its windows are closed, and rows of it are late."""

    def per_group(alias: str) -> Any:
        progress = pk.punctuated("v IS NULL", per=["k"])
        flow = pk.Flow().stream("a", [], time="t", schema="t bigint, k string, v int", progress=progress)
        inner = f"SELECT t, k AS {alias}, v FROM a"
        return flow.query(f"SELECT count(*) AS n [RANGE 6, SLIDE 2, WA t] FROM ({inner}) i GROUP BY {alias}")

    said: Any = [*before, (12, "x", None), (20, "y", None)]
    whole, first, second = per_group("u").execution(), per_group("u").execution(), per_group("w").execution()
    outputs = feed(first, "a", said)
    second.restore(first.snapshot())
    outputs += feed(second, "a", after) + second.close()
    assert_same(tdb_of(feed(whole, "a", said) + feed(whole, "a", after) + whole.close()), tdb_of(outputs))
    assert_sound(outputs)
