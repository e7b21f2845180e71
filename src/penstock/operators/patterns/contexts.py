"""The contexts of a pattern: which sequences of one key wait for which step, and what a row makes of them.

A context is given the rows of its key in order of time; of one time, those of later steps first and those that must
not come last, so that no row meets another of its own time. Steps are counted from 0 among those that come; `gap` n is
between step n and the next one.

`Recent` is given the rows of all steps but the last, and asked for the sequence that was the most recent one before a
time: rows of the last step change nothing, so they may be asked for in any order, as long as all before them is known.
It keeps as many *versions* of that sequence as may still be asked for. `Chronicle` and `Continuous` keep sequences by
the number of their rows, in order. `Cumulative` keeps rows, and finds out at the end which of them take part.

A row costs what it changes; of `Cumulative`, the last row all that were kept. `low` is a time before which no row comes
any more; sequences that began more than `within` before it are given up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from penstock.model.batch import Row


class Chain(NamedTuple):
    """A sequence: the times of its first and its last row, and the rows.

    Of a step whose rows are collected it has all of them in place of one.
    """

    first: int
    last: int
    rows: tuple[Any, ...]


class Shape(NamedTuple):
    """What contexts know of their pattern: how many steps come, and the places of the times in their rows."""

    times: tuple[int, ...]
    within: int | None

    @property
    def count(self) -> int:
        """How many steps come."""
        return len(self.times)

    def is_over(self, first: int, time: int) -> bool:
        """Whether a row of a time is too late for what began with another."""
        return self.within is not None and time - first > self.within

    def chain(self, rows: Iterable[Row]) -> Chain:
        """A sequence of these rows."""
        made = tuple(tuple(row) for row in rows)
        return Chain(made[0][self.times[0]], made[-1][self.times[len(made) - 1]], made)


class ContextState(ABC):
    """What is kept of one key."""

    def __init__(self, shape: Shape) -> None:
        """Nothing at first."""
        self.shape = shape

    @abstractmethod
    def take(self, step: int, time: int, row: Row) -> list[Chain]:
        """A row of a step; the sequences that it completes."""

    @abstractmethod
    def forbid(self, gap: int, time: int) -> None:
        """A row of a step that must not come between two others."""

    @abstractmethod
    def forget(self, low: int) -> None:
        """No row before `low` comes any more, of whatever step."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether it is as if nothing had come."""

    @abstractmethod
    def wakes(self) -> Iterable[int]:
        """Values of `low` from which on something can be given up."""

    @abstractmethod
    def to_plain(self) -> Any:
        """As plain data."""

    @abstractmethod
    def restore(self, data: Any) -> None:
        """The other way."""


class Recent(ContextState):
    """The most recent sequence up to each step; of the step before the last, by the times since which it is."""

    def __init__(self, shape: Shape) -> None:
        """No sequence."""
        super().__init__(shape)
        self.latest: list[Chain | None] = [None] * (shape.count - 2)
        self.since: list[int] = []
        self.versions: list[Chain | None] = []

    def take(self, step: int, time: int, row: Row) -> list[Chain]:
        """It is the most recent of its step, if there is a sequence that it can follow."""
        if step == self.shape.count - 1:
            found = self.before(time)
            return [] if found is None else [Chain(found.first, time, (*found.rows, row))]
        if not step:
            self._set(step, time, Chain(time, time, (row,)))
            return []
        known = self.latest[step - 1]
        if known is not None and not self.shape.is_over(known.first, time):
            self._set(step, time, Chain(known.first, time, (*known.rows, row)))
        return []

    def before(self, time: int) -> Chain | None:
        """The most recent sequence up to the step before the last, as of just before a time."""
        at = bisect_left(self.since, time) - 1
        found = self.versions[at] if at >= 0 else None
        return None if found is None or self.shape.is_over(found.first, time) else found

    def forbid(self, gap: int, time: int) -> None:
        """What waits for the next step waits no longer."""
        known = self.latest[gap] if gap < len(self.latest) else self.versions[-1] if self.versions else None
        if known is not None and known.last < time:
            self._set(gap, time, None)

    def _set(self, step: int, time: int, chain: Chain | None) -> None:
        if step < len(self.latest):
            self.latest[step] = chain
        elif self.since and self.since[-1] == time:
            self.versions[-1] = chain
        else:
            self.since.append(time)
            self.versions.append(chain)

    def forget(self, low: int) -> None:
        """Keep the version that a row of that time may ask for, and those after it."""
        keep = max(bisect_left(self.since, low) - 1, 0)
        if keep < len(self.versions) and self.since[keep] < low and self._is_gone(self.versions[keep], low):
            keep += 1
        del self.since[:keep], self.versions[:keep]
        self.latest = [None if self._is_gone(chain, low) else chain for chain in self.latest]

    def _is_gone(self, chain: Chain | None, low: int) -> bool:
        return chain is None or self.shape.is_over(chain.first, low)

    def is_empty(self) -> bool:
        """Whether there is no sequence."""
        return not self.versions and not any(self.latest)

    def wakes(self) -> Iterable[int]:
        """When the second version, or its first row, has passed."""
        yield from (time + 1 for time in self.since[1:])
        within = self.shape.within
        if self.versions and self.versions[0] is None:
            yield self.since[0] + 1
        if within is not None:
            yield from (chain.first + within + 1 for chain in (*self.versions, *self.latest) if chain is not None)

    def to_plain(self) -> Any:
        """Rows of sequences, with the times since which they are."""
        versions = [None if chain is None else list(chain.rows) for chain in self.versions]
        return [list(self.since), versions, [None if chain is None else list(chain.rows) for chain in self.latest]]

    def restore(self, data: Any) -> None:
        """The other way."""
        self.since, versions, latest = list(data[0]), data[1], data[2]
        self.versions = [None if rows is None else self.shape.chain(rows) for rows in versions]
        self.latest = [None if rows is None else self.shape.chain(rows) for rows in latest]


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

    def wakes(self) -> Iterable[int]:
        """When the bound on the time of a sequence has passed."""
        within = self.shape.within
        if within is not None:
            yield from (chain.first + within + 1 for queue in self.waiting for chain in queue)

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


class Cumulative(ContextState):
    """All rows since the last result, by step, and the times of rows that must not come."""

    def __init__(self, shape: Shape) -> None:
        """No rows."""
        super().__init__(shape)
        self.kept: list[list[tuple[int, Row]]] = [[] for _ in range(shape.count - 1)]
        self.forbidden: list[list[int]] = [[] for _ in range(shape.count - 1)]

    def take(self, step: int, time: int, row: Row) -> list[Chain]:
        """Keep it; the last step takes all that take part, and uses up all before it."""
        if step < len(self.kept):
            self.kept[step].append((time, row))
            return []
        found = self._taking_part(time)
        if found is None:
            return []
        self._drop(time)
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

    def is_empty(self) -> bool:
        """Whether no rows are kept."""
        return not any(self.kept)

    def wakes(self) -> Iterable[int]:
        """When the longest time has passed since a row."""
        within = self.shape.within
        if within is not None:
            yield from (time + within + 1 for rows in self.kept for time, _ in rows)

    def to_plain(self) -> Any:
        """Rows and times."""
        return [[[row for _, row in rows] for rows in self.kept], [list(times) for times in self.forbidden]]

    def restore(self, data: Any) -> None:
        """The other way."""
        kept, forbidden = data
        self.kept = [
            [(row[at], tuple(row)) for row in rows] for at, rows in zip(self.shape.times, kept, strict=False)
        ]
        self.forbidden = [list(times) for times in forbidden]


def _time(item: tuple[int, Row]) -> int:
    return item[0]


CONTEXT_STATES: dict[str, type[ContextState]] = {
    "recent": Recent, "chronicle": Chronicle, "continuous": Continuous, "cumulative": Cumulative,
}  # fmt: skip
