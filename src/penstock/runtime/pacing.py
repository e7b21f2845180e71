"""How many rows a consumer is given at a time, and how fresh what it is given can be at all.

A round is what is released at once: nothing new is taken up before the consumer is through with it. So it should be
short, and not so short that its overhead counts: as many rows as cost a slice of time, by what rows have cost so far,
or a fixed number. What a row costs is measured from its release until whoever was given the results comes back, and is
averaged over recent rounds.

A key that waits is served after all that wait before it. So if at most n keys waited at once, and a row costs c, what
is shown of a key is behind by up to (n + 1) c and a slice: the least bound on staleness that can be met. UpStream,
section 5.1, has the same sum for one key.
"""

from __future__ import annotations

SLICE = 10_000
"""A round takes about so many microseconds."""
PART = 10
"""And at most this part of the staleness that is allowed."""
RECENT = 0.2
"""How much the last round counts in what a row costs."""
FADES = 0.99
"""How much of the longest queue is remembered from round to round."""
SURE = 3
"""A bound is said to be out of reach after so many rounds."""


class Pacing:
    """What is measured of one queue's consumer."""

    def __init__(self, max_staleness: int | None = None, budget: int | None = None) -> None:
        """In microseconds, and rows; nothing has been measured yet."""
        self.max_staleness, self.budget = max_staleness, budget
        self.slice = SLICE if max_staleness is None else max(min(SLICE, max_staleness // PART), 1)
        self.cost: float | None = None
        """Microseconds per row."""
        self.longest = 0.0
        """How many keys waited at once, at most, lately."""
        self._missed = self._spent = 0
        self.is_told = False
        """Whether it was said that the bound is out of reach."""

    @property
    def most(self) -> int:
        """How many rows the next round has at most."""
        if self.budget is not None:
            return self.budget
        return 1 if self.cost is None else max(int(self.slice / max(self.cost, 0.1)), 1)

    def measured(self, rows: int, took: int, waited: int) -> None:
        """A round of so many rows, or windows that have ended, took so many microseconds; so many waited before it."""
        self.longest = max(float(waited), self.longest * FADES)
        self._spent += took
        if rows:
            cost, self._spent = self._spent / rows, 0
            self.cost = cost if self.cost is None else self.cost + RECENT * (cost - self.cost)
        self._missed = 0 if self.is_met else self._missed + 1

    @property
    def least_bound(self) -> int | None:
        """The least staleness that can be promised, in microseconds; None while nothing is known."""
        return None if self.cost is None else int((self.longest + 1) * self.cost) + self.slice

    @property
    def is_met(self) -> bool:
        """Whether what is allowed can be met, as far as is known."""
        least = self.least_bound
        return self.max_staleness is None or least is None or least <= self.max_staleness

    @property
    def is_out_of_reach(self) -> bool:
        """Whether it could not be met for several rounds."""
        return self._missed >= SURE
