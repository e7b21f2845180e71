"""Operators that count: of each key, how much of each input is valid, and what that comes to.

Between two instants at which anything of a key begins or ends its numbers are the same: such a stretch is a result, or
several. It is final when every input has promised that nothing begins before its end; where beginnings and ends cancel
out there is no edge, so results are as long as they can be. What is held back holds back the bound: nothing comes that
begins before the least start of a stretch that is not final. Results that become final together come in order of start;
those of a later bound may start before them, though no earlier than was promised.

State: of each key the numbers since the last edge that was passed, and how they change at each edge to come. A bound
costs what is held.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
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
    """Since `since`; what was before is out."""
    since: int = MIN_TICK
    changes: dict[int, Numbers] = field(default_factory=dict)
    """What changes later, by instant."""
    generations: dict[int, int] = field(default_factory=dict)
    """How much is valid of each generation; only the least is ever asked for."""
    moves: dict[int, dict[int, int]] = field(default_factory=dict)
    """How that changes, by instant."""

    def ahead(self) -> list[int]:
        """The instants at which something changes, in order; where as much begins as ends nothing does."""
        for instant in [at for at, numbers in self.changes.items() if not any(numbers)]:
            if not any(self.moves.get(instant, {}).values()):
                del self.changes[instant]
                self.moves.pop(instant, None)
        return sorted(self.changes)

    def go_to(self, instant: int) -> None:
        """What changes there has changed."""
        self.level = tuple(n + more for n, more in zip(self.level, self.changes.pop(instant), strict=True))
        self.since = instant
        for generation, more in self.moves.pop(instant, {}).items():
            self.generations[generation] = self.generations.get(generation, 0) + more
            if not self.generations[generation]:
                del self.generations[generation]


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
            if not of_key.changes:
                del edges[key]
            elif any(of_key.level) and list(self.results(key, of_key.level)):
                reached = min(reached, of_key.since)
        self.pages.put(PAGE, edges)
        if final:
            yield self.out.batch(sorted(final, key=lambda event: event.start))
        yield from self.told(reached)

    def _swept(self, key: Row, edges: Edges, bound: int) -> Iterable[Event]:
        """The stretches of a key that end no later than a bound; what changes until then has changed."""
        for instant in edges.ahead():
            if instant > bound and bound != END_OF_TIME:
                return
            if instant > edges.since and any(edges.level):
                oldest = min(edges.generations, default=0)
                for payload in self.results(key, edges.level):
                    yield Event(edges.since, instant, payload, oldest)
            edges.go_to(instant)

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
        return [[k, e.level, e.since, e.changes, e.generations, e.moves] for k, e in page.items()]

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        if key != PAGE:
            return data
        edges: dict[Row, Edges] = {}
        for of_key, level, since, changes, generations, moves in data:
            told = {at: tuple(numbers) for at, numbers in changes.items()}
            edges[canonical_row(tuple(of_key))] = Edges(tuple(level), since, told, generations, moves)
        return edges
