"""Punctuation among the rows of a table: all rows go through plain operators at once, and what comes is the same.

row         1  5  |3  4  8  |6  2        | says how far the stream is; 2 is late
v > 0       1     |3     8  |            rows are judged and computed together,
given       [1] 3 [3, 8] 6               and come with each punctuation where it stood
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.engines.local.shared import SharedExecution
from penstock.flow.local import LocalQuery
from penstock.model.batch import Batch, Row, table_of
from penstock.model.elements import Punctuation, linear
from penstock.model.interleaved import Interleaved
from penstock.model.schema import schema_of
from penstock.testing.asserts import assert_sound
from tests.profiles import examples

SCHEMA = schema_of([("ts", "bigint"), ("k", "string"), ("v", "bigint"), ("p", "boolean")], time="ts")
PLAIN = [
    "SELECT ts, k, v FROM s",
    "SELECT k, v + 1 AS w FROM s WHERE v > 0",
    "SELECT ts, 6 / v AS w FROM s WHERE k <> 'a'",
    "SELECT ts, k FROM s WHERE 6 / v > 1",
    "SELECT ts, k FROM (SELECT ts, k, v FROM s WHERE v > -2) AS t WHERE v IS NULL OR v < 2",
    "SELECT DISTINCT ts, k FROM s WHERE v >= 0",
    "SELECT k, count(*) AS n [RANGE 4, SLIDE 2, WA ts] FROM s WHERE v > 0 GROUP BY k",
]
PROGRESS = [pk.punctuated("p", whole_stream=True), pk.punctuated("p", per=["k"])]
values = st.none() | st.integers(-3, 3)
data_rows = st.tuples(st.integers(0, 12), st.sampled_from("abc"), values, st.just(False))
marks = st.tuples(st.integers(0, 12), st.none() | st.sampled_from("ab"), st.none(), st.just(True))
arrivals = st.lists(st.lists(data_rows | marks, min_size=1, max_size=14), min_size=1, max_size=3)


def execution(sql: str, progress: Any) -> LocalExecution:
    made = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl, progress=progress).query(sql)
    assert isinstance(made, LocalQuery)
    return made.execution()


def in_order(outputs: list[Any]) -> list[Any]:
    """Rows and punctuation, one after the other."""
    return [each for out in outputs for each in (out.rows if isinstance(out, Batch) else [out])]


def left(run: LocalExecution) -> list[Any]:
    """Where rows have gone that did not come out."""
    return [sorted(map(str, letters.to_pylist())) for letters in (run.late(), run.dead_letters())] + [run.counts]


def counted(run: LocalExecution) -> list[Any]:
    return [asdict(node.statistics) for node in run.graph.nodes]


@pytest.mark.parametrize("progress", PROGRESS, ids=str)
@pytest.mark.parametrize("sql", PLAIN)
@examples(20)
@given(batches=arrivals)
def test_a_table_gives_what_its_rows_give_one_by_one(sql: str, progress: Any, batches: list[list[Row]]) -> None:
    by_table, by_row = execution(sql, progress), execution(sql, progress)
    tables = [o for b in batches for o in by_table.feed("s", Batch(SCHEMA, table=table_of(SCHEMA, b)))]
    singles = [o for b in batches for row in b for o in by_row.feed("s", Batch(SCHEMA, [row]))]
    if "RANGE" in sql:
        tables, singles = tables + by_table.close(), singles + by_row.close()
        assert_sound(tables)
        rows = [[row for row in in_order(outputs) if isinstance(row, tuple)] for outputs in (tables, singles)]
        assert sorted(rows[0]) == sorted(rows[1])
    else:
        assert in_order(tables) == in_order(singles)
        if "DISTINCT" not in sql:
            assert counted(by_table) == counted(by_row)
    assert left(by_table) == left(by_row)


def test_rows_travel_together_and_come_apart_at_the_outlet() -> None:
    run = execution(PLAIN[1], PROGRESS[0])
    rows = [(t, "a", t, False) for t in (1, 5)] + [(3, None, None, True), (4, "b", -1, False), (4, "b", 1, False)]
    rows += [(4, None, None, True), (4, "c", 2, False)]
    seen: list[int] = []
    for node in run.graph.nodes:
        taken = node.operator.interleave
        node.operator.interleave = lambda port, given, taken=taken: (  # type: ignore[method-assign, misc]
            seen.append(len(given.batch)) or taken(port, given)
        )
    found = run.feed("s", Batch(SCHEMA, table=table_of(SCHEMA, rows)))
    assert seen == [5, 4]
    assert [len(o) if isinstance(o, Batch) else o.value for o in found] == [2, 3, 1, 4, 1]


@examples(20)
@given(batches=arrivals)
def test_queries_that_share_a_graph_give_what_each_gives_alone(batches: list[list[Row]]) -> None:
    """The first two read the same node, one as its result and one through more operators."""
    texts = {
        "whole": PLAIN[0],
        "part": f"SELECT ts, v + 1 AS w FROM ({PLAIN[0]}) AS t WHERE v > 0",
        "window": PLAIN[-1],
    }
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA.ddl, progress=PROGRESS[0])
    together = SharedExecution(flow.catalog, {name: flow.query(sql).plan for name, sql in texts.items()})
    alone = {name: execution(sql, PROGRESS[0]) for name, sql in texts.items()}
    for rows in batches:
        batch = Batch(SCHEMA, table=table_of(SCHEMA, rows))
        given_together = together.feed("s", batch)
        for name, run in alone.items():
            own = in_order([element for of, element in given_together if of == name])
            expected = in_order(run.feed("s", batch))
            if name == "window":  # of which bounds are useful to it depends on who else reads the stream
                own, expected = ([each for each in o if isinstance(each, tuple)] for o in (own, expected))
            assert own == expected


@given(st.lists(st.integers(0, 9), max_size=5), st.integers(0, 9))
def test_elements_are_the_rows_and_what_is_said_among_them(places: list[int], rows: int) -> None:
    batch = Batch(SCHEMA, [(t, "a", t, False) for t in range(rows)])
    within = sorted(place for place in places if place <= rows)
    said = [linear("ts", at) for at in range(len(within))]
    found = list(Interleaved(batch, within, said).elements())
    assert [o for o in found if isinstance(o, Punctuation)] == said
    assert in_order([o for o in found if isinstance(o, Batch)]) == list(batch.rows)
    before = [sum(len(b) for b in found[:at] if isinstance(b, Batch)) for at, o in enumerate(found) if o in said]
    assert before == within


@pytest.mark.parametrize("progress", PROGRESS, ids=str)
@pytest.mark.parametrize("sql", PLAIN)
@examples(20)
@given(batches=arrivals)
def test_whoever_takes_tables_is_given_the_same_rows_uncut(sql: str, progress: Any, batches: list[list[Row]]) -> None:
    in_place = execution(sql, progress)
    after = LocalExecution(in_place.plan, in_place.builder.catalog, bounds_in_place=False)
    found: list[Any] = []
    for rows in batches:
        batch = Batch(SCHEMA, table=table_of(SCHEMA, rows))
        given_after, given_there = after.feed("s", batch), in_place.feed("s", batch)
        assert rows_of(given_after) == rows_of(given_there)
        if (
            "RANGE" not in sql and "/" not in sql
        ):  # windows come one after the other, and so do rows around one that fails
            assert [isinstance(each, Batch) for each in given_after].count(True) <= 1
            assert last_said(given_after) == last_said(given_there)
        found += given_after
    assert_sound(found + after.close())
    in_place.close()
    assert left(after) == left(in_place)


def rows_of(outputs: list[Any]) -> list[Row]:
    return [each for each in in_order(outputs) if isinstance(each, tuple)]


def last_said(outputs: list[Any]) -> Punctuation | None:
    """The last bound of the stream as a whole."""
    return next((o for o in reversed(outputs) if isinstance(o, Punctuation) and o.is_linear), None)


def test_tables_of_a_query_are_not_cut_at_punctuation() -> None:
    rows = [(t, None if t % 3 == 2 else "a", None if t % 3 == 2 else t, t % 3 == 2) for t in range(9)]
    flow = pk.Flow().stream("s", table_of(SCHEMA, rows), time="ts", progress=PROGRESS[0])
    made = flow.query(PLAIN[0])
    assert isinstance(made, LocalQuery)
    assert [len(table) for table in made.batches()] == [6]
    assert [len(o) for o in made.items() if isinstance(o, Batch)] == [2, 2, 2]
    taken: list[int] = []
    with made.start(lambda table: taken.append(len(table))) as run:
        run.wait()
    assert taken == [6]
    assert len(made.collect()) == 6


@pytest.mark.parametrize("sql", PLAIN)
@examples(30)
@given(batches=arrivals, at=st.integers(0, 3))
def test_pushed_rows_give_what_fed_rows_give(sql: str, batches: list[list[Row]], at: int) -> None:
    """In a lane, punctuation passes by without the graph, unless it goes backwards or says more than it may."""
    by_push, by_feed = execution(sql, PROGRESS[0]), execution(sql, PROGRESS[0])
    push = by_push.pusher("s")
    found, expected = [], []
    for number, rows in enumerate(batches):
        if number == at:
            found += by_push.feed("s", linear("ts", 6))
            expected += by_feed.feed("s", linear("ts", 6))
        for row in rows:
            push(row)
            expected += by_feed.feed("s", Batch(SCHEMA, [row]))
        found += by_push.take()
    assert in_order(found + by_push.close()) == in_order(expected + by_feed.close())
    assert left(by_push) == left(by_feed)
    assert counted(by_push) == counted(by_feed)
    assert by_push.frontier() == by_feed.frontier()
