"""The rows of one side of an as-of join that came a few at a time: per key a list in order of time.

The latest up to a time are found by bisection. A heap has the rows that are later than any row of the other side asks
for as yet: once that has moved on, the rows of the key before the latest ones are given up; where rows may also be too
old to be met, a second heap has those for which it is waited.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from penstock.model.batch import Row
from penstock.operators.joins.loose import Key
from penstock.operators.joins.tie_order import order_of


@dataclass(slots=True)
class _OfKey:
    """The rows of one key in order."""

    times: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def add(self, time: int, row: Row) -> None:
        at = bisect_right(self.times, time)
        if at and self.times[at - 1] == time:
            own = order_of(row)
            while at and self.times[at - 1] == time and order_of(self.rows[at - 1]) > own:
                at -= 1
        self.times.insert(at, time)
        self.rows.insert(at, row)


class LatestRows:
    """The rows of all keys."""

    __slots__ = ("_ahead", "_behind", "_by_key", "_made", "_size")

    def __init__(self) -> None:
        """None at first."""
        self._by_key: dict[Key, _OfKey] = {}
        self._ahead: list[tuple[int, int, Key]] = []
        """Rows that may be later than what is asked for, by time; numbers keep keys from being compared."""
        self._behind: list[tuple[int, int, Key]] = []
        """Rows that are not later, by time."""
        self._size = self._made = 0

    def __len__(self) -> int:
        """How many there are."""
        return self._size

    def __iter__(self) -> Iterator[Row]:
        """All of them."""
        for own in self._by_key.values():
            yield from own.rows

    def add_all(self, rows: Iterable[tuple[int, Key, Row]]) -> None:
        """Keep rows: of each the time, the key and itself."""
        for time, key, row in rows:
            own = self._by_key.get(key)
            if own is None:
                own = self._by_key[key] = _OfKey()
            own.add(time, row)
            heappush(self._ahead, (time, self._made, key))
            self._made += 1
            self._size += 1

    def latest(self, key: Key, until: int, most: int) -> tuple[Sequence[int], Sequence[Row]]:
        """The times and rows of a key up to a time, no more than the `most` latest."""
        own = self._by_key.get(key)
        if own is None:
            return (), ()
        end = bisect_right(own.times, until)
        start = max(end - most, 0)
        return own.times[start:end], own.rows[start:end]

    def give_up(self, since: int, oldest: int, most: int) -> bool:
        """Forget rows that are not among the latest of their key up to `since` or later, or are before `oldest`.

        Says whether there was any.
        """
        before = self._size
        while self._ahead and self._ahead[0][0] <= since:
            passed = heappop(self._ahead)
            heappush(self._behind, passed)
            own = self._by_key.get(passed[2])
            if own is not None:
                self._cut(passed[2], own, bisect_right(own.times, since) - most)
        while self._behind and self._behind[0][0] < oldest:
            gone = heappop(self._behind)
            own = self._by_key.get(gone[2])
            if own is not None:
                self._cut(gone[2], own, bisect_left(own.times, oldest))
        if len(self._behind) > 64 + 2 * self._size:  # rows that were given up as others came after them
            kept = [(time, key) for key, own in self._by_key.items() for time in own.times if time <= since]
            self._behind = [(time, number, key) for number, (time, key) in enumerate(kept)]
            heapify(self._behind)
        return self._size < before

    def _cut(self, key: Key, own: _OfKey, count: int) -> None:
        """Forget the first rows of a key."""
        if count <= 0:
            return
        self._size -= min(count, len(own.times))
        del own.times[:count], own.rows[:count]
        if not own.times:
            del self._by_key[key]
