"""Elements check themselves; punctuation says what can no longer come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ElementError
from penstock.model.elements import Adjust, Insert, Punctuation, groupwise, joint, linear
from penstock.model.time import END_OF_TIME, MIN_TICK

bounds = st.dictionaries(st.sampled_from(["x", "y"]), st.integers(0, 4), min_size=1)
constants = st.dictionaries(st.sampled_from(["k", "j"]), st.sampled_from(["a", "b"]))
punctuations = st.builds(
    lambda b, c: Punctuation(tuple(sorted(b.items())), tuple(sorted(c.items()))), bounds, constants
)
ELEMENTS = [{"x": x, "y": y, "k": k, "j": j} for x in range(-1, 6) for y in range(-1, 6) for k in "ab" for j in "ab"]


@given(punctuations, punctuations)
def test_implies_is_condemning_no_less(one: Punctuation, other: Punctuation) -> None:
    assert one.implies(other) == all(one.condemns(e) for e in ELEMENTS if other.condemns(e))


def test_linear_the_bound_itself_is_allowed() -> None:
    p = linear("ts", 60)
    assert p.is_linear
    assert [p.condemns({"ts": t}) for t in (59, 60, 61)] == [True, False, False]
    assert (p.attribute, p.value, str(p)) == ("ts", 60, "punctuation(ts >= 60)")


def test_groupwise_condemns_its_group_only() -> None:
    p = groupwise("ts", 60, router="a")
    assert not p.is_linear
    assert p.condemns({"ts": 5, "router": "a"})
    assert not p.condemns({"ts": 5, "router": "b"})
    assert not p.condemns({"ts": 60, "router": "a"})
    assert linear("ts", 60).implies(p)
    assert not p.implies(linear("ts", 60))
    assert str(p) == "punctuation(ts >= 60, router = 'a')"


def test_joint_condemns_what_is_below_all_its_bounds() -> None:
    p = joint(l=10, r=20)
    assert p.is_joint
    assert p.condemns({"l": 9, "r": 19})
    assert not p.condemns({"l": 9, "r": 20})
    assert not p.condemns({"l": 10, "r": 0})
    assert linear("l", 10).implies(p)
    assert not p.implies(linear("l", 10))
    with pytest.raises(ElementError, match="no single bound"):
        _ = p.value
    with pytest.raises(ElementError, match="no single attribute"):
        _ = p.attribute


def test_the_end_condemns_everything() -> None:
    end = linear("ts", END_OF_TIME)
    assert end.is_end
    assert end.condemns({"ts": END_OF_TIME})
    assert not groupwise("ts", END_OF_TIME, k="a").is_end
    assert str(end) == "punctuation(ts >= end)"


def test_elements_that_cannot_be_are_refused() -> None:
    for ve in (3, 2):
        with pytest.raises(ElementError, match="at least one tick"):
            Insert(("a",), 3, ve)
    with pytest.raises(ElementError, match="before its start"):
        Adjust(("a",), 3, 5, 2)
    with pytest.raises(ElementError, match="living event"):
        Adjust(("a",), 3, 3, 5)
    with pytest.raises(ElementError, match="at least one bound"):
        Punctuation(())
    for bound in (END_OF_TIME + 1, MIN_TICK - 1):
        with pytest.raises(ElementError, match="beyond the end of time"):
            linear("ts", bound)
    for wrong in (True, 1.0, "1", None):
        with pytest.raises(ElementError, match="is an integer"):
            linear("ts", wrong)  # type: ignore[arg-type]
        with pytest.raises(ElementError, match="are integers"):
            Insert(("a",), wrong, 5)  # type: ignore[arg-type]


def test_an_adjust_is_late_by_the_earlier_of_its_ends() -> None:
    # [3, 9) becomes [3, 7): what changes begins at 7
    assert Adjust(("a",), 3, 9, 7).lateness_time == 7
    assert Adjust(("a",), 3, 7, 9).lateness_time == 7
    assert Adjust(("a",), 3, 7, 3).lateness_time == 3
