"""Altered lifetimes over rows, events and revisions, for any arrival order and cut, against the oracle.

event        |  2-----------7
shift 3      |           5-----------10
duration 4   |  2--------6
extend 2     |  2-----------------9
at most 3    |  2-----5
point        |  2-3
"""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.flow.local import LocalQuery
from penstock.model.batch import Batch
from penstock.model.elements import Adjust, Insert, groupwise, linear
from penstock.model.lives import Lives
from penstock.model.schema import Schema, schema_of
from penstock.model.time import END_OF_TIME, MIN_TICK, Domain
from penstock.operators.relational.alter import AlterOperator, Lifetime
from penstock.plan.closing import closing_bound
from penstock.plan.nodes import AlterLifetime, Settle, Source
from penstock.reference import evaluate, judge
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.revisions import Lived, fed, revised
from penstock.testing.strategies import cuts, disordered_times
from tests.runtime.test_lives import WINDOWS, lived_streams, run_in_any_order

ALTERED: dict[str, dict[str, Any]] = {
    "lasting": {"duration": 4},
    "point": {"point": True},
    "shifted": {"shift": 3},
    "earlier": {"shift": -5},
    "longer": {"extend": 2},
    "clipped": {"at_most": 3},
    "mixed": {"shift": -2, "extend": 3, "at_most": 6},
    "moved_on": {"shift": 4, "duration": 2},
}
QUERIES = [
    "SELECT * FROM {}",
    "SELECT v + 1 AS w FROM {} WHERE k = 'a'",
    "SELECT vs, k FROM {} UNION ALL SELECT vs, k FROM r",
    "SELECT DISTINCT k FROM {}",
    f"SELECT k, {WINDOWS} FROM {{}} GROUP BY k",
    "SELECT k, max(ve) AS last [RANGE 6, SLIDE 2, WA vs] FROM {} WHERE ve > 3 GROUP BY k",
]


@functools.cache
def query(sql: str) -> LocalQuery:
    """Over streams with lives, some altered, some altered and merged."""
    flow = lived_streams()
    for name, how in ALTERED.items():
        flow.alter(name, "s", **how)
    flow.alter("twice", "longer", at_most=5, shift=1).alter("merged", "m", duration=3)
    for name in ("a", "b"):
        flow.alter(f"{name}_longer", name, extend=2, shift=1)
    flow.merge("replicas", ["a_longer", "b_longer"], policy="first seen")
    made = flow.query(sql)
    assert isinstance(made, LocalQuery)
    return made


def assert_agrees(made: LocalQuery, data: st.DataObject) -> None:
    graph = made.execution().graph
    lived = Lived(graph.sources[next(iter(graph.sources))][0].operator.schema)
    elements = {name: data.draw(revised()) for name in ("s", "r")}
    elements |= {"a": elements["s"], "b": elements["s"]}
    streams = {name: data.draw(fed(each, lived)) for name, each in elements.items()}
    run, outputs = run_in_any_order(made, streams, data)
    arrivals = [(name, e) for name in run.graph.sources for e in lived.arrived(elements[name])]
    assert_same(evaluate(made.plan, arrivals), tdb_of(outputs))
    assert_sound(outputs)
    assert run.late().num_rows == 0
    assert run.dead_letters().num_rows == 0


@pytest.mark.parametrize("stream", ALTERED)
@given(sql=st.sampled_from(QUERIES), data=st.data())
def test_revisions_are_altered_as_the_oracle_alters_events(stream: str, sql: str, data: st.DataObject) -> None:
    assert_agrees(query(sql.format(stream)), data)


@pytest.mark.parametrize("stream", ["twice", "merged", "replicas"])
@given(sql=st.sampled_from(QUERIES), data=st.data())
def test_what_was_altered_or_merged_before_is_altered(stream: str, sql: str, data: st.DataObject) -> None:
    assert_agrees(query(sql.format(stream)), data)


@given(data=st.data())
def test_a_clause_after_a_stream_gives_its_rows_a_life(data: st.DataObject) -> None:
    assert_agrees(query("SELECT vs, k FROM s [RANGE 5] WHERE v <> 1"), data)


# Plain rows

PLAIN = schema_of([("ts", "bigint"), ("k", "string")], "ts")
OVER_ROWS = [
    "SELECT * FROM {}",
    "SELECT DISTINCT k FROM {}",
    "SELECT k, count(*) AS n, sum(ts) AS t [RANGE 6, SLIDE 2, WA ts] FROM {} GROUP BY k",
]


@pytest.mark.parametrize("stream", ALTERED)
@given(sql=st.sampled_from(OVER_ROWS), data=st.data())
def test_plain_rows_are_altered_and_judged_before(stream: str, sql: str, data: st.DataObject) -> None:
    """What is late is late by the time that the row came with."""
    progress = data.draw(st.sampled_from([pk.ordered(), pk.bounded(4), pk.bounded(50)]))
    flow = pk.Flow().stream("s", [], time="ts", schema="ts bigint, k string", progress=progress)
    made: Any = flow.alter(stream, "s", **ALTERED[stream]).query(sql.format(stream))
    rows = [(t, data.draw(st.sampled_from("ab"))) for t in data.draw(disordered_times(low=-9, high=20, max_size=9))]
    run, outputs = made.execution(), []
    for cut in data.draw(cuts(len(rows))):
        batch = Batch(PLAIN, rows[cut])
        outputs += run.feed("s", batch if data.draw(st.booleans()) else Batch(PLAIN, table=batch.table))
    outputs += run.close()
    judged = judge(progress, 0, [rows], granularity="row", domain=Domain.INTEGER)
    on_time = [("s", row) for row, late in judged.data if not late]
    assert_same(evaluate(made.plan, on_time), tdb_of(outputs))
    assert_sound(outputs)
    assert run.late().num_rows == len(judged.late)


# Element by element

LIVED = Schema(PLAIN.fields, "ts", lives=("ve", "v_old"))


def altered(how: dict[str, Any], *elements: Insert | Adjust) -> list[Insert | Adjust]:
    """What each comes to, by rows and by columns alike."""
    batch = Batch(LIVED, [e.payload for e in elements], lives=Lives.of(elements))
    operator = AlterOperator(LIVED, Lifetime(**how))
    found = [[e for o in operator.process(0, b) if isinstance(o, Batch) for e in o.elements()] for b in (
        batch, Batch(LIVED, table=batch.table, lives=batch.lives))]  # fmt: skip
    assert found[0] == found[1]
    return found[0]


A = (2, "a")


@pytest.mark.parametrize(
    ("how", "adjusted"),
    [
        ({"shift": 3}, [Adjust((5, "a"), 5, 10, 12)]),
        ({"duration": 4}, []),
        ({"extend": 2}, [Adjust(A, 2, 9, 11)]),
        ({"at_most": 3}, []),
        ({"at_most": 6}, [Adjust(A, 2, 7, 8)]),
        ({"extend": 2, "at_most": 8}, [Adjust(A, 2, 9, 10)]),
    ],
)
def test_an_adjust_becomes_an_adjust_or_nothing(how: dict[str, Any], adjusted: list[Adjust]) -> None:
    """[2, 7) is to be [2, 9)."""
    assert altered(how, Adjust(A, 2, 7, 9)) == adjusted
    (removed,) = altered(how, Adjust(A, 2, 7, 2))
    assert removed.ve == removed.vs == 2 + how.get("shift", 0)


def test_what_never_ends_goes_on_never_ending_unless_it_gets_a_length() -> None:
    never = Insert(A, 2, END_OF_TIME)
    assert altered({"shift": 3, "extend": 5}, never) == [Insert((5, "a"), 5, END_OF_TIME)]
    assert altered({"shift": -3}, never) == [Insert((-1, "a"), -1, END_OF_TIME)]
    assert altered({"duration": 4}, never) == [Insert(A, 2, 6)]
    assert altered({"at_most": 9}, never) == [Insert(A, 2, 11)]
    assert altered({"extend": 7}, Insert(A, 2, END_OF_TIME - 3)) == [Insert(A, 2, END_OF_TIME)]


def test_bounds_move_with_the_starts_at_once() -> None:
    operator = AlterOperator(LIVED, Lifetime(shift=3, duration=50))
    assert list(operator.punctuate(0, linear("ts", 10))) == [linear("ts", 13)]
    assert list(operator.punctuate(0, groupwise("ts", 10, k="a"))) == [groupwise("ts", 13, k="a")]
    assert list(operator.punctuate(0, linear("ts", END_OF_TIME))) == [linear("ts", END_OF_TIME)]
    back = AlterOperator(LIVED, Lifetime(shift=-3))
    assert list(back.punctuate(0, linear("ts", MIN_TICK + 2))) == []
    assert list(AlterOperator(LIVED, Lifetime(extend=3)).punctuate(0, linear("ts", 10))) == [linear("ts", 10)]


@given(
    how=st.sampled_from(list(ALTERED.values())),
    bound=st.integers(-20, 40),
    start=st.integers(-20, 20),
    length=st.integers(1, 20),
)
def test_feedback_skips_nothing_that_is_needed(how: dict[str, Any], bound: int, start: int, length: int) -> None:
    lifetime = Lifetime(**{"duration": 1} if "point" in how else how)
    needless = AlterOperator(LIVED, lifetime).feedback(bound)
    (event,) = altered(lifetime.__dict__, Insert((start, "a"), start, start + length))
    assert needless is not None
    if start + length < needless:
        assert event.ve < bound


# Plans


def test_a_narrow_time_that_moves_gets_room() -> None:
    flow = pk.Flow().stream("s", [{"t": 2**31 - 2}], time="t", schema="t int").alter("later", "s", shift=9)
    assert flow.query("SELECT t FROM later").collect().to_pylist() == [{"t": 2**31 + 7}]


def test_timestamps_move_and_live_by_lengths_of_time() -> None:
    rows = [{"ts": "2026-01-01 00:00:00"}]
    flow = pk.Flow().stream("s", rows, time="ts").alter("longer", "s", duration="10 minutes", shift="-1 hour")
    (row,) = flow.query("SELECT * FROM longer").collect().to_pylist()
    assert [str(row[c]) for c in ("ts", "ve")] == ["2025-12-31 23:00:00+00:00", "2025-12-31 23:10:00+00:00"]
    assert "AlterLifetime shifted by -1 hour, lives 10 minutes" in flow.query("SELECT * FROM longer").explain()


def test_order_keys_and_lifetimes_are_derived() -> None:
    flow = pk.Flow().stream("s", [], time="ts", schema="ts bigint, k string").alter("longer", "s", extend=4, at_most=3)
    flow.alter("moved", "s", shift=4)
    longer, moved = (flow.query(f"SELECT * FROM {name}") for name in ("longer", "moved"))
    assert (longer.properties.ordered, longer.properties.insert_only, longer.properties.lifetime) == (True, True, 3)
    assert (moved.schema.lives, moved.properties.lifetime) == (None, 1)


@pytest.mark.parametrize("shift", [-7, 0, 3])
def test_the_closing_bound_follows_the_shift(shift: int) -> None:
    """The window that holds the last row closes, and no later one is touched."""
    flow = pk.Flow().stream("s", [], time="ts", schema="ts bigint, k string", progress=pk.bounded(10**6))
    made: Any = flow.alter("x", "s", shift=shift, duration=2).query(
        "SELECT count(*) AS n [RANGE 10, SLIDE 5, WA ts] FROM x"
    )
    bound = closing_bound(made.plan, 20)
    assert bound is not None
    run = made.execution()
    run.feed("s", Batch(PLAIN, [(3, "a"), (20, "b")]))
    assert sum(len(o) for o in run.feed("s", linear("ts", bound)) if isinstance(o, Batch)) == len(
        evaluate(made.plan, [("s", (3, "a")), ("s", (20, "b"))])
    )
    assert not any(isinstance(o, Batch) and len(o) for o in run.close())
    again = made.execution()
    again.feed("s", Batch(PLAIN, [(3, "a"), (20, "b")]))
    early = again.feed("s", linear("ts", bound - 1))
    assert any(isinstance(o, Batch) and len(o) for o in [*again.close()]), early


def test_windows_ask_for_bounds_at_their_slides_before_the_move() -> None:
    flow = pk.Flow().stream("s", [], time="ts", schema="ts bigint, k string", progress=pk.bounded(0))
    made: Any = flow.alter("x", "s", shift=3).query("SELECT count(*) AS n [RANGE 10, SLIDE 10, WA ts] FROM x")
    run: LocalExecution = made.execution()
    source = next(n for n in run.graph.nodes if isinstance(n.plan, Source))
    for t in range(30):
        run.feed("s", Batch(PLAIN, [(t, "a")]))
    assert source.statistics.punctuations_out == 4  # the first of all, then 7, 17 and 27: 10, 20 and 30


def test_identities_tell_alterations_apart() -> None:
    below = query("SELECT * FROM s").plan
    made = [AlterLifetime(below, duration=4), AlterLifetime(below, extend=4), AlterLifetime(below, shift=4)]
    identities = {LocalExecution(node, pk.Flow().catalog).graph.nodes[0].identity for node in made}
    assert len(identities) == 3


def test_merges_below_settle_by_themselves_and_events_settle_after() -> None:
    merged = query(f"SELECT k, {WINDOWS} FROM merged GROUP BY k")
    assert "conservative" in merged.explain()
    assert not any(isinstance(n, Settle) for n in merged.plan.walk())
    assert any(isinstance(n, Settle) for n in query(f"SELECT k, {WINDOWS} FROM lasting GROUP BY k").plan.walk())
