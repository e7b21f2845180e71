"""FIFO and IN-PLACE: keys in the order of their last, or of their first update (UpStream, section 5.2).

FIFO serves keys as their newest values came: a new value goes to the end of the line, so a key that updates quickly may
wait for ever. IN-PLACE keeps the place that a key got when it began to wait, whatever comes after: the key that has
been stale longest is next, which no order beats where all keys update alike.

Both are a *line* of keys by place. A key that goes to the end of a line leaves a hole where it was; a line that is more
holes than keys is closed up. So every operation costs a few steps, on average over the operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.operators.queues.key_table import NONE, PerKey
from penstock.operators.queues.queue import Kept, KeyOrder

_LEAST = 64


class Line:
    """Keys one behind the other, each at most once."""

    __slots__ = ("_end", "_head", "_keys", "_view", "count", "place")

    def __init__(self) -> None:
        """Nobody stands in it."""
        self._keys = np.zeros(_LEAST, np.int64)
        self._view: Any = self._keys.data
        self._head = self._end = self.count = 0
        self.place = PerKey(NONE)
        """Where each key stands."""

    def __contains__(self, key: int) -> bool:
        """Whether a key stands in it."""
        return key < len(self.place.array) and bool(self.place.view[key] != NONE)

    def add_one(self, key: int) -> None:
        """To the end; a key that was in the line leaves its place."""
        if self._end == len(self._keys):
            self._make_room(1)
        if key >= len(self.place.array):
            self.place.grow(key + 1)
        if self.place.view[key] == NONE:
            self.count += 1
        self._view[self._end] = key
        self.place.view[key] = self._end
        self._end += 1

    def add(self, keys: np.ndarray) -> None:
        """Different keys to the end, in this order."""
        if not len(keys):
            return
        if self._end + len(keys) > len(self._keys):
            self._make_room(len(keys))
        self.place.grow(int(keys.max()) + 1)
        self.count += int((self.place.array[keys] == NONE).sum())
        self._keys[self._end : self._end + len(keys)] = keys
        self.place.array[keys] = np.arange(self._end, self._end + len(keys))
        self._end += len(keys)

    def remove_one(self, key: int) -> None:
        """A key leaves the line, wherever it is."""
        if key in self:
            self.place.view[key] = NONE
            self.count -= 1

    def take(self, most: int) -> np.ndarray:
        """The first so many, who leave it."""
        if most == 1 and self.count:
            return np.array([self.take_one()])
        parts: list[np.ndarray] = []
        left = min(most, self.count)
        while left:
            keys = self._keys[self._head : min(self._head + left, self._end)].copy()
            there = keys[self.place.array[keys] == np.arange(self._head, self._head + len(keys))]
            self.place.array[there] = NONE
            parts.append(there)
            self._head += len(keys)
            left -= len(there)
            self.count -= len(there)
        if not self.count:
            self._head = self._end = 0
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def first(self) -> int:
        """The key that is next; there must be one."""
        while True:
            key: int = self._view[self._head]
            if self.place.view[key] == self._head:
                return key
            self._head += 1

    def take_one(self) -> int:
        """The key that is next, who leaves; there must be one."""
        key = self.first()
        self._head += 1
        self.place.view[key] = NONE
        self.count -= 1
        if not self.count:
            self._head = self._end = 0
        return key

    def keys(self) -> np.ndarray:
        """All in their order."""
        keys = self._keys[self._head : self._end]
        return np.array(keys[self.place.array[keys] == np.arange(self._head, self._end)], np.int64)

    def keep(self, kept: Kept) -> None:
        """Keys that do not stand in it are forgotten."""
        keys = kept.new[self.keys()]
        self._keys = np.zeros(_LEAST, np.int64)
        self._view = self._keys.data
        self._head = self._end = self.count = 0
        self.place = PerKey(NONE)
        self.add(keys)

    def _make_room(self, more: int) -> None:
        """Close the line up, in an array that is at most half full afterwards."""
        keys = self.keys()
        size = max(_LEAST, 2 * (len(keys) + more))
        self._keys = np.zeros(size, np.int64)
        self._keys[: len(keys)] = keys
        self._view = self._keys.data
        self.place.array[keys] = np.arange(len(keys))
        self._head, self._end = 0, len(keys)

    def to_plain(self) -> np.ndarray:
        """The keys in their order."""
        return self.keys()

    def from_plain(self, data: np.ndarray) -> None:
        """The other way."""
        self.add(data)


class Occurrences:
    """Where keys come first and last in an array of them, at the cost of its length."""

    def __init__(self) -> None:
        """Room grows with the keys."""
        self._at = PerKey(0)

    def last(self, keys: np.ndarray) -> np.ndarray:
        """The places at which a key comes for the last time, ascending."""
        self._at.grow(int(keys.max()) + 1 if len(keys) else 0)
        places = np.arange(len(keys))
        self._at.array[keys] = places  # of several the last is kept
        return np.flatnonzero(self._at.array[keys] == places)

    def first(self, keys: np.ndarray) -> np.ndarray:
        """The places at which a key comes for the first time, ascending."""
        return np.asarray(len(keys) - 1 - self.last(keys[::-1])[::-1])

    def counts(self, keys: np.ndarray, different: np.ndarray) -> np.ndarray:
        """How often each of the different keys comes."""
        self._at.grow(int(keys.max()) + 1 if len(keys) else 0)
        self._at.array[different] = np.arange(len(different))
        return np.bincount(self._at.array[keys], minlength=len(different))


class OneLine(KeyOrder):
    """Keys in one line."""

    def __init__(self) -> None:
        """Nobody waits."""
        self.line = Line()
        self._occurrences = Occurrences()

    def take(self, most: int, now: int) -> np.ndarray:
        """The first in the line."""
        return self.line.take(most)

    def waits(self, key: int) -> bool:
        """Whether it is in the line."""
        return key in self.line

    def waiting(self) -> np.ndarray:
        """The line."""
        return self.line.keys()

    def __len__(self) -> int:
        """How many are in the line."""
        return self.line.count

    def keep(self, kept: Kept) -> None:
        """The line, of other numbers."""
        self.line.keep(kept)
        self._occurrences = Occurrences()

    def to_plain(self) -> Any:
        """The keys in their order."""
        return self.line.to_plain()

    def from_plain(self, data: Any, version: int) -> None:
        """The other way."""
        self.line.from_plain(data)


class Fifo(OneLine):
    """By the last update."""

    kind = "fifo"

    def arrive_one(self, key: int, now: int) -> None:
        """To the end, whether it waited or not."""
        self.line.add_one(key)

    def arrive(self, keys: np.ndarray, now: int) -> None:
        """To the end, in the order of their last updates."""
        self.line.add(keys[self._occurrences.last(keys)])

    def arrive_at_once(self, keys: np.ndarray, now: int) -> None:
        """To the end, those that waited already first and as they stood: no key stands behind others for good."""
        self.line.place.grow(int(keys.max()) + 1 if len(keys) else 0)
        different = keys[self._occurrences.last(keys)]
        places = self.line.place.array[different]
        self.line.add(different[np.argsort(np.where(places == NONE, np.iinfo(np.int64).max, places), kind="stable")])


class InPlace(OneLine):
    """By the first update since the key was last taken."""

    kind = "in-place"

    def arrive_one(self, key: int, now: int) -> None:
        """To the end, unless it waits."""
        place = self.line.place
        if key >= len(place.array) or place.view[key] == NONE:
            self.line.add_one(key)

    def arrive(self, keys: np.ndarray, now: int) -> None:
        """Those that do not wait to the end, in the order of their first updates."""
        self.line.place.grow(int(keys.max()) + 1 if len(keys) else 0)
        new = keys[self.line.place.array[keys] == NONE]
        self.line.add(new[self._occurrences.first(new)])
