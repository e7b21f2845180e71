"""The numbers of panes: which panes a batch is in, and two lots of numbers of one pane put together.

A pane is the codes of its groups, ascending, and per measure an array of numbers. Putting panes together costs their
groups.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.operators.aggregates.measures import Array, Measure
from penstock.operators.aggregates.sliding_total import Pane


def put_together(measures: Sequence[Measure], left: Pane, right: Pane) -> Pane:
    """The groups of both."""
    if len(left[0]) == len(right[0]) and np.array_equal(left[0], right[0]):
        return left[0], [m.combine(a, b) for m, a, b in zip(measures, left[1], right[1], strict=True)]
    codes = np.union1d(left[0], right[0])
    at_left, at_right = np.searchsorted(codes, left[0]), np.searchsorted(codes, right[0])
    merged = []
    for measure, a, b in zip(measures, left[1], right[1], strict=True):
        total = measure.neutral(len(codes), wide=object in (a.dtype, b.dtype))
        total[at_left] = a
        total[at_right] = measure.combine(total[at_right], b)
        merged.append(total)
    return codes, merged


def sized(values: Array, size: int) -> Array:
    """With zeros behind, if there are fewer."""
    return values if len(values) >= size else np.concatenate([values, np.zeros(size - len(values), values.dtype)])


def compress(panes: Array) -> tuple[Array, Array]:
    """The panes that occur, ascending, and for each row its place among them."""
    span = int(panes.max()) + 1
    if span > max(4 * len(panes), 1 << 16):
        return np.unique(panes, return_inverse=True)
    present = np.flatnonzero(np.bincount(panes, minlength=span))
    if len(present) == span:
        return present, panes
    lookup = np.zeros(span, np.int64)
    lookup[present] = np.arange(len(present))
    return present, lookup[panes]
