"""An index of rows by key and time: an order of them in which those that a row of the other side meets are neighbours.

Hash and time of a row are one number, as many bits of the hash as there is room for, so that sorting and searching are
of plain arrays: a binary search finds the first partner of a row, and one more the last if there is any, for all rows
of a batch at once. Where the times leave few bits for the hash they go by their rank. Twelve bytes a row are kept,
however many keys there are; eight where the rows themselves are in that order, which has their times, too (`packed`).

Different keys may have the same bits. Whether any two in the index do is known once it is made. If none do, which is
the rule, the first of the neighbours that a row finds tells whether all are equal to it; if some do, each is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from penstock.operators.joins.keys import KeyRows, Keys

_ROOM = 62
LEAST_BITS = 32
"""So many bits of a hash there are, at the least."""
MANY = 1 << 16
"""From so many rows on an index is more than is at hand at once."""
AT_ONCE = 1 << 13
"""So many rows look for partners at once, so that what is computed on the way is not as large as a large batch."""
Hits = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Of rows that found some: their places, where what they found begins in the order, and how many that are."""


@dataclass(frozen=True)
class Index:
    """The order of some rows."""

    keys: Keys
    order: np.ndarray | None
    """The places of the rows by hash, then time, then as they came; None if that is how they are placed."""
    ascending: np.ndarray
    """Hash and time as one number, in that order."""
    oldest: int
    newest: int
    ranks: np.ndarray | None
    """The times that there are, where times go by their rank."""
    bits: int
    """So many of a number's are those of the time."""
    is_clean: bool
    """Whether all rows with the same bits of the hash have equal keys."""

    @staticmethod
    def of(keys: KeyRows, times: np.ndarray) -> Index:
        """The index of rows with these keys and times."""
        oldest, newest = int(times.min()), int(times.max())
        bits, ranks = (newest - oldest + 1).bit_length(), None
        if _ROOM - bits < LEAST_BITS:
            ranks, keyed = np.unique(times, return_inverse=True)
            bits = len(ranks).bit_length()
        else:
            keyed = times - oldest
        keyed |= _short(keys.hashes, bits)
        order = in_order(keyed)
        ascending = keyed[order]
        short = ascending >> bits
        next_to = np.flatnonzero(short[1:] == short[:-1])
        is_clean = bool(keys.same(order[next_to], keys, order[next_to + 1]).all())
        return Index(keys, order.astype(np.int32), ascending, oldest, newest, ranks, bits, is_clean)

    def times(self, ascending: np.ndarray) -> np.ndarray:
        """The times in some of the numbers."""
        told = ascending & ((1 << self.bits) - 1)
        if self.ranks is None:
            told += self.oldest
            return told
        found: np.ndarray = self.ranks[told]
        return found

    def find(self, hashes: np.ndarray, first: np.ndarray, last: np.ndarray) -> Hits:
        """Rows with these hashes from the first time to the last, of each of some rows."""
        if self.ranks is None:
            low = np.maximum(first, self.oldest)  # the difference itself may not fit
            np.minimum(low, self.newest + 1, out=low)
            low -= self.oldest
            high = np.minimum(last, self.newest)
            np.maximum(high, self.oldest - 1, out=high)
            high -= self.oldest
        else:
            low = np.searchsorted(self.ranks, first)
            high = np.searchsorted(self.ranks, last, side="right") - 1
        base = _short(hashes, self.bits)
        low += base
        high += base
        starts = self.ascending.searchsorted(low)
        hits = np.flatnonzero(self.ascending.take(starts, mode="clip") <= high)
        starts = starts[hits]
        counts = self.ascending.searchsorted(high[hits], side="right") - starts
        if len(counts) and counts.min() <= 0:  # beyond the last
            some = counts > 0
            hits, starts, counts = hits[some], starts[some], counts[some]
        return hits, starts, counts

    def partners(
        self, keys: KeyRows, first: np.ndarray, last: np.ndarray, most: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Places of rows with these keys, and of rows of the index that are near them in time, in pairs."""
        for found in self._found(keys, first, last):
            hits, starts, counts = self._same(keys, found) if self.is_clean else found
            for own, at in pairs(hits, starts, counts, most):
                places = self._placed(at)
                if self.is_clean:
                    yield own, places
                else:
                    equal = keys.same(own, self.keys, places)
                    yield own[equal], places[equal]

    def _same(self, keys: KeyRows, found: Hits) -> Hits:
        """Those that found rows with their own keys."""
        hits, starts, counts = found
        same = keys.same(hits, self.keys, self._placed(starts))
        return found if same.all() else (hits[same], starts[same], counts[same])

    def _found(self, keys: KeyRows, first: np.ndarray, last: np.ndarray) -> Iterator[Hits]:
        """What rows find, those before others first."""
        if len(self.ascending) >= MANY:  # neighbours in the order of the hashes look at the same places
            order = keys.order
            hits, starts, counts = self.find(keys.hashes[order], first[order], last[order])
            hits = order[hits]
            back = np.argsort(hits)
            yield hits[back], starts[back], counts[back]
            return
        for at in range(0, keys.size, AT_ONCE):
            part = slice(at, at + AT_ONCE)
            hits, starts, counts = self.find(keys.hashes[part], first[part], last[part])
            if len(hits):
                yield hits + at, starts, counts

    def _placed(self, at: np.ndarray) -> np.ndarray:
        return at if self.order is None else self.order[at]


def _short(hashes: np.ndarray, bits: int) -> np.ndarray:
    """The part of the hashes for which there is room, above the bits of the time."""
    found: np.ndarray = (hashes >> np.uint64(64 - (_ROOM - bits))).view(np.int64)
    found <<= bits
    return found


def in_order(numbers: np.ndarray) -> np.ndarray:
    """The places of numbers in ascending order, equal ones as they come.

    A sort that does not mind how equal ones come is twice as fast; they are few, and are put right afterwards.
    """
    order = np.argsort(numbers)
    ascending = numbers[order]
    equal = ascending[1:] == ascending[:-1]
    if equal.any():
        tied = np.zeros(len(numbers), np.bool_)
        tied[1:] |= equal
        tied[:-1] |= equal
        order[tied] = order[tied][np.lexsort((order[tied], ascending[tied]))]
    return order


def pairs(
    places: np.ndarray, starts: np.ndarray, counts: np.ndarray, most: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows at these places with those, in the order of an index, of all that each meets; about `most` pairs at once."""
    totals = np.cumsum(counts)
    begin, done = 0, 0
    while begin < len(counts):
        end = max(int(np.searchsorted(totals, done + most, side="right")), begin + 1)
        offsets = starts[begin:end] - (totals[begin:end] - counts[begin:end] - done)
        at = np.repeat(offsets, counts[begin:end])
        at += np.arange(len(at))
        yield np.repeat(places[begin:end], counts[begin:end]), at
        begin, done = end, int(totals[end - 1])
