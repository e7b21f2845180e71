"""R4: no restrictions; a stream may hold the same event several times (section IV-C).

The index has three tiers: start and payload, then the input, then the ends with how many events have each (in3t). The
output has one such multiset of ends too. Two procedures that the paper leaves out decide what a bound costs:

- when events become half frozen, the output must hold as many of them as the verdict; what it lacks is inserted with
  ends that the verdict has, what it has too many of is removed, ends first that the verdict has not;
- when ends become fully frozen, the output must hold exactly the verdict's; what both hold stays as it is, ends that
  would freeze wrongly move to where the verdict lacks one, and the rest is filled from ends that the verdict has not.

Each move repairs one surplus and, if it can, one lack, so no sequence of fewer adjusts does it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.algorithms.merge.base import Input
from penstock.algorithms.merge.index import Index
from penstock.algorithms.merge.revisable import UNDECIDED, RevisableMerge
from penstock.model.elements import Adjust, Insert, Payload


class Ends:
    """A multiset of ends."""

    __slots__ = ("counts", "size")

    def __init__(self, counts: Iterable[tuple[int, int]] = ()) -> None:
        """From ends with how often each is there."""
        self.counts: dict[int, int] = dict(counts)
        self.size = sum(self.counts.values())

    def add(self, end: int) -> None:
        """One more."""
        self.counts[end] = self.counts.get(end, 0) + 1
        self.size += 1

    def remove(self, end: int) -> None:
        """One fewer."""
        self.size -= 1
        if self.counts[end] == 1:
            del self.counts[end]
        else:
            self.counts[end] -= 1

    def without(self, other: Ends) -> list[int]:
        """What is here and not there."""
        if self.counts == other.counts:
            return []
        return [end for end, n in self.counts.items() for _ in range(n - other.counts.get(end, 0))]

    def key(self) -> tuple[tuple[int, int], ...]:
        """The same for equal multisets."""
        return tuple(sorted(self.counts.items()))


NONE = Ends()


class Bag:
    """The events of one start and payload: per input, and in the output, how many have each end."""

    __slots__ = ("first_seen", "inputs", "out", "payload", "vs")

    def __init__(self, payload: Payload, vs: int, first_seen: int) -> None:
        """Start without events."""
        self.payload, self.vs, self.first_seen = payload, vs, first_seen
        self.inputs: dict[int, Ends] = {}
        self.out = Ends()

    def said_by(self, each: Input) -> Ends:
        """What an input has reported."""
        return self.inputs.get(each.number, NONE)

    def ends(self) -> Iterator[int]:
        """Every end that an input or the output has."""
        yield from self.out.counts
        for ends in self.inputs.values():
            yield from ends.counts


class R4(RevisableMerge):
    """The merge with the three-tier index."""

    name = "R4"

    def __init__(self, *args: Any, **options: Any) -> None:
        """As any revisable merge."""
        self.index: Index[Bag] = Index()
        self._latest = 0
        super().__init__(*args, **options)

    # Elements

    def insert(self, each: Input, element: Insert) -> None:
        """One more event of its start and payload."""
        vs, ve = element.vs, element.ve
        if vs > each.greatest:  # noqa: PLR1730 - max() takes longer
            each.greatest = vs
        bag = self.index.nodes.get((vs, element.payload))
        if bag is None:
            if vs < self.frozen:
                return
            bag = Bag(element.payload, vs, self.counts.taken)
            self.index.add(bag)
        ends = bag.inputs.get(each.number)
        if ends is None:
            ends = bag.inputs[each.number] = Ends()
        ends.add(ve)
        self._wait(bag, ve)
        each.unfrozen += 1
        self._latest = ve
        self.policy.reported(self, bag, each)

    def adjust(self, each: Input, element: Adjust) -> None:
        """One of the events with the old end gets the new one, or goes."""
        bag = self.index.nodes.get((element.vs, element.payload))
        ends = NONE if bag is None else bag.said_by(each)
        if bag is None or element.v_old not in ends.counts:
            if element.vs >= self.frozen or bag is not None:
                self.reject(each, element, "an adjust of an event that the input has not reported")
            return
        ends.remove(element.v_old)
        if element.ve == element.vs:
            each.unfrozen -= 1
        else:
            ends.add(element.ve)
            self._wait(bag, element.ve)
        self.policy.moved(self, bag, each)
        self._tidy(bag)

    def _wait(self, bag: Bag, end: int) -> None:
        """What is half frozen also waits for an end that is new; the others still wait for their start."""
        if bag.vs < self.frozen:
            self.index.due.add(end, bag)

    def _tidy(self, bag: Bag) -> None:
        if not bag.out.size and not any(e.size for e in bag.inputs.values()) and bag.vs >= self.frozen:
            self.index.remove(bag)

    # Bounds

    def freeze(self, bound: int, voters: list[Input]) -> None:
        """Agree on the bags whose start or some end is passed."""
        self.undecided = []
        for bag in self.index.frozen_by(bound):
            if not self.index.lives(bag):
                continue
            verdict = self._verdict(bag, voters)
            if verdict is None:
                self.undecided.append(bag.vs)
                self.index.due.add(bag.vs, bag)  # to be looked at again
                continue
            if bag.vs >= self.frozen:
                for each in self.inputs.values():
                    each.unfrozen -= bag.said_by(each).size
            self._agree(bag, verdict, bound)
            if self.index.lives(bag):
                self.index.due.add(min([e for e in bag.ends() if e >= bound], default=bound), bag)

    def _verdict(self, bag: Bag, voters: list[Input]) -> Ends | None:
        """The ends that the voters give, or None if they are at odds."""
        if len(voters) == 1:
            return bag.said_by(voters[0])
        verdict = self.verdict([bag.said_by(v).key() for v in voters])
        return None if verdict is UNDECIDED else Ends(verdict)  # type: ignore[arg-type]

    def _agree(self, bag: Bag, verdict: Ends, bound: int) -> None:
        if self.policy.final_only:
            self._agree_when_final(bag, verdict, bound)
            return
        if bag.out.counts != verdict.counts:
            if bag.vs >= self.frozen:
                self._match_count(bag, verdict, bound)
            self._match_ends(bag, verdict, bound)
        if all(self.is_final(end, bound) for end in verdict.counts):
            self.index.remove(bag)

    def _match_count(self, bag: Bag, verdict: Ends, bound: int) -> None:
        """As many events in the output as in the verdict."""
        short = verdict.size - bag.out.size
        if short > 0:
            for end in _in_order(verdict.without(bag.out), bound)[:short]:
                self._put(bag, end)
        elif short < 0:
            for end in _in_order(bag.out.without(verdict), bound)[:-short]:
                self._move_out(bag, end, None)

    def _match_ends(self, bag: Bag, verdict: Ends, bound: int) -> None:
        """The verdict's ends, wherever they or the output's would be fully frozen."""
        lacking = _in_order(verdict.without(bag.out), bound)
        surplus = _in_order(bag.out.without(verdict), bound)
        forced = max(sum(self.is_final(e, bound) for e in ends) for ends in (lacking, surplus))
        for old, new in list(zip(surplus, lacking, strict=False))[:forced]:
            self._move_out(bag, old, new)

    def _agree_when_final(self, bag: Bag, verdict: Ends, bound: int) -> None:
        """Put out what is fully frozen; the rest waits."""
        for end in sorted(verdict.without(bag.out)):
            if self.is_final(end, bound):
                self._put(bag, end)
        if all(self.is_final(end, bound) for end in verdict.counts):
            self.index.remove(bag)
        else:
            self.waiting.add(bag.vs, bag)

    def _put(self, bag: Bag, end: int) -> None:
        if bag.vs >= self.stable:
            self.counts.waited += self.counts.taken - bag.first_seen
            self.emit_insert(Insert(bag.payload, bag.vs, end))
            bag.out.add(end)

    def _move_out(self, bag: Bag, old: int, new: int | None) -> None:
        target = bag.vs if new is None else new
        if min(old, target) >= self.stable:
            self.emit_adjust(bag.payload, bag.vs, old, target)
            bag.out.remove(old)
            if new is not None:
                bag.out.add(new)

    # For policies

    def has(self, node: Bag, each: Input) -> bool:
        """Whether it has reported at least one."""
        return node.said_by(each).size > 0

    def holders(self, node: Bag) -> int:
        """How many inputs have reported more than the output has."""
        return sum(ends.size > node.out.size for ends in node.inputs.values())

    def drop(self, node: Bag, each: Input) -> None:
        """Forget what an input said."""
        node.inputs.pop(each.number, None)
        self._tidy(node)

    def introduce(self, node: Bag, each: Input) -> None:
        """Put out what was just reported, if the input has more events than the output."""
        ends = node.said_by(each)
        if ends.size > node.out.size:
            lacking = ends.without(node.out)
            self._put(node, self._latest if self._latest in lacking else min(lacking))

    def reflect(self, node: Bag, each: Input) -> None:
        """The multiset that an input has, as far as the output's bound allows."""
        said = node.said_by(each)
        lacking, surplus = sorted(said.without(node.out)), sorted(node.out.without(said))
        for old, new in zip(surplus, lacking, strict=False):
            self._move_out(node, old, new)
        if node.vs >= self.stable:
            for end in lacking[len(surplus) :]:
                self._put(node, end)
            for end in surplus[len(lacking) :]:
                self._move_out(node, end, None)


def _in_order(ends: list[int], bound: int) -> list[int]:
    """Ends that a bound freezes first: these must move, the others may."""
    return sorted(ends, key=lambda end: (end >= bound, end))
