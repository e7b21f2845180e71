"""Rows that are stamped with the clock as they enter: nothing is late, and stamps never go back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.errors import MergeError, StreamError
from penstock.flow.local import LocalQuery
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.progress import ordered
from penstock.model.schema import schema_of
from penstock.model.time import DAY, FIRST_TIMESTAMP, LAST_TIMESTAMP, SECOND
from penstock.reference import evaluate, judge
from penstock.reference.stamps import stamps
from penstock.testing.asserts import assert_same, assert_sound, tdb_of

BARE = schema_of([("k", "string"), ("v", "bigint")])
DDL = "k string, v bigint"
START = 1_000_000 * SECOND
QUERIES = [
    "SELECT ts, k FROM s WHERE v > 1",
    "SELECT k, count(*) AS n, max(ts) AS last [RANGE 4 seconds, SLIDE 2 seconds, WA ts] FROM s GROUP BY k",
    "SELECT a.v, b.v AS w FROM s a JOIN s b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 3 seconds",
    "SELECT sum(v) AS x [RANGE 3 rows, SLIDE 2 rows, WA row-num] FROM s",
]
rows = st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 3)), max_size=4)
steps = st.lists(st.tuples(st.integers(-3, 6), st.sampled_from(["rows", "table", "push", "silent", "restart"]), rows))


def declared(source: Any = (), **options: Any) -> pk.Flow:
    return pk.Flow().stream("s", source or [], time="ts", timestamps=pk.internal(), schema=DDL, **options)


def execution_at(query: LocalQuery, now: list[int]) -> LocalExecution:
    execution = query.execution()
    execution.clock = lambda: now[0]
    execution.demand.is_endless = True  # so every look at the clock of a silent source is a promise
    return execution


class Played:
    """A run whose clock is set, with what the oracle knows of it."""

    def __init__(self, query: LocalQuery) -> None:
        self.query, self.now = query, [START]
        self.execution = execution_at(query, self.now)
        self.outputs: list[Batch | Punctuation] = []
        self.readings: list[int] = []
        self.entered: list[tuple[int, Row]] = []
        """Rows, and which reading was made for each."""

    def read(self, ahead: int, arrived: list[Row] | None = None) -> None:
        self.now[0] += ahead * SECOND // 2
        self.readings.append(self.now[0])
        self.entered += [(len(self.readings) - 1, row) for row in arrived or ()]

    def step(self, ahead: int, kind: str, arrived: list[Row]) -> None:
        if kind == "restart":
            snapshot = self.execution.snapshot()
            self.execution = execution_at(self.query, self.now)
            self.execution.restore(snapshot)
        elif kind == "silent":
            self.read(ahead)
            with self.execution._alone():
                list(self.execution._idle_steps("s"))
        elif kind == "push":
            push = self.execution.pusher("s")
            for row in arrived:
                self.read(ahead, [row])
                push(row)
        else:
            self.read(ahead, arrived)
            batch = Batch(BARE, arrived)
            batch = Batch(BARE, table=batch.table) if kind == "table" else batch
            self.outputs += self.execution.feed("s", batch)
        self.outputs += self.execution.take()

    def expected(self) -> Any:
        given = stamps(self.readings)
        stamped: list[Row] = [(given[at], *row) for at, row in self.entered]
        judged = judge(ordered(), 0, [stamped], granularity="row", domain=self.query.plan.schema.domain)
        assert not judged.late
        return evaluate(self.query.plan, [("s", row) for row in stamped])


@pytest.mark.parametrize("sql", QUERIES)
@given(script=steps)
def test_rows_are_stamped_as_the_oracle_says(sql: str, script: list[tuple[int, str, list[Row]]]) -> None:
    query: Any = declared().query(sql)
    played = Played(query)
    for step in script:
        played.step(*step)
    played.outputs += played.execution.close()
    assert_same(played.expected(), tdb_of(played.outputs))
    assert_sound(played.outputs)
    assert played.execution.counts.late == 0


def test_the_time_is_the_first_column_and_the_source_has_the_others() -> None:
    query: Any = declared().query("SELECT * FROM s")
    assert query.schema.visible_arrow.names == ["ts", "k", "v"]
    execution = execution_at(query, [START])
    execution.feed("s", Batch(BARE, [("a", 1)]))
    with pytest.raises(StreamError, match="whose rows are stamped here") as found:
        execution.feed("s", Batch(query.schema, [(START, "a", 1)]))
    assert "`k` string, `v` bigint" in str(found.value)


def test_while_nothing_comes_the_clock_is_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.runtime.pulling.PAUSE", 0)
    now = [START]

    given = [{"k": "a", "v": 1}]

    class Once:
        def poll(self) -> Any:
            now[0] += SECOND
            if given:
                return given.pop()
            return pk.IDLE if now[0] < START + 30 * SECOND else pk.END

    query: Any = declared(Once()).query("SELECT count(*) AS n [RANGE 5 seconds, SLIDE 5 seconds, WA ts] FROM s")
    came = []
    for item in query.items(execution_at(query, now)):
        if isinstance(item, Batch):
            came.append((item.rows[0][-1], (now[0] - START) // SECOND))
    # Stamped at second 1, in the window that ends with second 5.
    assert came == [(1, 5)]


def test_a_bound_ahead_of_the_clock_is_waited_for() -> None:
    query: Any = declared().query("SELECT ts FROM s")
    now = [START]
    execution = execution_at(query, now)
    execution.feed("s", pk.linear("ts", START + 7))
    given = []
    for ahead in (0, 5, 9):
        now[0] = START + ahead
        given += [item.rows[0][0] for item in execution.feed("s", Batch(BARE, [("a", 1)])) if isinstance(item, Batch)]
    assert given == [START + 7, START + 7, START + 9]


def test_after_the_end_rows_are_late() -> None:
    query: Any = declared().query("SELECT ts FROM s")
    execution = execution_at(query, [START])
    execution.end("s")
    execution.feed("s", Batch(BARE, [("a", 1)]))
    assert execution.counts.late == 1


def test_what_brings_a_time_of_its_own_is_dead() -> None:
    flow = declared([{"k": "a", "v": 1}, pk.Insert(("a", 1), 5, 6), pk.linear("ts", 9)])
    query: Any = flow.query("SELECT k FROM s")
    assert query.collect().num_rows == 1
    assert [letter["reason"].split(":")[0] for letter in query.dead_letters.to_pylist()] == [
        "an element brings a time, and rows of the stream are stamped as they enter",
        "punctuation bounds what does not progress",
    ]


def test_rows_that_do_not_fit_are_dead() -> None:
    query: Any = declared([{"k": "a", "v": "many"}, {"k": "b", "v": 1}]).query("SELECT k FROM s")
    assert query.collect()["k"].to_pylist() == ["b"]
    execution = execution_at(query, [START])
    push: Any = execution.pusher("s")
    push(("a", "many"))
    push((START, "a", 1))
    assert execution.counts.dead == execution.counts.read == 2


def test_sources_of_all_kinds_are_stamped(tmp_path: Any) -> None:
    table = pa.table({"k": ["a", "b"], "v": [1, 2]})
    pq.write_table(table, tmp_path / "rows.parquet")
    for source in (table, str(tmp_path / "rows.parquet"), table.to_reader(), iter(table.to_pylist())):
        flow = pk.Flow().stream("s", source, time="ts", timestamps=pk.internal(), schema=DDL)
        found = flow.query("SELECT ts, v FROM s").collect()
        assert found["v"].to_pylist() == [1, 2]
        assert found["ts"].null_count == 0


def test_several_queries_of_a_run_see_the_same_stamps() -> None:
    flow = declared([{"k": "a", "v": 1}])
    seen: list[list[Any]] = [[], []]
    queries: list[Any] = [flow.query("SELECT ts FROM s", name="a"), flow.query("SELECT ts, k FROM s", name="b")]
    run = flow.start({query: seen[at].append for at, query in enumerate(queries)})
    run.wait()
    first, second = (table["ts"].to_pylist() for (table,) in seen)
    assert first == second


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"progress": pk.ordered()}, "progress"),
        ({"lull": "1 second"}, "lull"),
        ({"max_ahead": "1 hour"}, "max_ahead"),
        ({"lives": True}, "lives"),
        ({"time_format": "epoch_s"}, "time_format"),
        ({"arrival": "v"}, "arrival"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(StreamError, match="Where times are given here") as found:
        declared(**options)
    assert f"leave {told} out" in str(found.value)
    assert "stream s" in str(found.value)


@pytest.mark.parametrize("time", ["k", "V"])
def test_a_column_that_is_there_cannot_hold_the_stamps(time: str) -> None:
    with pytest.raises(StreamError, match="The source has the column already") as found:
        pk.Flow().stream("s", [], time=time, timestamps=pk.internal(), schema=DDL)
    assert "give the time another name" in str(found.value)


def test_replicas_that_are_stamped_here_have_no_times_in_common() -> None:
    flow = pk.Flow()
    for name in ("a", "b"):
        flow.stream(name, [], time="ts", timestamps=pk.internal(), schema=DDL)
    with pytest.raises(MergeError, match="have no times in common") as found:
        flow.merge("m", ["a", "b"])
    assert "pk.external()" in str(found.value)


CENTURY = 36_524 * DAY


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (LAST_TIMESTAMP + 1, "outside of the times"),
        (LAST_TIMESTAMP - CENTURY + 1, "outside of the times"),
        (FIRST_TIMESTAMP - 1, "outside of the times"),
        (FIRST_TIMESTAMP + CENTURY - 1, "outside of the times"),
        (2**63, "outside of the times"),
        (-(2**70), "outside of the times"),
        (None, "a number of ticks"),
        (1.5, "a number of ticks"),
        (True, "a number of ticks"),
        ("noon", "a number of ticks"),
    ],
)
def test_a_clock_that_says_no_time_that_a_row_may_have_is_told(now: Any, told: str) -> None:
    query: Any = declared([{"k": "a", "v": 1}]).query("SELECT ts, k FROM s")
    execution: LocalExecution = query.execution()
    execution.clock = lambda: now
    for use in (
        lambda: execution.feed("s", Batch(BARE, [("a", 1)])),
        lambda: execution.pusher("s")(("a", 1)),
        lambda: list(query.items(execution)),
        lambda: execution.tick(now),
    ):
        with pytest.raises(StreamError, match=told) as found:
            use()
        assert found.value.where in ("clock", "tick")
        assert "microseconds since 1970" in str(found.value)
    with pytest.raises(StreamError, match="A clock is called"):
        execution.clock = now


@pytest.mark.parametrize("now", [LAST_TIMESTAMP - CENTURY, FIRST_TIMESTAMP + CENTURY, np.int64(START)])
def test_the_first_and_the_last_time_that_a_clock_may_say_can_be_read(now: int) -> None:
    query: Any = declared([{"k": "a", "v": 1}]).query(QUERIES[1])
    execution: LocalExecution = query.execution()
    execution.clock = lambda: now
    made = [each for each in query.items(execution) if isinstance(each, Batch)]
    assert [row["n"] for batch in made for row in batch.table.to_pylist()] == [1, 1]


def test_a_bound_beyond_the_calendar_stamps_no_row_there() -> None:
    execution: LocalExecution = declared().query("SELECT ts, k FROM s").execution()  # type: ignore[attr-defined]
    execution.clock = lambda: START
    execution.feed("s", Punctuation((("ts", LAST_TIMESTAMP + 1),)))
    assert execution.feed("s", Batch(BARE, [("a", 1)])) == []
    assert execution.counts.late == 1, "it is below what was promised"
