"""R0, R1 and R2: merges of ordered, insert-only streams, with next to no state (section IV-A).

All three follow the input that is furthest ahead: an insert that is behind the greatest start put out has been seen.
They differ in what tells inserts of the same start apart: nothing (R0: starts strictly increase), their place among the
ties (R1: ties come in the same order everywhere), or their payload (R2: payload and start are a key).

An input that attached late is complete only from some time on, so its inserts are held until the output is there: they
would make the events between look old. A replayed input is counted anew when its starts go back.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable

import numpy as np

from penstock.algorithms.merge.base import Input, LogicalMerge
from penstock.model.batch import Batch
from penstock.model.elements import Adjust, Element, Insert
from penstock.model.time import END_OF_TIME, MIN_TICK


class OrderedMerge(LogicalMerge):
    """What the three share."""

    max_vs = MIN_TICK
    """The greatest start put out."""
    oldest_new = MIN_TICK
    """Nothing that starts before this can be new."""

    def push(self, name: str, element: Element) -> list[Element]:
        """Most elements are behind what was put out, and quickly done with."""
        if type(element) is Insert and element.vs < self.oldest_new:
            each = self.inputs.get(name)
            if each is not None and each.joined and element.vs >= each.stable and self.width is None:
                self.counts.inserts_in += 1
                return []
        return super().push(name, element)

    def insert(self, each: Input, element: Insert) -> None:
        """Put it out if it is new; below the output's own bound nothing is."""
        each.greatest = max(each.greatest, element.vs)
        if not each.joined:
            each.held.append(element)
        elif self.is_new(each, element) and element.vs >= self.stable:
            self.take(element)
            self.emit_insert(element)
            self._release()

    def adjust(self, each: Input, element: Adjust) -> None:
        """There are none in such streams."""
        self.reject(each, element, f"an adjust in a stream that was declared insert-only ({self.name})")

    def bound(self, each: Input, bound: int) -> None:
        """The output has come as far as the input that is furthest ahead, if that one misses nothing."""
        if each.joined and bound > self.max_stable:
            self.max_stable = bound
            self.emit_bound(bound)
            self._release()

    def _release(self) -> None:
        """Inputs whose time has come join, and what they brought is taken up.

        Everything before the start that was put out last has come, so that start counts as well as a bound.
        """
        if all(i.joined for i in self.inputs.values()):
            return
        reached = max(self.max_vs, self.max_stable)
        for each in [i for i in self.inputs.values() if not i.joined and i.complete_from <= reached]:
            each.joined = True
            held, each.held = each.held, []
            for element in held:
                self.insert(each, element)
            self.bound(each, each.stable)

    def forget(self, each: Input) -> None:
        """Only R1 keeps something per input."""

    @abstractmethod
    def is_new(self, each: Input, element: Insert) -> bool:
        """Whether the event has not been put out."""

    @abstractmethod
    def take(self, element: Insert) -> None:
        """The event is put out."""


class R0(OrderedMerge):
    """Strictly increasing starts: an insert is new if it increases the greatest start."""

    name = "R0"

    def is_new(self, each: Input, element: Insert) -> bool:
        """By its start alone."""
        return element.vs > self.max_vs

    def take(self, element: Insert) -> None:
        """Remember the start, of which there is no other event."""
        self.max_vs = element.vs
        self.oldest_new = element.vs + 1

    def push_batch(self, name: str, batch: Batch) -> Batch | None:
        """A batch of inserts of one input, in order: the part of it that is new, without looking at rows one by one.

        Only once every input has joined: before that, what others brought may have to come out with it.
        """
        each = self._input(name)
        assert all(i.joined for i in self.inputs.values())
        times = batch.times()
        if not len(times):
            return None
        first, last = int(times[0]), int(times[-1])
        if first < each.stable or not (np.diff(times) > 0).all():
            return self._by_element(each, batch)
        each.greatest = max(each.greatest, last)
        self.counts.inserts_in += len(times)
        if last <= self.max_vs or last < self.stable:
            return None
        cut = int(np.searchsorted(times, max(self.max_vs + 1, self.stable)))
        self.max_vs, self.oldest_new = last, last + 1
        self.counts.inserts_out += len(times) - cut
        return Batch(batch.schema, table=batch.table.slice(cut)) if cut else batch

    def _by_element(self, each: Input, batch: Batch) -> Batch | None:
        """A batch in which something is wrong: each element by itself, so that only the wrong ones are put aside."""
        kept: list[bool] = []
        previous = MIN_TICK
        for event in batch.inserts():
            if event.vs <= previous:
                self.reject(each, event, f"a start of {event.vs} after one of {previous} in a strictly ordered stream")
                kept.append(False)
                continue
            previous = event.vs
            kept.append(any(isinstance(e, Insert) for e in self.push(each.name, event)))
        return batch.select(kept) if any(kept) else None


class R1(OrderedMerge):
    """Ties in the same order everywhere: an insert is new if its input has brought more ties than were put out."""

    name = "R1"
    _ties_out = 0

    def push(self, name: str, element: Element) -> list[Element]:
        """A tie that is known is quickly counted and done with."""
        if type(element) is Insert and element.vs == self.max_vs:
            each = self.inputs.get(name)
            if each is not None and each.joined and element.vs >= each.stable and self.width is None:
                place = each.ties + 1 if element.vs == each.tie_start else 1
                if place <= self._ties_out:
                    each.tie_start, each.ties = element.vs, place
                    self.counts.inserts_in += 1
                    return []
        return super().push(name, element)

    def is_new(self, each: Input, element: Insert) -> bool:
        """By its place among the ties of its start; an input counts from the first of them."""
        vs = element.vs
        if vs == each.tie_start:
            each.ties += 1
        else:
            each.tie_start, each.ties = vs, 1
        return vs > self.max_vs or (vs == self.max_vs and each.ties > self._ties_out)

    def take(self, element: Insert) -> None:
        """One more tie, or the first of a new start."""
        self._ties_out = self._ties_out + 1 if element.vs == self.max_vs else 1
        self.max_vs = self.oldest_new = element.vs

    def forget(self, each: Input) -> None:
        """Its count."""
        each.tie_start, each.ties = MIN_TICK, 0


class R2(OrderedMerge):
    """Payload and start are a key: an insert is new if its payload is not among those of the greatest start."""

    name = "R2"

    def __init__(self, *args: object, **options: object) -> None:
        """As any merge."""
        self._seen: set[Hashable] = set()
        super().__init__(*args, **options)  # type: ignore[arg-type]

    def push(self, name: str, element: Element) -> list[Element]:
        """A payload that is known is quickly done with."""
        if type(element) is Insert and element.vs == self.max_vs and element.payload in self._seen:
            each = self.inputs.get(name)
            if each is not None and each.joined and element.vs >= each.stable and self.width is None:
                self.counts.inserts_in += 1
                return []
        return super().push(name, element)

    def is_new(self, each: Input, element: Insert) -> bool:
        """By its payload, among those that started with it."""
        return element.vs > self.max_vs or (element.vs == self.max_vs and element.payload not in self._seen)

    def take(self, element: Insert) -> None:
        """Remember the payload as long as its start is the greatest."""
        if element.vs > self.max_vs:
            self.max_vs = self.oldest_new = element.vs
            self._seen.clear()
        self._seen.add(element.payload)

    def bound(self, each: Input, bound: int) -> None:
        """Once the output has passed a start, its payloads are no longer needed."""
        super().bound(each, bound)
        if self.stable > self.max_vs or self.stable == END_OF_TIME:
            self._seen.clear()
