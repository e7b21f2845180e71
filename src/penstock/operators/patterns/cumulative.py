"""The cumulative context: rows are kept, and the last one says which of them take part.

A row takes part if a sequence leads to it and one goes on from it: two passes over the steps, of which each row looks
for its nearest neighbour. A row of the last step costs all rows that are kept, and uses them up if a sequence is found.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

from penstock.model.batch import Row
from penstock.operators.patterns.contexts import Chain, ContextState, Shape


class Cumulative(ContextState):
    """All rows after the last result, by step, and the times of rows that must not come."""

    def __init__(self, shape: Shape) -> None:
        """No rows."""
        super().__init__(shape)
        self.kept: list[list[tuple[int, Row]]] = [[] for _ in range(shape.count - 1)]
        self.forbidden: list[list[int]] = [[] for _ in range(shape.count - 1)]
        self.used: int | None = None
        """The time of the last result: other rows of that time are used up, too, and may be still to come."""

    def take(self, step: int, time: int, row: Row) -> list[Chain]:
        """Keep it; the last step takes all that take part, and uses up all up to its time."""
        if step < len(self.kept):
            if time != self.used:
                self.kept[step].append((time, row))
            return []
        found = self._taking_part(time)
        if found is None:
            return []
        self._drop(time + 1)
        self.used = time
        rows = tuple(tuple(own for _, own in each) for each in found)
        return [Chain(found[0][0][0], time, (*rows, row))]

    def _taking_part(self, time: int) -> list[list[tuple[int, Row]]] | None:
        """Of each step the rows of sequences that a row of that time ends; None if there is no such sequence."""
        reached: list[list[tuple[int, Row]]] = []
        for step, rows in enumerate(self.kept):
            own = rows[: bisect_left(rows, time, key=_time)]
            if not step:
                own = [item for item in own if not self.shape.is_over(item[0], time)]
            else:  # the latest before it is the one that is least likely to have something forbidden after it
                own = [item for item in own if self._follows(reached[-1], item[0], step - 1)]
            if not own:
                return None
            reached.append(own)
        after = [time]  # times of rows of the next step that lead to the end
        for step in reversed(range(len(reached))):
            reached[step] = [item for item in reached[step] if self._leads(item[0], after, step)]
            if not reached[step]:
                return None
            after = [each for each, _ in reached[step]]
        return reached

    def _follows(self, before: list[tuple[int, Row]], time: int, gap: int) -> bool:
        at = bisect_left(before, time, key=_time) - 1
        return at >= 0 and self._is_free(before[at][0], time, gap)

    def _leads(self, time: int, after: list[int], gap: int) -> bool:
        at = bisect_right(after, time)
        return at < len(after) and self._is_free(time, after[at], gap)

    def _is_free(self, first: int, last: int, gap: int) -> bool:
        times = self.forbidden[gap]
        at = bisect_right(times, first)
        return at == len(times) or times[at] >= last

    def _drop(self, low: int) -> None:
        for rows in self.kept:
            del rows[: bisect_left(rows, low, key=_time)]
        for times in self.forbidden:
            del times[: bisect_left(times, low)]

    def forbid(self, gap: int, time: int) -> None:
        """Keep its time."""
        if any(self.kept):
            self.forbidden[gap].append(time)

    def forget(self, low: int) -> None:
        """Rows from before the longest time are of no use."""
        if self.shape.within is not None:
            self._drop(low - self.shape.within)
        if not any(self.kept):
            self.forbidden = [[] for _ in self.forbidden]
        if self.used is not None and self.used < low:
            self.used = None

    def is_empty(self) -> bool:
        """Whether no rows are kept."""
        return self.used is None and not any(self.kept)

    def next_wake(self) -> int | None:
        """When the longest time has passed since a row, or the time of the last result."""
        wakes = [] if self.used is None else [self.used + 1]
        within = self.shape.within
        if within is not None:
            wakes += [rows[0][0] + within + 1 for rows in self.kept if rows]
        return min(wakes, default=None)

    def to_plain(self) -> Any:
        """Rows and times."""
        kept = [[row for _, row in rows] for rows in self.kept]
        return [kept, [list(times) for times in self.forbidden], self.used]

    def restore(self, data: Any) -> None:
        """The other way."""
        kept, forbidden, self.used = data
        self.kept = [[(row[at], tuple(row)) for row in rows] for at, rows in zip(self.shape.times, kept, strict=False)]
        self.forbidden = [list(times) for times in forbidden]


def _time(item: tuple[int, Row]) -> int:
    return item[0]
