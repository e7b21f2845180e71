"""The two definitions of which rows meet: by the difference of their times, and by window extents."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.plan.join_nodes import Band, Near, SameWindow
from penstock.reference.joins import extents, joined_by_windows, match, near, widjoin

times = st.lists(st.integers(-20, 40), max_size=8)
bands = st.tuples(st.integers(-9, 9), st.integers(0, 9)).map(lambda b: Band(b[0], b[0] + b[1]))
windows = st.tuples(st.integers(1, 9), st.integers(-5, 5)).map(lambda w: SameWindow(*w))
nearness = bands | windows


@given(how=nearness, lefts=times, rights=times)
def test_the_band_and_the_windows_join_the_same_rows(how: Near, lefts: list[int], rights: list[int]) -> None:
    by_time = {(i, j) for i, left in enumerate(lefts) for j, right in enumerate(rights) if near(how, left, right)}
    assert set(joined_by_windows(how, lefts, rights)) == by_time


@given(how=nearness, left=st.integers(-20, 40), right=st.integers(-20, 40))
def test_match_is_the_inverse_from_the_side_of_a_row(how: Near, left: int, right: int) -> None:
    """A row meets the rows of the extents that `match` names: those that widjoin pairs with its own."""
    own, other = extents(how, "left", left), extents(how, "right", right)
    assert bool(match(how, "left", left, other)) == bool(match(how, "right", right, own)) == near(how, left, right)
    assert match(how, "left", left, other) == {j for _, j in widjoin(own, other)}


def test_a_sliding_window_join_as_the_thesis_has_it() -> None:
    """Q5-8, 3 minutes on the left and 2 on the right: the left is joined for 3 after it came, the right for 2."""
    how = Band(-2, 3)
    met = [right for right in range(20) if near(how, 10, right)]
    assert met == [8, 9, 10, 11, 12, 13]  # r - 3 <= l <= r + 2, both ends included
    assert list(extents(how, "left", 10)) == [10, 11, 12, 13]
    assert list(extents(how, "right", 8)) == [8, 9, 10]


def test_a_tumbling_window_join_is_equality_of_window_numbers() -> None:
    how = SameWindow(5)
    assert [right for right in range(20) if near(how, 7, right)] == [5, 6, 7, 8, 9]
