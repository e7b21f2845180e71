"""An index of rows by key and time: an order of them in which those that a row of the other side meets are neighbours.

Hash and time of a row are one number, as many bits of the hash as there is room for, so that sorting and searching are
of plain arrays: two binary searches find the partners of a row, for all rows of a batch at once. Where the times leave
few bits for the hash they go by their rank. Twelve bytes a row are kept, however many keys there are.

Different keys may have the same bits. Whether any two in the index do is known once it is made. If none do, which is
the rule, the first of the neighbours that a row finds tells whether all are equal to it; if some do, each is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from penstock.operators.joins.keys import KeyRows

_ROOM = 62
LEAST_BITS = 32
"""So many bits of a hash there are, at the least."""
MANY = 4096
"""From so many rows on an index is more than is at hand at once."""


@dataclass(frozen=True)
class Index:
    """The order of some rows."""

    keys: KeyRows
    order: np.ndarray
    """The places of the rows by hash, then time, then as they came."""
    ascending: np.ndarray
    """Hash and time as one number, in that order."""
    oldest: int
    newest: int
    ranks: np.ndarray | None
    """The times that there are, where times go by their rank."""
    span: int
    shift: int
    is_clean: bool
    """Whether all rows with the same bits of the hash have equal keys."""

    @staticmethod
    def of(keys: KeyRows, times: np.ndarray) -> Index:
        """The index of rows with these keys and times."""
        oldest, newest = int(times.min()), int(times.max())
        span, ranks, places = newest - oldest + 1, None, times - oldest
        if _ROOM - span.bit_length() < LEAST_BITS:
            ranks, places = np.unique(times, return_inverse=True)
            span = len(ranks)
        shift = 64 - (_ROOM - span.bit_length())
        short = (keys.hashes >> np.uint64(shift)).astype(np.int64)
        keyed = short * span + places
        order = np.argsort(keyed, kind="stable")
        short = short[order]
        next_to = np.flatnonzero(short[1:] == short[:-1])
        is_clean = bool(keys.same(order[next_to], keys, order[next_to + 1]).all())
        return Index(keys, order.astype(np.int32), keyed[order], oldest, newest, ranks, span, shift, is_clean)

    def find(self, hashes: np.ndarray, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of rows with these hashes, from the first time to the last: where they begin in the order, and how many."""
        if self.ranks is None:
            low = np.clip(first, self.oldest, self.newest + 1) - self.oldest  # the difference itself may not fit
            high = np.clip(last, self.oldest - 1, self.newest) - self.oldest
        else:
            low = np.searchsorted(self.ranks, first)
            high = np.searchsorted(self.ranks, last, side="right") - 1
        base = (hashes >> np.uint64(self.shift)).astype(np.int64) * self.span
        starts, counts = np.searchsorted(self.ascending, base + low), np.zeros(len(base), np.int64)
        base += high
        hits = np.flatnonzero(self.ascending[np.minimum(starts, len(self.ascending) - 1)] <= base)
        counts[hits] = np.searchsorted(self.ascending, base[hits], side="right") - starts[hits]
        return starts, np.maximum(counts, 0)

    def partners(
        self, keys: KeyRows, first: np.ndarray, last: np.ndarray, most: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Places of rows with these keys, and of rows of the index that are near them in time, in pairs."""
        if len(self.order) < MANY:
            starts, counts = self.find(keys.hashes, first, last)
        else:  # neighbours in the order of the hashes look at the same places
            starts, counts = np.empty(keys.size, np.int64), np.empty(keys.size, np.int64)
            order = keys.order
            starts[order], counts[order] = self.find(keys.hashes[order], first[order], last[order])
        if self.is_clean:
            hits = np.flatnonzero(counts)
            counts[hits[~keys.same(hits, self.keys, self.order[starts[hits]])]] = 0
        for own, at in pairs(starts, counts, most):
            places = self.order[at]
            if self.is_clean:
                yield own, places
            else:
                equal = keys.same(own, self.keys, places)
                yield own[equal], places[equal]


def pairs(starts: np.ndarray, counts: np.ndarray, most: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Places of rows with those, in the order of an index, of all that each meets; about `most` pairs at once."""
    totals = np.cumsum(counts)
    begin, done = 0, 0
    while begin < len(counts):
        end = max(int(np.searchsorted(totals, done + most, side="right")), begin + 1)
        number = int(totals[end - 1]) - done
        if number:
            own = np.repeat(np.arange(begin, end), counts[begin:end])
            offsets = starts[begin:end] - (totals[begin:end] - counts[begin:end] - done)
            yield own, np.arange(number) + np.repeat(offsets, counts[begin:end])
        begin, done = end, int(totals[end - 1])
