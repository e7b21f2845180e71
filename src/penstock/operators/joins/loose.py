"""The rows of one side of a join that came a few at a time, each found by its key in a dictionary.

Arrays cost more than they save for single rows. So rows that come so are kept as they are, per key in order of time,
where a row of the other side finds its partners by bisection; a heap has them all by time, for giving them up. Rows
that are given up by key stay in the heap until their time comes, or until they are more than half of it. Once a large
batch is to be joined with them they become a run (`runs`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
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

    __slots__ = ("_by_key", "_by_time", "_gone", "_made")

    def __init__(self, rows: Iterable[Loose] = ()) -> None:
        """Rows, by their numbers as they came."""
        self._by_key: dict[Key, list[Loose]] = {}
        self._by_time = list(rows)
        self._gone: set[int] = set()
        self._made = 1 + max((each.number for each in self._by_time), default=-1)
        heapify(self._by_time)
        for each in sorted(self._by_time):
            self._by_key.setdefault(each.key, []).append(each)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._by_time) - len(self._gone)

    def __iter__(self) -> Iterator[Loose]:
        """All of them, in the order in which they came."""
        there = [each for each in self._by_time if each.number not in self._gone]
        return iter(sorted(there, key=lambda each: each.number))

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
            if gone.number in self._gone:
                self._gone.remove(gone.number)
                continue
            own = self._by_key[gone.key]
            del own[0]  # it is the earliest of its key, too
            if not own:
                del self._by_key[gone.key]
            yield gone

    def of(self, wanted: Mapping[int, Any]) -> list[list[Loose]]:
        """The rows of the keys that have these values at these places, key by key."""
        if not self._by_key:
            return []
        if len(wanted) == len(next(iter(self._by_key))):
            own = self._by_key.get(tuple([wanted[at] for at in range(len(wanted))]))
            return [] if own is None else [own]
        return [own for key, own in self._by_key.items() if all(key[at] == value for at, value in wanted.items())]

    def give_up_of(self, wanted: Mapping[int, Any], settled: int) -> list[Loose]:
        """Take out the rows of these keys that are below a time."""
        found: list[Loose] = []
        for own in self.of(wanted):
            end = len(own) if settled == END_OF_TIME else bisect_left(own, settled, key=_time)
            found += own[:end]
            if end == len(own):
                del self._by_key[own[0].key]
            else:
                del own[:end]
        self._gone.update(each.number for each in found)
        self._forget()
        return found

    def _forget(self) -> None:
        """Make the heap anew if most that is in it is not there any more."""
        if 2 * len(self._gone) > len(self._by_time):
            self._by_time = [each for each in self._by_time if each.number not in self._gone]
            self._gone.clear()
            heapify(self._by_time)

    def drop(self, rows: Iterable[Loose]) -> None:
        """Take out some rows."""
        for each in rows:
            own = self._by_key[each.key]
            del own[bisect_left(own, each)]
            if not own:
                del self._by_key[each.key]
            self._gone.add(each.number)
        self._forget()

    def least(self) -> int:
        """The least time."""
        while self._by_time and self._by_time[0].number in self._gone:
            self._gone.remove(heappop(self._by_time).number)
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
