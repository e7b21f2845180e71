"""How stale an output is, straight from the definitions (UpStream, sections 3.3 and 5.1).

A log says which rows arrived, which of them were dequeued, and which were delivered, each with its time. Of a key, an
update is *pending* at a time if it has arrived and nothing as new has been answered: dequeued for queue staleness,
delivered for application staleness. Staleness is how long ago the oldest pending update arrived, 0 if none is pending.
So an update that was shed, or overwritten in a queue, keeps its key stale until a newer one of the key is answered.

A row is newer than another of its key if its event time is later, or equal and it arrived later. One that is older than
a row of its key that came before it is no update, since it changes nothing that anybody should see; it is never pending
and answers nothing.

Everything is exact: times are integers, integrals are fractions. Cost: the log's length to the third power.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise


@dataclass(frozen=True)
class Arrival:
    """A row came."""

    key: Hashable
    time: int
    """Event time."""
    at: int
    """When it came."""


@dataclass
class StalenessLog:
    """What happened to the rows of a stream, in the order in which it happened."""

    arrivals: list[Arrival] = field(default_factory=list)
    dequeues: list[tuple[int, int]] = field(default_factory=list)
    """The number of an arrival, and when it was taken."""
    deliveries: list[tuple[int, int]] = field(default_factory=list)
    """The number of an arrival, and when it was delivered."""

    def arrive(self, key: Hashable, time: int, at: int) -> int:
        """Note an arrival; its number."""
        self.arrivals.append(Arrival(key, time, at))
        return len(self.arrivals) - 1

    @property
    def keys(self) -> list[Hashable]:
        """All keys, in the order in which they came."""
        return list(dict.fromkeys(arrival.key for arrival in self.arrivals))

    def updates(self, key: Hashable) -> list[int]:
        """The arrivals of a key that are updates: none before them was newer."""
        found: list[int] = []
        for number, arrival in enumerate(self.arrivals):
            if arrival.key == key and not any(self.arrivals[n].time > arrival.time for n in found):
                found.append(number)
        return found

    def pending(self, key: Hashable, answers: Sequence[tuple[int, int]], at: int) -> list[int]:
        """The updates of a key that have arrived by a time and nothing as new has been answered by then."""
        updates = self.updates(key)
        newest = max([(self.arrivals[n].time, n) for n, when in answers if when <= at and n in updates], default=None)
        return [
            number
            for number in updates
            if self.arrivals[number].at <= at and (newest is None or (self.arrivals[number].time, number) > newest)
        ]


def staleness_at(log: StalenessLog, key: Hashable, answers: Sequence[tuple[int, int]], at: int) -> int:
    """How stale a key is at a time, after all that happens then: `s_i(t)` of section 3.3."""
    waiting = [log.arrivals[number].at for number in log.pending(key, answers, at)]
    return at - min(waiting) if waiting else 0


def staleness_integral(
    log: StalenessLog, key: Hashable, answers: Sequence[tuple[int, int]], start: int, end: int
) -> Fraction:
    """The integral of a key's staleness over time: between two things that happen it is 0, or rises as time does."""
    area = Fraction(0)
    for low, high in _stretches(log, answers, start, end):
        if log.pending(key, answers, low):
            at_low = staleness_at(log, key, answers, low)
            area += Fraction((at_low + at_low + high - low) * (high - low), 2)
    return area


def unapplied_integral(
    log: StalenessLog, key: Hashable, answers: Sequence[tuple[int, int]], start: int, end: int
) -> Fraction:
    """The integral over time of how many updates of a key are pending."""
    stretches = _stretches(log, answers, start, end)
    return Fraction(sum(len(log.pending(key, answers, low)) * (high - low) for low, high in stretches))


def average_over_keys(integrals: Iterable[Fraction], start: int, end: int) -> Fraction:
    """The average over all keys of averages over time; 0 if no time has passed."""
    found = list(integrals)
    return sum(found, Fraction(0)) / (len(found) * (end - start)) if found and end > start else Fraction(0)


def _stretches(log: StalenessLog, answers: Sequence[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """The times between which nothing happens."""
    happened = {arrival.at for arrival in log.arrivals} | {when for _, when in answers}
    return list(pairwise(sorted({start, end} | {at for at in happened if start < at < end})))
