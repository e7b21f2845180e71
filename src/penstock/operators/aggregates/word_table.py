"""Rows of integers as small numbers: a hash table over arrays.

Each different row of words (64-bit integers) that has come has a code, in the order in which they first came, or of one
batch by value (`encode_close`), and never by their hashes: codes are kept in state, and whoever does the same work
again, in another process with other hashes, must come to the same state.
A batch is looked up at once: in rounds, each of which looks at one place of the table for every row that is still
without a code, as in linear probing. Rows that are new claim an empty place; of several that claim the same the first
to come wins, and the others look what it is. At most half of the places are taken, so a few rounds do. A row stays in
that half of the table in which it begins to look, so that the rows of both halves can be looked up at once.

Cost: a few array operations per round over the rows of the batch, whatever is known already; the table is made anew
when it is full. Kept: the words, and four to eight bytes a code.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from penstock.operators.aggregates.growing import Growing
from penstock.operators.aggregates.measures import Array
from penstock.operators.aggregates.side_by_side import at_once, is_large, side_by_side

UNKNOWN = -1
_LEAST = 64
_MIX = np.uint64(0x9E3779B97F4A7C15)
_STIR = np.uint64(0xBF58476D1CE4E5B9)
SEED = np.uint64(int.from_bytes(os.urandom(8)))
"""Other hashes in every process: whoever chooses keys cannot choose those that meet."""


@dataclass
class _Rows:
    """A batch that is looked up in a table that knew so many rows before."""

    words: Sequence[Array]
    hashes: Array
    found: Array
    """The codes, of rows that are new by the first of their like in the batch."""
    known: int
    added: list[tuple[Array, Array]] = field(default_factory=list)
    """Such codes of rows that were new, with their places in the table."""

    @property
    def count(self) -> int:
        """How many rows were new."""
        return sum(len(codes) for codes, _ in self.added)


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
        self._rebuild(len(self._places), np.arange(len(self)))

    def fill(self, words: Sequence[Array]) -> None:
        """Give rows, of which no two are the same, codes in their order; there were none before."""
        for kept, given in zip(self.words, words, strict=True):
            kept.append(given)
        self._rebuild(_room_for(len(self)), np.arange(len(self)))

    def encode_close(self, words: Sequence[Array]) -> Array:
        """As `encode`; rows whose words are close together are looked up once each."""
        rows = len(words[0])
        if not rows:
            return np.zeros(0, np.int64)
        least = [int(word.min()) for word in words]
        spans = [int(word.max()) - low + 1 for word, low in zip(words, least, strict=True)]
        size = math.prod(spans)
        if size == 1:
            return np.full(rows, self.encode_one(least))
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
        if not adds:
            return self._find(words)
        known, rows = len(self), len(words[0])
        for kept, given in zip(self.words, words, strict=True):
            kept.append(given)  # until all are found, a row that is new has the code of its own place
        batch = _Rows(words, hashed(words), np.empty(rows, np.int64), known)
        if known + rows > self._most:
            empty = np.count_nonzero(self._places[self._first_places(batch.hashes)] < 0)
            if known + empty > self._most:
                self._make_room(batch, rows)
        left = self._look(batch, np.arange(rows))
        while len(left):
            self._make_room(batch, len(left))
            left = self._look(batch, left)
        return self._in_order(batch)

    def _look(self, batch: _Rows, rows: Array) -> Array:
        """Find some rows, or add them; those that the table has no room for are left."""
        places = self._first_places(batch.hashes[rows] if len(rows) < len(batch.hashes) else batch.hashes)
        room = self._most - batch.known - batch.count
        if not is_large(len(rows)):
            return self._look_in(batch, rows, places, room)
        middle = len(self._places) // 2

        def of_half(is_upper: bool) -> Array:
            at = np.flatnonzero(places >= middle if is_upper else places < middle)
            return self._look_in(batch, rows[at], places[at], room)

        return np.concatenate(side_by_side(partial(of_half, False), partial(of_half, True)))

    def _look_in(self, batch: _Rows, waiting: Array, places: Array, room: int) -> Array:
        """The same, adding no more than there is room for: rows of both halves of the table, or of one."""
        added = 0
        while len(waiting):
            held = self._places[places]
            empty = np.flatnonzero(held < 0)
            if len(empty):
                if added + len(empty) > room:
                    break
                claimed, own = places[empty], waiting[empty] + batch.known
                self._places[claimed[::-1]] = own[::-1]  # of several the first to come, which is the last to be put
                held[empty] = winners = self._places[claimed]
                won = np.flatnonzero(winners == own)
                added += len(won)
                batch.added.append((own[won], claimed[won]))
            batch.found[waiting] = held  # those that are not the same look again
            left = np.flatnonzero(~self._are(held, batch.words, waiting))
            waiting, places = waiting[left], self._next_places(places[left])
        return waiting

    def _make_room(self, batch: _Rows, more: int) -> None:
        """A larger table, with what a batch has added to it."""
        codes = np.concatenate([np.arange(batch.known), *(codes for codes, _ in batch.added)])
        places = self._rebuild(_room_for(len(codes) + more), codes)
        batch.added = [(codes[batch.known :], places[batch.known :])]

    def _in_order(self, batch: _Rows) -> Array:
        """The codes of a batch: rows that were new get theirs in the order of their coming."""
        known, found, count = batch.known, batch.found, batch.count
        if not count:
            for word in self.words:
                word.cut(known)
            return found
        is_first = np.zeros(len(found), np.bool_)
        for own, _ in batch.added:
            is_first[own - known] = True
        ordered = np.flatnonzero(is_first)
        codes = np.empty(len(found), np.int64)
        codes[ordered] = np.arange(known, known + count)

        def keep() -> None:
            for word in self.words:
                word.values[known : known + count] = word.values[known:][ordered]
                word.cut(known + count)
            for own, places in batch.added:
                self._places[places] = codes[own - known]

        def give() -> None:
            new = np.flatnonzero(found >= known)
            found[new] = codes[found[new] - known]

        at_once(len(found), keep, give)
        return found

    def _find(self, words: Sequence[Array]) -> Array:
        """The code of every row, `UNKNOWN` if it has none."""
        found, waiting = np.empty(len(words[0]), np.int64), np.arange(len(words[0]))
        places = self._first_places(hashed(words))
        while len(waiting):
            held = self._places[places]
            found[waiting] = held
            left = np.flatnonzero((held >= 0) & ~self._are(held, words, waiting))
            waiting, places = waiting[left], self._next_places(places[left])
        return found

    def encode_one(self, row: Sequence[int]) -> int:
        """The code of one row, which is given one if it has none; without arrays, which cost more than a few rows."""
        if len(self) >= self._most:
            self._rebuild(_room_for(len(self) + 1), np.arange(len(self)))
        half = len(self._places) // 2 - 1
        place = _hash(row) & (len(self._places) - 1)
        while (code := int(self._places[place])) >= 0:
            if all(kept.values[code] == word for kept, word in zip(self.words, row, strict=True)):
                return code
            place = place & ~half | (place + 1) & half
        self._places[place] = code = len(self)
        for kept, word in zip(self.words, row, strict=True):
            kept.append(np.array([word], np.int64))
        return code

    def _are(self, codes: Array, words: Sequence[Array], rows: Array) -> Array:
        """Whether what has these codes has the words of these rows; what is said of no code means nothing."""
        if not len(self):
            return np.zeros(len(codes), np.bool_)
        is_whole = len(rows) == len(words[0])
        same: Array | None = None
        for kept, given in zip(self.words, words, strict=True):
            found = kept.values[codes] == (given if is_whole else given[rows])
            same = found if same is None else np.logical_and(same, found, out=same)
        assert same is not None
        return same

    def _rebuild(self, size: int, codes: Array) -> Array:
        """A table of another size, for these codes; where they are in it."""
        self._places = np.full(size, UNKNOWN, np.int32)
        places = self._first_places(hashed([w.values[codes] for w in self.words]))
        waiting = np.arange(len(codes))
        while len(waiting):
            at, own = places[waiting], codes[waiting]
            held = self._places[at]
            free = np.flatnonzero(held < 0)
            self._places[at[free]] = own[free]
            waiting = waiting[self._places[at] != own]
            places[waiting] = self._next_places(places[waiting])
        return places

    @property
    def _most(self) -> int:
        """Up to so many rows the table takes, or each half that is looked up by itself: a place is then left in it."""
        return len(self._places) // 2 - 1

    def _first_places(self, hashes: Array) -> Array:
        return (hashes & np.uint64(len(self._places) - 1)).view(np.int64)

    def _next_places(self, places: Array) -> Array:
        """The places behind these, in the same half of the table."""
        half = len(self._places) // 2 - 1
        following: Array = (places & ~half) | ((places + 1) & half)
        return following


def _room_for(rows: int) -> int:
    return max(_LEAST, 1 << (2 * rows + 1).bit_length())


def hashed(words: Sequence[Array]) -> Array:
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
