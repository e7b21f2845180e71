"""A timer says what rows have reached, every so often by the clock."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import StreamError
from penstock.model.batch import Batch, Row
from penstock.model.progress import parse_progress
from penstock.model.schema import schema_of
from penstock.model.time import SECOND, Domain
from penstock.reference import judge
from tests.flow.test_silence import Clock, Scripted, came_at

SCHEMA = schema_of([("t", "bigint"), ("k", "string")], "t")
EVERY = 10 * SECOND
rows = st.lists(st.tuples(st.integers(0, 40), st.just("a")), max_size=4)
looks = st.lists(st.tuples(st.integers(-5, 12), st.booleans(), rows), max_size=8)


def execution_of(progress: Any, **options: Any) -> Any:
    flow = pk.Flow().stream("s", [], time="t", schema="t bigint, k string", progress=progress, **options)
    query: Any = flow.query("SELECT t, k FROM s")
    return query.execution()


def test_between_two_firings_the_bound_stays() -> None:
    # clock   0       12       15       21
    # rows    5  3    9  7     2!  6    4!  8!
    # said    -       5        5        9
    execution, late = execution_of(pk.timer("10 seconds")), []
    for now, times in [(0, [5, 3]), (12, [9, 7]), (15, [2, 6]), (21, [4, 8])]:
        execution.tick(now * SECOND)
        execution.feed("s", Batch(SCHEMA, [(t, "a") for t in times]))
        late.append(execution.late()["bound"].to_pylist())
    assert late[-1] == [5, 9, 9]


@pytest.mark.parametrize("form", ["rows", "arrow", "pushed"])
@pytest.mark.parametrize("max_ahead", [None, 9])
@given(script=looks, disorder=st.sampled_from([0, 3]))
def test_rows_are_judged_as_the_oracle_judges_them(
    max_ahead: int | None, form: str, script: list[tuple[int, bool, list[Row]]], disorder: int
) -> None:
    progress = pk.timer("10 seconds", disorder=disorder)
    execution, now, readings, reached = execution_of(progress, max_ahead=max_ahead), 0, [], []
    push = execution.pusher("s") if form == "pushed" else None
    for ahead, is_looked_at, batch in script:
        now += ahead * SECOND
        readings.append(now if is_looked_at else None)
        if is_looked_at:
            execution.tick(now)
        if push is not None:
            for row in batch:
                push(row)
        else:
            made = Batch(SCHEMA, batch)
            execution.feed("s", Batch(SCHEMA, table=made.table) if form == "arrow" else made)
        reached.append(execution.frontier()["s"])
    judged = played(progress, [batch for *_, batch in script], readings, max_ahead, "row")
    assert execution.late()["bound"].to_pylist() == [bound for _, bound in judged.late]
    assert execution.counts.late == len(judged.late)
    assert execution.counts.dead == judged.dead
    assert tuple(reached) == judged.bounds


def played(
    progress: Any,
    batches: list[list[Row]],
    readings: list[int | None],
    max_ahead: int | None,
    granularity: Literal["row", "batch"],
) -> Any:
    return judge(
        progress, 0, batches, granularity=granularity, domain=Domain.INTEGER, readings=readings, max_ahead=max_ahead
    )


def test_what_was_said_and_when_is_kept() -> None:
    first, second = execution_of(pk.timer("10 seconds")), execution_of(pk.timer("10 seconds"))
    first.feed("s", Batch(SCHEMA, [(5, "a")]))
    first.tick(12 * SECOND)
    first.feed("s", Batch(SCHEMA, [(9, "a")]))
    second.restore(first.snapshot())
    second.tick(19 * SECOND)
    assert second.frontier() == {"s": 5}, "it has fired in this period"
    second.tick(20 * SECOND)
    assert second.frontier() == {"s": 9}


@pytest.mark.parametrize("lull", [None, "5 seconds"])
def test_q1_2_with_a_control_stream_that_is_silent_for_an_hour(lull: str | None, at_once: None) -> None:
    """The thesis's timer is both: what was seen is said every second, and the clock less five seconds in a lull."""
    clock, flow = Clock(asked=6), pk.Flow()
    main = Scripted(clock, [(s, s) for s in range(0, 3600, 10)], end=3700)
    control = Scripted(clock, [(0, 0)], end=3700)
    for name, source in (("main", main), ("control", control)):
        flow.stream(name, source, time="ts", schema="ts timestamp, k int", progress=pk.timer("1 second"), lull=lull)
    found = came_at(clock, flow, """
        SELECT count(*) AS n [RANGE 1 minute, SLIDE 1 minute, WA ts]
        FROM (SELECT ts, k FROM main UNION ALL SELECT ts, k FROM control)
    """)  # fmt: skip
    assert [n for _, n, _ in found] == [7, *[6] * 59]
    if lull is None:
        assert all(at >= 3700 for _, _, at in found), "the first half alone says nothing of a stream that is silent"
    else:
        assert all(end <= at - 4 <= end + 4 for end, _, at in found), "every minute comes by the clock"


def test_the_greatest_time_is_said_while_nothing_comes(at_once: None) -> None:
    clock, flow = Clock(asked=6), pk.Flow()
    source = Scripted(clock, [(1, 1), (2, 62), (3, 30)], end=100)
    flow.stream("s", source, time="ts", schema="ts timestamp, k int", progress=pk.timer("10 seconds"))
    found = came_at(clock, flow, "SELECT count(*) AS n [RANGE 1 minute, SLIDE 1 minute, WA ts] FROM s")
    # The rows of seconds 1 to 3 are one period: that of time 30 is not late behind that of 62. The timer fires at 10.
    assert [(end, n) for end, n, _ in found] == [(60, 2), (120, 1)]
    assert found[0][2] == 10


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.runtime.pulling.PAUSE", 0)


@pytest.mark.parametrize("progress", [pk.timer("1 second"), pk.timer("1 minute", disorder="2 seconds")], ids=str)
def test_a_timer_is_written_as_in_python(progress: Any) -> None:
    assert parse_progress(str(progress)) == progress


@pytest.mark.parametrize("every", ["0 seconds", 5, "now and then", "-1 second"])
def test_what_is_no_period_is_refused(every: Any) -> None:
    with pytest.raises(StreamError, match="length"):
        pk.timer(every)


def test_of_several_attributes_none_has_a_timer() -> None:
    with pytest.raises(StreamError, match="A timer cannot be declared where several attributes progress") as found:
        execution_of({"t": pk.timer("1 second"), "k": pk.ordered()})
    assert "stream s" in str(found.value)
