"""The steps of a pattern, as an operator sees them: which port is which, whose turn it is, and what bounds allow.

At one time rows take turns: those of the last step first, then those of the step before, and so on, and those that must
not come between two steps last. So no row meets another of its own time. The *cut* of a step is the last time of which
its rows may take their turn: all that can still come must come after that. A step that has its turn earlier must have
promised to be past that time, one that has its turn later only to be past all before it.

In the recent context rows of the last step change nothing, so they wait for the other steps' promises alone, and no
step waits for theirs. Rows that must not come after the last step have no turn: whoever watches for them takes them as
they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.model.batch import Row
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.model.values import canonical_row
from penstock.operators.patterns.contexts import Shape
from penstock.operators.patterns.watch import Watch


@dataclass(frozen=True)
class Step:
    """One step: its rows, the columns that are its keys, and whether it must not come."""

    schema: Schema
    keys: tuple[int, ...]
    negated: bool


class Steps:
    """All steps of a pattern."""

    def __init__(self, steps: Sequence[Step], context: str, within: int | None, groups: Sequence[bool]) -> None:
        """`groups` says of each key whether null is a value like any other."""
        self.steps, self.context, self.within = tuple(steps), context, within
        self.nullable = tuple(groups)
        self.times = tuple(step.schema.time_index for step in steps)
        coming = [port for port, step in enumerate(steps) if not step.negated]
        self.last = coming[-1]
        self.places = {port: at for at, port in enumerate(coming)}
        """Which of the steps that come a port is."""
        self.gaps = {port: sum(each < port for each in coming) - 1 for port in range(len(steps)) if steps[port].negated}
        """After which of them a port must not come."""
        self.trailing = frozenset(port for port in self.gaps if port > self.last)
        self.shape = Shape(tuple(self.times[port] for port in coming), within)
        self.trailing_within = within if self.trailing else None
        self.order = (*reversed(coming), *(port for port in self.gaps if port not in self.trailing))
        self.turns = {port: turn for turn, port in enumerate(self.order)}
        self._null_free = not all(groups)

    @property
    def is_recent(self) -> bool:
        """Whether rows of the last step change nothing."""
        return self.context == "recent"

    @property
    def is_single(self) -> bool:
        """Whether each row of the one step that comes is a sequence."""
        return self.shape.count == 1

    def key(self, port: int, row: Row) -> tuple[Any, ...] | None:
        """What must be equal; None if something of it equals nothing."""
        values = tuple([row[at] for at in self.steps[port].keys])
        if self._null_free and None in values:
            unequal = [value is None and not able for value, able in zip(values, self.nullable, strict=True)]
            if any(unequal):
                return None
        return canonical_row(values)

    def cuts(self, bounds: Sequence[int]) -> dict[int, int]:
        """Of each port whose rows take turns, the last time of which they may."""
        known = {port: bounds[port] if bounds[port] < END_OF_TIME else END_OF_TIME + 1 for port in self.order}
        if self.is_recent:
            others = [port for port in self.order if port != self.last]
            cuts = self._cuts(others, known)
            cuts[self.last] = min((known[port] for port in others), default=END_OF_TIME)
            return cuts
        return self._cuts(self.order, known)

    @staticmethod
    def _cuts(order: Sequence[int], known: dict[int, int]) -> dict[int, int]:
        cuts: dict[int, int] = {}
        for at, port in enumerate(order):
            earlier = min(known[each] for each in order[: at + 1]) - 1
            cuts[port] = min([earlier, *(known[each] for each in order[at + 1 :])])
        return cuts

    def low(self, bounds: Sequence[int]) -> int:
        """No row that takes a turn and is still to come is before this."""
        return min(bounds[port] for port in self.order)

    def trailing_bound(self, bounds: Sequence[int]) -> int:
        """No row that must not come after the last step, and is still to come, is before this."""
        return min((bounds[port] for port in self.trailing), default=END_OF_TIME)

    def watch(self, data: Any) -> Watch:
        """What was kept of sequences that wait for something not to come."""
        assert self.trailing_within is not None
        return Watch.from_plain(data, self.shape, self.trailing_within, collected=self.context == "cumulative")
