"""R4: no restrictions; a stream may hold the same event several times (section IV-C).

The index has three tiers: start and payload, then the input, then the ends with how many events have each (in3t). The
output has one such multiset of ends too. Two procedures that the paper leaves out decide what a bound costs:

- when events become half frozen, the output must hold as many of them as the verdict; what it lacks is inserted with
  ends that the verdict has, what it has too many of is removed, ends first that the verdict has not;
- when ends become fully frozen, the output must hold exactly the verdict's; what both hold stays as it is, ends that
  would freeze wrongly move to where the verdict lacks one, and the rest is filled from ends that the verdict has not.

Each move repairs one surplus and, if it can, one lack, so no sequence of fewer adjusts does it.

A bag remembers the bound up to which it has been agreed on. Ends before that are final in the output and out of the
question: an input that joined late need not know them. A bag that was undecided when its bound passed has not been
agreed on at all, and is counted when the verdict comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from penstock.model.elements import Adjust, Insert, Payload
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.merge.base import Input
from penstock.operators.merge.index import Index
from penstock.operators.merge.revisable import MAJORITY, RevisableMerge


class EndBag:
    """A multiset of ends."""

    __slots__ = ("counts", "size")

    def __init__(self, ends: Iterable[int] = ()) -> None:
        """From ends, each as often as it is there."""
        self.counts: dict[int, int] = {}
        self.size = 0
        for end in ends:
            self.add(end)

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

    def without(self, other: EndBag, since: int) -> list[int]:
        """What is here and not there, of ends that are not before a time."""
        if self.counts == other.counts:
            return []
        return [e for e, n in self.counts.items() if e >= since for _ in range(n - other.counts.get(e, 0))]

    def __iter__(self) -> Iterator[int]:
        """Every end, as often as it is there."""
        return (end for end, n in self.counts.items() for _ in range(n))


NONE = EndBag()


class Bag:
    """The events of one start and payload: per input, and in the output, how many have each end."""

    __slots__ = ("agreed", "due", "first_seen", "inputs", "out", "payload", "vs")

    def __init__(self, payload: Payload, vs: int, first_seen: int) -> None:
        """Start without events."""
        self.payload, self.vs, self.first_seen = payload, vs, first_seen
        self.inputs: dict[int, EndBag] = {}
        self.out = EndBag()
        self.due: int | None = None
        self.agreed = MIN_TICK
        """The bound up to which output and verdict agree."""

    def said_by(self, each: Input) -> EndBag:
        """What an input has reported."""
        return self.inputs.get(each.number, NONE)

    def next_end(self, bound: int) -> int:
        """The least end of an input or the output that is not before a bound, or the bound."""
        multisets = (self.out, *self.inputs.values())
        return min((e for ends in multisets for e in ends.counts if e >= bound), default=bound)


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
        bag = self.index.find(vs, element.payload)
        if bag is None:
            if vs < self.frozen:
                if self.watch is not None:
                    self.watch.insert(each, element, self.frozen, repeats=True)
                return
            bag = Bag(element.payload, vs, self.counts.taken)
            self.index.add(bag)
            if self.early is not None:
                self.early.add(vs, bag)
        ends = bag.inputs.get(each.number)
        if ends is None:
            ends = bag.inputs[each.number] = EndBag()
        ends.add(ve)
        if vs < self.frozen:
            self.index.due.wait(ve, bag)
        elif self.counts_unfrozen:
            each.unfrozen += 1
        self._latest = ve
        self.policy.reported(self, bag, each)

    def adjust(self, each: Input, element: Adjust) -> None:
        """One of the events with the old end gets the new one, or goes."""
        bag = self.index.find(element.vs, element.payload)
        ends = NONE if bag is None else bag.said_by(each)
        if bag is None or element.v_old not in ends.counts:
            if (
                bag is not None
                or element.vs >= self.frozen
                or (self.watch is not None and not self.watch.adjust(each, element))
            ):
                self.reject(each, element, "an adjust of an event that the input has not reported")
            return
        ends.remove(element.v_old)
        if element.ve == element.vs:
            each.unfrozen -= self.counts_unfrozen and bag.vs >= self.frozen
        else:
            ends.add(element.ve)
            if bag.vs < self.frozen:
                self.index.due.wait(element.ve, bag)
        self.policy.moved(self, bag, each)
        self._tidy(bag)

    def _tidy(self, bag: Bag) -> None:
        if not bag.out.size and not any(e.size for e in bag.inputs.values()) and bag.vs >= self.frozen:
            self.remove(bag)

    # Bounds

    def decide(self, node: Bag, bound: int) -> bool:
        """Ask the voters how many events there are and which ends, that can no longer move, they have."""
        voters = self.voters
        if len(voters) == 1 and self.driver != MAJORITY:
            verdict = node.said_by(voters[0])
        else:
            said = [node.said_by(v) for v in voters]
            elected = self.elect([self._frozen_part(ends, node.agreed, bound) for ends in said])
            if elected is None:
                return False
            verdict = said[elected]
        self._agree(node, verdict, bound)
        node.agreed = bound
        if self._is_done(node, verdict, bound):
            self.remove(node)
            if self.watch is not None:
                said_by = {i.number: list(node.said_by(i)) for i in self.inputs.values() if node.said_by(i).size}
                self.watch.decided(node.payload, node.vs, tuple(node.out), said_by)
        else:
            self.index.due.wait(node.next_end(bound), node)
        return True

    def _frozen_part(self, ends: EndBag, since: int, bound: int) -> tuple[tuple[int, ...], int]:
        """The ends that are frozen since a bag was agreed on, and the number of those that can still move."""
        final = sorted(e for e in ends if since <= e and self.is_final(e, bound))
        return tuple(final), sum(n for e, n in ends.counts.items() if not self.is_final(e, bound))

    def _is_done(self, bag: Bag, verdict: EndBag, bound: int) -> bool:
        return all(self.is_final(end, bound) for ends in (verdict, bag.out) for end in ends.counts)

    def _agree(self, bag: Bag, verdict: EndBag, bound: int) -> None:
        """Make the output say what the verdict says, where it must."""
        if self.policy.final_only:
            for end in sorted(verdict.without(bag.out, bag.agreed)):
                if self.is_final(end, bound):
                    self._put(bag, end)
            if not self._is_done(bag, verdict, bound):
                self.waiting.add(bag)
        elif bag.out.counts != verdict.counts:
            if bag.agreed == MIN_TICK:
                self._match_count(bag, verdict, bound)
            self._match_ends(bag, verdict, bound)

    def _match_count(self, bag: Bag, verdict: EndBag, bound: int) -> None:
        """As many events in the output as in the verdict."""
        short = verdict.size - bag.out.size
        if short > 0:
            for end in _in_order(verdict.without(bag.out, MIN_TICK), bound)[:short]:
                self._put(bag, end)
        elif short < 0:
            for end in _in_order(bag.out.without(verdict, MIN_TICK), bound)[:-short]:
                self._move_out(bag, end, None)

    def _match_ends(self, bag: Bag, verdict: EndBag, bound: int) -> None:
        """The verdict's ends, wherever they or the output's would be fully frozen."""
        lacking = _in_order(verdict.without(bag.out, bag.agreed), bound)
        surplus = _in_order(bag.out.without(verdict, bag.agreed), bound)
        forced = max(sum(self.is_final(e, bound) for e in ends) for ends in (lacking, surplus))
        for old, new in list(zip(surplus, lacking, strict=False))[:forced]:
            self._move_out(bag, old, new)

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

    def reports(self, node: Bag, each: Input) -> int:
        """As many as it has."""
        return node.said_by(each).size

    def lacking(self, node: Bag) -> int:
        """What the input with most of them has more."""
        return max(max((ends.size for ends in node.inputs.values()), default=0) - node.out.size, 0)

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
            latest = self._latest
            if ends.counts.get(latest, 0) > node.out.counts.get(latest, 0):
                self._put(node, latest)
            else:
                self._put(node, min(ends.without(node.out, MIN_TICK)))

    def introduce_all(self, node: Bag, each: Input) -> None:
        """Put out as many as an input has."""
        ends = node.said_by(each)
        for end in sorted(ends.without(node.out, MIN_TICK))[: max(ends.size - node.out.size, 0)]:
            self._put(node, end)

    def close(self, node: Bag, each: Input) -> None:
        """Ends that an input gives, as many as are open in the output."""
        lacking = [e for e in node.said_by(each).without(node.out, self.stable) if e != END_OF_TIME]
        for end in sorted(lacking)[: node.out.counts.get(END_OF_TIME, 0)]:
            self._move_out(node, END_OF_TIME, end)

    def reflect(self, node: Bag, each: Input) -> None:
        """The multiset that an input has, as far as the output's bound allows."""
        said = node.said_by(each)
        lacking, surplus = sorted(said.without(node.out, self.stable)), sorted(node.out.without(said, self.stable))
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
