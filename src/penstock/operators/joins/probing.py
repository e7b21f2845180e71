"""In which order a row that comes to a join of several streams looks for partners in the others.

The next one is the one in which it meets the fewest rows: what is found in one has to be looked up in those after it.
How many rows are met is measured as the inputs go: for the inputs that are joined so far and the next one, the rows
found per row that looked. What was not measured yet is tried before what was, if columns are to be equal; what was
measured is forgotten after `STALE` looks, so that it is measured anew. What comes
out does not depend on the order, but the order in which it does may: so measures are a part of the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

Member = tuple[int, int]
"""An input, and the place of a column of it."""
STALE = 256
"""So often a measure is used."""
WIDE = 1e6
"""So many rows are expected where nothing is equal and nothing was measured."""


@dataclass(frozen=True)
class Step:
    """The next input to look in, by which of its columns, and what of the inputs before these equal."""

    other: int
    columns: tuple[int, ...]
    sources: tuple[Member, ...]


@dataclass
class Measure:
    """How many rows looked, lately, and how many they found."""

    looked: float = 0.0
    found: float = 0.0
    used: int = 0


Measures = dict[tuple[frozenset[int], int], Measure]
"""By the inputs that are joined, and the next one."""


@dataclass
class Probing:
    """Chooses orders, and measures."""

    size: int
    classes: tuple[tuple[Member, ...], ...]
    """Columns that are equal to one another."""
    measures: Measures = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Steps are made once."""
        self._step = cache(self._made)

    def next(self, joined: frozenset[int]) -> Step:
        """Where to look next."""
        rest = [at for at in range(self.size) if at not in joined]
        return self._step(joined, min(rest, key=lambda at: self._expected(joined, at)))

    def _expected(self, joined: frozenset[int], other: int) -> float:
        step, measure = self._step(joined, other), self.measures.get((joined, other))
        if measure is None or not measure.looked:
            return 0.0 if step.columns else WIDE
        return measure.found / measure.looked

    def told(self, joined: frozenset[int], other: int, looked: int, found: int) -> None:
        """So many rows looked, and so many were found."""
        measure = self.measures.setdefault((joined, other), Measure())
        measure.used += 1
        if measure.used > STALE:
            del self.measures[joined, other]
            return
        measure.looked, measure.found = 0.9 * measure.looked + looked, 0.9 * measure.found + found

    def _made(self, joined: frozenset[int], other: int) -> Step:
        """Which columns are equal; where a stream has several of a class, all of them take part at first."""
        columns: list[int] = []
        sources: list[Member] = []
        for members in self.classes:
            before = [member for member in members if member[0] in joined]
            own = [place for at, place in members if at == other]
            if not before or not own:
                continue
            known = {at for at, _ in before}
            compared: Sequence[Member] = before if len(known) == 1 else before[:1]
            columns += [own[0]] * len(compared) + own[1:]
            sources += [*compared, *[compared[0]] * (len(own) - 1)]
        return Step(other, tuple(columns), tuple(sources))
