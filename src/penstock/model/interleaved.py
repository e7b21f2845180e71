"""Rows of one batch with punctuation among them.

A source may say how far it is many times within a batch. Cut at each of these the batch would be small pieces, and what
is done with every row would cost what is done with every piece. So rows and punctuation travel together, as one batch
and the places at which each punctuation stands, as long as operators can do with that; whoever cannot is given the
pieces one after the other, which mean the same. Rows that were left out travel along as well, where leaving out more of
them costs the same again; there may be no punctuation among them at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation


@dataclass(frozen=True)
class Interleaved:
    """A batch and what is promised within it."""

    whole: Batch
    places: Sequence[int]
    """How many of its rows there are before each punctuation, ascending; those that were left out do not count."""
    said: Sequence[Punctuation]
    kept: np.ndarray | None = None
    """Which rows of the whole batch are its own, if not all are: whoever chooses among them may do both at once."""

    @cached_property
    def batch(self) -> Batch:
        """Its rows."""
        return self.whole if self.kept is None else self.whole.select(self.kept)

    @cached_property
    def size(self) -> int:
        """How many rows it has."""
        return len(self.whole) if self.kept is None else int(np.count_nonzero(self.kept))

    def elements(self) -> Iterator[Batch | Punctuation]:
        """Rows and punctuation as they come."""
        start = 0
        for place, punctuation in zip(self.places, self.said, strict=True):
            if place > start:
                yield self.batch.part(start, place)
                start = place
            yield punctuation
        if start < len(self.batch):
            yield self.batch.part(start, len(self.batch))
