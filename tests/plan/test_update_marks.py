"""Marks for a whole plan: nested aggregates see whole windows only, and what cannot be marked is refused."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InternalError, PlanError
from penstock.flow.flow import Flow
from penstock.model.batch import Batch
from penstock.model.elements import linear
from penstock.model.plain import decode, encode
from penstock.model.progress import bounded, punctuated
from penstock.model.schema import schema_of
from penstock.model.time import END_OF_TIME
from penstock.operators.operator import Rejected
from penstock.operators.queues.marks import INSIDE, MarkedRows
from penstock.operators.queues.window_choosing import window_queue_for
from penstock.operators.state import seal, unseal
from penstock.plan.nodes import Source, WindowAggregate
from penstock.plan.update_marks import marks_of
from penstock.runtime.builder import Builder
from penstock.runtime.marked_building import marked_plan
from penstock.sql.binder import bind
from tests.profiles import examples

TRADES = schema_of([("ts", "bigint"), ("symbol", "string"), ("venue", "string"), ("price", "bigint")], "ts")
INNER = "SELECT symbol, sum(price) AS total [RANGE 6, SLIDE 3, WA ts] FROM trades GROUP BY symbol"
NESTED = (
    "SELECT symbol, max(total) AS top, count(*) AS n [RANGE 9, SLIDE 6, WA window_end] "
    f"FROM ({INNER}) AS inner_windows WHERE total % 2 = 0 GROUP BY symbol"
)
WIDER = "SELECT symbol, venue, count(*) AS n [RANGE 4, SLIDE 2, WA ts] FROM trades GROUP BY symbol, venue"


def _flow(rows: list[tuple[Any, ...]] = ()) -> Flow:  # type: ignore[assignment]
    flow = Flow()
    table = Batch(TRADES, rows).table
    flow.stream("trades", table, time="ts", progress=bounded(1000))
    flow.stream("others", table, time="ts", progress=punctuated("price < 0", whole_stream=True))
    return flow


def _first_input(plan: Any) -> Any:
    """What the first aggregate reads."""
    return [node for node in plan.walk() if isinstance(node, WindowAggregate)][-1].input


def _run(sql: str, rows: list[Any], mode: str, every: int, again: int | None = None) -> list[Any]:
    """Results through a queue of windows that is served a row for every `every` that come, in order per key."""
    flow = _flow()
    query: Any = flow.query(sql)
    queue_at = _first_input(query.physical.node)
    marks = marks_of(query.physical.node, queue_at, ["symbol"])
    builder = Builder(flow.catalog)
    make = lambda: window_queue_for(queue_at.schema, ["symbol"], marks.extents, mode)  # noqa: E731
    queue, plan = make(), marked_plan(query.physical, marks, builder)
    out: list[Any] = []
    for at, row in enumerate(rows):
        queue.enqueue(Batch(queue_at.schema, [_as_read(queue_at, row)]), at)
        if at % 3 == 2:
            queue.punctuate(linear(queue_at.schema.time, row[0] - 2), at)
        if at % every == 0:
            out += plan.process(0, queue.dequeue(at, 1))
        if at == again:
            queue, plan = _again(queue, make()), _again_plan(plan, marked_plan(query.physical, marks, builder))
    queue.punctuate(linear(queue_at.schema.time, END_OF_TIME), len(rows))
    while queue.ready(len(rows)):
        out += plan.process(0, queue.dequeue(len(rows), 100))
    assert plan.pages.pages == {}
    out += plan.promise(queue.promised())
    assert out[-1].is_end
    return [row for batch in out[:-1] for row in batch.rows]


def _as_read(node: Any, row: Any) -> Any:
    """A row as what the queue is on would have it: projections name columns only."""
    named = dict(zip(TRADES.names, row, strict=True))
    columns = dict(node.columns) if hasattr(node, "columns") else {}
    return tuple(named[columns[name].name] if name in columns else named[name] for name in node.schema.names)


def _again(queue: Any, anew: Any) -> Any:
    anew.from_plain(decode(encode(queue.to_plain())), queue.version)
    return anew


def _again_plan(plan: Any, anew: Any) -> Any:
    for key in plan.pages.keys():  # noqa: SIM118 - pages are no dictionary
        anew.pages.put(key, unseal(anew, key, seal(plan, key, plan.pages.get(key), "plan"), "plan"))
    return anew


rows = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 5)), max_size=40
)


@pytest.mark.parametrize("sql", [INNER, NESTED, WIDER])
@pytest.mark.parametrize("mode", ["lazy", "eager", "append"])
@given(steps=rows, every=st.integers(1, 4), again=st.integers(0, 30))
@examples(8)
def test_every_result_is_one_of_the_query_without_a_queue(
    sql: str, mode: str, steps: list[Any], every: int, again: int
) -> None:
    time, given_ = 0, []
    for ahead, *others in steps:
        time += ahead
        given_.append((time - time % 2 if ahead else time, *others))  # some come a little late
    query: Any = _flow(given_).query(sql)
    true = Counter(map(tuple, (row.values() for row in query.collect().to_pylist())))
    found = _run(sql, given_, mode, every, again)
    assert not Counter(row[: len(next(iter(true), ()))] for row in found) - true
    if mode == "append":
        assert sum(true.values()) == len(found)
    last = {row[3]: max(r[2] for r in true if r[3] == row[3]) for row in true}
    out = {row[3]: max(r[2] for r in found if r[3] == row[3]) for row in found}
    if sql != NESTED:  # a HAVING-like choice between aggregates may leave nothing of the last window
        assert out == last


def test_a_plan_is_marked_by_its_last_aggregate() -> None:
    plan = bind(NESTED, _flow().catalog)
    marks = marks_of(plan, _first_input(plan), ["symbol"])
    assert [str(node.window) for node in marks.aggregates] == [
        "[RANGE 6, SLIDE 3, WA ts]", "[RANGE 9, SLIDE 6, WA window_end]",
    ]  # fmt: skip
    # Window 1 of the outer is [3, 12): the inner windows that end at 3, 6, 9, which are the rows from -3 to 8.
    assert (marks.extents.start(1), marks.extents.end(1), marks.extents.parts(1)) == (-3, 9, ((0, 2), (1, 1)))
    assert (marks.cost.updates, marks.cost.slide) == (3 * 6 + 3, 6)
    assert marks.cost.load(keys=2) == 7


REFUSED = [
    (
        "SELECT max(total) AS top [RANGE 9, SLIDE 6, WA window_end] FROM (" + INNER + ") AS i",
        "several update keys",
        "lacks symbol of the update key",
    ),
    (
        "SELECT venue, count(*) AS n [RANGE 9, SLIDE 6, WA ts] FROM trades GROUP BY venue",
        "several update keys",
        "venue",
    ),
    (
        "SELECT symbol, count(*) AS n [RANGE ALL, SLIDE 6, WA ts] FROM trades GROUP BY symbol",
        "depends on rows that would be dropped",
        "RANGE ALL",
    ),
    (
        "SELECT symbol, count(*) AS n [RANGE 5 rows, SLIDE 1 row, WA row-num, PA symbol] FROM trades GROUP BY symbol",
        "remembers rows",
        "NumberRows",
    ),
    (
        "SELECT symbol, count(*) AS n [RANGE 9, SLIDE 6, WA ts] FROM (SELECT DISTINCT ts, symbol FROM trades) AS d "
        "GROUP BY symbol",
        "remembers rows",
        "Distinct",
    ),
    (
        "SELECT symbol, count(*) AS n [RANGE 9, SLIDE 6, WA ts] FROM (trades UNION others) GROUP BY symbol",
        "takes some from elsewhere",
        "Union",
    ),
    (
        "SELECT symbol, count(*) AS n [RANGE 1, SLIDE 3, ORIGIN 2, WA window_end] FROM (" + INNER + ") AS i "
        "GROUP BY symbol",
        "ever ends in one of its windows",
        "RANGE 6",
    ),
    ("SELECT symbol, price FROM trades WHERE price > 3", "needs an aggregate with windows", "Select"),
]


@pytest.mark.parametrize(("sql", "why", "got"), REFUSED, ids=[case[1] + str(at) for at, case in enumerate(REFUSED)])
def test_what_cannot_be_marked_is_refused_with_the_reason(sql: str, why: str, got: str) -> None:
    plan = bind(sql, _flow().catalog)
    source = next(node for node in plan.walk() if isinstance(node, Source) and node.name == "trades")
    with pytest.raises(PlanError) as error:
        marks_of(plan, source, ["symbol"])
    assert why in error.value.message
    assert got in error.value.got
    assert error.value.where


def test_a_queue_that_is_not_in_the_plan_is_refused() -> None:
    flow = _flow()
    plan, other = bind(INNER, flow.catalog), bind("SELECT * FROM others", flow.catalog)
    with pytest.raises(PlanError, match="not part of the plan"):
        marks_of(plan, other, ["symbol"])


def test_a_row_for_a_window_that_is_not_open_is_a_broken_window() -> None:
    flow = _flow()
    query: Any = flow.query(INNER)
    at = _first_input(query.physical.node)
    marks = marks_of(query.physical.node, at, ["symbol"])
    plan = marked_plan(query.physical, marks, Builder(flow.catalog))
    broken = MarkedRows(at.schema, [_as_read(at, (1, "a", "x", 1))], [0], [0], [INSIDE], [])
    with pytest.raises(InternalError, match="contradict each other about a window"):
        list(plan.process(0, broken))


def test_a_group_whose_aggregate_fails_costs_no_other() -> None:
    flow = _flow()
    query: Any = flow.query("SELECT symbol, sum(price) AS s [RANGE 4, SLIDE 4, WA ts] FROM trades GROUP BY symbol")
    at = _first_input(query.physical.node)
    marks = marks_of(query.physical.node, at, ["symbol"])
    queue, plan = (
        window_queue_for(at.schema, ["symbol"], marks.extents),
        marked_plan(query.physical, marks, Builder(flow.catalog)),
    )
    big = 2**62
    for row in [(1, "a", "x", big), (1, "a", "x", big), (2, "a", "x", big), (1, "b", "x", 7)]:
        queue.enqueue(Batch(at.schema, [_as_read(at, row)]), 1)
    queue.punctuate(linear(at.schema.time, 4), 2)
    out = list(plan.process(0, queue.dequeue(2, 9)))
    (failed,) = [each for each in out if isinstance(each, Rejected)]
    assert [row[3] for row in failed.batch.rows] == ["a"]
    assert [row[3:] for each in out if isinstance(each, Batch) for row in each.rows] == [("b", 7)]
