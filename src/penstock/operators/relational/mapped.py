"""Columns that are computed from attributes which progress, and rise with them: what bounds on these come to.

Of a column that rises with one attribute, `time / 60`, every bound becomes a bound on it. Of one that rises with
several together, `least(a.ts, b.ts)`, there is a bound once each of them has one, so the last on each is kept (thesis
7.1: a consumer that progresses on the lesser time needs both individual punctuations, on the greater either). The same
goes for promises of groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier, carried
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.state import PROMISES, Pages

HEARD, TOLD = f"{PROMISES} heard ", f"{PROMISES} told "
"""Pages of a column that rises with several attributes: what was promised of these, and of it."""


@dataclass(frozen=True)
class Mapped:
    """A column of the output, the attributes of the input that it rises with, and its value at bounds on them."""

    name: str
    attributes: tuple[str, ...]
    value: Callable[[Sequence[int]], int | None]

    def reached(self, bounds: Sequence[int]) -> int | None:
        """What bounds on the attributes come to; None if computing fails, and where nothing is known of one."""
        if MIN_TICK in bounds:
            return None
        if all(bound == END_OF_TIME for bound in bounds):
            return END_OF_TIME
        return self.value(bounds)

    def of(self, pages: Pages, promise: Punctuation, names: Mapping[str, Sequence[str]]) -> Iterator[Punctuation]:
        """What a promise on one of the attributes comes to; `names` are those that columns survive under."""
        if promise.is_joint or promise.attribute not in self.attributes:
            return
        if len(self.attributes) == 1:
            yield from self._made(self.reached([promise.value]), promise, names)
            return
        heard: Frontier = pages.get(HEARD + self.name) or Frontier()
        heard.add(promise)
        pages.put(HEARD + self.name, heard)
        constants = dict(promise.constants)
        bounds = [heard.bound(name, constants) for name in self.attributes]
        told: Frontier = pages.get(TOLD + self.name) or Frontier()
        for made in self._made(self.reached(bounds), promise, names):
            if told.add(made):
                pages.put(TOLD + self.name, told)
                yield made
        if promise.constants and all(bound == END_OF_TIME for bound in bounds):  # no input says that twice
            for frontier, attributes in ((heard, self.attributes), (told, (self.name,))):
                for name in attributes:
                    frontier.forget(Punctuation(((name, END_OF_TIME),), promise.constants))

    def _made(
        self, bound: int | None, promise: Punctuation, names: Mapping[str, Sequence[str]]
    ) -> Iterator[Punctuation]:
        if bound is not None:
            yield from carried(Punctuation(((self.name, bound),), promise.constants), {**names, self.name: [self.name]})
