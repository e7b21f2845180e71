"""How many rows go on with each micro-batch, and how fresh what is given can be at all.

A micro-batch costs so much whatever it hands on, the *overhead* o, and so much for each row that goes on, the *cost* c.
A row that comes just after one has begun waits for it to end, then in the line of n keys, of which b are served at a
time, and is processed with the last of them: it is behind by up to (n / b + 2) (o + b c). Few rows at a time pay the
overhead often, many delay whoever came meanwhile. The sum n o / b + n c + 2 o + 2 b c is least at b = sqrt(n o / 2c),
and what it comes to there is the least bound on staleness that can be met. Where so many do not wait at once, all go;
and never fewer than double a micro-batch: a burst of so many is not worth cutting up.

Overhead and cost are averages in which the past fades, n is the longest line lately. Nothing here reads a clock, and
what was measured is plain data, so that a run goes on with it after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil, sqrt
from typing import Any

FIRST = 100
"""So many rows go on while nothing is known of what they cost."""
RECENT = 0.3
"""How much the last micro-batch counts in what a row, and a micro-batch, costs."""
FADES = 0.95
"""How much of the longest line is remembered from micro-batch to micro-batch."""
SURE = 3
"""A bound is said to be out of reach after so many micro-batches."""


@dataclass
class RoundPacing:
    """What is measured of one queue's consumer; times are in microseconds."""

    max_staleness: int | None = None
    budget: int | None = None
    cost: float | None = None
    """Of a row that goes on, all places that work at a time taken together."""
    overhead: float | None = None
    """Of a micro-batch, whatever it hands on."""
    longest: float = 0.0
    """How many keys waited at once, at most, lately."""
    missed: int = 0
    is_told: bool = False
    """Whether it was said that the bound is out of reach."""

    @property
    def most(self) -> int:
        """How many rows the next micro-batch hands on at most."""
        if self.budget is not None:
            return self.budget
        if self.cost is None or self.overhead is None:
            return FIRST
        cost = max(self.cost, 0.1)
        served = min(sqrt(self.longest * self.overhead / (2 * cost)), self.longest)
        return max(ceil(max(served, self.overhead / cost)), 1)

    def measured(self, rows: int, took: int, waited: int, period: int | None) -> None:
        """So many rows of those that waited went on, which took so long, in a micro-batch that took `period`.

        That is until the next one began, or None where it was not made at once, or the first one of a process, whose
        period is that of a machine that warms up.
        """
        self.longest = max(float(waited), self.longest * FADES)
        if rows:
            self.cost = _faded(self.cost, took / rows)
        if period is not None:
            self.overhead = _faded(self.overhead, float(max(period - took, 0)))
        self.missed = 0 if self.is_met else self.missed + 1

    @property
    def least_bound(self) -> int | None:
        """The least staleness that can be promised; None while not enough is known."""
        if self.cost is None or self.overhead is None:
            return None
        served = min(float(self.most), max(self.longest, 1.0))
        return int((self.longest / served + 2) * (self.overhead + served * self.cost))

    @property
    def is_met(self) -> bool:
        """Whether what is allowed can be met, as far as is known."""
        least = self.least_bound
        return self.max_staleness is None or least is None or least <= self.max_staleness

    @property
    def is_out_of_reach(self) -> bool:
        """Whether it could not be met for several micro-batches."""
        return self.missed >= SURE

    def to_plain(self) -> dict[str, Any]:
        """What was measured, without what is asked for."""
        return {name: value for name, value in asdict(self).items() if name not in ("max_staleness", "budget")}

    @staticmethod
    def after(measured: Mapping[str, Any] | None, max_staleness: int | None, budget: int | None) -> RoundPacing:
        """With what was measured before; what is asked for may have changed."""
        return RoundPacing(max_staleness, budget, **(measured or {}))


def _faded(before: float | None, now: float) -> float:
    return now if before is None else before + RECENT * (now - before)


def shares(most: int, waiting: Sequence[int], turn: int) -> list[int]:
    """So many rows shared among places by how many wait at each, the same wherever it is computed.

    Nobody is left out for good: every place has one if there are so many, and otherwise places have one in turn, those
    at which somebody waits first.
    """
    places = len(waiting)
    if most < places:
        due = sorted(range(places), key=lambda place: (not waiting[place], (place - turn * most) % places))
        return [int(place in due[:most]) for place in range(places)]
    rest, total = most - places, sum(waiting)
    exact = [rest * (each / total if total else 1 / places) for each in waiting]
    given = [int(each) for each in exact]
    left = rest - sum(given)
    by_remainder = sorted(range(places), key=lambda place: (given[place] - exact[place], place))
    return [1 + own + int(place in by_remainder[:left]) for place, own in enumerate(given)]
