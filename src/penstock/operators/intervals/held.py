"""Events that are held by a key until a bound says that nobody can meet them any more.

Looking up a key costs what is held under it, holding and giving up the logarithm of what is held.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush
from typing import Any

from penstock.model.batch import Row
from penstock.model.time import END_OF_TIME
from penstock.model.values import canonical_row
from penstock.operators.intervals.layout import Event


class Held:
    """Events by key, and how long each is held."""

    __slots__ = ("by_key", "generations", "number", "until")

    def __init__(self) -> None:
        """Nothing is held."""
        self.by_key: dict[Row, dict[int, Event]] = {}
        self.until: list[tuple[int, int, Row]] = []
        self.number = 0
        self.generations: dict[int, int] = {}
        """How many there are of each generation."""

    def add(self, key: Row, event: Event, until: int) -> None:
        """Hold an event until a bound reaches a time."""
        self.number += 1
        self.by_key.setdefault(key, {})[self.number] = event
        self.generations[event[3]] = self.generations.get(event[3], 0) + 1
        heappush(self.until, (until, self.number, key))  # numbers are unique, so keys need no order

    def of(self, key: Row) -> Collection[Event]:
        """What is held under a key."""
        return self.by_key.get(key, {}).values()

    def give_up(self, bound: int) -> bool:
        """Forget what was held until now; whether there was any."""
        before = len(self.until)
        while self.until and (self.until[0][0] <= bound or bound == END_OF_TIME):
            _, number, key = heappop(self.until)
            held = self.by_key[key]
            generation = held.pop(number)[3]
            self.generations[generation] -= 1
            if not self.generations[generation]:
                del self.generations[generation]
            if not held:
                del self.by_key[key]
        return len(self.until) < before

    def events(self) -> Iterator[Event]:
        """All of them."""
        return (event for held in self.by_key.values() for event in held.values())

    def __len__(self) -> int:
        """How many there are."""
        return len(self.until)

    def to_plain(self) -> Any:
        """As columns: until when and under which key, and the events."""
        told = sorted(self.until)
        return [[each[0], list(each[2]), list(self.by_key[each[2]][each[1]])] for each in told]

    @classmethod
    def from_plain(cls, data: Any) -> Held:
        """The other way."""
        held = cls()
        for until, key, event in data:
            start, end, payload, generation = event
            held.add(canonical_row(tuple(key)), Event(start, end, tuple(payload), generation), until)
        return held
