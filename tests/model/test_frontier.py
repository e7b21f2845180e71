"""A frontier against the plain list of the punctuations that went into it, on every element of a small world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.elements import Punctuation, groupwise, joint, linear
from penstock.model.frontier import Frontier, carried
from penstock.model.plain import decode, encode
from penstock.model.time import END_OF_TIME, MIN_TICK

NAN = float("nan")
TIMES, SEQUENCES = range(4), range(3)
KEYS = (0.0, 1.0, NAN, None)
WORLD: list[dict[str, object]] = [
    {"ts": t, "seq": s, "a": a, "b": b} for t, s, a, b in product(TIMES, SEQUENCES, KEYS, KEYS)
]
BOUNDS = st.sampled_from([MIN_TICK, 1, 2, 3, END_OF_TIME])
SOME_KEYS = st.sampled_from([0.0, -0.0, 1.0, float("nan"), None])


@st.composite
def punctuations(draw: st.DrawFn) -> Punctuation:
    names = draw(st.sampled_from([("ts",), ("ts",), ("seq",), ("ts", "seq"), ("seq", "ts")]))
    columns = draw(st.sampled_from([(), (), ("a",), ("b",), ("a", "b"), ("b", "a")]))
    return Punctuation(tuple((n, draw(BOUNDS)) for n in names), tuple((c, draw(SOME_KEYS)) for c in columns))


PROMISES = st.lists(punctuations(), max_size=8)


def ruled_out(promises: Sequence[Punctuation] | Frontier, element: Mapping[str, object]) -> bool:
    """By the definition, one promise after the other."""
    return any(p.condemns(element) for p in promises)


@given(PROMISES)
def test_it_rules_out_what_the_punctuations_rule_out(promises: list[Punctuation]) -> None:
    frontier = Frontier(promises)
    for element in WORLD:
        found = frontier.condemning(element)
        assert (found is not None) == ruled_out(promises, element)
        assert found is None or (found.condemns(element) and found in list(frontier))


@given(PROMISES)
def test_adding_tells_whether_a_promise_is_new_and_keeps_an_antichain(promises: list[Punctuation]) -> None:
    frontier, before = Frontier(), list[Punctuation]()
    for promise in promises:
        known = any(b.implies(promise) for b in before) or MIN_TICK in [v for _, v in promise.bounds]
        assert frontier.implies(promise) == known
        assert frontier.add(promise) == (not known)
        before.append(promise)
        kept = list(frontier)
        assert len(frontier) == len(kept)
        assert not any(p.implies(q) for i, p in enumerate(kept) for j, q in enumerate(kept) if i != j)


@given(PROMISES, st.randoms())
def test_the_order_of_promises_makes_no_difference(promises: list[Punctuation], random: object) -> None:
    shuffled = list(promises)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert Frontier(promises) == Frontier(shuffled)


@given(PROMISES, st.sampled_from(["ts", "seq"]), st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(KEYS)))
def test_the_bound_under_constants_is_the_greatest_that_holds(
    promises: list[Punctuation], attribute: str, constants: dict[str, object]
) -> None:
    """A bound holds if the promise of it follows from one of those that were made."""
    bound = Frontier(promises).bound(attribute, constants)
    for tried in (1, 2, 3, END_OF_TIME):
        wanted = groupwise(attribute, tried, **constants)
        assert (tried <= bound) == any(p.implies(wanted) for p in promises)


@given(PROMISES, PROMISES)
def test_a_union_rules_out_what_both_rule_out(left: list[Punctuation], right: list[Punctuation]) -> None:
    common = Frontier(left).common(Frontier(right))
    for element in WORLD:
        assert ruled_out(common, element) == (ruled_out(left, element) and ruled_out(right, element))
    assert common == Frontier(right).common(Frontier(left))


@given(PROMISES)
def test_what_one_promise_adds_to_a_union_is_met_one_by_one(promises: list[Punctuation]) -> None:
    frontier = Frontier(promises[1:])
    for promise in promises[:1]:
        met = frontier.meet(promise)
        for element in WORLD:
            assert ruled_out(met, element) == (promise.condemns(element) and ruled_out(promises[1:], element))


@given(PROMISES, st.sampled_from([{}, {"ts": ["t"]}, {"ts": ["t"], "a": ["x", "y"]}, {"seq": ["s"], "b": ["a"]}]))
def test_names_are_changed_and_what_does_not_survive_is_dropped(
    promises: list[Punctuation], names: dict[str, list[str]]
) -> None:
    after = [made for promise in promises for made in carried(promise, names)]
    for element in WORLD:
        renamed = {new: element[old] for old, news in names.items() for new in news}
        if all({n for n, _ in p.bounds} | {n for n, _ in p.constants} <= renamed.keys() for p in after):
            whole = [p for p in promises if {n for n, _ in (*p.bounds, *p.constants)} <= names.keys()]
            assert ruled_out(after, renamed) == ruled_out(whole, element)


@given(PROMISES)
def test_plain_data_both_ways(promises: list[Punctuation]) -> None:
    frontier = Frontier(promises)
    assert Frontier.from_plain(decode(encode(frontier.to_plain()), "test")) == frontier


@given(PROMISES, st.sampled_from(["ts", "seq"]))
def test_group_wise_promises_are_found_by_their_constants(promises: list[Punctuation], attribute: str) -> None:
    frontier = Frontier(promises)
    own = [p for p in frontier if not p.is_joint and p.attribute == attribute and p.constants]
    assert {tuple(n for n, _ in p.constants) for p in own} == set(frontier.groupings(attribute))
    for promise in own:
        names, values = zip(*promise.constants, strict=True)
        assert frontier.bound_of(attribute, names, values) == promise.value
    assert frontier.bound_of(attribute, ("a",), ("unheard of",)) == MIN_TICK


def test_what_a_linear_bound_has_passed_is_forgotten() -> None:
    frontier = Frontier([groupwise("ts", 10, a=1), groupwise("ts", 30, a=2), groupwise("ts", END_OF_TIME, a=3)])
    assert frontier.add(linear("ts", 20))
    assert list(frontier) == [linear("ts", 20), groupwise("ts", 30, a=2), groupwise("ts", END_OF_TIME, a=3)]
    assert frontier.add(linear("ts", END_OF_TIME))
    assert list(frontier) == [linear("ts", END_OF_TIME)]


def test_it_shows_its_promises() -> None:
    assert repr(Frontier([joint(ts=1, seq=2), groupwise("ts", 5, a="x")])) == (
        "Frontier(punctuation(seq >= 2 or ts >= 1), punctuation(ts >= 5, a = 'x'))"
    )
    with pytest.raises(TypeError):
        hash(Frontier())
