"""R0, R1 and R2: merges of ordered, insert-only streams, with next to no state (section IV-A).

All three follow the input that is furthest ahead: an insert that is behind the greatest start put out has been seen.
They differ in what tells inserts of the same start apart: nothing (R0: starts strictly increase), their place among the
ties (R1: ties come in the same order everywhere), or their key (R2: the columns of the key, where they are known, and
otherwise the whole payload, floats within their tolerance; the first that comes speaks for all).

Each input must keep the order that was declared: an insert behind one that the same input brought before is put aside
with the reason, and so is a repeat where there can be none. Nothing tells whether such an insert was ever put out, so
it is never dropped unseen. An input whose starts go back without a word may be replayed: when it then brings the first
of a tie again, R1 counts its ties anew; when it brings another, what went back was alone, and the count goes on.

An input that attached late is complete only from some time on, so its inserts are held until the output is there: they
would make the events between look old.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from penstock.model.batch import Batch
from penstock.model.elements import Adjust, Element, Insert, Payload
from penstock.model.likeness import alike, exact_part, has_float
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.merge.base import Input, LogicalMerge
from penstock.operators.merge.divergence import Divergence
from penstock.operators.merge.trail import Trail


class OrderedMerge(LogicalMerge):
    """What the three share."""

    max_vs = MIN_TICK
    """The greatest start put out."""
    oldest_new = MIN_TICK
    """Nothing that starts before this can be new."""
    step = 0
    """By how much an input's starts must at least increase."""

    def __init__(self, inputs: Iterable[str] = (), *, watch: Trail | None = None, **options: Any) -> None:
        """As any merge; a `watch` compares what every input says with what was put out."""
        self.watch = watch
        super().__init__(inputs, **options)

    def push(self, name: str, element: Element) -> list[Element]:
        """Most elements are behind what was put out, and quickly done with: they are only compared."""
        if type(element) is Insert and element.vs < self.oldest_new and self.width is None:
            vs = element.vs
            each = self.inputs.get(name)
            if each is not None and each.joined and vs >= each.least:
                each.least = vs + self.step
                each.spoke = True
                self.counts.inserts_in += 1
                if self.watch is not None:
                    self.watch.step(each, vs, element.payload, element.ve)
                return []
        return super().push(name, element)

    def insert(self, each: Input, element: Insert) -> None:
        """Put it out if it is new; below the output's own bound nothing is."""
        vs = element.vs
        if vs < each.least:
            how = "strictly ordered" if self.step else "ordered"
            last = each.least - self.step
            self.put_aside(each, element, f"a start of {vs} after one of {last} in a stream declared {how}")
            return
        each.least = vs + self.step
        if each.joined:
            self._offer(each, element)
        else:
            each.held.append(element)

    def put_aside(self, each: Input, element: Insert | Adjust, reason: str) -> None:
        """An element that a stream of this kind may not have."""
        self.reject(each, element, f"{reason} ({self.name})")

    def _offer(self, each: Input, element: Insert) -> None:
        new = self.is_new(each, element)
        if new is None:
            return
        if new and element.vs >= self.stable:
            self.take(each, element)
            self.counts.inserts_out += 1
            self.out.append(element)
            if self.watch is not None:
                self.watch.put(element.vs, element.payload, element.ve)
            if self.unjoined:
                self._release()
        if self.watch is not None:
            self.watch.step(each, element.vs, element.payload, element.ve)

    def adjust(self, each: Input, element: Adjust) -> None:
        """There are none in such streams."""
        self.reject(each, element, f"an adjust in a stream declared insert-only ({self.name})")

    def bound(self, each: Input, bound: int) -> None:
        """The output has come as far as the input that is furthest ahead, if that one misses nothing."""
        each.least = max(each.least, bound)
        if not each.joined:
            return
        if bound > self.max_stable and (bound < END_OF_TIME or each in self.heard()):
            self.max_stable = bound
            self.emit_bound(bound)
            self._release()
        if self.watch is not None:
            for passing in [each, *(i for i in self.inputs.values() if i.mute and i is not each)]:
                self.watch.passed(passing, self.inputs.values())

    @property
    def decided_to(self) -> int:
        """Everything before the start that was put out last has come, so that start counts as well as a bound."""
        return max(self.max_vs, self.max_stable)

    def _release(self) -> None:
        """Inputs whose time has come join, and what they brought is taken up."""
        for each in self._join():
            held, each.held = each.held, []
            for element in held:
                self._offer(each, element)
            self.bound(each, each.stable)

    def membership_changed(self) -> None:
        """Whoever has joined has said its bound already, unless it was empty and another one was to be heard first."""
        if self.max_stable < END_OF_TIME and any(i.stable == END_OF_TIME for i in self.heard()):
            self.max_stable = END_OF_TIME
            self.emit_bound(END_OF_TIME)
            self._release()

    def forget(self, each: Input) -> None:
        """What it brought of the start that it is at."""
        if self.watch is not None:
            self.watch.forget(each)

    @property
    def divergences(self) -> list[Divergence]:
        """Where inputs were found to differ, in the order of discovery."""
        return self.watch.found if self.watch is not None else []

    @abstractmethod
    def is_new(self, each: Input, element: Insert) -> bool | None:
        """Whether the event has not been put out; None if it was put aside."""

    @abstractmethod
    def take(self, each: Input, element: Insert) -> None:
        """The event is put out."""


class R0(OrderedMerge):
    """Strictly increasing starts: an insert is new if it increases the greatest start."""

    name = "R0"
    step = 1

    def push(self, name: str, element: Element) -> list[Element]:
        """What is further than all before it is new, and quickly put out."""
        if type(element) is Insert and element.vs > self.max_vs and self.width is None and not self.unjoined:
            vs = element.vs
            each = self.inputs.get(name)
            if each is not None and vs >= each.least and vs >= self.stable:
                each.least = self.oldest_new = vs + 1
                self.max_vs = vs
                each.spoke = True
                self.counts.inserts_in += 1
                self.counts.inserts_out += 1
                if self.watch is not None:
                    self.watch.put(vs, element.payload, element.ve)
                    self.watch.step(each, vs, element.payload, element.ve)
                return [element]
        return super().push(name, element)

    def is_new(self, each: Input, element: Insert) -> bool:
        """By its start alone."""
        return element.vs > self.max_vs

    def take(self, each: Input, element: Insert) -> None:
        """Remember the start, of which there is no other event."""
        self.max_vs = element.vs
        self.oldest_new = element.vs + 1

    def push_batch(self, name: str, batch: Batch) -> Batch | None:
        """A batch of inserts of one input, in order: the part of it that is new, without looking at rows one by one.

        Only once every input has joined: before that, what others brought may have to come out with it.
        """
        each = self.input_of(name)
        assert all(i.joined for i in self.inputs.values())
        times = batch.times()
        if not len(times):
            return None
        first, last = int(times[0]), int(times[-1])
        if first < each.least or not (np.diff(times) > 0).all():
            return self._by_element(each, batch)
        each.least, each.spoke = last + 1, True
        self.counts.inserts_in += len(times)
        new = self._new_part(batch, times, last)
        if self.watch is not None:
            if new is not None:
                self.watch.put_run(new)
            self.watch.step_run(each, batch)
        return new

    def _new_part(self, batch: Batch, times: np.ndarray, last: int) -> Batch | None:
        if last <= self.max_vs or last < self.stable:
            return None
        cut = int(np.searchsorted(times, max(self.max_vs + 1, self.stable)))
        self.max_vs, self.oldest_new = last, last + 1
        self.counts.inserts_out += len(times) - cut
        return batch.part(cut, len(batch))

    def _by_element(self, each: Input, batch: Batch) -> Batch | None:
        """A batch in which something is wrong: each element by itself, so that only the wrong ones are put aside."""
        kept = [any(isinstance(e, Insert) for e in self.push(each.name, event)) for event in batch.elements()]
        return batch.select(kept) if any(kept) else None


class R1(OrderedMerge):
    """Ties in the same order everywhere: an insert is new if its input has brought more ties than were put out."""

    name = "R1"
    _ties_out = 0
    _first: Payload | None = None
    """What was put out first of the greatest start: by it an input that is replayed is known."""

    def push(self, name: str, element: Element) -> list[Element]:
        """A tie that is known is quickly counted and done with."""
        if type(element) is Insert and element.vs == self.max_vs and self.width is None:
            vs = element.vs
            each = self.inputs.get(name)
            if each is not None and each.joined and vs >= each.least:
                place = each.ties + 1 if vs == each.tie_start else 1
                if 0 < place <= self._ties_out:
                    each.tie_start, each.ties, each.least, each.spoke = vs, place, vs, True
                    self.counts.inserts_in += 1
                    if self.watch is not None:
                        self.watch.step(each, vs, element.payload, element.ve)
                    return []
        return super().push(name, element)

    def is_new(self, each: Input, element: Insert) -> bool:
        """By its place among the ties of its start; an input counts from the first of them."""
        vs = element.vs
        if vs != each.tie_start:
            each.tie_start, each.ties = vs, 1
        elif each.ties >= 0:
            each.ties += 1
        else:
            replayed = self._first is not None and alike(self._first, element.payload)
            each.ties = 1 if replayed else 1 - each.ties
        return vs > self.max_vs or (vs == self.max_vs and each.ties > self._ties_out)

    def take(self, each: Input, element: Insert) -> None:
        """One more tie, or the first of a new start."""
        if element.vs == self.max_vs:
            self._ties_out += 1
        else:
            self._ties_out, self._first = 1, element.payload
        self.max_vs = self.oldest_new = element.vs

    def forget(self, each: Input) -> None:
        """Its count."""
        super().forget(each)
        each.tie_start, each.ties = MIN_TICK, 0

    def reject(self, each: Input, element: Element, reason: str) -> None:
        """If its starts go back it may be replayed, or one insert was out of order: its next tie tells which."""
        super().reject(each, element, reason)
        if isinstance(element, Insert) and element.vs < each.tie_start:
            each.ties = -abs(each.ties)


class R2(OrderedMerge):
    """Start and key tell events apart: an insert is new if its key is not among those of the greatest start."""

    name = "R2"

    def __init__(self, *args: Any, key: tuple[int, ...] | None = None, **options: Any) -> None:
        """`key`: the places of the key's columns in a payload, where they are known."""
        self.key = key
        self._seen: dict[Payload, int] = {}
        """The payloads of the greatest start that were put out, with the inputs that brought them."""
        self._like: dict[Hashable, list[tuple[Payload, int]]] = {}
        """The same by key or exact part, where not the whole payload counts."""
        super().__init__(*args, **options)

    def push(self, name: str, element: Element) -> list[Element]:
        """A payload that is known is quickly done with."""
        if type(element) is Insert and element.vs == self.max_vs and self.width is None:
            brought = self._seen.get(element.payload)
            each = self.inputs.get(name)
            if (
                brought is not None
                and each is not None
                and each.joined
                and element.vs >= each.least
                and not brought & each.bit
            ):
                self._seen[element.payload] = brought | each.bit
                each.least, each.spoke = element.vs, True
                self.counts.inserts_in += 1
                if self.watch is not None:
                    self.watch.step(each, element.vs, element.payload, element.ve)
                return []
        return super().push(name, element)

    def _identity(self, payload: Payload) -> Hashable | None:
        """What is looked up, where it is not the whole payload; without a key, all but its floats."""
        if self.key is not None:
            return tuple([payload[i] for i in self.key])
        return exact_part(payload) if has_float(payload) else None

    def is_new(self, each: Input, element: Insert) -> bool | None:
        """By its key, among those that started with it; an input may bring it once."""
        if element.vs != self.max_vs:
            return element.vs > self.max_vs
        identity = self._identity(element.payload)
        if identity is not None:
            return self._is_unlike(each, element, self._like.get(identity, []))
        brought = self._seen.get(element.payload)
        if brought is None:
            return True
        if brought & each.bit:
            self._repeated(each, element)
            return None
        self._seen[element.payload] = brought | each.bit
        return False

    def _is_unlike(self, each: Input, element: Insert, known: list[tuple[Payload, int]]) -> bool | None:
        """Whether it is none of those that share its key or its exact part; the first of a key speaks for all."""
        place = next((i for i, (first, _) in enumerate(known) if alike(first, element.payload)), None)
        if place is None:
            if self.key is None or not known:
                return True
            place = 0
            if self.watch is None and not known[0][1] & each.bit:
                self.put_aside(each, element, f"the output has other values for this key: {known[0][0]!r}")
                return None
        first, brought = known[place]
        if brought & each.bit:
            self._repeated(each, element)
            return None
        known[place] = (first, brought | each.bit)
        return False

    def _repeated(self, each: Input, element: Insert) -> None:
        self.put_aside(each, element, "the event is there already: payload and start are not a key; R4 allows that")

    def take(self, each: Input, element: Insert) -> None:
        """Remember the payload as long as its start is the greatest."""
        if element.vs > self.max_vs:
            self.max_vs = self.oldest_new = element.vs
            self._forget_ties()
        identity = None if self.key is None and not has_float(element.payload) else self._identity(element.payload)
        if identity is None:
            self._seen[element.payload] = each.bit
        else:
            self._like.setdefault(identity, []).append((element.payload, each.bit))

    @property
    def known(self) -> int:
        """How many events of the greatest start it remembers."""
        return len(self._seen) + sum(map(len, self._like.values()))

    def _forget_ties(self) -> None:
        self._seen.clear()
        if self._like:
            self._like.clear()

    def bound(self, each: Input, bound: int) -> None:
        """Once the output has passed a start, its payloads are no longer needed."""
        super().bound(each, bound)
        if self.stable > self.max_vs or self.stable == END_OF_TIME:
            self._forget_ties()

    def forget(self, each: Input) -> None:
        """What it has brought of the greatest start."""
        super().forget(each)
        for payload, brought in self._seen.items():
            self._seen[payload] = brought & ~each.bit
        for known in self._like.values():
            known[:] = [(payload, brought & ~each.bit) for payload, brought in known]
