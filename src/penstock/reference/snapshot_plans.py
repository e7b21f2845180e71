"""Plans over events with lives, and their results by brute force, snapshot by snapshot (GenMig, section 2).

An operator is snapshot-reducible if the snapshot of its result at every instant is what its counterpart of relational
algebra makes of the snapshots of its inputs at that instant (Definition 1). So a plan here is nothing but that: asked
for an instant, it gives a bag of payloads. Relations are bags, joins multiply, and `EXCEPT ALL` is the difference. An
aggregate of nothing is no row. The window operator is the one that looks at other instants: each instant at which a
payload is valid makes it valid for `size` more, so what lives for several instants is there once for each of them.

What it costs is of no account: an instant is looked at as often as it is asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.model.elements import Payload
from penstock.model.tdb import Event

Relation = Counter[Payload]
Streams = Sequence[Sequence[Event]]
"""The events of each input, by its port."""


class SnapshotPlan(ABC):
    """A plan, as a function of the snapshots of its inputs."""

    @abstractmethod
    def at(self, streams: Streams, instant: int) -> Relation:
        """The payloads that are valid at an instant, each as often as it is."""

    @abstractmethod
    def reach(self, port: int) -> int | None:
        """For how many instants after its end an event of an input matters; None if the plan does not read it."""


def _farthest(*reaches: int | None) -> int | None:
    known = [reach for reach in reaches if reach is not None]
    return max(known) if known else None


@dataclass(frozen=True)
class Input(SnapshotPlan):
    """The events of a port."""

    port: int

    def at(self, streams: Streams, instant: int) -> Relation:
        """Those that have begun and not ended."""
        return Counter(payload for payload, vs, ve in streams[self.port] if vs <= instant < ve)

    def reach(self, port: int) -> int | None:
        """No longer than it lives."""
        return 0 if port == self.port else None


@dataclass(frozen=True)
class Window(SnapshotPlan):
    """Every instant lasts for `size` more."""

    input: SnapshotPlan
    size: int

    def at(self, streams: Streams, instant: int) -> Relation:
        """What was there at any of the last instants, once for each."""
        found: Relation = Counter()
        for earlier in range(instant - self.size, instant + 1):
            found.update(self.input.at(streams, earlier))
        return found

    def reach(self, port: int) -> int | None:
        """As much longer; windows above one another add up."""
        below = self.input.reach(port)
        return None if below is None else below + self.size


@dataclass(frozen=True)
class Select(SnapshotPlan):
    """The payloads that have one of some values in a place."""

    input: SnapshotPlan
    place: int
    values: frozenset[object]

    def at(self, streams: Streams, instant: int) -> Relation:
        """Those of the input."""
        below = self.input.at(streams, instant)
        return Counter({payload: n for payload, n in below.items() if payload[self.place] in self.values})

    def reach(self, port: int) -> int | None:
        """As below."""
        return self.input.reach(port)


@dataclass(frozen=True)
class Project(SnapshotPlan):
    """Some places of each payload, in an order."""

    input: SnapshotPlan
    places: tuple[int, ...]

    def at(self, streams: Streams, instant: int) -> Relation:
        """As many as the input has."""
        found: Relation = Counter()
        for payload, n in self.input.at(streams, instant).items():
            found[tuple(payload[place] for place in self.places)] += n
        return found

    def reach(self, port: int) -> int | None:
        """As below."""
        return self.input.reach(port)


@dataclass(frozen=True)
class Union(SnapshotPlan):
    """All payloads of both."""

    left: SnapshotPlan
    right: SnapshotPlan

    def at(self, streams: Streams, instant: int) -> Relation:
        """`UNION ALL`."""
        return self.left.at(streams, instant) + self.right.at(streams, instant)

    def reach(self, port: int) -> int | None:
        """The longer one."""
        return _farthest(self.left.reach(port), self.right.reach(port))


@dataclass(frozen=True)
class Join(SnapshotPlan):
    """The pairs that are equal in pairs of places, of the left and of the right; all pairs if there are none."""

    left: SnapshotPlan
    right: SnapshotPlan
    on: tuple[tuple[int, int], ...]

    def at(self, streams: Streams, instant: int) -> Relation:
        """Every payload of the one beside every payload of the other."""
        found: Relation = Counter()
        others = self.right.at(streams, instant)
        for one, n in self.left.at(streams, instant).items():
            for other, m in others.items():
                if all(one[a] is not None and one[a] == other[b] for a, b in self.on):
                    found[one + other] += n * m
        return found

    def reach(self, port: int) -> int | None:
        """The longer one."""
        return _farthest(self.left.reach(port), self.right.reach(port))


@dataclass(frozen=True)
class Distinct(SnapshotPlan):
    """Every payload once."""

    input: SnapshotPlan

    def at(self, streams: Streams, instant: int) -> Relation:
        """If it is there at all."""
        return Counter(set(self.input.at(streams, instant)))

    def reach(self, port: int) -> int | None:
        """As below."""
        return self.input.reach(port)


@dataclass(frozen=True)
class Count(SnapshotPlan):
    """How many payloads there are of each group, behind the values of the group."""

    input: SnapshotPlan
    by: tuple[int, ...]

    def at(self, streams: Streams, instant: int) -> Relation:
        """No row for a group without any."""
        groups: Counter[Payload] = Counter()
        for payload, n in self.input.at(streams, instant).items():
            groups[tuple(payload[place] for place in self.by)] += n
        return Counter((*group, n) for group, n in groups.items())

    def reach(self, port: int) -> int | None:
        """As below."""
        return self.input.reach(port)


@dataclass(frozen=True)
class Difference(SnapshotPlan):
    """As many of each payload as the left has more than the right."""

    left: SnapshotPlan
    right: SnapshotPlan

    def at(self, streams: Streams, instant: int) -> Relation:
        """`EXCEPT ALL`."""
        return self.left.at(streams, instant) - self.right.at(streams, instant)

    def reach(self, port: int) -> int | None:
        """The longer one."""
        return _farthest(self.left.reach(port), self.right.reach(port))
