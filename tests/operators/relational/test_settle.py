"""Settle: floats that adjusts tell anew, and what is promised of its output, by the merge that is chosen for it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.model.batch import Batch
from penstock.model.elements import Adjust, Element, Insert, Punctuation
from penstock.model.lives import UNKNOWN_EVENT, Lives
from penstock.model.tdb import tdb
from penstock.model.time import END_OF_TIME
from penstock.plan.nodes import Settle
from penstock.reference import outcome
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.replicas import histories, replicas
from penstock.testing.revisions import revised

NOISE = (0.0, 2e-16, -3e-16, 1e-13)
VALUES = {"a": 0.3, "b": 7.0 / 3, "z": 0.0}


def streamed(schema: str, elements: list[Element], *, lives: bool = True) -> pk.Flow:
    return pk.Flow().stream("s", iter(elements), time="vs", schema=schema, progress=pk.bounded(10**6), lives=lives)


def with_floats(elements: list[Element], rng: random.Random) -> list[Element]:
    """A measure beside the letter, whose last bits every element tells anew."""
    told: list[Element] = []
    for e in elements:
        if isinstance(e, Punctuation):
            told.append(e)
            continue
        value = VALUES[str(e.payload[0])] + rng.choice(NOISE)
        payload = (e.vs, e.payload[0], value)
        told.append(Insert(payload, e.vs, e.ve) if isinstance(e, Insert) else Adjust(payload, e.vs, e.v_old, e.ve))
    return told


def run(made: Any, elements: list[Element]) -> tuple[LocalExecution, list[Any]]:
    """Settled, element by element, half of them as columns."""
    execution = LocalExecution(Settle(made.plan), made.catalog)
    outputs: list[Any] = []
    for at, e in enumerate(elements):
        if isinstance(e, Punctuation):
            outputs += execution.feed("s", e)
        else:
            batch = Batch(made.schema, [e.payload], lives=Lives.of([e]))
            outputs += execution.feed(
                "s", batch if at % 2 else Batch(made.schema, table=batch.table, lives=batch.lives)
            )
    return execution, outputs + execution.close()


@given(elements=revised(), seed=st.integers(0, 2**32))
def test_an_adjust_finds_its_event_whatever_the_last_bits_of_its_floats(elements: list[Element], seed: int) -> None:
    told = with_floats(elements, random.Random(seed))
    made: Any = streamed("vs bigint, k string, x double", []).query("SELECT * FROM s")
    execution, outputs = run(made, told)
    assert execution.dead_letters().num_rows == 0
    assert_sound(outputs)
    arrivals = [("s", e) for e in told if not isinstance(e, Punctuation)]
    expected = outcome(Settle(made.plan), arrivals)
    assert not expected.dead
    assert_same(expected.result, tdb_of(outputs))
    assert_same(tdb(told), tdb_of(outputs))


def test_an_event_keeps_the_values_that_it_came_with() -> None:
    made: Any = streamed("vs bigint, x double", []).query("SELECT * FROM s")
    _, outputs = run(made, [Insert((1, 0.1 + 0.2), 1, 9), Adjust((1, 0.3), 1, 9, 5)])
    (event,) = [e for o in outputs if isinstance(o, Batch) for e in o.elements()]
    assert (event.payload[1], event.ve) == (0.1 + 0.2, 5)


def test_the_nearest_with_that_end_is_meant_and_nothing_farther_than_the_tolerance() -> None:
    """Of 0.3 and 0.3 + 2e-10 the second is nearer to 0.3 + 1.5e-10; but it may have another end."""
    made: Any = streamed("vs bigint, x double", []).query("SELECT * FROM s")
    near, far = (1, 0.3), (1, 0.3 + 2e-10)
    between = (1, 0.3 + 1.5e-10)
    _, first = run(made, [Insert(near, 1, 9), Insert(far, 1, 9), Adjust(between, 1, 9, 5)])
    assert sorted((e.payload, e.ve) for o in first if isinstance(o, Batch) for e in o.elements()) == [
        (near, 9),
        (far, 5),
    ]
    _, second = run(made, [Insert(near, 1, 9), Insert(far, 1, 8), Adjust(between, 1, 9, 5)])
    assert sorted((e.payload, e.ve) for o in second if isinstance(o, Batch) for e in o.elements()) == [
        (near, 5),
        (far, 8),
    ]
    execution, _ = run(made, [Insert(near, 1, 9), Adjust((1, 0.3 + 1e-8), 1, 9, 5)])
    assert execution.dead_letters()["reason"].to_pylist() == [UNKNOWN_EVENT]


# What is promised


def settled_replica(elements: list[Element], schema: str = "vs bigint, k string") -> Any:
    """A query whose result is settled, since it reads the ends."""
    column = schema.split()[2]
    return streamed(schema, elements).query(f"SELECT vs, {column}, ve AS e FROM s")


@given(data=st.data())
def test_two_settles_are_merged_by_r1(data: st.DataObject) -> None:
    """Ordered, insert-only, ties in the same order: were any of it untrue, R1 would lose or double events."""
    events = data.draw(histories(bag=True))
    replica_a, replica_b = (data.draw(replicas(events, bag=True)) for _ in range(2))
    one, other = settled_replica(replica_a), settled_replica(replica_b)
    merge = pk.merge({"one": one, "other": other}, on_divergence="stop")
    assert merge.choice.name == "R1"
    outputs = list(merge)
    assert merge.missteps == []
    ends = {((vs, p[0], None if ve == END_OF_TIME else ve), vs, ve) for p, vs, ve in events}
    assert set(pk.tdb(outputs)) == ends
    assert pk.tdb(outputs).size == len(events)


def test_with_floats_ties_have_no_order_that_all_would_share() -> None:
    one, other = (settled_replica([], "vs bigint, x double") for _ in range(2))
    assert pk.merge([one, other]).choice.name == "R4"


def test_stretches_come_when_they_are_known_whenever_they_began() -> None:
    """a [1, 20) is known after b [5, 6): no order is promised, so no merge relies on one."""
    rows = [{"vs": 1, "ve": 20, "k": "a"}, {"vs": 5, "ve": 6, "k": "b"}, {"vs": 9, "ve": 10, "k": "b"}]

    def distinct() -> Any:
        flow = pk.Flow().stream("s", iter(rows), time="vs", schema="vs bigint, ve bigint, k string", lives=("vs", "ve"))
        return flow.query("SELECT DISTINCT k FROM s")

    starts = [e.vs for e in distinct().elements() if isinstance(e, Insert)]
    assert starts == [5, 1, 9]
    merge = pk.merge({"one": distinct(), "other": distinct()}, on_divergence="stop")
    assert merge.choice.name == "R3"
    assert pk.tdb(merge).size == 3


@pytest.mark.parametrize("sql", ["SELECT * FROM s", "SELECT k FROM s WHERE k > ''"])
def test_what_is_revised_promises_nothing_of_the_kind(sql: str) -> None:
    known = streamed("vs bigint, k string", []).query(sql).properties
    assert (known.ordered, known.insert_only, known.deterministic_ties) == (False, False, False)
