"""What R3 is measured against: an index per input (R3-), and cleansing before a simple merge (Cleanse + R1)."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from penstock.model.elements import Adjust, Element, Insert, Payload, Punctuation, linear
from penstock.model.likeness import Likeness, alike, exact_part, has_float, tie
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.merge.base import Input, LogicalMerge
from penstock.operators.merge.divergence import Divergence, Watch
from penstock.operators.merge.ordered import R1
from penstock.operators.merge.r3 import REPEATED
from penstock.operators.merge.revisable import RevisableMerge

Key = tuple[int, Payload]


class R3Minus(LogicalMerge):
    """R3 with an index of events for every input and one for the output: simple, and everything is held n times."""

    name = "R3-"

    def __init__(self, *args: Any, watch: Watch | None = None, **options: Any) -> None:
        """As any merge."""
        self.watch = watch
        self.ends: dict[int, dict[Key, int]] = {}
        self.shown: dict[Key, int] = {}
        self.likeness = Likeness()
        super().__init__(*args, **options)

    def _own(self, each: Input) -> dict[Key, int]:
        return self.ends.setdefault(each.number, {})

    def _key(self, element: Insert | Adjust) -> Key:
        return element.vs, self.likeness.find(element.vs, element.payload)

    def insert(self, each: Input, element: Insert) -> None:
        """Into the input's own index, and into the output's if it is new."""
        key = self._key(element)
        if element.vs < self.stable and key not in self.shown:
            if self.watch is not None and not self.watch.insert(each, element, self.stable, repeats=False):
                self.reject(each, element, REPEATED)
            return
        own = self._own(each)
        if key in own:
            self.reject(each, element, REPEATED)
            return
        own[key] = element.ve
        if key not in self.shown:
            self.shown[key] = element.ve
            self.likeness.add(*key)
            self.emit_insert(element)

    def adjust(self, each: Input, element: Adjust) -> None:
        """In the input's own index."""
        own, key = self._own(each), self._key(element)
        if own.get(key) != element.v_old:
            if (
                element.vs >= self.stable
                or key in self.shown
                or (self.watch is not None and not self.watch.adjust(each, element))
            ):
                self.reject(each, element, "an adjust of an event that the input has not reported")
        elif element.ve == element.vs:
            del own[key]
        else:
            own[key] = element.ve

    def bound(self, each: Input, bound: int) -> None:
        """Go as far as the joined input that is furthest ahead."""
        if each.joined:
            self._evaluate()
        if self.watch is not None:
            self.watch.passed(self.inputs.values())

    def membership_changed(self) -> None:
        """Somebody else may drive now, and those who are left may all have passed what was kept."""
        self._evaluate()
        if self.watch is not None:
            self.watch.passed(self.inputs.values())

    def _evaluate(self) -> None:
        """Whoever has joined and is furthest ahead drives the output."""
        while True:
            ahead = max(self.heard(), key=lambda i: i.stable, default=None)
            if ahead is not None and ahead.stable > self.max_stable:
                self._freeze(ahead, ahead.stable)
            if not self._join():
                return

    def _freeze(self, each: Input, bound: int) -> None:
        """Compare every event before the bound in the output's index with the input's."""
        own = self._own(each)
        for key in [k for k in self.shown if k[0] < bound or bound == END_OF_TIME]:
            shown, end = self.shown[key], own.get(key)
            if end is None:
                if key[0] >= self.stable:
                    self.emit_adjust(key[1], key[0], shown, key[0])
                    self._done(key, ())
                elif RevisableMerge.is_final(shown, bound):
                    self._done(key, (shown,))
                continue
            final = RevisableMerge.is_final(end, bound)
            if shown != end and (final or shown < bound) and min(shown, end) >= self.stable:
                self.emit_adjust(key[1], key[0], shown, end)
                self.shown[key] = shown = end
            if final:
                self._done(key, (shown,))
        self.max_stable = bound
        self.emit_bound(bound)

    def _done(self, key: Key, out: tuple[int, ...]) -> None:
        """Nothing more can change the event in the output: no index needs it."""
        del self.shown[key]
        self.likeness.discard(*key)
        said = {number: [end] for number, own in self.ends.items() if (end := own.pop(key, None)) is not None}
        if self.watch is not None:
            self.watch.decided(key[1], key[0], out, said)

    def forget(self, each: Input) -> None:
        """Its index."""
        self.ends.pop(each.number, None)
        if self.watch is not None:
            self.watch.forget(each)

    @property
    def divergences(self) -> list[Divergence]:
        """Where inputs were found to differ, in the order of discovery."""
        return self.watch.found if self.watch is not None else []


class Cleanse:
    """Holds a stream back until its events are final, and gives them in order: an ordered, insert-only stream.

    Ties come in the order of their exact parts, then of their floats. Replicas give the exact ones alike; floats may
    differ in their last bits, and with these the order.
    """

    def __init__(self, attribute: str = "vs") -> None:
        """Start empty."""
        self.attribute = attribute
        self.events: dict[Key, int] = {}
        self.order: list[tuple[int, str, str, Payload]] = []
        self.stable = MIN_TICK
        self.likeness = Likeness()

    def push(self, element: Insert | Adjust | Punctuation) -> list[Element] | str:
        """Take an element; what is final and next in order comes out, or why it cannot be."""
        if isinstance(element, Punctuation):
            return self._release(element.value)
        key = (element.vs, self.likeness.find(element.vs, element.payload))
        if isinstance(element, Insert):
            if key in self.events:
                return REPEATED
            self.events[key] = element.ve
            self.likeness.add(*key)
            heappush(self.order, (element.vs, *tie(element.payload), element.payload))
        elif self.events.get(key) != element.v_old:
            return "an adjust of an event that the input has not reported"
        elif element.ve == element.vs:
            self._forget(key)
        else:
            self.events[key] = element.ve
        return []

    def _forget(self, key: Key) -> None:
        del self.events[key]
        self.likeness.discard(*key)

    def _release(self, bound: int) -> list[Element]:
        out: list[Element] = []
        while self.order:
            vs, _, _, payload = self.order[0]
            end = self.events.get((vs, payload))
            if end is None:  # removed, or given out already
                heappop(self.order)
                continue
            if vs >= bound or not RevisableMerge.is_final(end, bound):
                break
            heappop(self.order)
            self._forget((vs, payload))
            out.append(Insert(payload, vs, end))
        reached = bound if not self.order else min(bound, self.order[0][0])
        if reached > self.stable:
            self.stable = reached
            out.append(linear(self.attribute, reached))
        return out


class CleanseThenR1(R1):
    """A Cleanse on every input, then R1.

    Events with floats have no order among ties that all replicas would share, so they are told apart by likeness: one
    is new if its input has brought it and nothing like it is out.
    """

    name = "Cleanse + R1"

    def __init__(self, *args: Any, **options: Any) -> None:
        """As any merge."""
        self.cleansers: dict[str, Cleanse] = {}
        self.raw: dict[str, int] = {}
        """The bounds that inputs have said themselves."""
        self._like: dict[Payload, list[tuple[Payload, int]]] = {}
        """Those of the greatest start that were put out and have floats, with the inputs that brought them."""
        super().__init__(*args, **options)

    def push(self, name: str, element: Element) -> list[Element]:
        """Through the input's Cleanse."""
        each = self.input_of(name)
        cleanser = self.cleansers.get(name)
        if cleanser is None:
            cleanser = self.cleansers[name] = Cleanse(self.attribute)
        why = self._contradicts(name, element)
        if why is None and (not isinstance(element, Punctuation) or element.is_linear):
            clean = cleanser.push(element)
            if not isinstance(clean, str):
                return [out for c in clean for out in self._merge(name, c)]
            why = clean
        if why is not None:
            self.reject(each, element, why)
        return []

    def _merge(self, name: str, element: Element) -> list[Element]:
        """What is known by its place is quickly done with, if it has one."""
        placed = not (isinstance(element, Insert) and has_float(element.payload))
        return super().push(name, element) if placed else super(R1, self).push(name, element)

    def is_new(self, each: Input, element: Insert) -> bool:
        """By its place, or by likeness to one that this input has not brought."""
        if not has_float(element.payload):
            return super().is_new(each, element)
        if element.vs != self.max_vs:
            return element.vs > self.max_vs
        known = self._like.get(exact_part(element.payload), [])
        for place, (payload, brought) in enumerate(known):
            if not brought & each.bit and alike(payload, element.payload):
                known[place] = payload, brought | each.bit
                return False
        return True

    def take(self, each: Input, element: Insert) -> None:
        """One more, or the first of a new start."""
        if element.vs != self.max_vs:
            self._like.clear()
        if not has_float(element.payload):
            super().take(each, element)
            return
        if element.vs != self.max_vs:
            self.max_vs = self.oldest_new = element.vs
            self._ties_out = 0
        self._like.setdefault(exact_part(element.payload), []).append((element.payload, each.bit))

    def _contradicts(self, name: str, element: Element) -> str | None:
        said = self.raw.get(name, MIN_TICK)
        if isinstance(element, Punctuation):
            if element.is_linear and element.value < said:
                return f"a bound of {element.value} after one of {said}"
            self.raw[name] = element.value if element.is_linear else said
            return None
        if isinstance(element, Insert):
            return f"an insert at {element.vs}, below the input's own bound {said}" if element.vs < said else None
        return f"an adjust below the input's own bound {said}" if element.lateness_time < said else None

    def forget(self, each: Input) -> None:
        """Its Cleanse."""
        super().forget(each)
        for known in self._like.values():
            known[:] = [(payload, brought & ~each.bit) for payload, brought in known]
        self.cleansers.pop(each.name, None)
        self.raw.pop(each.name, None)
