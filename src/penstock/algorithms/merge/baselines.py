"""What R3 is measured against: an index per input (R3-), and cleansing before a simple merge (Cleanse + R1)."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from penstock.algorithms.merge.base import Input, LogicalMerge
from penstock.algorithms.merge.ordered import R1
from penstock.algorithms.merge.revisable import RevisableMerge
from penstock.model.elements import Adjust, Element, Insert, Payload, linear
from penstock.model.time import END_OF_TIME, MIN_TICK

Key = tuple[int, Payload]


class R3Minus(LogicalMerge):
    """R3 with an index of events for every input and one for the output: simple, and everything is held n times."""

    name = "R3-"

    def __init__(self, *args: Any, **options: Any) -> None:
        """As any merge."""
        self.ends: dict[int, dict[Key, int]] = {}
        self.shown: dict[Key, int] = {}
        super().__init__(*args, **options)

    def _own(self, each: Input) -> dict[Key, int]:
        return self.ends.setdefault(each.number, {})

    def insert(self, each: Input, element: Insert) -> None:
        """Into the input's own index, and into the output's if it is new."""
        key = (element.vs, element.payload)
        if element.vs < self.stable and key not in self.shown:
            return
        self._own(each)[key] = element.ve
        if key not in self.shown:
            self.shown[key] = element.ve
            self.emit_insert(element)

    def adjust(self, each: Input, element: Adjust) -> None:
        """In the input's own index."""
        own, key = self._own(each), (element.vs, element.payload)
        if own.get(key) != element.v_old:
            if element.vs >= self.stable:
                self.reject(each, element, "an adjust of an event that the input has not reported")
        elif element.ve == element.vs:
            del own[key]
        else:
            own[key] = element.ve

    def bound(self, each: Input, bound: int) -> None:
        """Compare every event before the bound in the output's index with the input's."""
        if not each.joined or bound <= self.max_stable:
            return
        own = self._own(each)
        for key in [k for k in self.shown if k[0] < bound or bound == END_OF_TIME]:
            shown, end = self.shown[key], own.get(key)
            if end is None:
                self.emit_adjust(key[1], key[0], shown, key[0])
                del self.shown[key]
                continue
            final = RevisableMerge.is_final(end, bound)
            if shown != end and (final or shown < bound):
                self.emit_adjust(key[1], key[0], shown, end)
                self.shown[key] = end
            if final:
                del self.shown[key]
                for index in self.ends.values():
                    index.pop(key, None)
        self.max_stable = bound
        self.emit_bound(bound)
        self._join()

    def forget(self, each: Input) -> None:
        """Its index."""
        self.ends.pop(each.number, None)


class Cleanse:
    """Holds a stream back until its events are final, and gives them in order: an ordered, insert-only stream."""

    def __init__(self, attribute: str = "vs") -> None:
        """Start empty."""
        self.attribute = attribute
        self.events: dict[Key, int] = {}
        self.order: list[tuple[int, str, Payload]] = []
        self.stable = MIN_TICK

    def push(self, element: Element) -> list[Element]:
        """Take an element; what is final and next in order comes out."""
        if isinstance(element, Insert):
            self.events[element.vs, element.payload] = element.ve
            heappush(self.order, (element.vs, repr(element.payload), element.payload))
            return []
        if isinstance(element, Adjust):
            key = (element.vs, element.payload)
            if element.ve == element.vs:
                self.events.pop(key, None)
            else:
                self.events[key] = element.ve
            return []
        return self._release(element.value)

    def _release(self, bound: int) -> list[Element]:
        out: list[Element] = []
        while self.order:
            vs, _, payload = self.order[0]
            end = self.events.get((vs, payload))
            if end is None:  # removed, or given out already
                heappop(self.order)
                continue
            if vs >= bound or not RevisableMerge.is_final(end, bound):
                break
            heappop(self.order)
            del self.events[vs, payload]
            out.append(Insert(payload, vs, end))
        reached = bound if not self.order else min(bound, self.order[0][0])
        if reached > self.stable:
            self.stable = reached
            out.append(linear(self.attribute, reached))
        return out


class CleanseThenR1(R1):
    """A Cleanse on every input, then R1."""

    name = "Cleanse + R1"

    def __init__(self, *args: Any, **options: Any) -> None:
        """As any merge."""
        self.cleansers: dict[str, Cleanse] = {}
        super().__init__(*args, **options)

    def push(self, name: str, element: Element) -> list[Element]:
        """Through the input's Cleanse."""
        cleanser = self.cleansers.get(name)
        if cleanser is None:
            cleanser = self.cleansers[name] = Cleanse(self.attribute)
        return [out for clean in cleanser.push(element) for out in super(CleanseThenR1, self).push(name, clean)]

    def forget(self, each: Input) -> None:
        """Its Cleanse."""
        super().forget(each)
        self.cleansers.pop(each.name, None)
