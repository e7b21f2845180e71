"""The recent context: each row of the last step with the most recent sequence up to the step before.

It is given the rows of all steps but the last, and asked for the sequence that was the most recent one before a time:
rows of the last step change nothing, so they may ask in any order, as long as all before them is known. As many
*versions* of that sequence are kept as may still be asked for. A row costs a search among them.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from penstock.model.batch import Row
from penstock.operators.patterns.contexts import Chain, ContextState, Shape


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

    def next_wake(self) -> int | None:
        """When the first version can no longer be asked for, or the time of a sequence is over."""
        wakes = []
        if len(self.since) > 1:
            wakes.append(self.since[1] + 1)
        elif self.versions and self.versions[0] is None:
            wakes.append(self.since[0] + 1)
        within = self.shape.within
        if within is not None:
            known = (*self.versions[:1], *self.latest)
            wakes += [chain.first + within + 1 for chain in known if chain is not None]
        return min(wakes, default=None)

    def to_plain(self) -> Any:
        """Rows of sequences, with the times since which they are."""
        versions = [None if chain is None else list(chain.rows) for chain in self.versions]
        return [list(self.since), versions, [None if chain is None else list(chain.rows) for chain in self.latest]]

    def restore(self, data: Any) -> None:
        """The other way."""
        self.since, versions, latest = list(data[0]), data[1], data[2]
        self.versions = [None if rows is None else self.shape.chain(rows) for rows in versions]
        self.latest = [None if rows is None else self.shape.chain(rows) for rows in latest]
