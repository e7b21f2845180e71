"""Results that are out and still live: what has to be taken back when another plan answers from some instant on.

A consumer that takes revisions can be told that a result ends earlier than it was said to. For that it must be known
which results are out that end later than anything that was promised: the others are over, and never touched again.
"""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from penstock.model.batch import Batch, Row
from penstock.model.lives import NO_OLD, Lives
from penstock.model.schema import Schema

Live = tuple[int, int, Row]
"""Start, end and row."""


class LiveResults:
    """Events that are out, by their ends."""

    def __init__(self) -> None:
        """None are."""
        self.events: Counter[Live] = Counter()
        self.ends: list[tuple[int, int, Live]] = []
        self.number = 0

    def take(self, batch: Batch) -> None:
        """Results came out, or revisions of some."""
        lives = batch.its_lives()
        starts, ends, olds = batch.times().tolist(), lives.ends.tolist(), lives.olds.tolist()
        for row, start, end, old in zip(batch.rows, starts, ends, olds, strict=True):
            if old != NO_OLD:
                self.events[start, old, row] -= 1
            if end > start:
                self._add((start, end, row))

    def _add(self, event: Live) -> None:
        self.events[event] += 1
        self.number += 1
        heappush(self.ends, (event[1], self.number, event))

    def forget(self, bound: int) -> None:
        """Nothing that ends by then can be revised any more."""
        while self.ends and self.ends[0][0] <= bound:
            self.events.pop(heappop(self.ends)[2], None)

    def beyond(self, split: int) -> list[Live]:
        """Those that end later than some instant, in order of start."""
        found = [event for event, n in self.events.items() for _ in range(n) if event[1] > split]
        return sorted(found, key=lambda event: event[:2])

    def to_plain(self) -> Any:
        """Each with how often it is out."""
        return [[start, end, row, n] for (start, end, row), n in self.events.items() if n > 0]

    @classmethod
    def from_plain(cls, data: Any) -> LiveResults:
        """The other way."""
        live = cls()
        for start, end, row, n in data:
            live.events[start, end, tuple(row)] = n
            live.number += 1
            live.ends.append((end, live.number, (start, end, tuple(row))))
        heapify(live.ends)
        return live


def taken_back(schema: Schema, events: list[Live], split: int) -> Batch:
    """The revisions by which events end at an instant; those that start there or later are taken back as a whole."""
    ends = np.array([max(start, split) for start, _, _ in events], np.int64)
    olds = np.array([end for _, end, _ in events], np.int64)
    return Batch(schema, [row for _, _, row in events], lives=Lives(ends, olds))
