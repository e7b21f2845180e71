"""Moments of integers: exact until they are rounded, whatever they lie around and whatever is known of them already."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.operators.aggregates.moments import Known, gathered

SIZE = 3
MIDDLES = [0, 10**6, -(10**15), 2**55, -(2**53)]
ROWS = st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(-50, 50) | st.integers(-(10**6), 10**6)), min_size=1)


def exact(values: list[int]) -> tuple[int, float, float]:
    """By the definition, in fractions."""
    if not values:
        return 0, 0.0, 0.0
    mean = Fraction(sum(values), len(values))
    return len(values), float(mean), float(sum((v - mean) ** 2 for v in values))


@pytest.mark.parametrize("sums_are_known", [False, True])
@given(rows=ROWS, middle=st.sampled_from(MIDDLES))
def test_moments_of_integers_are_exact(rows: list[tuple[int, int]], middle: int, sums_are_known: bool) -> None:
    rows = [(slot, value + middle) for slot, value in rows]
    slots, values = (np.array(part, np.int64) for part in zip(*rows, strict=True))
    sums = np.zeros(SIZE, np.int64)
    np.add.at(sums, slots, values)
    known = Known(np.bincount(slots, minlength=SIZE), sums) if sums_are_known else Known()
    found = gathered(slots, SIZE, values, known)
    for slot in range(SIZE):
        expected = exact([value for at, value in rows if at == slot])
        assert found[slot].tolist() == pytest.approx(expected, rel=1e-14, abs=0)


@given(st.lists(st.sampled_from([0, 1, 2**40, -(2**63), 2**63 - 1]), min_size=1, max_size=9))
def test_moments_of_integers_far_apart_are_those_of_floating_point_numbers(values: list[int]) -> None:
    slots = np.zeros(len(values), np.int64)
    found = gathered(slots, 1, np.array(values))
    assert found[0].tolist() == pytest.approx(exact(values), rel=1e-9, abs=1e-9 * max(map(abs, values)))
