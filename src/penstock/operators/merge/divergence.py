"""The divergence alarm of merges with an index: inputs that do not tell the same story.

A merge decides about an event when a bound freezes it, by the input that drives the bound. Other inputs may be behind
and have their say later. A watch keeps decided events until every joined input has passed them, and compares: an input
that has another end, lacks the event, or has one that was decided not to be, has diverged. What the merge then follows
is its driver's matter (the leading input, a named one, the majority); the watch reports, or stops the merge.

Nobody is accused of what they need not know: an input that attached late or began again from a time on answers for what
ends from then on, one that was told to skip what ends before a time (`behind`) likewise, and it may have skipped how
the end of an event moved below that; what was compared and given up before an input began again is not asked of it a
second time. An input that leaves or begins again is compared first, with what it has passed. Floats are compared as
everywhere (`model.likeness`).

It costs an entry per event from its decision until the slowest input has passed it; at most `patience` entries are
kept. Beyond that the oldest is compared with those that have passed it and counted as `unchecked`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from penstock.errors import DivergenceError
from penstock.model.elements import Adjust, Insert, Payload
from penstock.model.likeness import Likeness
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.merge.base import Input
from penstock.operators.merge.index import Calendar, Key

Reaction = Literal["report", "stop", "ignore"]
REACTIONS: tuple[str, ...] = get_args(Reaction)
PATIENCE = 100_000
KEPT = 1000
"""So many divergences are kept where nobody takes them away; all are counted."""


@dataclass(frozen=True)
class Divergence:
    """An event on which an input differs from the output; None as an end means that there is no such event."""

    input: str
    payload: Payload
    vs: int
    output_end: int | None
    input_end: int | None

    def __str__(self) -> str:
        """For a person."""

        def said(end: int | None) -> str:
            return "nothing" if end is None else f"[{self.vs}, {'end' if end == END_OF_TIME else end})"

        return f"{self.input} has {said(self.input_end)} where the output has {said(self.output_end)}: {self.payload!r}"


class Alarm:
    """What has been found, and what to do about it."""

    def __init__(self, reaction: Reaction = "report", limit: int | None = KEPT) -> None:
        """`report` keeps what is found, up to a limit if there is one, `stop` raises an error as well."""
        self.reaction, self.limit = reaction, limit
        self.found: list[Divergence] = []
        self.count = 0

    def report(self, divergence: Divergence) -> None:
        """Keep a divergence, and stop if that was asked for."""
        self.count += 1
        if self.limit is None or len(self.found) < self.limit:
            self.found.append(divergence)
        if self.reaction == "stop":
            raise DivergenceError(
                "The inputs are not replicas of one stream.", got=str(divergence), hint="see merge.divergences"
            )

    def compare(self, each: Input, payload: Payload, vs: int, output: Iterable[int], theirs: Iterable[int]) -> None:
        """Report the first end on which an input and the output differ, as far as the input must know.

        What only the input has it answers for, unless that ends before it is complete, or started before it was told
        to skip: then it may have skipped the adjust that moved the end.
        """
        must = each.accountable_from
        ours, said = Counter(output), Counter(theirs)
        lacking = sorted(e for e in (ours - said).elements() if e >= must)
        surplus = sorted((said - ours).elements())
        if lacking or (vs >= each.excused_to and any(e >= each.complete_from for e in surplus)):
            self.report(Divergence(each.name, payload, vs, _first(lacking), _first(surplus)))


def _first(ends: list[int]) -> int | None:
    return ends[0] if ends else None


def _before(time: int, bound: int) -> bool:
    """Whether a bound has passed a time; the end of time passes all."""
    return time < bound or bound == END_OF_TIME


class Sighting:
    """A decided event: the ends that the output has, and those that the inputs give it."""

    __slots__ = ("blind_below", "due", "out", "payload", "said", "vs")

    def __init__(self, payload: Payload, vs: int, out: tuple[int, ...], said: dict[int, list[int]]) -> None:
        """`said` by the number of the input."""
        self.payload, self.vs, self.out, self.said = payload, vs, out, said
        self.due: int | None = None
        self.blind_below = MIN_TICK
        """Ends below this may have been in the output and given up; others cannot have been."""


class Watch(Alarm):
    """Decided events that some input has not passed."""

    def __init__(self, reaction: Reaction = "report", patience: int = PATIENCE, limit: int | None = KEPT) -> None:
        """What to do when an input diverges, and how many decided events and divergences to keep at most."""
        super().__init__(reaction, limit)
        self.patience = patience
        self.unchecked = 0
        self.forgotten_to = MIN_TICK
        """Of events that start before this some have been compared and given up."""
        self.records: dict[Key, Sighting] = {}
        self._due: Calendar[Sighting] = Calendar()
        self._likeness = Likeness()

    def decided(self, payload: Payload, vs: int, out: tuple[int, ...], said: dict[int, list[int]]) -> None:
        """The output has these ends for good, and the inputs say that."""
        if (vs, payload) in self.records:  # some input spoke of it while it was thought to be done with
            self._give_up(self.records[vs, payload])
        self._keep(Sighting(payload, vs, out, said))

    def _keep(self, record: Sighting) -> None:
        due = max(record.vs, record.blind_below)
        for end in record.out:
            due = max(due, end)
        self.records[record.vs, record.payload] = record
        self._likeness.add(record.vs, record.payload)
        self._due.wait(due, record)

    def _give_up(self, record: Sighting) -> None:
        del self.records[record.vs, record.payload]
        self._likeness.discard(record.vs, record.payload)
        self._due.forget(record)

    def _find(self, vs: int, payload: Payload) -> Sighting | None:
        found = self.records.get((vs, payload))
        if found is None and self._likeness.known:
            return self.records.get((vs, self._likeness.find(vs, payload)))
        return found

    def insert(self, each: Input, element: Insert, frozen: int, *, repeats: bool) -> bool:
        """An input that is behind reports an event that was decided; False if it did before and may not again.

        `frozen` is how far everything has been decided.
        """
        found = self._find(element.vs, element.payload)
        if found is None:
            found = Sighting(element.payload, element.vs, (), {})
            if element.vs < self.forgotten_to:
                found.blind_below = frozen
            self._keep(found)
        said = found.said.setdefault(each.number, [])
        if said and not repeats:
            return False
        said.append(element.ve)
        return True

    def adjust(self, each: Input, element: Adjust) -> bool:
        """An input that is behind changes an event that was decided; False if it never had it, as far as is known."""
        found = self._find(element.vs, element.payload)
        if found is None:
            return element.vs < self.forgotten_to
        said = found.said.get(each.number, [])
        if element.v_old not in said:
            return element.vs < self.forgotten_to
        said.remove(element.v_old)
        if element.ve != element.vs:
            said.append(element.ve)
        return True

    def passed(self, inputs: Iterable[Input]) -> None:
        """Compare the events that every joined input has passed; give up what is too much."""
        if not self.records:
            self._remember_passing(inputs)
            return
        given = [i for i in inputs if i.joined]
        reached = min((i.stable for i in given), default=MIN_TICK)
        self.forgotten_to = max(self.forgotten_to, reached)
        for record in self._due.take(reached):
            self._give_up(record)
            self._compare(record, given)
        while len(self.records) > self.patience:
            self._lose_patience(given)

    def _remember_passing(self, inputs: Iterable[Input]) -> None:
        self.forgotten_to = max(self.forgotten_to, min((i.stable for i in inputs if i.joined), default=MIN_TICK))

    def _lose_patience(self, given: list[Input]) -> None:
        record = next(iter(self.records.values()))
        due = record.due
        self._give_up(record)
        self.unchecked += 1
        self.forgotten_to = max(self.forgotten_to, record.vs + 1)
        self._compare(record, [i for i in given if due is not None and _before(due, i.stable)])

    def _compare(self, record: Sighting, inputs: list[Input]) -> None:
        said, ours = record.said, list(record.out)
        for each in inputs:
            theirs = said.get(each.number)
            if theirs == ours:
                continue  # as nearly always
            theirs = [e for e in theirs or () if not _before(e, record.blind_below)]
            self.compare(each, record.payload, record.vs, record.out, theirs)

    def next_time(self) -> int | None:
        """The least time such that something is compared when every input is beyond it."""
        return self._due.first()

    def forget(self, each: Input) -> None:
        """An input left or begins again: it is compared with what it has passed, and its word no longer counts."""
        for record in self.records.values():
            if each.joined and record.due is not None and _before(record.due, each.stable):
                self._compare(record, [each])
            record.said.pop(each.number, None)
