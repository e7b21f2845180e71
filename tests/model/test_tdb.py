"""TDBs, their differences, and snapshots."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ElementError
from penstock.model.elements import Adjust, Element, Insert, linear
from penstock.model.snapshots import snapshot_at, snapshot_equivalent, snapshots
from penstock.model.tdb import TDB, equivalent, tdb
from penstock.model.values import NAN, canonical

events = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 8), st.integers(1, 6)).map(
        lambda e: Insert((e[0],), e[1], e[1] + e[2])
    ),
    max_size=8,
)


@given(events, st.data())
def test_the_order_of_inserts_does_not_count(inserts: list[Insert], data: st.DataObject) -> None:
    shuffled: list[Element] = [*data.draw(st.permutations(inserts)), linear("ts", 99)]
    assert equivalent(inserts, shuffled)
    assert tdb(inserts).size == len(inserts)


@given(events)
def test_adjusts_move_ends_and_remove_events(inserts: list[Insert]) -> None:
    elements: list[Element] = list(inserts)
    expected = []
    for i, e in enumerate(inserts):
        end = e.vs if i % 2 else e.ve + 1
        elements.append(Adjust(e.payload, e.vs, e.ve, end))
        if end > e.vs:
            expected.append(Insert(e.payload, e.vs, end))
    assert equivalent(elements, expected)


def test_an_adjust_without_its_event_is_an_error() -> None:
    with pytest.raises(ElementError, match="not there"):
        tdb([Insert(("a",), 0, 5), Adjust(("a",), 0, 4, 6)])
    with pytest.raises(ElementError, match="Not an element"):
        tdb(["x"])  # type: ignore[list-item]


def test_repeats_count() -> None:
    one = TDB([(("a",), 0, 1)])
    two = TDB([(("a",), 0, 1)] * 2)
    assert one != two
    assert (one.size, two.size, len(two), two[(("a",), 0, 1)]) == (1, 2, 1, 2)
    assert one.difference(two).extra == Counter({(("a",), 0, 1): 1})


def test_floats_are_equal_within_tolerance_and_nan_equals_nan() -> None:
    assert TDB([((0.1 + 0.2, float("nan")), 0, 1)]) == TDB([((0.3, float("nan")), 0, 1)])
    assert TDB([((0.3,), 0, 1)]) != TDB([((0.3001,), 0, 1)])
    assert TDB([((1.0,), 0, 1)]) != TDB([((math.nan,), 0, 1)])
    assert TDB([((math.nan,), 0, 1)]) != TDB([((None,), 0, 1)])
    nan = float("nan")
    removed: list[Element] = [Insert((nan,), 0, 5), Adjust((float("nan"),), 0, 5, 0)]
    assert tdb(removed).size == 0


def test_a_difference_can_be_read() -> None:
    difference = TDB([(("a",), 0, 1), (("b",), 2, 3)]).difference(TDB([(("a",), 0, 1), (("c",), 4, 5), (("c",), 4, 5)]))
    text = difference.render()
    assert text.splitlines() == ["only in expected (1):", "  [2, 3) ('b',)", "only in got (2):", "  [4, 5) ('c',) x2"]
    assert TDB().difference(TDB()).render() == "equal"
    many = TDB([((n,), n, n + 1) for n in range(20)]).difference(TDB())
    assert "… and 10 more" in str(many)


def test_a_key_with_nan_survives_a_checkpoint() -> None:
    key = (canonical(float("nan")), "a")
    again = pickle.loads(pickle.dumps({key: 1}))
    assert again[(canonical(math.nan), "a")] == 1
    assert canonical(-0.0) == 0.0
    assert math.copysign(1, canonical(-0.0)) == 1
    assert canonical(None) is None
    assert math.isnan(NAN)


@given(events)
def test_steps_are_the_snapshots_at_every_instant(inserts: list[Insert]) -> None:
    whole = tdb(inserts)
    steps = snapshots(whole)
    for instant in range(-1, 18):
        found = [payloads for start, end, payloads in steps if start <= instant < end]
        assert found == ([snapshot_at(whole, instant)] if snapshot_at(whole, instant) else [])
    for (_, end, left), (start, _, right) in pairwise(steps):
        assert end < start or left != right  # neighbours that are equal were joined


@given(events, st.data())
def test_cutting_an_event_in_two_changes_no_snapshot(inserts: list[Insert], data: st.DataObject) -> None:
    parts = []
    for e in inserts:
        cut = data.draw(st.integers(e.vs, e.ve - 1))
        parts += [Insert(e.payload, e.vs, cut), Insert(e.payload, cut, e.ve)] if cut > e.vs else [e]
    assert snapshot_equivalent(inserts, parts)
    assert equivalent(inserts, parts) == (len(parts) == len(inserts))
