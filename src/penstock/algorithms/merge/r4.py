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

from collections import Counter
from collections.abc import Iterator
from typing import Any

from penstock.algorithms.merge.base import Input
from penstock.algorithms.merge.index import Calendar
from penstock.algorithms.merge.revisable import UNDECIDED, RevisableMerge
from penstock.model.elements import Adjust, Insert, Payload

Ends = Counter[int]


class Bag:
    """The events of one start and payload: per input, and in the output, how many have each end."""

    __slots__ = ("first_seen", "inputs", "out", "payload", "vs")

    def __init__(self, payload: Payload, vs: int, first_seen: int) -> None:
        """Start without events."""
        self.payload, self.vs, self.first_seen = payload, vs, first_seen
        self.inputs: dict[int, Ends] = {}
        self.out: Ends = Counter()


class ThreeTierIndex:
    """The living bags of all inputs."""

    def __init__(self) -> None:
        """Start empty."""
        self.nodes: dict[tuple[int, Payload], Bag] = {}
        self.starts: Calendar = Calendar()
        self.ends: Calendar = Calendar()

    def lives(self, bag: Bag) -> bool:
        """Whether a bag taken from a queue is still in the index."""
        return self.nodes.get((bag.vs, bag.payload)) is bag

    def remove(self, bag: Bag) -> None:
        """A bag that is done with."""
        self.nodes.pop((bag.vs, bag.payload), None)

    def frozen_by(self, bound: int) -> list[Bag]:
        """The living bags with a start or an end that only now is passed."""
        found: dict[int, Any] = {id(b): b for b in self.starts.take(bound)}
        found.update((id(b), b) for b in self.ends.take(bound))
        return [b for b in found.values() if self.lives(b)]


class R4(RevisableMerge):
    """The merge with the three-tier index."""

    name = "R4"

    def __init__(self, *args: Any, **options: Any) -> None:
        """As any revisable merge."""
        self.index = ThreeTierIndex()
        self.waiting = Calendar()
        super().__init__(*args, **options)

    # Elements

    def insert(self, each: Input, element: Insert) -> None:
        """One more event of its start and payload."""
        vs, ve = element.vs, element.ve
        each.greatest = max(each.greatest, vs)
        key = (vs, element.payload)
        bag = self.index.nodes.get(key)
        if bag is None:
            if vs < self.frozen:
                return
            bag = self.index.nodes[key] = Bag(element.payload, vs, self.counts.taken)
            self.index.starts.add(vs, bag)  # type: ignore[arg-type]
        ends = bag.inputs.setdefault(each.number, Counter())
        if not ends[ve]:
            self.index.ends.add(ve, bag)  # type: ignore[arg-type]
        ends[ve] += 1
        each.unfrozen += 1
        self._latest = ve
        self.policy.reported(self, bag, each)

    def adjust(self, each: Input, element: Adjust) -> None:
        """One of the events with the old end gets the new one, or goes."""
        bag = self.index.nodes.get((element.vs, element.payload))
        ends = None if bag is None else bag.inputs.get(each.number)
        if bag is None or ends is None or not ends[element.v_old]:
            if element.vs >= self.frozen or bag is not None:
                self.reject(each, element, "an adjust of an event that the input has not reported")
            return
        _move(ends, element.v_old, None if element.ve == element.vs else element.ve)
        if element.ve == element.vs:
            each.unfrozen -= 1
        else:
            self.index.ends.add(element.ve, bag)  # type: ignore[arg-type]
        self.policy.moved(self, bag, each)
        self._tidy(bag)

    def _tidy(self, bag: Bag) -> None:
        if not bag.out and not any(bag.inputs.values()) and bag.vs >= self.frozen:
            self.index.remove(bag)

    # Bounds

    def freeze(self, bound: int, voters: list[Input]) -> None:
        """Agree on the bags whose start or some end is passed."""
        self.undecided = []
        for bag in self.index.frozen_by(bound):
            said = [tuple(sorted((+bag.inputs.get(v.number, Counter())).items())) for v in voters]
            verdict = self.verdict(list(said))
            if verdict is UNDECIDED:
                self.undecided.append(bag.vs)
                self.index.ends.add(bag.vs, bag)  # type: ignore[arg-type]
                continue
            if bag.vs >= self.frozen:
                for each in self.inputs.values():
                    each.unfrozen -= sum(bag.inputs.get(each.number, Counter()).values())
            self._agree(bag, Counter(dict(verdict)), bound)  # type: ignore[call-overload]

    def _agree(self, bag: Bag, verdict: Ends, bound: int) -> None:
        if self.policy.final_only:
            self._agree_when_final(bag, verdict, bound)
            return
        if bag.vs >= self.frozen:
            self._match_count(bag, verdict, bound)
        self._match_ends(bag, verdict, bound)
        if all(self.is_final(end, bound) for end in verdict):
            self.index.remove(bag)

    def _match_count(self, bag: Bag, verdict: Ends, bound: int) -> None:
        """As many events in the output as in the verdict."""
        lacking = _sorted(verdict - bag.out, bound)
        surplus = _sorted(bag.out - verdict, bound)
        short = sum(verdict.values()) - sum(bag.out.values())
        for end in lacking[: max(short, 0)]:
            self._put(bag, end)
        for end in surplus[: max(-short, 0)]:
            self._move_out(bag, end, None)

    def _match_ends(self, bag: Bag, verdict: Ends, bound: int) -> None:
        """The verdict's ends, wherever they or the output's would be fully frozen."""
        lacking = _sorted(verdict - bag.out, bound)
        surplus = _sorted(bag.out - verdict, bound)
        forced = max(sum(self.is_final(e, bound) for e in lacking), sum(self.is_final(e, bound) for e in surplus))
        for old, new in list(zip(surplus, lacking, strict=False))[:forced]:
            self._move_out(bag, old, new)

    def _agree_when_final(self, bag: Bag, verdict: Ends, bound: int) -> None:
        """Put out what is fully frozen; the rest waits."""
        for end in sorted((verdict - bag.out).elements()):
            if self.is_final(end, bound):
                self._put(bag, end)
        if all(self.is_final(end, bound) for end in +verdict):
            self.index.remove(bag)
        else:
            self.waiting.add(bag.vs, bag)  # type: ignore[arg-type]

    def _put(self, bag: Bag, end: int) -> None:
        if bag.vs >= self.stable:
            self.counts.waited += self.counts.taken - bag.first_seen
            self.emit_insert(Insert(bag.payload, bag.vs, end))
            bag.out[end] += 1

    def _move_out(self, bag: Bag, old: int, new: int | None) -> None:
        target = bag.vs if new is None else new
        if min(old, target) >= self.stable:
            self.emit_adjust(bag.payload, bag.vs, old, target)
            _move(bag.out, old, new)

    def output_bound(self, frozen: int) -> int:
        """Where events wait for their end, the output waits for the oldest of them."""
        oldest = self.oldest_waiting()
        return frozen if oldest is None else min(frozen, oldest)

    def oldest_waiting(self) -> int | None:
        """The least start among events that wait for their end, or for a verdict."""
        waiting = self.waiting.first_living(self.index)  # type: ignore[arg-type]
        return min([*self.undecided, *([] if waiting is None else [waiting])], default=None)

    def next_time(self) -> int | None:
        """The least time such that a bound beyond it may freeze something."""
        times = [t for t in (self.index.starts.first(), self.index.ends.first()) if t is not None]
        return min(times, default=None)

    # For policies

    def living(self) -> Iterator[Bag]:
        """Every bag in the index."""
        return iter(self.index.nodes.values())

    def has(self, node: Bag, each: Input) -> bool:
        """Whether it has reported at least one."""
        return bool(+node.inputs.get(each.number, Counter()))

    def holders(self, node: Bag) -> int:
        """How many inputs have reported as many as the one that reported most."""
        sizes = [sum(ends.values()) for ends in node.inputs.values()]
        return sum(size > sum(node.out.values()) for size in sizes)

    def drop(self, node: Bag, each: Input) -> None:
        """Forget what an input said."""
        node.inputs.pop(each.number, None)
        self._tidy(node)

    def introduce(self, node: Bag, each: Input) -> None:
        """Put out what was just reported, if the input has more events than the output."""
        ends = node.inputs.get(each.number, Counter())
        if sum(ends.values()) > sum(node.out.values()):
            lacking = ends - node.out
            self._put(node, self._latest if self._latest in lacking else min(lacking))

    def reflect(self, node: Bag, each: Input) -> None:
        """The multiset that an input has, as far as the output's bound allows."""
        said = +node.inputs.get(each.number, Counter())
        lacking, surplus = sorted((said - node.out).elements()), sorted((node.out - said).elements())
        for old, new in zip(surplus, lacking, strict=False):
            self._move_out(node, old, new)
        if node.vs >= self.stable:
            for end in lacking[len(surplus) :]:
                self._put(node, end)
            for end in surplus[len(lacking) :]:
                self._move_out(node, end, None)

    _latest = 0


def _move(ends: Ends, old: int, new: int | None) -> None:
    ends[old] -= 1
    if not ends[old]:
        del ends[old]
    if new is not None:
        ends[new] += 1


def _sorted(ends: Ends, bound: int) -> list[int]:
    """Ends that a bound freezes first: these must move, the others may."""
    return sorted(ends.elements(), key=lambda end: (end >= bound, end))
