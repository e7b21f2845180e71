"""Moments of groups as arrays: number, mean and sum of squared deviations, from which variances are made.

Moments of two parts are joined by Chan's rule. Of integers they are exact before they are rounded: the sums of values
and of squares are integers, taken from the middle of what there is, so that 64 bits hold them unless values are very
far apart. Other numbers take two passes, the second over deviations from the mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.operators.aggregates.functions import Spread, combine_moments

Array = np.ndarray
FEW = 4
"""So few groups are joined one by one, since an operation on arrays costs as much as some on numbers."""
_LIMIT = 1 << 63


@dataclass(frozen=True)
class Known:
    """What is known already of the values in slots, if anything is."""

    counts: Array | None = None
    """How many there are in each."""
    sums: Array | None = None
    """Their sums, where these are integers of 64 bits."""


NOTHING_KNOWN = Known()


def combined(left: Array, right: Array) -> Array:
    """The moments of both, group by group."""
    if len(left) <= FEW:
        pairs = zip(left.tolist(), right.tolist(), strict=True)
        joint = [b if not a[0] else a if not b[0] else combine_moments(a, b) for a, b in pairs]
        return np.array(joint, np.float64).reshape(len(left), 3)
    n_left, n_right = left[:, 0], right[:, 0]
    joined = np.empty_like(left)
    n = np.add(n_left, n_right, out=joined[:, 0])
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        delta = right[:, 1] - left[:, 1]
        step = delta * n_right
        step /= n
        np.add(left[:, 1], step, out=joined[:, 1])
        delta *= step
        delta *= n_left
        delta += left[:, 2]
        np.add(delta, right[:, 2], out=joined[:, 2])
    # Beside nothing, moments stay as they are, even infinite ones.
    if not n_right.all():
        alone = n_right == 0
        joined[alone] = left[alone]
    if not n_left.all():
        alone = n_left == 0
        joined[alone] = right[alone]
    return joined


def gathered(slots: Array, size: int, values: Array, known: Known = NOTHING_KNOWN) -> Array:
    """The moments of the values in each slot."""
    counts = np.bincount(slots, minlength=size) if known.counts is None else known.counts
    if values.dtype == np.int64 and len(values):
        exact = _of_integers(slots, values, counts, known.sums)
        if exact is not None:
            return exact
    values = values.astype(np.float64, copy=False)
    n = counts.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        total = np.bincount(slots, weights=values, minlength=size)
        mean = np.divide(total, n, out=np.zeros(size), where=n > 0)
        apart = mean[slots]
        np.subtract(values, apart, out=apart)
        apart *= apart
        squares = np.bincount(slots, weights=apart, minlength=size)
    return np.stack([n, mean, squares], axis=1)


def _of_integers(slots: Array, values: Array, counts: Array, sums: Array | None) -> Array | None:
    """The same by sums of integers; None where 64 bits might not hold the greatest number on the way."""
    low, high, most = int(values.min()), int(values.max()), int(counts.max())
    middle = (low + high) // 2
    if ((high - middle) * most) ** 2 >= _LIMIT or max(-low, high) * most >= _LIMIT:
        return None
    apart = values - middle
    if sums is None:
        total = np.zeros(len(counts), np.int64)
        np.add.at(total, slots, apart)
    else:
        total = sums - counts * middle
    apart *= apart
    squares = np.zeros(len(counts), np.int64)
    np.add.at(squares, slots, apart)
    n = np.maximum(counts, 1)
    mean = (total + counts * middle) / n
    return np.stack([counts, mean, (counts * squares - total * total) / n], axis=1)


def gathered_runs(starts: Array, values: Array, valid: Array | None) -> Array:
    """The moments of runs of values, which begin at `starts`; `valid` says which are not null."""
    rows = len(values)
    lengths = np.diff(starts, append=rows)
    n = lengths.astype(np.float64) if valid is None else np.add.reduceat(valid.astype(np.float64), starts)
    with np.errstate(invalid="ignore", over="ignore"):
        total = np.add.reduceat(values if valid is None else np.where(valid, values, 0.0), starts)
        mean = np.divide(total, n, out=np.zeros(len(starts)), where=n > 0)
        apart = np.repeat(mean, lengths)
        np.subtract(values, apart, out=apart)
        apart *= apart
        squares = np.add.reduceat(apart if valid is None else np.where(valid, apart, 0.0), starts)
    return np.stack([n, mean, squares], axis=1)


def lowered(moments: Array, spread: Spread) -> pa.Array:
    """The column of variances or standard deviations; null where the sample is a single value."""
    degrees = moments[:, 0] - 1 if spread.sample else moments[:, 0]
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = moments[:, 2] / degrees
        values = np.sqrt(variance) if spread.root else variance
    return pa.array(values, pa.float64(), mask=degrees <= 0)
