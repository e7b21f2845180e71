"""Streams that end at different times: one that has ended holds back no other, and what it left open comes out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice

from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.flow.local import LocalQuery
from penstock.model.batch import Batch, Row
from penstock.model.elements import Insert, Punctuation
from penstock.model.progress import Progress, bounded, ordered, per_source
from penstock.model.tdb import TDB
from penstock.reference import evaluate, judge
from penstock.sql.binder import bind
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.strategies import sliding_windows
from tests.runtime.cases import SCHEMA, Output, catalog, clause, rows

SQL = "SELECT count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM main UNION control"


def endless() -> Iterator[dict[str, int]]:
    return ({"t": t} for t in count())


def test_an_endless_stream_beside_one_that_ends_gives_results() -> None:
    # main      0 1 2 3 …                      never ends
    # control   4 7 (end)                      must not hold main's windows back from there on
    flow = pk.Flow().stream("main", endless(), time="t", schema="t bigint")
    flow.stream("control", [{"t": 4}, {"t": 7}], time="t")
    query = flow.query(SQL)
    assert isinstance(query, LocalQuery)
    found = islice((e for e in query.elements() if isinstance(e, Insert)), 3)
    assert [e.payload for e in found] == [(0, 0, 10, 12), (1, 10, 20, 10), (2, 20, 30, 10)]


def test_a_stream_without_rows_holds_nobody_back() -> None:
    flow = pk.Flow().stream("main", endless(), time="t", schema="t bigint")
    flow.stream("control", iter(()), time="t", schema="t bigint")
    query = flow.query(SQL)
    assert isinstance(query, LocalQuery)
    first = next(e for e in query.elements() if isinstance(e, Insert))
    assert first.payload == (0, 0, 10, 10)


PROGRESS = st.sampled_from([ordered(), bounded(15), bounded(rows=2), per_source("k", idle=20, disorder=5)])


@given(left=rows(), right=rows(), progress=PROGRESS, first=st.sampled_from(["s", "z"]), data=st.data())
def test_one_side_of_a_union_ends_first(
    left: list[Row], right: list[Row], progress: Progress, first: str, data: st.DataObject
) -> None:
    """Once a side has ended, exactly the windows that the other side's bound closes are out."""
    sql = f"SELECT k, count(*) AS n {clause(data.draw(sliding_windows()))} FROM s UNION z GROUP BY k"
    both = catalog(progress, "s", "z")
    plan = bind(sql, both)
    execution = LocalExecution(plan, both)
    sides = {"s": left, "z": right}
    judged = {
        name: judge(progress, 0, [[r] for r in arrived], granularity="row", source_index=1, domain=SCHEMA.domain)
        for name, arrived in sides.items()
    }
    expected = evaluate(plan, [(name, row) for name in sides for row in judged[name].on_time])
    outputs: list[Output] = [i for row in sides[first] for i in execution.feed(first, Batch(SCHEMA, [row]))]
    outputs += execution.end(first)
    (last,) = sides.keys() - {first}
    for row, bound in zip(sides[last], judged[last].bounds, strict=True):
        outputs += execution.feed(last, Batch(SCHEMA, [row]))
        closed = TDB({event: n for event, n in expected.items() if event[1] <= bound})
        assert_same(closed, tdb_of(outputs))
    outputs += execution.end(last)
    assert_same(expected, tdb_of(outputs))
    assert_sound(outputs)
    assert execution.end(first) == execution.close() == []
    assert isinstance(outputs[-1], Punctuation)
    assert outputs[-1].is_end


def test_rows_of_a_stream_that_has_ended_are_late() -> None:
    both = catalog(bounded(15), "s", "z")
    execution = LocalExecution(bind("SELECT ts, k FROM s UNION z", both), both)
    execution.end("s")
    assert execution.feed("s", Batch(SCHEMA, [(5, "a", None, None, None, None)])) == []
    assert execution.counts.late == 1
    assert execution.late()["stream"].to_pylist() == ["s"]
