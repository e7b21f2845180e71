"""A slot of keys: their rows that wait for their turn, and what is kept of each key.

Keys are spread over slots by a hash, each a page, so that what a batch or a bound touches is a few pages, and not one
of all keys. A slot has heaps: rows of all steps but the last, by time; those of the last step; keys by the time from
which on something of theirs can be given up; and keys by the deadlines of sequences that wait for something not to
come. Heaps follow from the rest, but for the rows.
"""

from __future__ import annotations

import zlib
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

    __slots__ = ("context", "watch")

    def __init__(self, context: ContextState | None, watch: Watch | None) -> None:
        """Where every row is a sequence there is no context; where nothing must not come after it, no watch."""
        self.context, self.watch = context, watch

    def forget(self, low: int) -> bool:
        """Give up what is of no use any more; whether nothing is left."""
        if self.context is not None:
            self.context.forget(low)
        if self.watch is not None:
            self.watch.forget(low)
        return (self.context is None or self.context.is_empty()) and (self.watch is None or self.watch.is_empty())


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
        self._number = 0

    def wait(self, port: int, time: int, key: Key, row: Row) -> None:
        """Let a row wait for its turn."""
        heap = self.lasts if port == self.steps.last else self.rows
        heappush(heap, (time, self.steps.turns[port], self._next(), port, key, row))

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

    def visit(self, at: int, key: Key) -> None:
        """Look at a key again when `low` has come so far."""
        heappush(self.visits, (at, self._next(), key))

    def await_deadline(self, at: int, key: Key) -> None:
        """Look at a key again when the deadline has passed."""
        heappush(self.deadlines, (at, self._next(), key))

    def ready(self, cuts: dict[int, int]) -> Iterator[list[Waiting]]:
        """Rows whose turn has come, in order: those of one step and time together, in the order of their columns.

        Of a step they have come if they are not after its cut.
        """
        while True:
            heap = self._first_heap(cuts)
            if heap is None:
                return
            time, turn = heap[0][:2]
            together = [heappop(heap)]
            while heap and heap[0][:2] == (time, turn):
                together.append(heappop(heap))
            if len(together) > 1:
                together.sort(key=lambda each: order_of(each[5]))
            yield together

    def _first_heap(self, cuts: dict[int, int]) -> list[Waiting] | None:
        """The heap with the row whose turn it is, if it has come."""
        if not self.rows or (self.lasts and self.lasts[0][:2] < self.rows[0][:2]):
            heaps = (self.lasts, self.rows)
        else:
            heaps = (self.rows, self.lasts)
        for heap in heaps:
            if heap and heap[0][0] <= cuts[heap[0][3]]:
                return heap
        return None

    def low(self, bound: int) -> int:
        """No row that is to come, or waits, is before this, given what is promised."""
        return min(bound, self.rows[0][0] if self.rows else bound, self.lasts[0][0] if self.lasts else bound)

    def tidy(self, low: int) -> None:
        """Give up what is of no use; drop deadlines that nothing waits for."""
        while self.visits and self.visits[0][0] <= low:
            key = heappop(self.visits)[2]
            kept = self.keys.get(key)
            if kept is not None and kept.forget(low):
                del self.keys[key]
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
        for given, context, watch in data[1]:
            key = tuple(given)
            kept = made.of(key)
            if kept.context is not None:
                kept.context.restore(context)
                made.visits += [(at, made._next(), key) for at in kept.context.wakes()]
            if kept.watch is not None:
                kept.watch = steps.watch(watch)
                made.visits += [(at, made._next(), key) for at in kept.watch.wakes()]
                made.deadlines += [(kept.watch.deadline(c), made._next(), key) for c in kept.watch.chains]
        heapify(made.visits)
        heapify(made.deadlines)
        return made
