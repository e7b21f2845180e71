"""Sliding windows: `wids` inverts `extent`, panes tile windows, and the thesis's worked examples."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.operators.windows.sliding import Sliding

windows = st.builds(Sliding, st.integers(1, 40), st.integers(1, 40), st.integers(-100, 100))
values = st.integers(-500, 500)


@given(windows, values)
def test_wids_is_the_inverse_of_extent(window: Sliding, value: int) -> None:
    inside = [w for w in range(-700, 700) if window.start(w) <= value < window.end(w)]
    assert list(window.wids(value)) == inside


@given(windows, values)
def test_a_bound_leaves_open_exactly_the_windows_that_end_after_it(window: Sliding, bound: int) -> None:
    first = window.first(bound)
    assert window.end(first) > bound >= window.end(first - 1)
    assert window.output_bound(bound) == window.end(first)


@given(windows, st.integers(-60, 60))
def test_panes_tile_a_window(window: Sliding, wid: int) -> None:
    start, end = window.extent(wid)
    panes = [window.pane_of(v) for v in range(start, end)]
    assert sorted(set(panes)) == list(range(window.first_pane(wid), window.end_pane(wid)))
    assert len(set(panes)) == window.panes_per_window
    for pane in set(panes):
        assert window.first_of_pane(pane) <= wid <= window.last_of_pane(pane)


@given(windows, values)
def test_all_values_of_a_pane_have_the_same_windows(window: Sliding, value: int) -> None:
    pane = window.pane_of(value)
    assert list(window.wids(value)) == list(range(window.first_of_pane(pane), window.last_of_pane(pane) + 1))


def test_the_thesis_example_ids_ten_to_nineteen() -> None:
    # RANGE 600 s, SLIDE 60 s, the origin at 10:00:00 as second 0; t1 at 10:10:05 is second 605.
    #
    #   window  9: [  0, 600)            605 is not in it
    #   window 10: [ 60, 660)  …605…
    #   window 19: [600, 1200) …605…
    #   window 20: [660, 1260)           605 is not in it
    window = Sliding(600, 60)
    assert list(window.wids(605)) == list(range(10, 20))
    assert window.extent(10) == (60, 660)
    assert window.extent(19) == (600, 1200)


def test_the_first_windows_of_the_thesis_example() -> None:
    # with floors, 10:00:05 has first id 0 and last id 9
    assert list(Sliding(600, 60).wids(5)) == list(range(10))


def test_punctuation_660_closes_window_10_and_not_11() -> None:
    window = Sliding(600, 60)
    assert window.first(660) == 11
    assert window.first(659) == 10


def test_panes_of_a_range_that_the_slide_does_not_divide() -> None:
    # RANGE 6, SLIDE 4: panes of 2
    #        0   2   4   6   8
    # w0: [-2           4)
    # w1:      [2           8)
    window = Sliding(6, 4)
    assert window.pane == 2
    assert window.panes_per_window == 3
    assert [window.extent(w) for w in (0, 1)] == [(-2, 4), (2, 8)]
    assert (window.first_pane(1), window.end_pane(1)) == (1, 4)


def test_values_in_the_gap_between_windows_are_in_none() -> None:
    # RANGE 2, SLIDE 5: [3, 5), [8, 10)
    window = Sliding(2, 5)
    assert [list(window.wids(v)) for v in range(3, 9)] == [[0], [0], [], [], [], [1]]
