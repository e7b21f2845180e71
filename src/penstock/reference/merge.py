"""When the output of a merge is compatible with its inputs, straight from the conditions of section III.

A stream's prefix comes to a set of events and its last bound. An event is *unfrozen* while its start is not below the
bound, *half frozen* when its start is, and *fully frozen* when its end is. The output is compatible when, however the
inputs go on, it can still become equivalent to them. Where payload and start are a key these are C1 to C3 (with
L <= L_m for a half-frozen event: an output may lag); without a key they are counted per payload and start, for an
output that is anywhere behind.

Every life of an input counts, also one that has left: what it said of the stream was true. A life that began late is
*complete from* a time: it has every event that ends at or after it. It can justify the output's bound only when other
lives have brought the output to that time (C1), and what ends before it says nothing. A life that was told to skip what
ends before a time answers for the rest.

Streams of opens and closes in which an open has at most one close need no bounds to be judged (Example 5): what was
said stays said, so the output is compatible exactly when all of it has been said by some input.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.model.elements import Adjust, Element, Payload, Punctuation
from penstock.model.forms import Close, Formed, Open
from penstock.model.tdb import Event
from penstock.model.time import END_OF_TIME, MIN_TICK

Group = tuple[Payload, int]
_NOTHING: Counter[int] = Counter()


class Prefix:
    """What a stream has come to: its events and its last bound."""

    def __init__(
        self,
        events: Mapping[Event, int] | None = None,
        bound: int = MIN_TICK,
        complete_from: int = MIN_TICK,
        ordered: bool = False,
    ) -> None:
        """From events with their counts; `take` adds elements. In an ordered stream a start is a bound."""
        self.bound, self.complete_from, self.excused_to = bound, complete_from, MIN_TICK
        self.ordered = ordered
        self.groups: dict[Group, Counter[int]] = defaultdict(Counter)
        for (payload, vs, ve), count in (events or {}).items():
            self.groups[payload, vs][ve] += count

    def take(self, element: Element) -> None:
        """The stream goes on by one element."""
        if isinstance(element, Punctuation):
            if element.is_linear:
                self.bound = max(self.bound, element.value)
            return
        if self.ordered:
            self.bound = max(self.bound, element.vs)
        ends = self.groups[element.payload, element.vs]
        if isinstance(element, Adjust):
            assert ends[element.v_old] > 0, f"{element} of an event that is not there"
            ends[element.v_old] -= 1
            if not ends[element.v_old]:
                del ends[element.v_old]
        if element.ve > element.vs:
            ends[element.ve] += 1

    def ends(self, group: Group) -> Counter[int]:
        """The ends of a payload and start."""
        return self.groups.get(group, _NOTHING)

    def is_half_frozen(self, vs: int, ve: int) -> bool:
        """The start is below the bound, the end is not."""
        return vs < self.bound and not self.is_fully_frozen(ve)

    def is_fully_frozen(self, ve: int) -> bool:
        """The end is below the bound; the end of time freezes all."""
        return ve < self.bound or self.bound == END_OF_TIME

    @property
    def accountable_from(self) -> int:
        """What ends before this it need not have."""
        return max(self.complete_from, self.excused_to)


def prefix(elements: Iterable[Element], complete_from: int = MIN_TICK) -> Prefix:
    """The state of a stream after some elements."""
    made = Prefix(complete_from=complete_from)
    for element in elements:
        made.take(element)
    return made


def justified_bound(inputs: Sequence[Prefix]) -> int:
    """How far an output may have come: as far as a life that is complete from a time that others justify."""
    reached = MIN_TICK
    while True:
        further = max((p.bound for p in inputs if p.complete_from <= reached), default=MIN_TICK)
        if further <= reached:
            return reached
        reached = further


def _c1(inputs: Sequence[Prefix], output: Prefix) -> str:
    furthest = justified_bound(inputs)
    return (
        f"C1: the output is at {output.bound}, no input brings it beyond {furthest}" if output.bound > furthest else ""
    )


def incompatibilities(inputs: Sequence[Prefix], output: Prefix) -> list[str]:
    """Why an output is not compatible with inputs in which payload and start are a key; empty if it is."""
    found = [_c1(inputs, output)]
    groups = {group for p in (*inputs, output) for group, ends in p.groups.items() if ends}
    for payload, vs in sorted(groups, key=repr):
        said = [(p, next(iter(p.ends((payload, vs))))) for p in inputs if p.ends((payload, vs))]
        ours = list(output.ends((payload, vs)).elements())
        reasons = (_c2(said, ours, vs, output), _c3(said, ours, vs, output))
        found += [f"{why}: {payload!r} at {vs}" for why in reasons if why]
    return [why for why in found if why]


def _c2(said: list[tuple[Prefix, int]], ours: list[int], vs: int, output: Prefix) -> str:
    """What may be in the output."""
    if not ours:
        return ""
    if len(ours) > 1:
        return "C2: the event is there more than once"
    (end,) = ours
    if output.is_fully_frozen(end):
        same = any(p.is_fully_frozen(ve) and ve == end for p, ve in said)
        return "" if same else f"C2: it is frozen with end {end}, which is frozen in no input"
    if output.is_half_frozen(vs, end):
        follows = any(
            (p.is_half_frozen(vs, ve) and output.bound <= p.bound) or (p.is_fully_frozen(ve) and output.bound <= ve)
            for p, ve in said
        )
        return "" if follows else "C2: it is half frozen and can follow no input"
    return ""


def _c3(said: list[tuple[Prefix, int]], ours: list[int], vs: int, output: Prefix) -> str:
    """What must be in the output."""
    if output.bound <= vs:
        return ""  # anything can still be added
    half = any(output.is_half_frozen(vs, end) for end in ours)
    final = [ve for p, ve in said if p.is_fully_frozen(ve)]
    for ve in final:
        if output.is_fully_frozen(ve):
            if ve not in ours:
                return f"C3: it lacks the end {ve}, which is frozen in an input"
        elif not half:
            return f"C3: it cannot get the end {ve} any more, which is frozen in an input"
    frozen = [p.bound for p, ve in said if p.is_half_frozen(vs, ve)]
    if not final and frozen and not (output.bound <= max(frozen) and half):
        return "C3: it is half frozen in an input and cannot be followed"
    return ""


def incompatibilities_of_bags(inputs: Sequence[Prefix], output: Prefix) -> list[str]:
    """The same without a key; empty if the output is compatible with every life.

    What is frozen both in the output and in a life is the same, end by end; and of a payload and start that is frozen
    in both, both have as many events, whose ends can still become the same.
    """
    found = [_c1(inputs, output)]
    groups = {group for p in (*inputs, output) for group, ends in p.groups.items() if ends and group[1] < output.bound}
    for payload, vs in sorted(groups, key=repr):
        ours = output.ends((payload, vs))
        for life in inputs:
            if vs < life.bound:
                why = _differs(life, life.ends((payload, vs)), ours, min(life.bound, output.bound))
                found += [f"R4: {why}: {payload!r} at {vs}"] if why else []
    return [why for why in found if why]


def _differs(life: Prefix, said: Counter[int], ours: Counter[int], both: int) -> str:
    """Why the output cannot become what a life says, of which everything before `both` is frozen in the two."""
    since = life.accountable_from
    if since > both:  # of what is frozen in the output, the life need not know anything
        return "" if _from(said, since) <= ours.total() else f"{ours.total()} events where an input has more"
    final = [Counter({e: n for e, n in ends.items() if since <= e and _frozen(e, both)}) for ends in (said, ours)]
    if final[0] != final[1]:
        return f"the frozen ends {sorted(final[1].elements())} where an input has {sorted(final[0].elements())}"
    still = [sum(n for e, n in ends.items() if not _frozen(e, both)) for ends in (said, ours)]
    return "" if still[0] == still[1] else f"{still[1]} events that go on where an input has {still[0]}"


def _frozen(end: int, bound: int) -> bool:
    return end < bound or bound == END_OF_TIME


def _from(ends: Counter[int], since: int) -> int:
    return sum(n for e, n in ends.items() if e >= since)


@dataclass
class OpenClosePrefix:
    """What a stream of opens and closes has said: each open, and each close with the open that it closes."""

    opens: Counter[Group] = field(default_factory=Counter)
    closes: Counter[Event] = field(default_factory=Counter)
    _last: dict[Payload, int] = field(default_factory=dict)

    def take(self, element: Formed) -> None:
        """The stream goes on by one element; a close is of the event of its payload that was opened last."""
        if isinstance(element, Open):
            self.opens[element.payload, element.vs] += 1
            self._last[element.payload] = element.vs
        elif isinstance(element, Close):
            assert element.payload in self._last, f"{element} of an event that is not there"
            self.closes[element.payload, self._last[element.payload], element.ve] += 1


def incompatibilities_of_open_close(inputs: Sequence[OpenClosePrefix], output: OpenClosePrefix) -> list[str]:
    """Why an output is not compatible with inputs whose opens have at most one close; empty if it is.

    Every element of the output is one of an input's (necessary and sufficient, Example 5), and the output is a stream
    of the kind itself: an open is there once, and closed once.
    """
    opened = {group for p in inputs for group in p.opens}
    closed = {event for p in inputs for event in p.closes}
    found = [f"open{group}: no input has it" for group in output.opens if group not in opened]
    found += [f"close{event}: no input has it" for event in output.closes if event not in closed]
    found += [f"open{group}: {n} times" for group, n in output.opens.items() if n > 1]
    per_open = Counter((payload, vs) for payload, vs, _ in output.closes.elements())
    return found + [f"open{group}: closed {n} times" for group, n in per_open.items() if n > 1]
