"""Rows pushed one at a time give what the same rows give in batches: results, punctuation, late rows, counts, state."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.errors import StreamError
from penstock.flow.flow import Flow
from penstock.flow.local import LocalQuery
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.progress import bounded
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from tests.runtime.cases import SCHEMA, Case, Output, number_queries, plain_queries, window_queries

CASES = window_queries() | number_queries() | plain_queries()


def pushed(execution: LocalExecution, rows: list[Row]) -> list[Output]:
    push = execution.pusher("s")
    for row in rows:
        push(row)
    return execution.take()


def fed(execution: LocalExecution, rows: list[Row]) -> list[Output]:
    return [item for row in rows for item in execution.feed("s", Batch(SCHEMA, [row]))]


def statistics(execution: LocalExecution) -> list[dict[str, int]]:
    return [asdict(node.statistics) for node in execution.graph.nodes]


@given(case=CASES)
def test_pushed_rows_give_what_fed_rows_give(case: Case) -> None:
    by_push, by_feed = case.execution(), case.execution()
    rows = [row for batch in case.batches for row in batch]
    outputs = pushed(by_push, rows) + by_push.close()
    expected = fed(by_feed, rows) + by_feed.close()
    assert_same(case.expected()[0], tdb_of(outputs))
    assert_sound(outputs)
    assert [p for p in outputs if isinstance(p, Punctuation)] == [p for p in expected if isinstance(p, Punctuation)]
    assert by_push.late().equals(by_feed.late())
    assert by_push.counts == by_feed.counts
    assert statistics(by_push) == statistics(by_feed)


@given(case=CASES, at=st.integers(0, 6), restart=st.booleans())
def test_rows_and_batches_may_take_turns_across_a_restart(case: Case, at: int, restart: bool) -> None:
    execution = case.execution()
    outputs: list[Output] = []
    for i, batch in enumerate(case.batches):
        if i == at and restart:
            snapshot = execution.snapshot()
            execution = case.execution()
            execution.pusher("s")
            execution.restore(snapshot)
        outputs += execution.feed("s", Batch(SCHEMA, batch)) if i % 2 else pushed(execution, batch)
    assert_same(case.expected()[0], tdb_of(outputs + execution.close()))


SQL = "SELECT k, count(*) AS n, sum(v) AS s [RANGE 10, SLIDE 10, WA ts] FROM s WHERE v % 2 = 0 GROUP BY k"


def test_a_row_that_does_not_fit_is_a_dead_letter() -> None:
    execution = Case(SQL, bounded(5), []).execution()
    push = execution.pusher("s")
    push((1, "a", 2, None, None, None))
    push((None, "a", 2, None, None, None))
    push((2, "a", "two", None, None, None))
    push((2, "a"))  # type: ignore[arg-type]
    push((2, "a", 2**31, None, None, None))
    push([3, "a", 4, None, None, None])  # type: ignore[arg-type]
    (batch,) = [item for item in execution.close() if isinstance(item, Batch)]
    assert batch.rows == [(0, 0, 10, "a", 1, 2)]
    assert execution.dead_letters()["reason"].to_pylist() == [
        "ts is null", "v is not a int: 'two'", "not a tuple of 6 values", "v is not a int: 2147483648",
        "not a tuple of 6 values",
    ]  # fmt: skip
    assert (execution.counts.read, execution.counts.on_time, execution.counts.dead) == (6, 1, 5)


def test_ends_of_lives_are_pushed_with_elements_and_not_in_rows() -> None:
    schema, lives = "ts bigint, k bigint, v bigint, ve bigint, v_old bigint", ("ts", "ve", "v_old")
    flow = Flow().stream("s", iter(()), time="ts", schema=schema, progress=bounded(5), lives=lives)
    query = flow.query("SELECT ts, k, v FROM s")
    assert isinstance(query, LocalQuery)
    execution = query.execution()
    push = execution.pusher("s")
    push((1, 2, 3, 9, None))
    push((1, 2, 3))
    push(pk.Insert((2, 2, 4), 2, 9))  # type: ignore[arg-type]
    push(pk.Adjust((2, 2, 4), 2, 9, 7))  # type: ignore[arg-type]
    found = tdb_of(execution.close())
    assert found == pk.tdb([pk.Insert((1, 2, 3), 1, 2), pk.Insert((2, 2, 4), 2, 7)])
    (reason,) = execution.dead_letters()["reason"].to_pylist()
    assert reason == "not a tuple of 3 values (ts, k, v), nor an Insert or Adjust, which says how long it lives"


def test_values_are_brought_into_their_types() -> None:
    flow = Flow().stream("s", iter(()), time="ts", schema="ts timestamp, x double", progress=pk.ordered())
    query = flow.query("SELECT ts, x FROM s")
    assert isinstance(query, LocalQuery)
    execution = query.execution()
    push = execution.pusher("s")
    push((dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC), 2))
    push((2_000_000, 2.5))
    rows = [row for item in execution.take() if isinstance(item, Batch) for row in item.rows]
    assert rows == [(1_000_000, 2.0), (2_000_000, 2.5)]


def test_a_stream_that_the_query_does_not_read_has_no_pusher() -> None:
    with pytest.raises(StreamError, match=r"reads no such stream.*\n?.*z"):
        Case(SQL, bounded(5), []).execution().pusher("z")
