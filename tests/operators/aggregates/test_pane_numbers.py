"""Panes to which many batches come, against totals by hand: they are the same however their runs were put together."""

from __future__ import annotations

from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.operators.aggregates import pane_numbers, side_by_side
from penstock.operators.aggregates.measures import Measure
from penstock.operators.aggregates.pane_numbers import Pane, different, in_order, put_in_pane, read_pane, runs_of
from penstock.operators.state import MemoryPages

MEASURES = (Measure("rows"), Measure("sum", 0), Measure("max", 0), Measure("count", 0))
RUNS = st.lists(st.dictionaries(st.integers(0, 30), st.integers(-9, 9), min_size=1), min_size=1, max_size=8)


def run_of(values: dict[int, int], *, wide: bool) -> Pane:
    codes = np.array(sorted(values))
    numbers = np.array([values[c] for c in sorted(values)])
    ones = np.ones(len(codes), np.int64)
    return codes, [ones, numbers.astype(object) if wide else numbers, numbers, ones]


@given(RUNS, st.integers(0, 8))
def test_runs_come_to_the_same_as_one(runs: list[dict[int, int]], wide_from: int) -> None:
    pages = MemoryPages()
    for at, values in enumerate(runs):
        put_in_pane(pages, "p1", MEASURES, run_of(values, wide=at >= wide_from))
        sizes = [len(codes) for codes, _ in runs_of(pages.get("p1"))]
        assert all(2 * after <= before for before, after in pairwise(sizes))
    codes, (rows, total, most, count) = read_pane(pages, "p1", MEASURES)
    expected = {code: [v[code] for v in runs if code in v] for code in sorted({c for v in runs for c in v})}
    assert codes.tolist() == list(expected)
    assert rows.tolist() == count.tolist() == [len(v) for v in expected.values()]
    assert total.tolist() == [sum(v) for v in expected.values()]
    assert most.tolist() == [max(v) for v in expected.values()]


@pytest.mark.parametrize("many", [1, pane_numbers.MANY], ids=["by digits", "by comparing"])
@given(st.lists(st.sampled_from([0, 1, 5, 2**16, 2**17 - 1, 2**40, 2**40 + 1, 2**62]), min_size=1))
def test_numbers_in_order_say_where_they_stood(many: int, numbers: list[int]) -> None:
    with mock.patch.object(pane_numbers, "MANY", many), mock.patch.object(side_by_side, "LARGE", 4):
        ordered, order = in_order(np.array(numbers))
    assert ordered.tolist() == sorted(numbers)
    assert order.tolist() == sorted(range(len(numbers)), key=lambda at: numbers[at])


@given(st.lists(st.integers(0, 99), min_size=1), st.sampled_from([100, 10**12]))
def test_different_numbers_come_once_and_in_order(numbers: list[int], size: int) -> None:
    assert different(np.array(numbers), size).tolist() == sorted(set(numbers))
