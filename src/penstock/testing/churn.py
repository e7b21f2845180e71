"""Random lives of a merge: replicas that stall, leave, attach late, begin again and skip what they are told to skip.

A `ChurnTrial` plays one such life by a seed. After every single element and every coming and going, the output is held
against the conditions of `reference.merge` and against the history that all replicas tell; at the end it must be
equivalent to that history and have ended, with no misstep and no alarm on the way. A `mutation` makes the merge lie:
one event is dropped from its output, or doubled; then the conditions must find it out.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from penstock.errors import MergeError
from penstock.model.elements import Adjust, Element, Insert, Payload, Punctuation, linear
from penstock.model.tdb import TDB, Event, tdb
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.reference.merge import Prefix, incompatibilities, incompatibilities_of_bags

LAST_START = 12
FLOATS = (0.0, 1.5e-5, 0.3, 0.7)
Mutation = Literal["drop", "double"]


@dataclass(frozen=True)
class Kind:
    """What a merge may be given."""

    ordered: bool = False
    strict: bool = False
    shuffled_ties: bool = False
    bag: bool = False


KINDS = {
    "R0": Kind(ordered=True, strict=True),
    "R1": Kind(ordered=True, bag=True),
    "R2": Kind(ordered=True, shuffled_ties=True),
    "R3": Kind(),
    "R4": Kind(bag=True),
    "R3-": Kind(),
    "Cleanse + R1": Kind(),
}


class Violation(AssertionError):
    """The output of a merge is not what it must be."""


@dataclass
class Telling:
    """The elements of one event, in their order."""

    elements: list[Element]
    end: int
    """When the event ends at last; its start, if it is taken back."""
    begun: bool = False


def history(rng: random.Random, kind: Kind, floats: bool) -> list[Event]:
    """Few payloads and small times, so that much coincides; some events never end; with a bag, some are there twice.

    Payloads with floats may differ in these alone, and be zero.
    """
    events: list[Event] = []
    for _ in range(rng.randint(0, 8)):
        vs = rng.randint(0, LAST_START)
        payload: Payload = (rng.choice("ab"), rng.choice(FLOATS), rng.choice(FLOATS)) if floats else (rng.choice("ab"),)
        ve = END_OF_TIME if rng.random() < 0.1 else vs + rng.randint(1, 10)
        taken = any(vs == s if kind.strict else (vs, payload) == (s, p) for p, s, _ in events)
        if kind.bag or not taken:
            events.append((payload, vs, ve))
            if kind.bag and rng.random() < 0.2:
                events.append((payload, vs, ve if rng.random() < 0.5 else vs + rng.randint(1, 10)))
    return sorted(events, key=lambda e: e[1]) if kind.ordered else events


class ChurnReplica:
    """One physical stream of a history, to its end."""

    def __init__(self, rng: random.Random, events: Iterable[Event], kind: Kind, complete_from: int = MIN_TICK) -> None:
        """With the events that end at or after a time."""
        self.rng, self.kind, self.bound, self.ended = rng, kind, MIN_TICK, False
        given = [e for e in events if e[2] >= complete_from]
        if kind.shuffled_ties:
            rng.shuffle(given)
        given = sorted(given, key=lambda e: e[1]) if kind.ordered else given
        self.lanes = [self._lane(_noisy(rng, e)) for e in given]
        if not kind.ordered:
            self.lanes += self._phantoms(given if kind.bag else [*events])

    def _lane(self, event: Event) -> Telling:
        payload, vs, ve = event
        ends = [] if self.kind.ordered else [vs + self.rng.randint(1, 10) for _ in range(self.rng.choice([0, 0, 1, 2]))]
        path = [*ends, ve]
        elements: list[Element] = [Insert(payload, vs, path[0])]
        elements += [Adjust(payload, vs, old, new) for old, new in pairwise(path) if old != new]
        return Telling(elements, ve)

    def _phantoms(self, events: list[Event]) -> list[Telling]:
        """Events that are taken back; only a bag may have them where there is another one."""
        made = []
        taken = set() if self.kind.bag else {(p, vs) for p, vs, _ in events}
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            payload, vs = (self.rng.choice("abz"),), self.rng.randint(0, LAST_START)
            if (payload, vs) not in taken:
                taken |= set() if self.kind.bag else {(payload, vs)}
                ve = vs + self.rng.randint(1, 8)
                made.append(Telling([Insert(payload, vs, ve), Adjust(payload, vs, ve, vs)], vs))
        return made

    def skip(self, before: int) -> None:
        """Leave out the events that end before a time and that nobody has heard of."""
        self.lanes = [lane for lane in self.lanes if lane.begun or lane.end >= before]

    def next(self) -> Element:
        """The next element: an event's, in order where there is one, or a bound that is sound."""
        going = [lane for lane in self.lanes if lane.elements]
        if not going:
            self.ended = True
            return linear("vs", END_OF_TIME)
        if self.rng.random() < 0.3:
            allowed = min(_time(e) for lane in going for e in lane.elements)
            if allowed > self.bound:
                self.bound = (
                    allowed if self.rng.random() < 0.5 else max(self.bound + 1, allowed - self.rng.randint(0, 3))
                )
                return linear("vs", self.bound)
        lane = going[0] if self.kind.ordered else self.rng.choice(going)
        lane.begun = True
        return lane.elements.pop(0)


def _noisy(rng: random.Random, event: Event) -> Event:
    """Floats that differ in their last bits, each by itself; a zero by as much as sums that cancel do."""
    payload, vs, ve = event
    noise = [0.0, 2e-16, -3e-16, 1e-13]
    return (
        tuple([v * (1 + rng.choice(noise)) + rng.choice(noise) if isinstance(v, float) else v for v in payload]),
        vs,
        ve,
    )


def _time(element: Element) -> int:
    """Below what a bound must stay to be sound before this element."""
    assert isinstance(element, Insert | Adjust)
    return element.vs if isinstance(element, Insert) else element.lateness_time


def _rounded(element: Element) -> Element:
    if isinstance(element, Punctuation):
        return element
    return replace(element, payload=tuple([round(v, 6) if isinstance(v, float) else v for v in element.payload]))


class Liar:
    """Drops or doubles one event of an output."""

    def __init__(self, mutation: Mutation | None, truth: Counter[Any], patience: int) -> None:
        """`patience`: so many events are told truly before."""
        self.mutation, self.truth, self.patience = mutation, truth, patience
        self.lied = False
        self._hidden: tuple[Payload, int, int] | None = None

    def tell(self, said: list[Element]) -> list[Element]:
        """What is passed on."""
        return [told for element in said for told in self._one(element)] if self.mutation else said

    def _one(self, element: Element) -> list[Element]:
        if isinstance(element, Insert) and not self.lied and self.truth[_rounded(element).payload, element.vs]:  # type: ignore[union-attr]
            self.patience -= 1
            if self.patience < 0:
                self.lied = True
                if self.mutation == "double":
                    return [element, element]
                self._hidden = (element.payload, element.vs, element.ve)
                return []
        if isinstance(element, Adjust) and (element.payload, element.vs, element.v_old) == self._hidden:
            self._hidden = (element.payload, element.vs, element.ve)
            self.lied = element.ve != element.vs  # an event that is taken back was no lie
            return []
        return [element]


class ChurnTrial:
    """One life of a merge."""

    def __init__(self, merge: Any, algorithm: str, seed: int, *, churn: bool = True, mutation: Mutation | None = None):
        """The merge begins with the inputs `steady` and `other`."""
        self.rng = random.Random(seed)
        self.merge, self.kind, self.churn = merge, KINDS[algorithm], churn
        self.events = history(self.rng, self.kind, floats=self.rng.random() < 0.3)
        self.replicas = {name: ChurnReplica(self.rng, self.events, self.kind) for name in merge.inputs}
        self.lives = {name: self._life() for name in merge.inputs}
        self.departed: list[Prefix] = []
        self.output = Prefix()
        self.outputs: list[Element] = []
        self.truth = Prefix(TDB(self.events), END_OF_TIME)
        counted = Counter((p, vs) for p, vs, _ in self.events)
        self.liar = Liar(mutation, counted, self.rng.randint(0, max(len(self.events) - 1, 0)))
        self.fresh = 0

    def _life(self, complete_from: int = MIN_TICK) -> Prefix:
        return Prefix(complete_from=complete_from, ordered=self.kind.ordered)

    def play(self) -> None:
        """To the end of all replicas."""
        while any(not r.ended for r in self.replicas.values()):
            self._act(self.rng.choice(["push"] * 8 + (["detach", "attach", "restart", "skip"] if self.churn else [])))
        self._finish()

    def _act(self, action: str) -> None:
        name = self.rng.choice([n for n, r in self.replicas.items() if not r.ended])
        if action == "push":
            element = self.replicas[name].next()
            self.lives[name].take(_rounded(element))
            self._hear(self.merge.push(name, element), f"{element} of {name}")
        elif action == "skip":
            for told, before in self.merge.behind().items():
                self.replicas[told].skip(before)
                self.lives[told].excused_to = max(self.lives[told].excused_to, before)
        elif self.fresh < 6:
            self._change(action, self.rng.choice(list(self.replicas)))

    def _change(self, action: str, name: str) -> None:
        """Come, go or begin again; where the merge refuses, all stays as it was."""
        self.fresh += 1
        since = self.rng.choice([MIN_TICK, self.rng.randint(0, 20), max(self.merge.stable, 0)])
        since = MIN_TICK if since > 10**9 else since
        try:
            if action == "detach":
                said = self.merge.detach(name)
                del self.replicas[name]
                self.departed.append(self.lives.pop(name))
            elif action == "attach":
                name = f"late{self.fresh}"
                said = self.merge.attach(name, complete_from=since)
            else:
                said = self.merge.restart(name, complete_from=since)
                self.departed.append(self.lives.pop(name))
        except MergeError as refused:
            if not any(w in str(refused) for w in ("No other input has joined", "last input")):
                raise
            return
        if action != "detach":
            self.replicas[name] = ChurnReplica(self.rng, self.events, self.kind, since)
            self.lives[name] = self._life(since)
        self._hear(said, f"{action} of {name}")

    def _hear(self, said: list[Element], after: str) -> None:
        for element in self.liar.tell(said):
            plain = _rounded(element)
            self._check_sound(plain, after)
            self.outputs.append(plain)
            self.output.take(plain)
        lives = [*self.lives.values(), *self.departed]
        reasons = incompatibilities_of_bags(lives, self.output) + incompatibilities_of_bags([self.truth], self.output)
        if not self.kind.bag:
            reasons += incompatibilities(lives, self.output)
        if reasons:
            raise Violation(f"after {after}: {reasons}\nevents: {self.events}\noutput: {self.outputs}")

    def _check_sound(self, element: Element, after: str) -> None:
        bound = self.output.bound
        if isinstance(element, Punctuation):
            sound = element.value > bound
        else:
            sound = _time(element) >= bound and bound != END_OF_TIME
            if isinstance(element, Adjust):
                sound = sound and self.output.ends((element.payload, element.vs))[element.v_old] > 0
        if not sound:
            raise Violation(f"after {after}: {element} cannot follow {self.outputs}")

    def _finish(self) -> None:
        if not self.merge.ended:
            raise Violation(f"the output does not end: {self.outputs}")
        difference = TDB(self.events).difference(tdb(self.outputs))
        if difference:
            raise Violation(difference.render())
        missteps, alarms = self.merge.missteps, self.merge.divergences
        if missteps or alarms:
            raise Violation(f"missteps {missteps}, alarms {[str(d) for d in alarms]}")
