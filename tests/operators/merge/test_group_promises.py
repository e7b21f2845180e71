"""What a merge promises of some groups nothing that comes later contradicts, whatever is merged and however.

```
one   a 1   a 4   | final a |             nothing of a comes from here
two         a 1   a 4         | final a | nor from there: promised, once no event of a is held
```
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import PenstockError
from penstock.model.batch import Batch
from penstock.model.elements import Adjust, Element, Insert, Punctuation, groupwise, linear
from penstock.model.lives import Lives
from penstock.model.tdb import TDB, Event
from penstock.model.time import END_OF_TIME
from penstock.operators.merge.policies import NAMES as POLICIES
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.replicas import histories, ordered_replicas, replicas
from tests.profiles import examples

COLUMNS = "vs bigint, k string, p boolean"
NAMES = ("one", "two", "three")
DRIVERS = ("leading", "majority", "two")
ORDERED = {
    "R0": pk.StreamProperties(ordered=True, strictly_ordered=True, deterministic_ties=True),
    "R1": pk.StreamProperties(ordered=True, deterministic_ties=True),
    "R2": pk.StreamProperties(ordered=True, key=frozenset({"k"})),
}
PLAIN = [(name, "half frozen", "leading") for name in ORDERED] + [
    (algorithm, policy, driver)
    for algorithm in ("R3", "R4")
    for policy in ("half frozen", "conservative")
    for driver in DRIVERS
]
LIVED = [
    (algorithm, policy, driver)
    for algorithm in ("R3", "R4")
    for policy in ("first seen", "first close", "reflect all", "half frozen", "quorum 0.6", "conservative")
    for driver in DRIVERS
]


@functools.cache
def query(algorithm: str, policy: str, driver: str, lag: int, lived: bool) -> Any:
    flow = pk.Flow()
    for name in NAMES:
        source: Any = iter(()) if lived else []
        flow.stream(name, source, time="vs", schema=COLUMNS, progress=pk.punctuated("p", per=["k"]), lives=lived)
    options: dict[str, Any] = {"policy": policy, "driver": driver, "lag": lag}
    if algorithm in ORDERED:
        options = {"properties": ORDERED[algorithm]}
    flow.merge("m", list(NAMES), algorithm=algorithm, key=["k"] if algorithm == "R3" else None, **options)
    return flow.query("SELECT * FROM m")


@st.composite
def with_promises(draw: st.DrawFn, elements: Sequence[Element]) -> list[Element]:
    """A stream that now and then promises of a letter what is so: no later element of it is below."""
    made: list[Element] = []
    for at, element in enumerate(elements):
        if draw(st.integers(0, 2)) == 0:
            letter = draw(st.sampled_from("abz"))
            later = [time_of(e) for e in elements[at:] if not isinstance(e, Punctuation) and e.payload == (letter,)]
            bound = min(later, default=END_OF_TIME)
            made.append(groupwise("vs", bound if draw(st.booleans()) else min(bound, 8), k=letter))
        made.append(element)
    return made


def time_of(element: Insert | Adjust) -> int:
    return element.lateness_time if isinstance(element, Adjust) else element.vs


@st.composite
def inputs(draw: st.DrawFn, algorithm: str, lived: bool) -> tuple[list[Event], list[list[Element]], bool]:
    """Events, three streams of them with promises, and whether these are replicas or differ."""
    bag = algorithm in ("R1", "R4")
    alike = draw(st.booleans())
    drawn = [draw(histories(bag=bag, max_size=7)) for _ in NAMES]
    if algorithm == "R0":
        drawn = [list({e[1]: e for e in events}.values()) for events in drawn]
    if not lived:
        drawn = [[(p, vs, vs + 1) for p, vs, _ in events] for events in drawn]
    events = drawn[0]
    streams = []
    for own in drawn:
        told = events if alike else own
        made = ordered_replicas(told, shuffle_ties=algorithm == "R2") if not lived else replicas(told, bag=bag)
        streams.append(draw(with_promises(draw(made))))
    return events, streams, alike


def fed(element: Element, schema: Any) -> Batch | Punctuation:
    if isinstance(element, Punctuation):
        return element
    row = (element.vs, *element.payload, None)
    if schema.lives is None:
        return Batch(schema, [row])
    return Batch(schema, [row], lives=Lives.of([replace(element, payload=row)]))


def run(made: Any, streams: list[list[Element]], data: st.DataObject) -> list[Any]:
    """The streams by turns, with a snapshot now and then."""
    execution = made.execution()
    schema = execution.graph.sources["one"][0].operator.schema
    outputs: list[Any] = []
    queues = dict(zip(NAMES, map(list, streams), strict=True))
    while any(queues.values()):
        name = data.draw(st.sampled_from([n for n, q in queues.items() if q]))
        outputs += execution.feed(name, fed(queues[name].pop(0), schema))
        if data.draw(st.integers(0, 9)) == 0:
            snapshot = execution.snapshot()
            execution = made.execution()
            execution.restore(snapshot)
    return outputs + execution.close()


def check(case: tuple[str, str, str], lived: bool, data: st.DataObject) -> None:
    algorithm, policy, driver = case
    lag = 0 if algorithm in ORDERED else data.draw(st.sampled_from([0, 0, 3]))
    events, streams, alike = data.draw(inputs(algorithm, lived))
    outputs = run(query(algorithm, policy, driver, lag, lived), streams, data)
    assert_sound(outputs)
    if alike:
        whole = TDB(((vs, *payload, None), vs, ve) for payload, vs, ve in events)
        assert_same(whole, tdb_of(outputs))


@pytest.mark.parametrize("case", PLAIN, ids=" ".join)
@examples(8)
@given(data=st.data())
def test_plain_rows(case: tuple[str, str, str], data: st.DataObject) -> None:
    check(case, False, data)


@pytest.mark.parametrize("case", LIVED, ids=" ".join)
@examples(8)
@given(data=st.data())
def test_elements(case: tuple[str, str, str], data: st.DataObject) -> None:
    check(case, True, data)


def test_the_lists_are_whole() -> None:
    """The policies that are not in them are refused."""
    tried = {policy.split()[0] if policy.startswith("quorum") else policy for _, policy, _ in LIVED}
    for policy in set(POLICIES.values()) - tried:
        with pytest.raises(PenstockError, match="policy"):
            query("R4", policy, "leading", 0, True)


def promises(outputs: list[Any]) -> list[Punctuation]:
    return [o for o in outputs if isinstance(o, Punctuation) and o.constants]


@pytest.mark.parametrize("algorithm", ["R0", "R1", "R2"])
def test_an_ordered_merge_promises_what_every_input_does(algorithm: str) -> None:
    execution = query(algorithm, "half frozen", "leading", 0, False).execution()
    final = groupwise("vs", END_OF_TIME, k="a")
    said = [promises(execution.feed(name, p)) for name, p in zip(NAMES, (final, groupwise("vs", 9, k="a"), final),
                                                                strict=True)]  # fmt: skip
    assert said == [[], [], [groupwise("vs", 9, k="a")]]
    assert promises(execution.feed("two", final)) == [final]


def test_a_promise_waits_for_events_that_are_held() -> None:
    """Of a, held from 4 on, no more than that is promised; of b, of which nothing is held, all."""
    execution = query("R4", "half frozen", "leading", 0, False).execution()
    schema = execution.graph.sources["one"][0].operator.schema
    execution.feed("one", Batch(schema, [(4, "a", None)]))
    said = []
    for name in NAMES:
        for letter in "ab":
            said += execution.feed(name, groupwise("vs", END_OF_TIME, k=letter))
    assert said == [groupwise("vs", 4, k="a"), groupwise("vs", END_OF_TIME, k="b")]
    released = execution.feed("one", linear("vs", 7))
    assert [type(o) for o in released] == [Batch, Punctuation, Punctuation]
    assert released[1:] == [linear("vs", 7), groupwise("vs", END_OF_TIME, k="a")]


def test_the_promises_of_a_named_driver_are_enough_where_nothing_else_comes_out() -> None:
    final = groupwise("vs", END_OF_TIME, k="a")
    for policy, expected in (("half frozen", [final]), ("conservative", [final]), ("first seen", [])):
        execution = query("R4", policy, "two", 0, True).execution()
        assert promises(execution.feed("one", final)) == []
        assert promises(execution.feed("two", final)) == expected


def test_a_bound_is_not_said_again_when_an_event_waits_before_it() -> None:
    """Replicas that differ: what one brings below the merge's own bound waits for a verdict, and moves no bound."""
    execution = query("R3", "half frozen", "majority", 0, False).execution()
    schema = execution.graph.sources["one"][0].operator.schema
    told = {
        "one": [groupwise("vs", 0, k="a"), Insert(("a",), 0, 1), groupwise("vs", 1, k="a"), Insert(("a",), 1, 2),
                groupwise("vs", 2, k="a"), Insert(("a",), 2, 3), Insert(("b",), 2, 3), linear("vs", 3),
                groupwise("vs", 3, k="a"), Insert(("a",), 3, 4), groupwise("vs", 4, k="a"), linear("vs", 4)],
        "two": [Insert(("b",), 0, 1), Insert(("a",), 2, 3), linear("vs", 12), groupwise("vs", 8, k="a"),
                Insert(("a",), 12, 13), linear("vs", END_OF_TIME)],
        "three": [linear("vs", 0), groupwise("vs", 1, k="a"), Insert(("b",), 0, 1), linear("vs", 1),
                  groupwise("vs", 1, k="a"), Insert(("a",), 1, 2), Insert(("a",), 2, 3), Insert(("a",), 3, 4),
                  groupwise("vs", 8, k="a"), Insert(("a",), 12, 13), linear("vs", END_OF_TIME)],
    }  # fmt: skip
    turns = "one " * 2 + "two " * 5 + "three " * 3 + "two " + "one " * 5 + "three " * 4 + "one " * 5 + "three " * 4
    outputs = [o for name in turns.split() for o in execution.feed(name, fed(told[name].pop(0), schema))]
    assert_sound(outputs)
