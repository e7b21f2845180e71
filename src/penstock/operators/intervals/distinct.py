"""Duplicate elimination over lives, at once: of each event what was not covered yet by one with the same payload.

No two events that come out have the same payload and overlap, as the paper asks. `StretchesOperator` says the same with
the fewest events, one for each longest stretch, and waits until a stretch is known; here nothing waits, an event that
fills a gap comes out as the gap, and one that reaches over what is covered comes out in pieces. A piece begins no
earlier than its event, so bounds go on as they are. Pieces are not in order of start, whatever events are: one begins
where what covers it ends, and so after the next event.

State: what is covered, as stretches by payload, until the bound has passed their ends. A bound costs what is held.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.model.values import canonical_row
from penstock.operators.intervals.layout import Event, Layout
from penstock.operators.intervals.least import Progressing
from penstock.operators.operator import Outputs

Stretch = tuple[int, int, int]
"""From when to when a payload is covered, and the least generation of what covers it."""
Covered = dict[Row, list[Stretch]]
PAGE, ENDS = "covered", "ends"


class IntervalDistinct(Progressing):
    """Remembers which payloads are there when."""

    kind = "interval dupelim"

    def __init__(self, schema: Schema) -> None:
        """Payloads are compared."""
        super().__init__(schema)
        self.layout = Layout(schema)

    def process(self, port: int, batch: Batch) -> Outputs:
        """Put out what is new of each event."""
        covered = self._covered()
        fresh: list[Event] = []
        for event in self.layout.events(batch):
            payload = canonical_row(event.payload)
            stretches = covered.get(payload, [])
            fresh += [event._replace(start=lo, end=hi) for lo, hi in gaps(stretches, event.start, event.end)]
            covered[payload] = joined(stretches, (event.start, event.end, event.generation))
        self.pages.put(PAGE, covered)
        if fresh:
            yield self.layout.batch(fresh)

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Forget what ended before the bound."""
        bounds = self.heard(port, punctuation)
        if bounds is None:
            return
        (bound,) = bounds
        covered = self._covered()
        if any(end <= bound for stretches in covered.values() for _, end, _ in stretches) or bound == END_OF_TIME:
            left = {
                payload: kept
                for payload, stretches in covered.items()
                if (kept := [s for s in stretches if s[1] > bound and bound != END_OF_TIME])
            }
            self.pages.put(PAGE, left)
        yield from self.told(bound)

    def oldest_generation(self) -> int | None:
        """The least generation of what covers anything; None if nothing does."""
        return min((s[2] for stretches in self._covered().values() for s in stretches), default=None)

    def values_held(self) -> int:
        """How many values are held."""
        return sum(len(payload) * len(stretches) for payload, stretches in self._covered().items())

    def _covered(self) -> Covered:
        found: Covered | None = self.pages.get(PAGE)
        return {} if found is None else found

    def to_plain(self, key: str, page: Any) -> Any:
        """Payloads with their stretches."""
        return [[payload, stretches] for payload, stretches in page.items()] if key == PAGE else page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        if key != PAGE:
            return data
        return {canonical_row(tuple(payload)): [tuple(s) for s in stretches] for payload, stretches in data}


def gaps(stretches: list[Stretch], start: int, end: int) -> Iterator[tuple[int, int]]:
    """What of a life is covered by none of some stretches, which are in order and apart."""
    for lo, hi, _ in stretches:
        if hi <= start or lo >= end:
            continue
        if start < lo:
            yield start, lo
        start = hi
    if start < end:
        yield start, end


def joined(stretches: list[Stretch], fresh: Stretch) -> list[Stretch]:
    """Stretches with one more, in order and apart; those that it touches are one with it."""
    apart: list[Stretch] = []
    for stretch in stretches:
        if stretch[1] < fresh[0] or fresh[1] < stretch[0]:
            apart.append(stretch)
        else:
            fresh = min(stretch[0], fresh[0]), max(stretch[1], fresh[1]), min(stretch[2], fresh[2])
    return sorted([*apart, fresh])
