"""A slot of keys: their rows that wait for their turn, and what is kept of each key.

Keys are spread over slots by a hash, each a page, so that what a batch or a bound touches is a few pages, and not one
of all keys. A slot has rows in the order in which it will be their turn: those of all steps but the last, and those of
the last step. And it has heaps: of keys by the first time with which something of theirs can be given up, each once;
and of keys by the deadlines of sequences that wait for something not to come. Heaps follow from what is kept.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right, insort
from collections.abc import Iterator
from decimal import Decimal
from heapq import heapify, heappop, heappush
from typing import Any

from penstock.model.batch import Row
from penstock.model.time import END_OF_TIME
from penstock.operators.joins.tie_order import order_of
from penstock.operators.patterns.contexts import ContextState
from penstock.operators.patterns.cumulative import Cumulative
from penstock.operators.patterns.recent import Recent
from penstock.operators.patterns.steps import Steps
from penstock.operators.patterns.waiting import Chronicle, Continuous
from penstock.operators.patterns.watch import Watch

SLOTS = 64
FEW = 8
"""So many new rows are put in one by one."""
_CONTEXTS: dict[str, type[ContextState]] = {
    "recent": Recent, "chronicle": Chronicle, "continuous": Continuous, "cumulative": Cumulative,
}  # fmt: skip
Key = tuple[Any, ...]
Waiting = tuple[int, int, int, int, Key, Row]
"""A time, the turn of the step at that time, a number, the step, the key and the row."""


def slot_of(key: Key) -> int:
    """The slot of a key, in this process and in any other."""
    if not key:
        return 0
    plain = [value.normalize() if isinstance(value, Decimal) else value for value in key]
    return zlib.crc32(repr(plain).encode("utf-8", "surrogatepass")) % SLOTS


class Kept:
    """What is kept of one key."""

    __slots__ = ("context", "wake", "watch")

    def __init__(self, context: ContextState | None, watch: Watch | None) -> None:
        """Where every row is a sequence there is no context; where nothing must not come after it, no watch."""
        self.context, self.watch = context, watch
        self.wake: int | None = None
        """When it will be looked at again."""

    def forget(self, low: int) -> bool:
        """Give up what is of no use any more; whether nothing is left."""
        if self.context is not None:
            self.context.forget(low)
        if self.watch is not None:
            self.watch.forget(low)
        return self.is_empty

    @property
    def is_empty(self) -> bool:
        """Whether it is as if nothing had come."""
        return (self.context is None or self.context.is_empty()) and (self.watch is None or self.watch.is_empty())

    def next_wake(self) -> int | None:
        """The first time with which something can be given up."""
        first = None if self.context is None else self.context.next_wake()
        second = None if self.watch is None else self.watch.next_wake()
        return first if second is None else second if first is None else min(first, second)


class Slot:
    """The keys of one slot."""

    def __init__(self, steps: Steps) -> None:
        """Empty."""
        self.steps = steps
        self.rows: list[Waiting] = []
        self.lasts: list[Waiting] = []
        self.keys: dict[Key, Kept] = {}
        self.visits: list[tuple[int, int, Key]] = []
        self.deadlines: list[tuple[int, int, Key]] = []
        self._new_rows: list[Waiting] = []
        self._new_lasts: list[Waiting] = []
        self._number = 0

    def wait(self, port: int, time: int, key: Key, row: Row) -> None:
        """Let a row wait for its turn, from the next time on that `ready` is asked."""
        new = self._new_lasts if port == self.steps.last else self._new_rows
        self._number += 1
        new.append((time, self.steps.turns[port], self._number, port, key, row))

    def of(self, key: Key) -> Kept:
        """What is kept of a key."""
        found = self.keys.get(key)
        if found is None:
            steps = self.steps
            context = _CONTEXTS[steps.context](steps.shape) if steps.shape.count > 1 else None
            found = self.keys[key] = Kept(context, None if steps.trailing_within is None else self._watch())
        return found

    def _watch(self) -> Watch:
        assert self.steps.trailing_within is not None
        return Watch(self.steps.trailing_within)

    def schedule(self, key: Key, kept: Kept) -> None:
        """Look at a key again when something of it can be given up."""
        wake = kept.next_wake()
        if wake is not None and (kept.wake is None or wake < kept.wake):
            kept.wake = wake
            heappush(self.visits, (wake, self._next(), key))

    def await_deadline(self, at: int, key: Key) -> None:
        """Look at a key again when the deadline has passed."""
        heappush(self.deadlines, (at, self._next(), key))

    def ready(self, cuts: dict[int, int]) -> Iterator[Waiting]:
        """Rows whose turn has come, in order; of a step they have come if they are not after its cut."""
        _merge(self.rows, self._new_rows)
        _merge(self.lasts, self._new_lasts)
        safe = min(cuts.values())
        rows, lasts = _taken(self.rows, safe), _taken(self.lasts, safe)
        yield from _by_columns(sorted(rows + lasts) if rows and lasts else rows or lasts)
        while (first := self._first(cuts)) is not None:  # of the times that only some steps have passed
            time, turn = first[0][:2]
            count = next((n for n, each in enumerate(first) if each[:2] != (time, turn)), len(first))
            together = first[:count]
            del first[:count]
            yield from _by_columns(together)

    def _first(self, cuts: dict[int, int]) -> list[Waiting] | None:
        """Those of the rows, or of the last step, whose turn it is, if it has come."""
        able = [each for each in (self.rows, self.lasts) if each and each[0][0] <= cuts[each[0][3]]]
        return min(able, key=lambda each: each[0][:2], default=None)

    def low(self, bound: int) -> int:
        """No row that is to come, or waits, is before this, given what is promised."""
        return min(bound, self.rows[0][0] if self.rows else bound, self.lasts[0][0] if self.lasts else bound)

    def tidy(self, low: int) -> None:
        """Give up what is of no use; drop deadlines that nothing waits for."""
        while self.visits and self.visits[0][0] <= low:
            at, _, key = heappop(self.visits)
            kept = self.keys.get(key)
            if kept is None or kept.wake != at:
                continue
            kept.wake = None
            if kept.forget(low):
                del self.keys[key]
            else:
                self.schedule(key, kept)
        while self.deadlines and not self._is_awaited(*self.deadlines[0]):
            heappop(self.deadlines)

    def _is_awaited(self, deadline: int, _: int, key: Key) -> bool:
        kept = self.keys.get(key)
        return kept is not None and kept.watch is not None and kept.watch.waits_until(deadline)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept."""
        return not (self.rows or self.lasts or self.keys)

    @property
    def heads(self) -> tuple[int, int, int, int]:
        """The first of each heap: rows, rows of the last step, visits, deadlines."""
        rows, lasts, visits, deadlines = (
            heap[0][0] if heap else END_OF_TIME for heap in (self.rows, self.lasts, self.visits, self.deadlines)
        )
        return rows, lasts, visits, deadlines

    def _next(self) -> int:
        self._number += 1
        return self._number

    def to_plain(self) -> Any:
        """Rows that wait, and what is kept of each key."""
        waiting = [(port, row) for _, _, _, port, _, row in (*self.rows, *self.lasts)]
        kept = [
            (key, None if own.context is None else own.context.to_plain(), own.watch and own.watch.to_plain())
            for key, own in self.keys.items()
        ]
        return [waiting, kept]

    @staticmethod
    def from_plain(data: Any, steps: Steps) -> Slot:
        """The other way; heaps follow."""
        made = Slot(steps)
        for port, row in data[0]:
            own = tuple(row)
            key = steps.key(port, own)
            assert key is not None
            made.wait(port, own[steps.times[port]], key, own)
        _merge(made.rows, made._new_rows)
        _merge(made.lasts, made._new_lasts)
        for given, context, watch in data[1]:
            key = tuple(given)
            kept = made.of(key)
            if kept.context is not None:
                kept.context.restore(context)
            if kept.watch is not None:
                kept.watch = steps.watch(watch)
                made.deadlines += [(kept.watch.deadline(c), made._next(), key) for c in kept.watch.chains]
            made.schedule(key, kept)
        heapify(made.deadlines)
        return made


def _merge(waiting: list[Waiting], new: list[Waiting]) -> None:
    """Put new rows where their turn is."""
    if len(new) > FEW:
        waiting += new
        waiting.sort()
    else:
        for each in new:
            insort(waiting, each)
    new.clear()


def _taken(waiting: list[Waiting], until: int) -> list[Waiting]:
    """Take the rows out that are not after a time."""
    if not waiting or waiting[0][0] > until:
        return []
    count = bisect_right(waiting, until, key=_time)
    found = waiting[:count]
    del waiting[:count]
    return found


def _by_columns(together: list[Waiting]) -> Iterator[Waiting]:
    """Rows in order, those of one step, time and key by their columns."""
    at, end = 0, len(together)
    while at < end:
        first, last = together[at], at + 1
        while last < end and together[last][0] == first[0] and together[last][1] == first[1]:
            last += 1
        tied = together[at:last]
        if last - at > 1 and len({each[4] for each in tied}) < last - at:
            tied.sort(key=lambda each: order_of(each[5]))
        yield from tied
        at = last


def _time(waiting: Waiting) -> int:
    return waiting[0]
