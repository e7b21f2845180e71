"""Buffers and arcs: an element is held once, until the last head has passed it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.model.batch import Batch
from penstock.model.elements import Insert, Punctuation, linear
from penstock.model.time import MIN_TICK
from penstock.operators.relational.meld import MeldOperator
from penstock.plan.nodes import Source
from penstock.runtime.arcs import Arc, Outlet
from penstock.runtime.graph import GraphNode


def node() -> GraphNode:
    flow = pk.Flow()
    flow.stream("s", [{"t": 1, "v": 1}], time="t")
    plan = flow.query("SELECT * FROM s").plan
    assert isinstance(plan, Source)
    return GraphNode(plan, MeldOperator(plan.schema, 1, [plan.schema]), "")


def batch(made: GraphNode, *times: int) -> Batch:
    return Batch(made.plan.schema, [(t, 0) for t in times])


@given(st.lists(st.tuples(st.sampled_from(["give", "take", "join", "leave"]), st.integers(0, 3)), max_size=40))
def test_every_head_sees_all_that_came_after_it_joined_and_nothing_is_held_longer(steps: list[tuple[str, int]]) -> None:
    made = node()
    heads: list[tuple[Arc, list[Punctuation]]] = []  # with what it has still to see
    for number, (step, at) in enumerate(steps):
        if step == "join":
            heads.append((Arc(made), []))
        elif step == "give":
            made.give(linear("t", number))
            for _, due in heads:
                due.append(linear("t", number))
        elif heads:
            arc, due = heads[at % len(heads)]
            if step == "leave":
                arc.cut()
                heads.pop(at % len(heads))
            elif due:
                assert arc.take() == due.pop(0)
        assert [arc.unread for arc, _ in heads] == [len(due) for _, due in heads]
        assert len(made.buffer.elements) == max((len(due) for _, due in heads), default=0)


def test_an_arc_knows_what_was_promised_up_to_its_head() -> None:
    made = node()
    first = Arc(made)
    made.give(linear("t", 5))
    second = Arc(made)
    assert (first.register, second.register) == (MIN_TICK, 5)
    first.take()
    assert first.register == 5


def test_an_outlet_gives_no_result_that_starts_before_it_is_complete() -> None:
    made = node()
    outlet = Outlet(made, "q", complete_from=10)
    for element in (batch(made, 3, 12, 9), batch(made, 4), linear("t", 9), batch(made, 10), linear("t", 10)):
        made.give(element)
    taken = outlet.drain()
    starts = [e.vs for b in taken if isinstance(b, Batch) for e in b.elements() if isinstance(e, Insert)]
    assert starts == [12, 10]
    assert [p.value for p in taken if isinstance(p, Punctuation)] == [9, 10]
    assert outlet.is_passed
