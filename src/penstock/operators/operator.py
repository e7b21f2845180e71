"""What an operator is: it is handed batches and punctuation per input port and gives batches and punctuation.

Configuration is fixed when the operator is made; everything that changes is in its pages. An operator never reads a
clock and never knows which engine hosts it. Every output punctuation is sound (nothing that comes later contradicts it)
and prompt (it comes with the input punctuation that allows it), and none is repeated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, linear
from penstock.model.frontier import Frontier, carried
from penstock.model.interleaved import Interleaved
from penstock.model.schema import Schema
from penstock.model.time import MIN_TICK
from penstock.operators.state import PROMISES, MemoryPages, Pages


@dataclass(frozen=True)
class Rejected:
    """Rows that take no further part: late ones with the bound that condemned each, the others with the reason.

    A bound is a tick of the stream's time, or a promise where several attributes of the stream progress.

    A dead row was refused at the entrance of its stream. A failed one was on time, and an operator found no value for
    it: it is given as the operator saw it, and for an aggregate it is the window and the group.
    """

    kind: Literal["late", "dead", "failed"]
    batch: Batch
    bounds: Sequence[int | Punctuation]
    reasons: Sequence[str]


Output = Batch | Punctuation | Interleaved | Rejected
Outputs = Iterable[Output]
Carry = Callable[[int], int | None]
"""What a bound on the time of an input comes to on the time of the output; None if to nothing."""


def AS_IT_IS(bound: int) -> int:
    """A bound that stays what it is."""
    return bound


class Operator(ABC):
    """A running operator of a query graph."""

    ports = 1
    kind = "stateless"
    """What its pages are of, in the papers' words; kept with them."""
    version = 1
    """Of what is in its pages; see `penstock.operators.state`."""

    def __init__(self, schema: Schema) -> None:
        """`schema` is that of the output."""
        self.schema = schema
        self.pages: Pages = MemoryPages()

    @abstractmethod
    def process(self, port: int, batch: Batch) -> Outputs:
        """Take a batch that arrived on `port`."""

    @abstractmethod
    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Take a punctuation that arrived on `port`."""

    def interleave(self, port: int, given: Interleaved) -> Outputs:
        """Take rows with punctuation among them, one after the other; whoever can take all rows at once does so."""
        for element in given.elements():
            if isinstance(element, Batch):
                yield from self.process(port, element)
            else:
                yield from self.punctuate(port, element)

    def feedback(self, bound: int) -> int | None:
        """The consumer no longer needs what ends before `bound`; what this operator no longer needs of its inputs.

        None where that cannot be told. An operator may skip work and give up state for what is not needed; what it
        still puts out must be right.
        """
        return None

    def require(self, useful: tuple[int, int], told: int) -> None:  # noqa: B027 - most have nothing to do
        """Of bounds of its own, those that pass a multiple of a step from an origin are of use; `told` was the last.

        Said again when consumers come or go. What only passes bounds on need not know.
        """

    def carries(self, time: str) -> Carry | None:
        """What a linear bound on `time`, that of its only input, comes to, if `punctuate` gives just that on its own.

        None if it does anything else with it: releases rows, closes windows, gives up state, remembers what was
        promised, or says more than that. Then it cares; else promises may go past it.
        """
        return None

    starts_with_the_last = False
    """Whether a result starts when the last of what it is made of does (the reference-point method asks)."""

    is_ticked = False
    """Whether it wants to know what time it is."""

    def tick(self, now: int) -> Outputs:
        """It is `now`, in microseconds since 1970, by the clock of whoever hosts it; clocks may go back."""
        return ()

    def attach(self, pages: Pages) -> None:
        """Use these pages from now on; what is in them is the operator's state."""
        self.pages = pages

    def to_plain(self, key: str, page: Any) -> Any:
        """A page as plain data; most are that already."""
        return page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The page of plain data that this version, or an earlier one, wrote."""
        return data

    def is_on_time(self, punctuation: Punctuation) -> bool:
        """Whether a punctuation is linear and on the time, for an operator whose input has the time that it has."""
        return punctuation.is_linear and punctuation.attribute == self.schema.time

    def output_bound(self, bound: int) -> Punctuation:
        """The linear punctuation on this operator's own time attribute."""
        assert self.schema.time is not None
        return linear(self.schema.time, bound)


class Stateless(Operator):
    """An operator that passes punctuation on, under the names that attributes and columns have in its output."""

    def __init__(self, schema: Schema, names: Mapping[str, Sequence[str]] | None = None) -> None:
        """`names` are those that each attribute and column of the input has in the output; by default its own."""
        super().__init__(schema)
        self.names = names if names is not None else {name: (name,) for name in schema.names}
        self._same = {name for name, given in self.names.items() if list(given) == [name]}

    def feedback(self, bound: int) -> int | None:
        """A row lives as long as the row that it comes from, so what is not needed is the same."""
        return bound

    def punctuate(self, port: int, punctuation: Punctuation) -> Iterable[Punctuation]:
        """Pass it on; a punctuation on attributes that do not survive is dropped, which is sound."""
        if not punctuation.is_linear:
            yield from carried(punctuation, self.names)
            return
        attribute = punctuation.attribute
        for name in self.names.get(attribute, ()):
            yield punctuation if name == attribute else linear(name, punctuation.value)

    def carries(self, time: str) -> Carry | None:
        """As it is, where it goes on under one name."""
        return AS_IT_IS if list(self.names.get(time, ())) == [self.schema.time] else None

    def carried_over(self, port: int, given: Interleaved, batch: Batch, places: Sequence[int]) -> Outputs:
        """What becomes of rows with punctuation among them: a batch, in which it stands at these places."""
        if all(said.is_linear and said.bounds[0][0] in self._same for said in given.said):
            yield Interleaved(batch, places, given.said)
            return
        kept, said = [], []
        for place, punctuation in zip(places, given.said, strict=True):
            for each in self.punctuate(port, punctuation):
                kept.append(place)
                said.append(each)
        yield Interleaved(batch, kept, said)


class BoundMemory:
    """Remembers in a page the last bound that was passed on, so that none is repeated or goes back."""

    def __init__(self, key: str = "bound") -> None:
        """`key` names the page."""
        self.key = key

    def advance(self, pages: Pages, bound: int) -> bool:
        """Whether `bound` is new; if so it is remembered."""
        if bound <= self.last(pages):
            return False
        pages.put(self.key, bound)
        return True

    def last(self, pages: Pages) -> int:
        """What was passed on last."""
        found: int | None = pages.get(self.key)
        return MIN_TICK if found is None else found

    def set(self, pages: Pages, bound: int | None) -> None:
        """What was passed on last, counted anew; None if nothing was."""
        if bound is None:
            pages.delete(self.key)
        else:
            pages.put(self.key, bound)

    def promise(self, pages: Pages, promise: Punctuation, time: str | None = None) -> bool:
        """Whether a promise of another shape is new beside that bound; if so it is remembered until it is passed.

        `time` is what the bound is on; it must be given if that is not the one attribute of the promise.
        """
        frontier: Frontier = pages.get(PROMISES) or Frontier()
        last = pages.get(self.key)
        if last is not None:
            frontier.add(linear(promise.attribute if time is None else time, last))
        if not frontier.add(promise):
            return False
        pages.put(PROMISES, frontier)
        return True
