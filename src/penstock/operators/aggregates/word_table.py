"""Rows of integers as small numbers: a hash table over arrays.

Each different row of words (64-bit integers) that has come has a code, in the order in which they first came, or of one
batch by value (`encode_close`), and never by their hashes: codes are kept in state, and whoever does the same work
again, in another process with other hashes, must come to the same state.
A batch is looked up at once: in rounds, each of which looks at one place of the table for every row that is still
without a code, as in linear probing. Rows that are new claim an empty place; of several that claim the same one wins,
and the others look again. At most half of the places are taken, so a few rounds do.

Cost: a few array operations per round over the rows of the batch, whatever is known already; the table is made anew
when it is full. Kept: the words, and four to eight bytes a code.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import numpy as np

from penstock.operators.aggregates.growing import Growing
from penstock.operators.aggregates.measures import Array

UNKNOWN = -1
_LEAST = 64
_MIX = np.uint64(0x9E3779B97F4A7C15)
_STIR = np.uint64(0xBF58476D1CE4E5B9)
SEED = np.uint64(int.from_bytes(os.urandom(8)))
"""Other hashes in every process: whoever chooses keys cannot choose those that meet."""


class WordTable:
    """The codes of rows of so many words."""

    def __init__(self, width: int) -> None:
        """No row has a code."""
        self.words = [Growing(np.int64) for _ in range(width)]
        self._places = np.full(_LEAST, UNKNOWN, np.int32)

    def __len__(self) -> int:
        """How many rows have a code."""
        return len(self.words[0])

    def widen(self) -> None:
        """Every row has one more word, 0."""
        added = Growing(np.int64)
        added.append(np.zeros(len(self), np.int64))
        self.words.append(added)
        self._rebuild(len(self._places))

    def fill(self, words: Sequence[Array]) -> None:
        """Give rows, of which no two are the same, codes in their order; there were none before."""
        for kept, given in zip(self.words, words, strict=True):
            kept.append(given)
        self._rebuild(_room_for(len(self)))

    def encode_close(self, words: Sequence[Array]) -> Array:
        """As `encode`; rows whose words are close together are looked up once each."""
        rows = len(words[0])
        if not rows:
            return np.zeros(0, np.int64)
        least = [int(word.min()) for word in words]
        spans = [int(word.max()) - low + 1 for word, low in zip(words, least, strict=True)]
        size = math.prod(spans)
        if size == 1:
            return np.full(rows, self.encode([word[:1] for word in words])[0])
        if size > rows:
            return self.encode(words)
        places = words[0] - least[0]
        for word, low, span in zip(words[1:], least[1:], spans[1:], strict=True):
            if span > 1:
                places *= span
                places += word - low
        seen = np.zeros(size, np.bool_)
        seen[places] = True
        present = np.flatnonzero(seen)
        codes = np.zeros(size, np.int64)
        parts = np.unravel_index(present, spans)
        codes[present] = self.encode([part + low for part, low in zip(parts, least, strict=True)])
        found: Array = codes[places]
        return found

    def encode(self, words: Sequence[Array], *, adds: bool = True) -> Array:
        """The code of every row, given word by word; a row that has none is given one, or is `UNKNOWN`."""
        known, given = len(self), list[Array]()
        codes = np.empty(len(words[0]), np.int64)
        hashes = _hashed(words)
        waiting = np.arange(len(codes))
        places = self._first_places(hashes)
        while len(waiting):
            held = self._places[places]
            taken = held >= 0
            same = taken & self._are(held, [w[waiting] for w in words])
            codes[waiting[same]] = held[same]
            if taken.all():
                done = same
            elif not adds:
                codes[waiting[~taken]] = UNKNOWN
                done = same | ~taken
            else:
                claimed = np.flatnonzero(~taken)
                if self._grow(len(claimed)):
                    given = [self._places_of(known)]
                    waiting = waiting[~same]
                    places = self._first_places(hashes[waiting])
                    continue
                done = same
                won = self._claim(places[claimed])
                winners = claimed[won]
                codes[waiting[winners]] = len(self) + np.arange(len(winners))
                self._add([w[waiting[winners]] for w in words], places[winners])
                given.append(places[winners])
                done[winners] = True
            places = np.where(taken, (places + 1) & (len(self._places) - 1), places)[~done]
            waiting = waiting[~done]
        return self._in_order(codes, known, given) if len(self) > known + 1 else codes

    def _in_order(self, codes: Array, known: int, places: Sequence[Array]) -> Array:
        """The codes of a batch, after those of rows that are new were given anew, in the order of their coming."""
        more = len(self) - known
        at = np.flatnonzero(codes >= known)
        new = codes[at] - known
        firsts = np.empty(more, np.int64)
        firsts[new[::-1]] = at[::-1]  # of the same code the first row, which is the last to be put
        is_first = np.zeros(len(codes), np.bool_)
        is_first[firsts] = True
        order = codes[is_first] - known
        if (order[1:] > order[:-1]).all():
            return codes
        ranks = np.empty(more, np.int64)
        ranks[order] = np.arange(more)
        codes[at] = known + ranks[new]
        for word in self.words:
            word.values[known:] = word.values[known:][order]
        self._places[np.concatenate(places)] = known + ranks
        return codes

    def encode_one(self, row: Sequence[int]) -> int:
        """The code of one row, which is given one if it has none; without arrays, which cost more than a few rows."""
        self._grow(1)
        last = len(self._places) - 1
        place = _hash(row) & last
        while (code := int(self._places[place])) >= 0:
            if all(kept.values[code] == word for kept, word in zip(self.words, row, strict=True)):
                return code
            place = (place + 1) & last
        self._places[place] = code = len(self)
        for kept, word in zip(self.words, row, strict=True):
            kept.append(np.array([word], np.int64))
        return code

    def _are(self, codes: Array, words: Sequence[Array]) -> Array:
        """Whether the rows with these codes have these words; what is said of no code means nothing."""
        if not len(self):
            return np.zeros(len(codes), np.bool_)
        found: Array = self.words[0].values[codes] == words[0]
        for kept, given in zip(self.words[1:], words[1:], strict=True):
            found &= kept.values[codes] == given
        return found

    def _claim(self, places: Array) -> Array:
        """Which of those that claim empty places, each of which may be claimed by several, win theirs."""
        marks = (-2 - np.arange(len(places))).astype(np.int32)
        self._places[places] = marks
        won: Array = self._places[places] == marks
        return won

    def _add(self, words: Sequence[Array], places: Array) -> None:
        self._places[places] = np.arange(len(self), len(self) + len(places), dtype=np.int32)
        for kept, given in zip(self.words, words, strict=True):
            kept.append(given)

    def _grow(self, more: int) -> bool:
        """Make room for more rows, if there is none."""
        if len(self) + more <= len(self._places) // 2:
            return False
        self._rebuild(_room_for(len(self) + more))
        return True

    def _rebuild(self, size: int) -> None:
        self._places = np.full(size, UNKNOWN, np.int32)
        if not len(self):
            return
        places = self._first_places(_hashed([w.values for w in self.words]))
        waiting = np.arange(len(places), dtype=np.int32)
        while len(waiting):
            free = self._places[places] < 0
            self._places[places[free]] = waiting[free]
            left = self._places[places] != waiting
            waiting, places = waiting[left], (places[left] + 1) & (size - 1)

    def _places_of(self, known: int) -> Array:
        """Where the codes from one on are, in their order."""
        at = np.flatnonzero(self._places >= known)
        return at[np.argsort(self._places[at])]

    def _first_places(self, hashes: Array) -> Array:
        return (hashes & np.uint64(len(self._places) - 1)).view(np.int64)


def _room_for(rows: int) -> int:
    return max(_LEAST, 1 << (2 * rows - 1).bit_length())


def _hashed(words: Sequence[Array]) -> Array:
    """A number for each row, any bits of which are as good as others."""
    mixed: Array = (words[0].view(np.uint64) ^ SEED) * _MIX
    for word in words[1:]:
        mixed ^= mixed >> np.uint64(32)
        mixed += word.view(np.uint64)
        mixed *= _MIX
    mixed ^= mixed >> np.uint64(29)
    mixed *= _STIR
    mixed ^= mixed >> np.uint64(32)
    return mixed


def _hash(row: Sequence[int]) -> int:
    """The same of one row."""
    mix, whole = int(_MIX), (1 << 64) - 1
    mixed = ((row[0] & whole) ^ int(SEED)) * mix & whole
    for word in row[1:]:
        mixed = ((mixed ^ mixed >> 32) + word) * mix & whole
    mixed = (mixed ^ mixed >> 29) * int(_STIR) & whole
    return mixed ^ mixed >> 32
