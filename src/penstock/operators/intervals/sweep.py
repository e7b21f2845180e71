"""Operators that count: of each key, how much of each input is valid, and what that comes to.

Between two instants at which anything of a key begins or ends its numbers are the same: such a stretch is a result, or
several. It is final when every input has promised that nothing begins before its end; where beginnings and ends cancel
out there is no edge, so results are as long as they can be. What is held back holds back the bound: nothing comes that
begins before the least start of a stretch that is not final. Results that become final together come in order of start;
those of a later bound may start before them, though no earlier than was promised.

State: of each key the numbers before its first edge that is left, and how they change at each edge. A bound costs
what is held.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.model.values import canonical_row
from penstock.operators.intervals.layout import Event, Layout
from penstock.operators.intervals.least import Progressing
from penstock.operators.operator import Outputs

PAGE = "edges"
Numbers = tuple[int, ...]


@dataclass
class Edges:
    """What is valid of one key."""

    level: Numbers
    changes: dict[int, Numbers] = field(default_factory=dict)
    generations: dict[int, int] = field(default_factory=dict)
    """How much is valid of each generation; only the least is ever asked for."""
    moves: dict[int, dict[int, int]] = field(default_factory=dict)
    """How that changes, by instant."""


class Sweep(Progressing):
    """Goes over the edges of each key as far as the inputs have come."""

    def __init__(self, inputs: Iterable[Schema], schema: Schema) -> None:
        """The inputs, and what comes of them."""
        super().__init__(schema)
        self.layouts, self.out = [Layout(each) for each in inputs], Layout(schema)
        self.ports = len(self.layouts)

    @abstractmethod
    def key(self, port: int, payload: Row) -> Row:
        """What a payload is counted under."""

    @abstractmethod
    def results(self, key: Row, numbers: Numbers) -> Iterable[Row]:
        """The payloads that are valid where so much of each input is; none where nothing is."""

    def process(self, port: int, batch: Batch) -> Outputs:
        """Note where events begin and end."""
        edges = self._edges()
        nothing = (0,) * self.ports
        for event in self.layouts[port].events(batch):
            of_key = edges.setdefault(self.key(port, event.payload), Edges(nothing))
            for instant, sign in ((event.start, 1), (event.end, -1)):
                before = of_key.changes.get(instant, nothing)
                of_key.changes[instant] = tuple(n + sign * (p == port) for p, n in enumerate(before))
                if self.out.generation is not None:
                    moves = of_key.moves.setdefault(instant, {})
                    moves[event.generation] = moves.get(event.generation, 0) + sign
        self.pages.put(PAGE, edges)
        return ()

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Put out what is final, then say how far that is."""
        bounds = self.heard(port, punctuation)
        if bounds is None:
            return
        reached = bound = min(bounds)
        edges, final = self._edges(), list[Event]()
        for key in list(edges):
            of_key = edges[key]
            final += self._swept(key, of_key, bound)
            if of_key.changes:
                reached = min(reached, *of_key.changes)
            else:
                del edges[key]
        self.pages.put(PAGE, edges)
        if final:
            yield self.out.batch(sorted(final, key=lambda event: event.start))
        yield from self.told(reached)

    def _swept(self, key: Row, edges: Edges, bound: int) -> Iterable[Event]:
        """The stretches of a key that end no later than a bound; their first edges are done with."""
        instants = list(edges.changes)
        ahead: list[int] = []
        for instant in instants:
            if any(edges.changes[instant]) or any(edges.moves.get(instant, {}).values()):
                heappush(ahead, instant)
            else:  # as much begins as ends
                del edges.changes[instant]
                edges.moves.pop(instant, None)
        while ahead and (ahead[0] <= bound or bound == END_OF_TIME):
            instant = heappop(ahead)
            following = ahead[0] if ahead else None
            numbers = tuple(n + more for n, more in zip(edges.level, edges.changes[instant], strict=True))
            generations = _moved(edges.generations, edges.moves.get(instant, {}))
            if following is not None and any(numbers):
                if following > bound and bound != END_OF_TIME:
                    return
                oldest = min(generations, default=0)
                for payload in self.results(key, numbers):
                    yield Event(instant, following, payload, oldest)
            edges.level, edges.generations = numbers, generations
            del edges.changes[instant]
            edges.moves.pop(instant, None)

    def oldest_generation(self) -> int | None:
        """The least generation of what is valid or will be; None if nothing is held."""
        held = [g for e in self._edges().values() for g in (*e.generations, *(g for m in e.moves.values() for g in m))]
        return min(held, default=None)

    def values_held(self) -> int:
        """How many values are held."""
        return sum((1 + len(key)) * len(edges.changes) for key, edges in self._edges().items())

    def _edges(self) -> dict[Row, Edges]:
        found: dict[Row, Edges] | None = self.pages.get(PAGE)
        return {} if found is None else found

    def to_plain(self, key: str, page: Any) -> Any:
        """A list for each key."""
        if key != PAGE:
            return page
        return [[k, e.level, e.changes, e.generations, e.moves] for k, e in page.items()]

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        if key != PAGE:
            return data
        return {
            canonical_row(tuple(k)): Edges(
                tuple(level), {at: tuple(n) for at, n in changes.items()}, generations, moves
            )
            for k, level, changes, generations, moves in data
        }


def _moved(before: dict[int, int], moves: dict[int, int]) -> dict[int, int]:
    counted = {g: before.get(g, 0) + moves.get(g, 0) for g in {*before, *moves}}
    return {g: n for g, n in counted.items() if n}
