"""Streams that have no time until an operator needs one: nothing is waited for until then, nor there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.errors import PenstockError, StreamError
from penstock.model.batch import Batch, Row
from penstock.model.schema import schema_of
from penstock.model.time import SECOND
from penstock.plan.nodes import Stamp
from penstock.reference import evaluate
from penstock.reference.stamps import stamps
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from tests.profiles import examples

BARE = schema_of([("k", "string"), ("v", "bigint")])
DDL = "k string, v bigint"
START = 1_000_000 * SECOND
BOTH = "(SELECT k, v, ts FROM a UNION ALL SELECT k, v, ts FROM b) u"
WINDOW = "[RANGE 4 seconds, SLIDE 2 seconds, WA ts]"


def flow_of(*latent: str, **others: Any) -> pk.Flow:
    flow = pk.Flow()
    for name in latent:
        flow.stream(name, [], time="ts", timestamps=pk.latent(), schema=DDL)
    for name, timestamps in others.items():
        flow.stream(name, [], time="ts", timestamps=timestamps, schema=DDL)
    return flow


def at(query: Any, now: list[int]) -> LocalExecution:
    execution: LocalExecution = query.execution()
    execution.clock = lambda: now[0]
    return execution


def fed(execution: LocalExecution, stream: str, *rows: Row) -> list[Any]:
    return execution.feed(stream, Batch(BARE, list(rows)))


rows = st.lists(st.tuples(st.sampled_from(["x", "y", None]), st.integers(0, 3)), max_size=3)
kinds = st.sampled_from(["a", "b", "silent", "restart"])


@pytest.mark.parametrize(
    ("sql", "least"),
    [
        (f"SELECT k, count(*) AS n, max(ts) AS last {WINDOW} FROM {BOTH} WHERE v >= 1 GROUP BY k", 1),
        (f"SELECT DISTINCT k, ts FROM {BOTH}", 0),
        (f"SELECT k, v, ts FROM {BOTH} WHERE ts > TIMESTAMP '1970-01-01'", 0),
        (f"SELECT sum(v) AS x [RANGE 3 rows, SLIDE 2 rows, WA row-num] FROM {BOTH}", 0),
    ],
)
@examples(25)
@given(script=st.lists(st.tuples(st.integers(-3, 6), kinds, rows), max_size=8))
def test_rows_are_stamped_as_the_oracle_says(sql: str, least: int, script: list[tuple[int, str, list[Row]]]) -> None:
    """Of a union of latent streams all rows come to one operator, so there is one sequence of readings.

    Rows with less than the `least` value do not come to it.
    """
    query: Any = flow_of("a", "b").query(sql)
    now = [START]
    execution = at(query, now)
    outputs: list[Any] = []
    readings: list[int] = []
    entered: list[tuple[str, int, Row]] = []
    for ahead, kind, arrived in script:
        now[0] += ahead * SECOND // 2
        if kind == "restart":
            snapshot = execution.snapshot()
            execution = at(query, now)
            execution.restore(snapshot)
        elif kind == "silent":
            readings.append(now[0])
            outputs += execution.tick(now[0])
        elif arrived:
            if any(row[1] >= least for row in arrived):
                readings.append(now[0])
            entered += [(kind, len(readings) - 1, row) for row in arrived if row[1] >= least]
            outputs += fed(execution, kind, *arrived)
    outputs += execution.close()
    given_stamps = stamps(readings)
    arrivals: list[Any] = [(name, (given_stamps[place], *row)) for name, place, row in entered]
    assert_same(evaluate(query.plan, arrivals), tdb_of(outputs))
    assert_sound(outputs)
    assert execution.counts.late == 0


def test_a_union_of_latent_streams_waits_for_none() -> None:
    """Internal times wait for the stream that is silent; latent ones are given where the window is, by any stream."""
    sql, now = f"SELECT count(*) AS n [RANGE 5 seconds, SLIDE 5 seconds, WA ts] FROM {BOTH}", [START]
    came = {}
    for name, flow in (("latent", flow_of("a", "b")), ("internal", flow_of(a=pk.internal(), b=pk.internal()))):
        now[0] = START
        execution = at(flow.query(sql), now)
        found = []
        for second in (0, 3, 7):
            now[0] = START + second * SECOND
            found += [item.rows[0][-1] for item in fed(execution, "a", ("x", 1)) if isinstance(item, Batch)]
        came[name] = found
    assert came == {"latent": [2], "internal": []}


def test_while_nothing_comes_the_clock_closes_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.runtime.pulling.PAUSE", 0)
    now, given_rows = [START], [{"k": "x", "v": 1}]

    class Once:
        def poll(self) -> Any:
            now[0] += SECOND
            if given_rows:
                return given_rows.pop()
            return pk.IDLE if now[0] < START + 30 * SECOND else pk.END

    flow = pk.Flow().stream("s", Once(), time="ts", timestamps=pk.latent(), schema=DDL)
    query: Any = flow.query("SELECT count(*) AS n [RANGE 5 seconds, SLIDE 5 seconds, WA ts] FROM s")
    came = [(now[0] - START) // SECOND for item in query.items(at(query, now)) if isinstance(item, Batch)]
    assert came == [5]


def stamped_nodes(sql: str, flow: pk.Flow | None = None) -> list[str]:
    query: Any = (flow or flow_of("a", "b")).query(sql)
    return [type(node.input).__name__ for node in query.plan.walk() if isinstance(node, Stamp)]


@pytest.mark.parametrize(
    ("sql", "below"),
    [
        ("SELECT k FROM a WHERE v > 1", []),
        ("SELECT k, v + 1 AS w FROM a UNION ALL SELECT k, v FROM b", []),
        ("SELECT k, ts FROM a", ["Project"]),
        ("SELECT k FROM a WHERE ts > TIMESTAMP '2026-01-01' AND v > 1", ["Source"]),
        ("SELECT k, ts + INTERVAL 1 second AS later FROM a", ["Source"]),
        (f"SELECT count(*) AS n {WINDOW} FROM {BOTH} WHERE v > 1", ["Project"]),
        ("SELECT DISTINCT k FROM a", ["Project"]),
        ("SELECT a.v FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 second", ["Source"] * 2),
        ("SELECT sum(v) AS x [RANGE 3 rows, SLIDE 3 rows, WA row-num] FROM a", []),
    ],
)
def test_the_first_operator_that_needs_a_time_has_it(sql: str, below: list[str]) -> None:
    assert stamped_nodes(sql) == below


def test_beside_a_stream_with_a_time_a_latent_one_gets_one() -> None:
    flow = flow_of("a", b=pk.internal())
    assert stamped_nodes("SELECT k FROM a UNION ALL SELECT k FROM b", flow) == ["Project"]


def test_explain_says_where_rows_get_their_time() -> None:
    told = flow_of("a").query(f"SELECT count(*) AS n {WINDOW} FROM a").explain()
    assert "Stamp ts (latent until here)" in told
    assert "Source a (no time so far)" in told


def test_rows_pass_at_once_and_their_order_is_that_of_arrival() -> None:
    execution, seen = at(flow_of("a", "b").query("SELECT v FROM a UNION ALL SELECT v FROM b"), [START]), []
    for value, name in enumerate(["a", "b", "b", "a"]):
        seen += [item.table["v"].to_pylist() for item in fed(execution, name, ("x", value)) if isinstance(item, Batch)]
    assert seen == [[0], [1], [2], [3]]


def test_a_window_on_a_column_that_is_there_is_refused() -> None:
    with pytest.raises(PenstockError) as found:
        flow_of("a").query("SELECT count(*) AS n [RANGE 4, SLIDE 2, WA v] FROM a")
    assert "v" in str(found.value)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(StreamError, match="Where times are given here") as found:
        pk.Flow().stream("s", [], time="ts", timestamps=pk.latent(), lull="1 second", schema=DDL)
    assert "timestamps=latent(), and lull" in str(found.value)


def test_what_updates_what_stays_known_where_rows_are_stamped() -> None:
    flow = pk.Flow().stream("s", [], time="ts", timestamps=pk.latent(), schema=DDL, update_key="k", unique="v")
    query: Any = flow.query("SELECT k, v, ts FROM s")
    assert query.properties.update_key == {"k"}
    assert query.properties.unique == {"v"}
    assert query.properties.ordered
