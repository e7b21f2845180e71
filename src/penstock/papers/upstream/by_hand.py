"""The running graph with a clock that is given: fed and released by hand, so that nothing depends on the machine.

Rows are pushed when they are due, a row at a time is released, and whatever costs time moves the clock on: a function
of the query, or whoever takes the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.model.batch import Batch, Row

COST = 1000
"""Microseconds that a row takes."""


class ByHand:
    """An execution and its clock, in microseconds."""

    def __init__(self, stream: str) -> None:
        """Rows come into one stream."""
        self.stream = stream
        self.now = 0
        self.out: list[tuple[int, Row]] = []
        """What came out, with when whoever took it was through."""

    def works(self, *_: object) -> None:
        """A row is worked on."""
        self.now += COST

    def play(self, execution: Any, times: Sequence[int], rows: Sequence[Row], took: Callable[[], None] | None) -> None:
        """Let rows come at their times, and whatever can go on go on, until the last has come; then all of it.

        `took` is called for every row that comes out, where it is that which takes time.
        """
        execution.clock = lambda: self.now
        push, at = execution.pusher(self.stream), 0
        while at < len(times):
            while at < len(times) and times[at] <= self.now:
                push(rows[at])
                at += 1
            before = self.now
            is_idle = not self._taken(execution.release(1), took)
            if is_idle and self.now == before and at < len(times):
                self.now = self._next(times[at])
        self._taken(execution.close(), took)

    def _next(self, due: int) -> int:
        """When something may happen next: a row comes, or one that sleeps may wake."""
        return min(due, self.now + COST // 4) if due > self.now else due

    def _taken(self, items: Sequence[Any], took: Callable[[], None] | None) -> int:
        count = 0
        for item in items:
            batch = item[1] if isinstance(item, tuple) else item
            if isinstance(batch, Batch):
                for row in batch.rows:
                    if took is not None:
                        took()
                    self.out.append((self.now, row))
                    count += 1
        return count
