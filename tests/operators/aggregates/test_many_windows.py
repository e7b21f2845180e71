"""Many windows at once against windows made anew, and beside windows that are made one after the other.

panes     0 1 . . 4 5 . 7      . is a pane without rows
windows     [1 . . 4)          all of them are made of one matrix, in which a pane without rows changes nothing
              [. . 4 5)
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.operators.aggregates import many_windows, pane_windows
from penstock.operators.aggregates.many_windows import ManyWindows
from penstock.operators.aggregates.measures import Measure
from penstock.operators.aggregates.pane_numbers import Pane
from penstock.operators.aggregates.pane_windows import PaneWindows
from penstock.operators.aggregates.slide import Slide
from penstock.operators.aggregates.sliding_total import SlidingTotal
from penstock.operators.state import MemoryPages
from penstock.operators.windows.sliding import Sliding

MEASURES = (
    Measure("rows"), Measure("count", 0), Measure("sum", 0), Measure("sum", 0, True), Measure("min", 0, True),
    Measure("max", 0), Measure("moments", 0, True),
)  # fmt: skip
GROUPS = 3
Panes = dict[int, dict[int, int]]
PANES: st.SearchStrategy[Panes] = st.dictionaries(
    st.integers(-20, 40), st.dictionaries(st.integers(0, GROUPS - 1), st.integers(-9, 9), min_size=1), min_size=1
)
WINDOWS = st.builds(Sliding, st.integers(1, 14), st.integers(1, 6), st.integers(-2, 2))


def pane_of(values: dict[int, int], *, wide: bool) -> Pane:
    """One row for each group; its value is null where it is 0."""
    codes = np.array(sorted(values))
    numbers = np.array([values[c] for c in sorted(values)])
    there, rows = numbers != 0, np.ones(len(codes), np.int64)
    count = rows if there.all() else there.astype(np.int64)
    columns = [rows, count, numbers.astype(object) if wide else numbers, numbers.astype(np.float64)]
    columns += [np.where(there, numbers, m.identity).astype(m.dtype) for m in MEASURES[4:6]]
    return codes, [*columns, np.stack([count, numbers, np.zeros(len(codes))], axis=1).astype(np.float64)]


def state_of(panes: Panes, wide: set[int]) -> tuple[Slide, MemoryPages]:
    pages = MemoryPages({f"p{pane}": pane_of(values, wide=pane in wide) for pane, values in panes.items()})
    return Slide(panes=sorted(panes)), pages


def anew(panes: Panes, window: Sliding, wid: int) -> dict[int, list[int]]:
    """Per group the values in a window."""
    found: dict[int, list[int]] = {}
    for pane in range(window.first_pane(wid), window.end_pane(wid)):
        for group, value in panes.get(pane, {}).items():
            found.setdefault(group, []).append(value)
    return found


def check(panes: Panes, window: Sliding, blocks: list[Any], first: int, end: int) -> None:
    """Blocks are of the windows from `first` to `end`, in order, and have all that is in them."""
    expected = {(wid, g): v for wid in range(first, end) for g, v in anew(panes, window, wid).items()}
    wids = [wid for block in blocks for wid in block[0].tolist()]
    codes = [code for block in blocks for code in block[1].tolist()]
    assert wids == sorted(wids)
    assert sorted(zip(wids, codes, strict=True)) == sorted(expected)
    for at, key in enumerate(zip(wids, codes, strict=True)):
        rows = expected[key]
        values = [v for v in rows if v]
        numbers = [np.concatenate([block[2][m] for block in blocks])[at] for m in range(len(MEASURES))]
        assert numbers[:4] == [len(rows), len(values), sum(values), sum(values)]
        assert numbers[6][0] == len(values)
        if values:
            assert numbers[4:6] == [min(values), max(values)]
            assert numbers[6][1:].tolist() == pytest.approx([np.mean(values), np.var(values) * len(values)], abs=1e-9)


@given(PANES, WINDOWS, st.integers(1, 40), st.sets(st.integers(-20, 40)))
def test_windows_at_once_are_as_if_each_was_made_anew(
    panes: Panes, window: Sliding, count: int, wide: set[int]
) -> None:
    state, pages = state_of(panes, wide)
    first = window.first_of_pane(state.panes[0])
    held = [p for p in state.panes if window.first_pane(first) <= p < window.end_pane(first + count - 1)]
    if held:
        block = ManyWindows(window, MEASURES).block(first, first + count, held, GROUPS, pages)
        check(panes, window, [block], first, first + count)


@given(PANES, WINDOWS, st.sets(st.integers(-20, 40)), st.data())
def test_windows_at_once_and_one_after_the_other_may_take_turns(
    panes: Panes, window: Sliding, wide: set[int], data: st.DataObject
) -> None:
    state, pages = state_of(panes, wide)
    made = PaneWindows(window, SlidingTotal(MEASURES))
    last = window.last_of_pane(state.panes[-1]) + 1
    first = window.first_of_pane(state.panes[0])
    while first < last:
        end = data.draw(st.integers(first + 1, min(first + 12, last)))
        many = data.draw(st.sampled_from([1, 10**9]))
        with mock.patch.multiple(many_windows, MANY=many, SPARSE=100), mock.patch.object(pane_windows, "PORTION", 9):
            blocks = list(made.blocks(state, end, pages, GROUPS))
        check(panes, window, blocks, first, end)
        first = state.closed = end


def test_windows_are_made_at_once_where_they_are_many_and_close_together() -> None:
    many = ManyWindows(Sliding(60, 10), MEASURES)
    assert many.suit(0, 20, panes=25, groups=1)
    assert not many.suit(0, 7, panes=12, groups=1)
    assert not many.suit(0, 20, panes=25, groups=1000)
    assert not many.suit(0, 1000, panes=25, groups=1)
    assert not ManyWindows(Sliding(6000, 10), MEASURES).suit(0, 20, panes=619, groups=1)
