"""Feedback: what the consumer no longer needs is skipped; what it needs is all there, and nothing wrong comes out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.flow.flow import Flow
from penstock.flow.local import LocalQuery
from penstock.model.batch import Batch
from penstock.model.tdb import TDB
from penstock.model.time import END_OF_TIME
from penstock.testing.asserts import assert_sound, tdb_of
from tests.runtime.cases import SCHEMA, Case, Output, number_queries, plain_queries, window_queries

CASES = window_queries() | number_queries() | plain_queries()


def needed(events: TDB, bound: int) -> TDB:
    return TDB({e: n for e, n in events.items() if e[2] >= bound})


@given(
    case=CASES,
    at=st.integers(0, 6),
    bound=st.integers(-60, 170),
    pushed=st.booleans(),
    aggregate=st.sampled_from([None, "wid", "paned", "paned differential"]),
)
def test_what_is_needed_is_there_and_nothing_is_wrong(
    case: Case, at: int, bound: int, pushed: bool, aggregate: str | None
) -> None:
    execution = case.execution(aggregate)
    outputs: list[Output] = []
    for i, batch in enumerate(case.batches):
        if i == at:
            execution.feedback(bound)
        if pushed:
            for row in batch:
                execution.pusher("s")(row)
            outputs += execution.take()
        else:
            outputs += execution.feed("s", Batch(SCHEMA, batch))
    outputs += execution.close()
    expected, found = case.expected()[0], tdb_of(outputs)
    assert not needed(expected, bound).difference(needed(found, bound)), "something that is needed is missing"
    assert not found.difference(expected).missing, "something came out that is not true"
    assert_sound(outputs)
    counts = execution.counts
    assert counts.read == counts.on_time + counts.late + counts.dead + counts.punctuation + counts.skipped


def expensive() -> tuple[LocalQuery, list[int]]:
    """A query with a user function that counts its calls."""
    calls: list[int] = []

    def slow(v: int) -> bool:
        calls.append(v)
        return v % 2 == 0

    rows = [{"ts": t, "v": t} for t in range(100)]
    flow = Flow().stream("s", rows, time="ts", progress=pk.ordered()).function("slow", slow, "boolean")
    query = flow.query("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA ts] FROM s WHERE slow(v)")
    assert isinstance(query, LocalQuery)
    return query, calls


def test_work_that_nobody_needs_is_not_done() -> None:
    query, calls = expensive()
    execution = query.execution()
    execution.feedback(75)  # results that end before 75: the window [60, 70) lives until 80
    rows = [(t, t) for t in range(100)]
    push = execution.pusher("s")
    for row in rows:
        push(row)
    results = [row for item in execution.close() if isinstance(item, Batch) for row in item.rows]
    assert [row[2] for row in results] == [70, 80, 90, 100]
    assert calls == list(range(60, 100))
    assert execution.counts.skipped == 60


def test_at_the_end_of_time_nothing_is_needed() -> None:
    query, calls = expensive()
    execution = query.execution()
    execution.feedback(END_OF_TIME)
    push = execution.pusher("s")
    for t in range(100):
        push((t, t))
    assert [i for i in execution.close() if isinstance(i, Batch)] == []
    assert calls == []
