"""What comes out of a merge and what its bounds freeze, counted for statistics; no part of its state."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.model.elements import Adjust, Element, Insert


class Tally:
    """What has come out, and what was frozen."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.inserts = self.adjusts = self.removals = self.bounds = self.frozen = 0

    def put(self, events: Iterable[Element]) -> None:
        """These have come out."""
        for each in events:
            if type(each) is Insert:
                self.inserts += 1
            elif type(each) is Adjust:
                self.adjusts += 1
                self.removals += each.ve == each.vs

    def froze(self, events: int) -> None:
        """A bound has frozen so many starts and payloads for good."""
        self.bounds += 1
        self.frozen += events

    @property
    def c(self) -> float | None:
        """How many a bound freezes for good, on average."""
        return self.frozen / self.bounds if self.bounds else None
