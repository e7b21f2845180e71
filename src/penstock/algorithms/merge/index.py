"""The two-tier index of R3: events by start and payload, and for each the end that every input gives it (in2t).

The second tier is kept small: most replicas agree, so a node holds one end, the set of inputs that gave it as the bits
of an integer, and a table for those that differ, if there are any. A payload is held once, whatever the number of
inputs.

The tree of the paper serves to find the events that a bound freezes. Here a node waits in a calendar, for its start at
first and then for the next of its ends, so that a bound visits the events that it freezes and not all that are half
frozen.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar

from penstock.algorithms.merge.base import Input
from penstock.model.elements import Payload
from penstock.model.time import END_OF_TIME

Key = tuple[int, Payload]


class Placed(Protocol):
    """What an index holds: something of a payload and a start."""

    @property
    def payload(self) -> Payload:
        """The payload."""

    @property
    def vs(self) -> int:
        """The start."""


N = TypeVar("N", bound=Placed)


class Node:
    """An event with the ends that the inputs give it, and the end it has in the output."""

    __slots__ = ("bits", "end", "first_seen", "others", "out", "payload", "vs")

    def __init__(self, payload: Payload, vs: int, end: int, bits: int, first_seen: int) -> None:
        """`end` is that of the input that brought it."""
        self.payload, self.vs, self.end, self.bits, self.first_seen = payload, vs, end, bits, first_seen
        self.others: dict[int, int] | None = None
        self.out: int | None = None

    def end_of(self, each: Input) -> int | None:
        """The end that an input gives the event; None if the input does not have it."""
        if not self.bits & each.bit:
            return None
        if self.others is not None:
            return self.others.get(each.number, self.end)
        return self.end

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


class Calendar(Generic[N]):
    """Nodes that wait for a bound to pass a time."""

    def __init__(self) -> None:
        """Start empty."""
        self._days: dict[int, list[N]] = {}
        self._times: list[int] = []

    def add(self, time: int, node: N) -> None:
        """A node waits for a time to be passed."""
        day = self._days.get(time)
        if day is None:
            self._days[time] = [node]
            heappush(self._times, time)
        else:
            day.append(node)

    def take(self, bound: int) -> Iterator[N]:
        """The nodes whose time lies before a bound; the end of time passes all."""
        times = self._times
        while times and (times[0] < bound or bound == END_OF_TIME):
            yield from self._days.pop(heappop(times))

    def first(self) -> int | None:
        """The least time for which something waits, be it still of interest or not."""
        return self._times[0] if self._times else None

    def first_living(self, index: Index[N]) -> int | None:
        """The least time for which a node waits that is still in an index; others are forgotten on the way."""
        times = self._times
        while times:
            day = [n for n in self._days[times[0]] if index.lives(n)]
            if day:
                self._days[times[0]] = day
                return times[0]
            del self._days[heappop(times)]
        return None


class Index(Generic[N]):
    """The living events of all inputs, and what each of them waits for."""

    def __init__(self) -> None:
        """Start empty."""
        self.nodes: dict[Key, N] = {}
        self.due: Calendar[N] = Calendar()

    def add(self, node: N) -> None:
        """A new event; nothing can happen to it before its start is passed."""
        self.nodes[node.vs, node.payload] = node
        self.due.add(node.vs, node)

    def remove(self, node: N) -> None:
        """An event that is done with; the calendar forgets it when its time comes."""
        self.nodes.pop((node.vs, node.payload), None)

    def lives(self, node: N) -> bool:
        """Whether a node taken from a calendar is still in the index."""
        return self.nodes.get((node.vs, node.payload)) is node

    def frozen_by(self, bound: int) -> list[N]:
        """The nodes that waited for a time before a bound, some of them gone or named twice; they wait no more."""
        return list(self.due.take(bound))
