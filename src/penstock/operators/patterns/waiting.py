"""The chronicle and the continuous context: sequences wait for their next step, by the number of their rows, in order.

In the chronicle context a row goes on with the one that has waited longest, and nothing else does; in the continuous
one with all that wait. Those that began first wait first, so all that is given up is at the front. A row costs the
sequences that it goes on with.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from penstock.model.batch import Row
from penstock.operators.patterns.contexts import Chain, ContextState, Shape


class Chronicle(ContextState):
    """Sequences that wait, by the number of their rows, in order; each row goes on with the first of them."""

    def __init__(self, shape: Shape) -> None:
        """No sequence."""
        super().__init__(shape)
        self.waiting: list[deque[Chain]] = [deque() for _ in range(shape.count - 1)]

    def take(self, step: int, time: int, row: Row) -> list[Chain]:
        """The sequences that a row goes on with wait for the next step, or are complete."""
        if not step:
            self.waiting[0].append(Chain(time, time, (row,)))
            return []
        made = [Chain(chain.first, time, (*chain.rows, row)) for chain in self._followed(step, time)]
        if step == self.shape.count - 1:
            return made
        self.waiting[step].extend(made)
        return []

    def _followed(self, step: int, time: int) -> list[Chain]:
        """The sequences that a row follows, which wait no longer: the first."""
        queue = self.waiting[step - 1]
        while queue and queue[0].last < time:
            chain = queue.popleft()
            if not self.shape.is_over(chain.first, time):
                return [chain]
        return []

    def forbid(self, gap: int, time: int) -> None:
        """What waits for the next step waits no longer."""
        queue = self.waiting[gap]
        while queue and queue[0].last < time:
            queue.popleft()

    def forget(self, low: int) -> None:
        """Those that began too long ago are the first ones, since rows go on with sequences in order."""
        for queue in self.waiting:
            while queue and self.shape.is_over(queue[0].first, low):
                queue.popleft()

    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not any(self.waiting)

    def next_wake(self) -> int | None:
        """When the time of a sequence is over."""
        within = self.shape.within
        if within is None:
            return None
        return min((queue[0].first + within + 1 for queue in self.waiting if queue), default=None)

    def to_plain(self) -> Any:
        """Rows of sequences."""
        return [[list(chain.rows) for chain in queue] for queue in self.waiting]

    def restore(self, data: Any) -> None:
        """The other way."""
        self.waiting = [deque(self.shape.chain(rows) for rows in queue) for queue in data]


class Continuous(Chronicle):
    """As `Chronicle`, but a row goes on with all sequences that wait for it."""

    def _followed(self, step: int, time: int) -> list[Chain]:
        found = []
        queue = self.waiting[step - 1]
        while queue and queue[0].last < time:
            found.append(queue.popleft())
        return [chain for chain in found if not self.shape.is_over(chain.first, time)]
