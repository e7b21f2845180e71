"""The rows of one side of a join that came a few at a time, each found by its key in a dictionary.

Arrays cost more than they save for single rows. So rows that come so are kept as they are, per key in order of time,
where a row of the other side finds its partners by bisection; a heap has them all by time, for giving them up. Once a
large batch is to be joined with them they become a run (`runs`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any

from penstock.model.batch import Row
from penstock.model.time import END_OF_TIME

Key = tuple[Any, ...]


@dataclass(order=True, slots=True)
class Loose:
    """A row that is kept."""

    time: int
    number: int
    row: Row = field(compare=False)
    key: Key = field(compare=False)
    met: bool = field(default=False, compare=False)
    """Whether it need not be told of any more."""


class LooseRows:
    """The loose rows of one side."""

    __slots__ = ("_by_key", "_by_time", "_made")

    def __init__(self, rows: Iterable[Loose] = ()) -> None:
        """Rows, by their numbers as they came."""
        self._by_key: dict[Key, list[Loose]] = {}
        self._by_time = list(rows)
        self._made = 1 + max((each.number for each in self._by_time), default=-1)
        heapify(self._by_time)
        for each in sorted(self._by_time):
            self._by_key.setdefault(each.key, []).append(each)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._by_time)

    def __iter__(self) -> Iterator[Loose]:
        """All of them, in the order in which they came."""
        return iter(sorted(self._by_time, key=lambda each: each.number))

    def add(self, time: int, key: Key, row: Row, *, met: bool) -> None:
        """Keep a row."""
        made = Loose(time, self._made, row, key, met)
        self._made += 1
        heappush(self._by_time, made)
        own = self._by_key.setdefault(key, [])
        if own and own[-1] > made:
            insort(own, made)
        else:
            own.append(made)

    def find(self, key: Key, first: int, last: int) -> list[Loose]:
        """The rows of a key from the first time to the last."""
        own = self._by_key.get(key)
        if own is None or own[-1].time < first or own[0].time > last:
            return []
        start = bisect_left(own, first, key=_time)
        return own[start : bisect_left(own, last + 1, start, key=_time)]

    def give_up(self, settled: int) -> Iterator[Loose]:
        """Take out the rows below a time."""
        while self._by_time and (settled == END_OF_TIME or self._by_time[0].time < settled):
            gone = heappop(self._by_time)
            own = self._by_key[gone.key]
            del own[0]  # it is the earliest of its key, too
            if not own:
                del self._by_key[gone.key]
            yield gone

    def least(self) -> int:
        """The least time."""
        return self._by_time[0].time if self._by_time else END_OF_TIME

    def to_plain(self) -> Any:
        """Times, numbers, rows, keys and whether they are done with."""
        return [(each.time, each.number, each.row, each.key, each.met) for each in self]

    @staticmethod
    def from_plain(data: Any) -> LooseRows:
        """The other way."""
        return LooseRows(Loose(time, number, tuple(row), tuple(key), met) for time, number, row, key, met in data)


def _time(loose: Loose) -> int:
    return loose.time
