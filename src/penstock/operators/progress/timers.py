"""The tracker of `timer()`: rows are noted, and what they have reached is said when the timer fires (`model.timer`).

State: the greatest time, what was said, and the number of the period in which it was said last, or None. Summary: the
greatest time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.model.time import MIN_TICK, earlier
from penstock.operators.progress.marks import Marks

State = tuple[int, int, int | None]
_START: State = (MIN_TICK, MIN_TICK, None)


@dataclass(frozen=True)
class TimerTracker:
    """What was said last, and what will be."""

    period: int
    disorder: int = 0

    def fire(self, state: State | None, now: int) -> State | None:
        """It is `now`: what the rows have reached is said, if that is due."""
        greatest, said, fired = state if state is not None else _START
        number = now // self.period
        if fired is not None and number <= fired:
            return state
        reached = said if greatest == MIN_TICK else max(said, earlier(greatest, self.disorder))
        return greatest, reached, number

    def due(self, state: State | None) -> int | None:
        """The last time at which a firing would say no more than was said; None if it would not at any time."""
        greatest, said, fired = state if state is not None else _START
        if greatest == MIN_TICK or earlier(greatest, self.disorder) <= said:
            return None
        return 0 if fired is None else (fired + 1) * self.period - 1

    def summarise(self, times: np.ndarray, marks: Marks) -> int:
        """The greatest time."""
        return int(times.max()) if len(times) else MIN_TICK

    def join(self, left: int, right: int) -> int:
        """The greater."""
        return max(left, right)

    def advance(self, state: State | None, summary: int) -> State:
        """Noted, and not said yet."""
        greatest, said, fired = state if state is not None else _START
        return max(greatest, summary), said, fired

    def bound(self, state: State | None) -> int:
        """As said."""
        return MIN_TICK if state is None else state[1]

    def observe(self, state: State | None, time: int, mark: Any) -> State:
        """Noted, and not said yet."""
        return self.advance(state, time)

    def by_row(
        self, state: State | None, times: np.ndarray, marks: Marks, *, loosely: bool = False
    ) -> tuple[np.ndarray, State]:
        """The bound stays."""
        return np.full(len(times), self.bound(state), np.int64), self.advance(state, self.summarise(times, marks))
