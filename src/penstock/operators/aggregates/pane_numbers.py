"""The numbers of panes: lots of numbers of one pane put together, and which panes a batch is in.

A pane is the codes of its groups, ascending, and per measure an array of numbers. What batches bring is kept as runs,
each at most half as large as the one before it: those that are not are put together. So a row is moved a few times,
however large its pane is. Whoever reads a pane finds it as one run, and so does whoever keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from penstock.operators.aggregates.measures import Array, Measure
from penstock.operators.aggregates.side_by_side import is_large, side_by_side
from penstock.operators.state import Pages

Pane = tuple[Array, list[Array]]
"""The codes of the groups in a pane, ascending, and per measure their numbers."""
Runs = list[Pane]
"""A pane to which several batches have come."""

DIGIT = 16
MOST_DIGITS = 3
"""Numbers of more digits are not sorted by them."""
MANY = 4096
"""From so many on, numbers are."""


def put_in_pane(pages: Pages, key: str, measures: Sequence[Measure], run: Pane) -> None:
    """Put numbers into the pane on a page, whether there is one or not."""
    before: Pane | Runs | None = pages.get(key)
    if before is None:
        pages.put(key, run)
        return
    runs = [*before, run] if isinstance(before, list) else [before, run]
    while len(runs) > 1 and len(runs[-2][0]) < 2 * len(runs[-1][0]):
        last = runs.pop()
        runs[-1] = put_together(measures, runs[-1], last)
    pages.put(key, runs if len(runs) > 1 else runs[0])


def read_pane(pages: Pages, key: str, measures: Sequence[Measure]) -> Pane:
    """The pane on a page as one run."""
    page: Pane | Runs = pages.get(key)
    if isinstance(page, list):
        page = as_one(measures, page)
        pages.put(key, page)
    return page


def as_one(measures: Sequence[Measure], page: Pane | Runs) -> Pane:
    """All runs of a pane put together."""
    if isinstance(page, list):
        *runs, one = page
        for run in reversed(runs):
            one = put_together(measures, run, one)
        return one
    return page


def runs_of(page: Pane | Runs) -> Runs:
    """The runs of a pane, as they are."""
    return page if isinstance(page, list) else [page]


def put_together(measures: Sequence[Measure], left: Pane, right: Pane) -> Pane:
    """The groups of both."""
    merged: list[Array] = []
    if len(left[0]) == len(right[0]) and np.array_equal(left[0], right[0]):
        for measure, a, b in zip(measures, left[1], right[1], strict=True):
            as_rows = merged and a is left[1][0] and b is right[1][0]
            merged.append(merged[0] if as_rows else measure.combine(a, b))
        return left[0], merged
    more, less = (left, right) if len(left[0]) >= len(right[0]) else (right, left)
    at = np.searchsorted(more[0], less[0])
    shared = more[0][np.minimum(at, len(more[0]) - 1)] == less[0]
    new = ~shared
    codes = np.insert(more[0], at[new], less[0][new])
    # One that is in both stands behind as many new ones as are less than it.
    places = (at + np.cumsum(new))[shared]
    for measure, a, b in zip(measures, more[1], less[1], strict=True):
        if merged and a is more[1][0] and b is less[1][0]:  # where nothing is null, values are as many as rows
            merged.append(merged[0])
            continue
        kept = a.astype(object) if b.dtype == object else a
        total = np.insert(kept, at[new], b[new], axis=0)
        total[places] = measure.combine(total[places], b[shared])
        merged.append(total)
    return codes, merged


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


def in_order(numbers: Array) -> tuple[Array, Array]:
    """Numbers that are not negative in ascending order, equal ones as they came, and where each stood."""
    bits, most = len(numbers).bit_length(), int(numbers.max())
    if len(numbers) >= MANY and most < 1 << (MOST_DIGITS * DIGIT):
        order = _order_by_digits(numbers, most)
        return numbers[order], order
    if most < 1 << (63 - bits):
        packed = (numbers << bits) | np.arange(len(numbers))
        packed.sort()
        return packed >> bits, packed & ((1 << bits) - 1)
    order = np.argsort(numbers, kind="stable")
    return numbers[order], order


def _order_by_digits(numbers: Array, most: int) -> Array:
    """Where numbers up to `most` stand, ascending, equal ones as they came; of many those of both halves at once."""
    if not is_large(len(numbers)):
        return _sorted_by_digits(numbers, most)

    def of_half(is_upper: bool) -> Array:
        at = np.flatnonzero(numbers > most // 2 if is_upper else numbers <= most // 2)
        order: Array = at[_sorted_by_digits(numbers[at], most)]
        return order

    return np.concatenate(side_by_side(partial(of_half, False), partial(of_half, True)))


def _sorted_by_digits(numbers: Array, most: int) -> Array:
    """The same by their last digits, then by those before, each sort a stable one.

    Of numbers of 16 bits numpy sorts by counting, which is some times faster than by comparing.
    """
    order: Array = np.argsort(numbers.astype(np.uint16), kind="stable")
    for shift in range(DIGIT, most.bit_length(), DIGIT):
        order = order[np.argsort((numbers[order] >> shift).astype(np.uint16), kind="stable")]
    return order


def different(numbers: Array, size: int) -> Array:
    """The different ones of some numbers from 0 to below `size`, ascending."""
    if size <= max(4 * len(numbers), 1 << 16):
        seen = np.zeros(size, np.bool_)
        seen[numbers] = True
        return np.flatnonzero(seen)
    ordered = in_order(numbers)[0]
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    once: Array = ordered if is_first.all() else ordered[np.flatnonzero(is_first)]
    return once
