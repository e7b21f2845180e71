"""The two-tier index of R3: events by start and payload, and for each the end that every input gives it (in2t).

The second tier is kept small: most replicas agree, so a node holds one end, the set of inputs that gave it as the bits
of an integer, and a table for those that differ, if there are any. A payload is held once, whatever the number of
inputs; payloads that differ in the last bits of floats are one (`model.likeness`).

The tree of the paper serves to find the events that a bound freezes. Here a node waits in a calendar, for its start at
first and then for the next of its ends, so that a bound visits the events that it freezes and not all that are half
frozen. A node waits for one time; entries that it no longer waits for are swept out when they are the greater part.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, Protocol, TypeVar

from penstock.model.elements import Payload
from penstock.model.likeness import Likeness
from penstock.model.time import END_OF_TIME
from penstock.operators.merge.base import Input

Key = tuple[int, Payload]
SPARE = 64
"""So many entries that nobody waits for are left alone."""


class Placeable(Protocol):
    """What an index holds: something of a payload and a start, that waits for a time."""

    due: int | None

    @property
    def payload(self) -> Payload:
        """The payload."""

    @property
    def vs(self) -> int:
        """The start."""


N = TypeVar("N", bound=Placeable)


class IndexNode:
    """An event with the ends that the inputs give it, and the end it has in the output."""

    __slots__ = ("bits", "due", "end", "first_seen", "others", "out", "payload", "vs")

    def __init__(self, payload: Payload, vs: int, end: int, bits: int, first_seen: int) -> None:
        """`end` is that of the input that brought it."""
        self.payload, self.vs, self.end, self.bits, self.first_seen = payload, vs, end, bits, first_seen
        self.others: dict[int, int] | None = None
        self.out: int | None = None
        self.due: int | None = None

    def end_of(self, each: Input) -> int | None:
        """The end that an input gives the event; None if the input does not have it."""
        if not self.bits & each.bit:
            return None
        if self.others is not None:
            return self.others.get(each.number, self.end)
        return self.end

    def said_by(self, each: Input) -> list[int]:
        """The ends that an input gives: one or none."""
        end = self.end_of(each)
        return [] if end is None else [end]

    def next_end(self, bound: int) -> int:
        """The least end that an input or the output gives the event and that is not before a bound, or the bound."""
        end = self.end
        if self.others is None and (self.out is None or self.out == end):
            return end if end >= bound else bound
        ends = [end, *(() if self.out is None else (self.out,)), *(self.others or {}).values()]
        return min([e for e in ends if e >= bound], default=bound)

    def set_end(self, each: Input, end: int | None) -> None:
        """An input gives the event an end, or takes it back."""
        others = self.others
        if end is None:
            self.bits &= ~each.bit
            if others is not None:
                others.pop(each.number, None)
        else:
            self.bits |= each.bit
            if end != self.end:
                if others is None:
                    others = self.others = {}
                others[each.number] = end
                if len(others) == self.bits.bit_count():  # nobody has the end that was common: this one is, from now on
                    self.end = end
                    self.others = others = {n: e for n, e in others.items() if e != end}
            elif others is not None:
                others.pop(each.number, None)
        if others is not None and not others:
            self.others = None


class Days(Generic[N]):
    """Things by a time, taken out in order of it."""

    def __init__(self) -> None:
        """Start empty."""
        self._days: dict[int, list[N]] = {}
        self._times: list[int] = []

    def add(self, time: int, node: N) -> None:
        """Something for a time."""
        day = self._days.get(time)
        if day is None:
            self._days[time] = [node]
            heappush(self._times, time)
        else:
            day.append(node)

    def take(self, bound: int) -> list[N]:
        """What lies before a bound; the end of time passes all."""
        times = self._times
        taken: list[N] = []
        while times and (times[0] < bound or bound == END_OF_TIME):
            taken += self._days.pop(heappop(times))
        return taken

    def first(self) -> int | None:
        """The least time for which there is something, be it still of interest or not."""
        return self._times[0] if self._times else None


class Calendar(Days[N]):
    """Nodes that wait for a bound to pass a time, each for one.

    A node that comes to wait for another time leaves its entry behind. Of the entries that a node has in a day only the
    last counts, so that the order in which nodes are taken does not depend on what was left behind and swept, or is not
    in a snapshot.
    """

    def __init__(self) -> None:
        """Start empty."""
        super().__init__()
        self.entries = 0
        self.living = 0

    def wait(self, time: int, node: N) -> None:
        """A node waits for a time to be passed, unless it is to be looked at before that anyway."""
        if node.due is None:
            self.living += 1
        elif node.due <= time:
            return
        node.due = time
        self.add(time, node)
        self.entries += 1
        if self.entries > 2 * self.living + SPARE:
            self._sweep()

    def enter(self, time: int, node: N) -> None:
        """A node that has not waited yet waits for a time."""
        node.due = time
        self.living += 1
        self.entries += 1
        day = self._days.get(time)
        if day is None:
            self._days[time] = [node]
            heappush(self._times, time)
        else:
            day.append(node)

    def forget(self, node: N) -> None:
        """A node waits no more."""
        if node.due is not None:
            node.due = None
            self.living -= 1

    def take(self, bound: int) -> list[N]:
        """The nodes whose time lies before a bound; they wait no more."""
        times = self._times
        taken: list[N] = []
        while times and (times[0] < bound or bound == END_OF_TIME):
            time = heappop(times)
            day = self._days.pop(time)
            self.entries -= len(day)
            first = len(taken)
            for node in reversed(day):
                if node.due == time:
                    node.due = None
                    taken.append(node)
            if len(taken) > first + 1:
                taken[first:] = reversed(taken[first:])
        self.living -= len(taken)
        return taken

    def starting(self, bound: int) -> Iterator[N]:
        """The nodes before a bound that wait for their start to be passed, or for a verdict on it."""
        for time in self._times:
            if time < bound or bound == END_OF_TIME:
                yield from (node for node in dict.fromkeys(self._days[time]) if node.due == time == node.vs)

    def waiting(self) -> Iterator[N]:
        """Every node that waits, in the order in which they would be taken."""
        for time, day in sorted(self._days.items()):
            last = [node for node in dict.fromkeys(reversed(day)) if node.due == time]
            yield from reversed(last)

    def _sweep(self) -> None:
        """Leave only what is waited for."""
        days: dict[int, list[N]] = {}
        for node in list(self.waiting()):
            assert node.due is not None
            days.setdefault(node.due, []).append(node)
        self._days, self._times = days, list(days)
        heapify(self._times)
        self.entries = self.living = sum(map(len, days.values()))


class Holds(Generic[N]):
    """Nodes that hold the output's bound at their starts, until they are let go."""

    def __init__(self) -> None:
        """Start empty."""
        self._held: dict[int, set[N]] = {}
        self._starts: list[int] = []

    def add(self, node: N) -> None:
        """A node holds the bound; again is no more than once."""
        held = self._held.get(node.vs)
        if held is None:
            self._held[node.vs] = {node}
            heappush(self._starts, node.vs)
        else:
            held.add(node)

    def discard(self, node: N) -> None:
        """A node lets go."""
        held = self._held.get(node.vs)
        if held is not None:
            held.discard(node)

    def oldest(self) -> int | None:
        """The least start of a node that holds the bound."""
        while self._starts and not self._held[self._starts[0]]:
            del self._held[heappop(self._starts)]
        return self._starts[0] if self._starts else None

    def __iter__(self) -> Iterator[N]:
        """Every node that holds the bound."""
        return (node for held in self._held.values() for node in held)


class Index(Generic[N]):
    """The living events of all inputs, and what each of them waits for."""

    def __init__(self) -> None:
        """Start empty."""
        self.nodes: dict[Key, N] = {}
        self.due: Calendar[N] = Calendar()
        self.likeness = Likeness()

    def find(self, vs: int, payload: Payload) -> N | None:
        """The event of a start and a payload, or of one like it."""
        found = self.nodes.get((vs, payload))
        if found is None and self.likeness.known:
            return self.nodes.get((vs, self.likeness.find(vs, payload)))
        return found

    def add(self, node: N) -> None:
        """A new event; nothing can happen to it before its start is passed."""
        self.nodes[node.vs, node.payload] = node
        self.likeness.add(node.vs, node.payload)
        self.due.enter(node.vs, node)

    def remove(self, node: N) -> None:
        """An event that is done with."""
        self.nodes.pop((node.vs, node.payload), None)
        if self.likeness.known:
            self.likeness.discard(node.vs, node.payload)
        if node.due is not None:
            self.due.forget(node)

    def lives(self, node: N) -> bool:
        """Whether a node is still in the index."""
        return self.nodes.get((node.vs, node.payload)) is node
