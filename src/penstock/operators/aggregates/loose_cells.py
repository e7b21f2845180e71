"""Cells of many small windows that tumble: the window, the group and the numbers of each, as arrays.

Where windows hold a few groups each, and a batch has very many of them, a page for each pane costs far more than what
is in it. So such cells are held as runs, in the order of windows and groups, each at most half as large as the one
before it; those that are not are put together. A bound takes what is before it off the front of every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from penstock.operators.aggregates.emission import PORTION
from penstock.operators.aggregates.measures import Array, Measure, infinite
from penstock.operators.aggregates.window_tables import Block

KINDS = frozenset({"rows", "count", "sum", "min", "max"})
"""Measures of which numbers are put together by a ufunc."""
SAMPLE = 32
FEW = 4
"""Panes are small if there are so many rows of a sample to a pane, at the most."""


def are_small(panes: Array) -> bool:
    """Whether the rows of a batch are in many panes, a few in each."""
    sample = panes[:SAMPLE]
    return len(sample) == SAMPLE and len(np.unique(sample)) * FEW >= SAMPLE


def put_run(measures: Sequence[Measure], runs: Sequence[Block], run: Block) -> list[Block]:
    """The runs with one more."""
    found = [*runs, run]
    while len(found) > 1 and len(found[-2][0]) < 2 * len(found[-1][0]):
        last = found.pop()
        found[-1] = as_one_run(measures, [found[-1], last])
    return found


def as_one_run(measures: Sequence[Measure], runs: Sequence[Block]) -> Block:
    """Runs put together; of a window and a group that several of them have, the numbers are."""
    if len(runs) == 1:
        return runs[0]
    panes, codes = (np.concatenate([run[at] for run in runs]) for at in (0, 1))
    order = np.lexsort((codes, panes))
    panes, codes = panes[order], codes[order]
    starts = np.flatnonzero(np.concatenate([[True], (panes[1:] != panes[:-1]) | (codes[1:] != codes[:-1])]))
    numbers: list[Array] = []
    for at, measure in enumerate(measures):
        if at and all(run[2][at] is run[2][0] for run in runs):
            numbers.append(numbers[0])
            continue
        given = np.concatenate([run[2][at] for run in runs])[order]
        with infinite():
            numbers.append(given if len(starts) == len(given) else measure.joined_runs(given, starts))
    return panes[starts], codes[starts], numbers


def cut(run: Block, lo: int, hi: int) -> Block:
    """A part of a run, copied, since a view would keep the whole of it."""
    panes, codes, numbers = run
    made = [numbers[0][lo:hi].copy()]
    made += [made[0] if each is numbers[0] else each[lo:hi].copy() for each in numbers[1:]]
    return panes[lo:hi].copy(), codes[lo:hi].copy(), made


def portions(run: Block) -> Iterator[Block]:
    """A run in blocks of whole windows."""
    lo, size = 0, len(run[0])
    while lo < size:
        hi = size if size - lo <= PORTION else int(np.searchsorted(run[0], run[0][lo + PORTION]))
        hi = hi if hi > lo else int(np.searchsorted(run[0], run[0][lo], side="right"))
        yield cut(run, lo, hi)
        lo = hi
