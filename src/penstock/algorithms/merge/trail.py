"""The divergence alarm of merges of ordered streams: the output leaves a trail, and every input walks along it.

The output of such a merge is ordered and never goes back, so what it put out of one start is final as soon as any
joined input has moved on. When an input has moved on from a start, what it brought of that start is compared with what
was put out: as a multiset, ends included, floats within their tolerance. Starts that it passed over are missing.

An input answers for what ends at or after the time from which it is complete, or before which it was told to skip; of
what was given up before it began to walk, it is not asked. The trail is kept until every joined input has passed, at
most `patience` events of it; what is given up unchecked is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from penstock.algorithms.merge.base import Input
from penstock.algorithms.merge.divergence import PATIENCE, Alarm, Divergence, Reaction
from penstock.model.elements import Payload
from penstock.model.likeness import alike
from penstock.model.time import END_OF_TIME, MIN_TICK

Ending = tuple[Payload, int]
"""An event of a start: payload and end."""
SWEEP = 64


class Walk:
    """How far an input has come on the trail, and what it has brought of the start that it is at."""

    __slots__ = ("endings", "position", "start")

    def __init__(self, position: int) -> None:
        """At a place of the trail, with nothing brought yet."""
        self.position = position
        self.start: int | None = None
        self.endings: list[Ending] = []


class Trail(Alarm):
    """What was put out, by start, until every joined input has passed it."""

    def __init__(self, reaction: Reaction = "report", patience: int = PATIENCE) -> None:
        """What to do when an input diverges, and how many events to keep at most."""
        super().__init__(reaction)
        self.patience = patience
        self.unchecked = 0
        self.forgotten_to = MIN_TICK
        """What starts before this has been given up."""
        self.starts: list[int] = []
        self.groups: list[list[Ending]] = []
        self.base = 0
        """The place of the first start that is kept."""
        self.kept = 0
        self.walks: dict[int, Walk] = {}

    def put(self, vs: int, payload: Payload, ve: int) -> None:
        """The output has an event."""
        if self.starts and self.starts[-1] == vs:
            self.groups[-1].append((payload, ve))
        else:
            self.starts.append(vs)
            self.groups.append([(payload, ve)])
        self.kept += 1

    def step(self, each: Input, vs: int, payload: Payload, ve: int) -> None:
        """A joined input has an event; what the output makes of it was put before."""
        walk = self.walks.get(each.number)
        if walk is None:
            walk = self.walks[each.number] = Walk(self.base)
        if vs == walk.start:
            walk.endings.append((payload, ve))
            return
        if walk.start is not None:
            self._compare(each, walk)
        walk.start, walk.endings = vs, [(payload, ve)]

    def passed(self, each: Input, inputs: Iterable[Input]) -> None:
        """An input has said a bound; all before it that it did not bring is missing."""
        walk = self.walks.get(each.number)
        if walk is None:
            walk = self.walks[each.number] = Walk(self.base)
        bound = each.stable
        if walk.start is not None and (walk.start < bound or bound == END_OF_TIME):
            self._compare(each, walk)
        self._miss(each, walk, bound)
        self.sweep(inputs)

    def _compare(self, each: Input, walk: Walk) -> None:
        """The input has moved on from a start."""
        assert walk.start is not None
        start, walk.start = walk.start, None
        if start < self.forgotten_to:
            return
        self._miss(each, walk, start)
        place = walk.position - self.base
        ours: list[Ending] = []
        if place < len(self.starts) and self.starts[place] == start:
            ours = self.groups[place]
            walk.position += 1
        if ours != walk.endings:
            self._differ(each, start, ours, walk.endings)

    def _miss(self, each: Input, walk: Walk, until: int) -> None:
        """The input has nothing of the starts up to a time."""
        place = max(walk.position - self.base, 0)
        while place < len(self.starts) and (self.starts[place] < until or until == END_OF_TIME):
            self._differ(each, self.starts[place], self.groups[place], [])
            place += 1
        walk.position = self.base + place

    def _differ(self, each: Input, vs: int, ours: list[Ending], theirs: list[Ending]) -> None:
        lacking, surplus = _unmatched(ours, theirs)
        must = each.accountable_from
        for payload, ve in lacking:
            if ve >= must:
                other = next((e for p, e in surplus if alike(p, payload)), None)
                self.report(Divergence(each.name, payload, vs, ve, other))
        if vs >= must and not lacking:
            for payload, ve in surplus:
                self.report(Divergence(each.name, payload, vs, None, ve))

    def sweep(self, inputs: Iterable[Input]) -> None:
        """Give up what every joined input has passed, and what is too much."""
        joined = [i for i in inputs if i.joined]
        places = [self.walks[i.number].position if i.number in self.walks else self.base for i in joined]
        passed = min(places, default=self.base) - self.base
        while self.kept - sum(map(len, self.groups[:passed])) > self.patience and passed < len(self.groups):
            self.unchecked += len(self.groups[passed])
            passed += 1
        if passed > 0 and (passed >= SWEEP or passed == len(self.starts)):
            self.kept -= sum(map(len, self.groups[:passed]))
            self.forgotten_to = self.starts[passed - 1] + 1
            del self.starts[:passed], self.groups[:passed]
            self.base += passed
            for walk in self.walks.values():
                walk.position = max(walk.position, self.base)

    def forget(self, each: Input) -> None:
        """An input left or begins again: it walks from the beginning of what is kept."""
        self.walks.pop(each.number, None)


def _unmatched(ours: list[Ending], theirs: list[Ending]) -> tuple[list[Ending], list[Ending]]:
    """What only the output has, and what only the input has."""
    here, there = Counter(ours), Counter(theirs)
    lacking, surplus = list((here - there).elements()), list((there - here).elements())
    for one in list(lacking):
        for other in surplus:
            if one[1] == other[1] and alike(one[0], other[0]):
                lacking.remove(one)
                surplus.remove(other)
                break
    return lacking, surplus
