"""The windows of a plan beside the oracle's: which hold a row, what each needs, which are whole."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from penstock.model.time import END_OF_TIME
from penstock.operators.queues.coverage import Coverage
from penstock.operators.queues.extents import extents_of
from penstock.operators.windows.sliding import Sliding
from penstock.reference import update_windows as oracle

windows = st.builds(Sliding, st.integers(1, 7), st.integers(1, 5), st.integers(-3, 3))
plans = st.lists(windows, min_size=1, max_size=3)
SPARSE = [
    [Sliding(8, 3), Sliding(1, 1), Sliding(6, 2)],
    [Sliding(3, 3), Sliding(2, 5), Sliding(7, 1)],
    [Sliding(4, 4), Sliding(1, 1), Sliding(1, 3)],
    [Sliding(5, 4), Sliding(1, 3), Sliding(2, 5, 1)],
]
"""Plans in which most windows need nothing: those of the second level are shorter than the slide of the first."""


def with_sparse(test: Any) -> Any:
    """The property for these plans, whatever else is tried."""
    for plan in SPARSE:
        for at in (-7, -2, 0, 1, 4, 5, 11):
            test = example(plan, at)(test)
    return test


def _levels(plan: list[Sliding]) -> list[oracle.Level]:
    return [oracle.Level(w.range, w.slide, w.origin) for w in plan]


@with_sparse
@given(plans, st.integers(-30, 30))
def test_the_windows_that_hold_a_row(plan: list[Sliding], time: int) -> None:
    found = extents_of(plan).holding(time)
    assert [wid for low, high in found for wid in range(low, high + 1)] == oracle.windows_of(_levels(plan), time)
    assert all(high + 1 < low for (_, high), (low, _) in pairwise(found))


@with_sparse
@given(plans, st.integers(-12, 12))
def test_what_a_window_needs(plan: list[Sliding], wid: int) -> None:
    extents, levels = extents_of(plan), _levels(plan)
    span = sum(w.range + w.slide for w in plan)
    around = range(extents.start(wid) - span, extents.end(wid) + span)
    mine = [t for t in around if wid in oracle.windows_of(levels, t)]
    if mine:
        least = oracle.needed(levels, wid)
        assert least is not None
        assert extents.start(wid) == mine[0]
        assert extents.end(wid) == least
        assert all(oracle.windows_of(levels, t)[0] <= wid for t in mine)
    used = [t for t in around if any(w >= wid for w in oracle.windows_of(levels, t))]
    assert not mine or extents.start(wid) == used[0]


@with_sparse
@given(plans, st.integers(-12, 12))
def test_windows_that_need_nothing_are_passed_over(plan: list[Sliding], wid: int) -> None:
    extents, levels = extents_of(plan), _levels(plan)
    after, before = extents.following(wid), extents.preceding(wid)
    reach = 125  # slides of three levels: after that all repeats
    needs = [w for w in range(wid - reach, wid + reach + 1) if oracle.needed(levels, w) is not None]
    assert after == next((w for w in needs if w >= wid), None)
    assert before == next((w for w in reversed(needs) if w <= wid), None)
    low, high = extents.parts(wid)[0]
    assert (low <= high) == (wid in needs)


@with_sparse
@given(plans, st.integers(-30, 30))
def test_which_windows_are_whole(plan: list[Sliding], bound: int) -> None:
    extents, levels = extents_of(plan), _levels(plan)
    last = extents.whole(bound)
    for wid in range(last - 8, last + 1):
        assert (oracle.needed(levels, wid) or bound) <= bound
    later = [oracle.needed(levels, wid) for wid in range(last + 1, last + 8)]
    assert all(least is None or least > bound for least in later)
    assert extents.whole(END_OF_TIME) == END_OF_TIME


@with_sparse
@given(plans, st.integers(-30, 30))
def test_windows_from_a_time_on_need_nothing_before_it(plan: list[Sliding], time: int) -> None:
    extents, levels = extents_of(plan), _levels(plan)
    first = extents.first_from(time)
    before = [w for t in range(time - 200, time) for w in oracle.windows_of(levels, t)]
    assert not before or first == max(before) + 1


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 4), st.booleans()), max_size=12))
def test_coverage_is_a_set_of_windows(steps: list[tuple[int, int, bool]]) -> None:
    coverage, model = Coverage(), set[int]()
    for low, more, closes in steps:
        if closes:
            closed = [w for a, b in coverage.close(low) for w in range(a, b + 1)]
            assert closed == sorted(w for w in model if w <= low)
            model = {w for w in model if w > low}
        else:
            coverage.add(low, low + more)
            model |= {*range(low, low + more + 1)}
        assert [w for a, b in coverage.runs for w in range(a, b + 1)] == sorted(model)
        assert all(b + 1 < c for (_, b), (c, _) in pairwise(coverage.runs))
        assert coverage.first == min(model, default=None)
