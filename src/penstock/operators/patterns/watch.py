"""Sequences of one key that wait for something not to come, until the longest time since their first row has passed.

A row that comes after the last row of a sequence, and not after its deadline, ends it. Neither sequences nor such rows
need come in any order: times of rows are kept for sequences that are still to come, which end no earlier than `low`.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import Any

from penstock.operators.patterns.contexts import Chain, Shape


class Watch:
    """What is kept of one key."""

    def __init__(self, within: int) -> None:
        """Nothing at first."""
        self.within = within
        self.chains: list[Chain] = []
        self.times: list[int] = []
        """Of rows that must not come, in order."""

    def deadline(self, chain: Chain) -> int:
        """The last time at which such a row ends a sequence."""
        return chain.first + self.within

    def add(self, chain: Chain) -> bool:
        """Whether a sequence waits; not if a row that ends it has come."""
        at = bisect_right(self.times, chain.last)
        if at < len(self.times) and self.times[at] <= self.deadline(chain):
            return False
        self.chains.append(chain)
        return True

    def forbid(self, time: int, low: int) -> None:
        """A row that must not come; no sequence that is to come ends before `low`."""
        self.chains = [each for each in self.chains if not each.last < time <= self.deadline(each)]
        if time > low:
            insort(self.times, time)

    def due(self, bound: int) -> list[Chain]:
        """The sequences that no row before `bound` has ended, and none can end any more."""
        found = [each for each in self.chains if self.deadline(each) < bound]
        if found:
            self.chains = [each for each in self.chains if self.deadline(each) >= bound]
        return found

    def waits_until(self, deadline: int) -> bool:
        """Whether a sequence has that deadline."""
        return any(self.deadline(each) == deadline for each in self.chains)

    def forget(self, low: int) -> None:
        """No sequence that is to come ends before `low`."""
        del self.times[: bisect_right(self.times, low)]

    def is_empty(self) -> bool:
        """Whether it is as if nothing had come."""
        return not self.chains and not self.times

    def next_wake(self) -> int | None:
        """The first value of `low` with which something can be given up; None if there is none."""
        return self.times[0] if self.times else None

    def to_plain(self) -> Any:
        """Rows of sequences, and times."""
        return [[list(chain.rows) for chain in self.chains], list(self.times)]

    @staticmethod
    def from_plain(data: Any, shape: Shape, within: int, *, collected: bool) -> Watch:
        """The other way; of steps whose rows were `collected`, the first has rows in place of one."""
        made = Watch(within)
        for rows in data[0]:
            if collected and len(rows) > 1:
                first, last = rows[0][0][shape.times[0]], rows[-1][shape.times[-1]]
                made.chains.append(Chain(first, last, tuple(tuple(own) for own in rows)))
            else:
                made.chains.append(shape.chain(rows))
        made.times = list(data[1])
        return made
