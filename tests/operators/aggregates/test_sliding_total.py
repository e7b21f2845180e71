"""A total that slides, against one that is made anew for each window; and how much of it is kept.

panes  0 1 . . 4 5 . 7      . is a pane without rows
window   [1 ..... 5)        holds 1 and 4
window       [3 ..... 7)    1 left, 5 entered
"""

from __future__ import annotations

import sys
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.operators.aggregates import sliding_total
from penstock.operators.aggregates.measures import Measure
from penstock.operators.aggregates.sliding_total import SlidingTotal
from penstock.operators.aggregates.totals import Totals
from penstock.operators.state import MemoryPages

MEASURES = (
    Measure("rows"), Measure("sum", 0), Measure("sum", 0, True), Measure("min", 0, True), Measure("max", 0),
    Measure("moments", 0, True),
)  # fmt: skip
GROUPS = 4
PANES = st.dictionaries(
    st.integers(0, 90), st.dictionaries(st.integers(0, GROUPS - 1), st.integers(-9, 9), min_size=1), min_size=1
)


def pages_of(panes: dict[int, dict[int, int]]) -> MemoryPages:
    """Each pane has one row per group that is in it."""
    pages = MemoryPages()
    for pane, values in panes.items():
        codes = np.array(sorted(values))
        numbers = np.array([values[c] for c in sorted(values)])
        columns = []
        for measure in MEASURES:
            if measure.kind == "moments":
                columns.append(np.stack([np.ones(len(codes)), numbers.astype(float), np.zeros(len(codes))], axis=1))
            else:
                columns.append(
                    np.ones(len(codes), np.int64) if measure.kind == "rows" else numbers.astype(measure.dtype)
                )
        pages.put(f"p{pane}", (codes, columns))
    return pages


def anew(panes: dict[int, dict[int, int]], lo: int, hi: int, group: int) -> list[int]:
    return [values[group] for pane, values in panes.items() if lo <= pane < hi and group in values]


@given(PANES, st.integers(1, 60), st.integers(1, 30), st.data())
def test_every_window_is_as_if_made_anew(panes: dict[int, dict[int, int]], length: int, step: int, data: Any) -> None:
    with mock.patch.object(sliding_total, "SPARE_PLACES", 0):
        check_windows(panes, length, step, data)


def check_windows(panes: dict[int, dict[int, int]], length: int, step: int, data: Any) -> None:
    pages, totals, sliding = pages_of(panes), Totals(), SlidingTotal(MEASURES)
    index = sorted(panes)
    for start in range(-length, 95, step):
        lo, hi = np.searchsorted(index, [start, start + length]).tolist()
        if lo == hi:
            continue
        if data.draw(st.integers(0, 4)) == 0:
            sliding.retire(totals, index, index[lo], GROUPS, pages)
        codes, numbers = sliding.advance(totals, index, lo, hi, GROUPS, pages)
        window = {group: anew(panes, start, start + length, group) for group in range(GROUPS)}
        assert sorted(codes.tolist()) == [group for group, values in window.items() if values]
        rows, total, as_float, least, most, moments = numbers
        for at, group in enumerate(codes.tolist()):
            values = window[group]
            assert rows[at] == len(values)
            assert total[at] == as_float[at] == sum(values)
            assert (least[at], most[at]) == (min(values), max(values))
            assert moments[at][:2].tolist() == pytest.approx([len(values), np.mean(values)])
            assert moments[at][2] == pytest.approx(np.var(values) * len(values), abs=1e-9)


def kept_bytes(pages: MemoryPages, totals: Totals) -> int:
    def size(value: Any) -> int:
        if isinstance(value, np.ndarray):
            return int(value.nbytes)
        if isinstance(value, dict):
            return sum(size(v) for v in value.values())
        return sum(size(v) for v in value) if isinstance(value, list | tuple) else sys.getsizeof(value)

    notes = [pages.get(f"s{number}") for number in totals.stack]
    return size(notes) + size(vars(totals))


def test_what_is_kept_follows_the_rows_and_not_panes_times_groups() -> None:
    """2,000 panes with one row of one of 2,000 groups each: 32 MB for each measure if every pane kept all groups."""
    count = 2000
    measures = (Measure("rows"), Measure("max", 0, True))
    pages, totals, sliding = MemoryPages(), Totals(), SlidingTotal(measures)
    for pane in range(count):
        pages.put(f"p{pane}", (np.array([pane]), [np.ones(1, np.int64), np.array([float(pane)])]))
    index = list(range(count))
    for lo in (0, 1, count // 2):
        found = sliding.advance(totals, index, lo, count, count, pages)
        assert int(found[1][0].sum()) == len(found[0]) == count - lo
        assert kept_bytes(pages, totals) < 200 * count
