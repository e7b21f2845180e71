"""AlterLifetime: events move, and live longer, shorter or for a given length (StreamInsight's AlterEventLifetime).

A start moves by `shift`, and its row with it. The end follows from the start and the length that the event had: it is
given a `duration`, or it is extended and then clipped. An end that is open stays open unless a length is given; one
that would lie beyond time is open.

Revisions are altered like inserts: an adjust moves the altered end from where it was to where it will be, and where
that is the same place (a duration, a clip that both ends lie beyond) there is nothing to say. A removal is one.

A bound moves with the starts, and with nothing else. Inserts come at or after it. An adjust that comes after a bound
has both ends at or after it; extending moves them on, and of two ends that a clip leaves apart the earlier one is where
it was. So every bound goes on at once, there is no state, and no order is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.lives import Lives
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.operator import Carry, Outputs, Stateless


@dataclass(frozen=True)
class Lifetime:
    """How lives are altered, in ticks."""

    shift: int = 0
    duration: int | None = None
    extend: int = 0
    at_most: int | None = None

    def ends(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The ends of events that started and ended so; the starts are those before the move."""
        if self.duration is not None:
            made: np.ndarray = starts + (self.shift + self.duration)
            return made
        later = self.shift + self.extend
        known = ends if later <= 0 else np.minimum(ends, END_OF_TIME - later)
        made = np.where((ends == END_OF_TIME) | (known != ends), END_OF_TIME, known + min(later, END_OF_TIME))
        return made if self.at_most is None else np.minimum(made, starts + (self.shift + self.at_most))

    @property
    def longest_move(self) -> int:
        """An end moves on by no more than this."""
        return self.shift + (self.extend if self.duration is None else self.duration - 1)


class AlterOperator(Stateless):
    """Gives events other lives."""

    def __init__(self, schema: Schema, lifetime: Lifetime) -> None:
        """`schema` has lives, unless events are only moved and had none."""
        super().__init__(schema)
        self.lifetime = lifetime

    def process(self, port: int, batch: Batch) -> Outputs:
        """Alter every row; adjusts that come to nothing are left out."""
        if self.schema.lives is None:
            yield self._moved(batch, None)
            return
        starts, lives = batch.times(), batch.its_lives()
        shift = self.lifetime.shift
        revises = lives.revises
        ends = self.lifetime.ends(starts, lives.ends)
        if not revises.any():
            yield self._moved(batch, Lives.of_inserts(ends))
            return
        ends = np.where(revises & (lives.ends == starts), starts + shift, ends)
        olds = np.where(revises, self.lifetime.ends(starts, np.where(revises, lives.olds, starts)), lives.olds)
        says = ~revises | (ends != olds)
        if says.any():
            altered = self._moved(batch, Lives(ends, olds))
            yield altered if says.all() else altered.select(says)

    def punctuate(self, port: int, punctuation: Punctuation) -> Iterable[Punctuation]:
        """Bounds on the time move with it; one that would leave time says nothing."""
        if not self.lifetime.shift:
            yield from super().punctuate(port, punctuation)
            return
        time = str(self.schema.time)
        bounds = {n: self._bound(b) if n == time else b for n, b in punctuation.bounds}
        if MIN_TICK not in bounds.values():
            moved = Punctuation(tuple(bounds.items()), punctuation.constants)
            yield from super().punctuate(port, moved)

    def carries(self, time: str) -> Carry | None:
        """Moved."""
        known = super().carries(time)
        return known if known is None or not self.lifetime.shift else self._moved_bound

    def _moved_bound(self, bound: int) -> int | None:
        moved = self._bound(bound)
        return None if moved == MIN_TICK else moved

    def _bound(self, bound: int) -> int:
        """A bound on starts after the move; `MIN_TICK` where there is none."""
        if bound == END_OF_TIME:
            return bound
        moved = bound + self.lifetime.shift
        return moved if MIN_TICK < moved < END_OF_TIME else MIN_TICK

    def feedback(self, bound: int) -> int | None:
        """What ends so early that its altered end is before the bound."""
        return max(bound - self.lifetime.longest_move, MIN_TICK)

    def _moved(self, batch: Batch, lives: Lives | None) -> Batch:
        """The rows with their times moved, in the form at hand."""
        shift, at = self.lifetime.shift, self.schema.time_index
        if not shift:
            return Batch(
                self.schema, None if batch.columnar else batch.rows, batch.table if batch.columnar else None, lives
            )
        if batch.columnar:
            field = self.schema.arrow.field(at)
            column = pc.cast(pa.array(batch.times() + shift, pa.int64()), field.type)
            return Batch(self.schema, table=batch.table.set_column(at, field, column), lives=lives)
        rows = [(*row[:at], row[at] + shift, *row[at + 1 :]) for row in batch.rows]  # type: ignore[operator]
        return Batch(self.schema, rows, lives=lives)
