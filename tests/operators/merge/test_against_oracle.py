"""After every single element of random runs the output is compatible with the inputs; at the end it is equivalent.

Disorder, revisions, removals and duplicates, with two to six inputs, as small cases that shrink; `test_churn` has
inputs that come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.elements import Element, Punctuation
from penstock.model.tdb import TDB, Event, tdb
from penstock.operators.merge.base import LogicalMerge
from penstock.operators.merge.baselines import CleanseThenR1, R3Minus
from penstock.operators.merge.ordered import R0, R1, R2
from penstock.operators.merge.policies import NAMES
from penstock.operators.merge.r3 import R3
from penstock.operators.merge.r4 import R4
from penstock.reference.merge import Prefix, incompatibilities, incompatibilities_of_bags
from penstock.testing.asserts import assert_same
from penstock.testing.replicas import histories, ordered_replicas, replicas

POLICIES = sorted(NAMES.values())
Check = Callable[[Sequence[Prefix], Prefix], list[str]]


class Run:
    """A merge that is watched: what every input and the output have said so far."""

    def __init__(self, merge: LogicalMerge, check: Check, *, ordered: bool = False) -> None:
        self.merge, self.check = merge, check
        self.said = {name: Prefix(ordered=ordered) for name in merge.inputs}
        self.state = Prefix()
        self.output: list[Element] = []

    def push(self, name: str, element: Element) -> None:
        self.said[name].take(element)
        for out in self.merge.push(name, element):
            self._assert_sound(out)
            self.output.append(out)
            self.state.take(out)
        reasons = self.check(list(self.said.values()), self.state)
        assert not reasons, f"after {element} of {name}: {reasons}\noutput: {self.output}"

    def _assert_sound(self, out: Element) -> None:
        """No element contradicts a bound that the output gave before."""
        bound = self.state.bound
        if isinstance(out, Punctuation):
            assert out.value > bound
        else:
            assert getattr(out, "lateness_time", out.vs) >= bound

    def interleave(self, data: st.DataObject, streams: dict[str, list[Element]]) -> None:
        """Element by element, from any input."""
        queues = {name: list(stream) for name, stream in streams.items()}
        while any(queues.values()):
            name = data.draw(st.sampled_from([n for n, q in queues.items() if q]))
            self.push(name, queues[name].pop(0))


def watched(merge: LogicalMerge, *, bag: bool = False) -> Run:
    return Run(merge, incompatibilities_of_bags if bag else incompatibilities)


def names(data: st.DataObject) -> list[str]:
    return [f"in{i}" for i in range(data.draw(st.integers(2, 6), label="inputs"))]


def assert_equivalent(run: Run, events: list[Event]) -> None:
    assert run.merge.missteps == []
    assert_same(TDB(events), tdb(run.output))
    assert run.merge.ended


@pytest.mark.parametrize("algorithm", [R3, R4, R3Minus, CleanseThenR1])
@given(data=st.data())
def test_streams_with_revisions(algorithm: type[LogicalMerge], data: st.DataObject) -> None:
    bag = algorithm is R4
    events = data.draw(histories(bag=bag))
    inputs = names(data)
    policied = {"policy": data.draw(st.sampled_from(POLICIES))} if algorithm in (R3, R4) else {}
    run = watched(algorithm(inputs, **policied), bag=bag)  # type: ignore[arg-type]
    run.interleave(data, {n: data.draw(replicas(events, bag=bag)) for n in inputs})
    assert_equivalent(run, events)
    if policied:
        assert not list(run.merge.living())  # type: ignore[attr-defined]


@given(data=st.data())
def test_r4_over_streams_with_a_key_is_compatible_as_r3_is(data: st.DataObject) -> None:
    events = data.draw(histories())
    inputs = names(data)
    run = watched(R4(inputs))
    run.interleave(data, {n: data.draw(replicas(events)) for n in inputs})
    assert_equivalent(run, events)


def one_per_start(events: list[Event]) -> list[Event]:
    return list({vs: (p, vs, ve) for p, vs, ve in events}.values())


@pytest.mark.parametrize("algorithm", [R0, R1, R2])
@given(data=st.data())
def test_ordered_streams(algorithm: type[LogicalMerge], data: st.DataObject) -> None:
    events = data.draw(histories())
    events = one_per_start(events) if algorithm is R0 else events
    inputs = names(data)
    run = Run(algorithm(inputs), incompatibilities, ordered=True)
    run.interleave(data, {n: data.draw(ordered_replicas(events, shuffle_ties=algorithm is R2)) for n in inputs})
    assert_equivalent(run, events)
