"""Of what several inputs have promised the least, and what that comes to, told once."""

from __future__ import annotations

from penstock.model.elements import Punctuation
from penstock.model.time import MIN_TICK
from penstock.operators.operator import BoundMemory, Operator

BOUNDS = "bounds"


class Progressing(Operator):
    """An operator that keeps the bound on the time of each of its inputs, and tells its own when it has moved."""

    def oldest_generation(self) -> int | None:
        """The least generation of what is held; None if nothing is."""
        return None

    def values_held(self) -> int:
        """How many values are held, as the paper on migration counts memory."""
        return 0

    def bounds(self) -> list[int]:
        """What each input has promised."""
        found: list[int] | None = self.pages.get(BOUNDS)
        return list(found) if found is not None else [MIN_TICK] * self.ports

    def heard(self, port: int, punctuation: Punctuation) -> list[int] | None:
        """The bounds of all inputs, if one has moved; what is promised of anything but the time says nothing here."""
        if not self.is_on_time(punctuation):
            return None
        bounds = self.bounds()
        if punctuation.value <= bounds[port]:
            return None
        bounds[port] = punctuation.value
        self.pages.put(BOUNDS, bounds)
        return bounds

    def told(self, bound: int) -> list[Punctuation]:
        """The promise, if it is new."""
        return [self.output_bound(bound)] if BoundMemory().advance(self.pages, bound) else []
