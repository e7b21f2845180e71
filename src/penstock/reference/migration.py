"""What replacing a running plan must come to (GenMig, sections 2.1 and 4.1), by brute force.

A migration is told by its two plans, the split time T, and what arrived, the first `activation` of which before the new
plan was there. Its output has the snapshots of the old plan at every instant before T, and those of the new plan from T
on, each over everything that arrived before or after. The two need not be equivalent.

That is possible for a new plan that sees only what comes after it if nothing that came before matters from T on. From
when on that is so is a property of the arrivals, `first_split`; whoever chooses T must not choose an earlier one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from penstock.model.elements import Payload
from penstock.model.snapshots import snapshot_at
from penstock.model.tdb import TDB, Event
from penstock.reference.snapshot_plans import Relation, SnapshotPlan, Streams

Arrival = tuple[int, Event]
"""A port and what came there."""


@dataclass(frozen=True)
class Unlike:
    """An instant at which a snapshot is not what it must be."""

    instant: int
    missing: Counter[Payload]
    extra: Counter[Payload]


def instants(*events: Iterable[Event], reach: int = 0) -> range:
    """All instants at which anything of these can be seen, if it matters for `reach` instants longer, and one more."""
    every = [event for some in events for event in some]
    if not every:
        return range(0)
    return range(min(vs for _, vs, _ in every), max(ve for _, _, ve in every) + reach + 1)


def unlike(expected: Callable[[int], Relation], got: TDB, within: Iterable[int]) -> list[Unlike]:
    """Where a stream's snapshots are not those that are expected."""
    found: list[Unlike] = []
    for instant in within:
        due, there = expected(instant), snapshot_at(got, instant)
        if due != there:
            found.append(Unlike(instant, due - there, there - due))
    return found


def are_snapshot_equivalent(left: TDB, right: TDB) -> bool:
    """Definition 2, instant by instant."""
    return not unlike(lambda instant: snapshot_at(left, instant), right, instants(left, right))


@dataclass(frozen=True)
class Migration:
    """A plan was replaced by another one while it ran."""

    old: SnapshotPlan
    new: SnapshotPlan
    split: int
    activation: int
    """How much had arrived when the new plan was put beside the old one."""
    arrivals: Sequence[Arrival]
    ports: int

    def at(self, instant: int) -> Relation:
        """What must be valid at an instant."""
        plan = self.old if instant < self.split else self.new
        return plan.at(self._streams(self.arrivals), instant)

    def instants(self) -> range:
        """All that anything can be seen at."""
        reaches = [plan.reach(port) or 0 for plan in (self.old, self.new) for port in range(self.ports)]
        return instants([event for _, event in self.arrivals], reach=max(reaches, default=0))

    def first_split(self) -> int | None:
        """The first instant from which on nothing matters to the new plan that came before it; None if any will do."""
        every, later = self._streams(self.arrivals), self._streams(self.arrivals[self.activation :])
        told = [t for t in self.instants() if self.new.at(every, t) != self.new.at(later, t)]
        return told[-1] + 1 if told else None

    def is_possible(self) -> bool:
        """Whether the split is late enough for a new plan that has seen nothing of what came before."""
        first = self.first_split()
        return first is None or self.split >= first

    def unlike(self, got: TDB) -> list[Unlike]:
        """Where an output is not what it must be."""
        return unlike(self.at, got, self.instants())

    def _streams(self, arrivals: Sequence[Arrival]) -> Streams:
        return [[event for port, event in arrivals if port == own] for own in range(self.ports)]
