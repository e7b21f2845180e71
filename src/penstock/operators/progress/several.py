"""Several attributes that progress: what a batch shows of each, and what its punctuation says of several together.

Each attribute has a tracker of its own, which is given the rows of data, and the punctuation rows that speak for it: a
row that is late for one attribute still says how far the others have come. Punctuation that is declared for several
attributes is a promise with a bound on each of them that is not null in the row; with one alone it is linear.

Rows without a value in an attribute, and punctuation without any, are incomplete and take no part. State and summaries
are lists with one item per tracker. Costs of a batch: those of each tracker, and a look per joint punctuation in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Batch, ticks_of
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import MIN_TICK
from penstock.operators.progress.ahead import chosen_marks
from penstock.operators.progress.marks import DATA, PUNCTUATION, Coded, PunctuationMarks, SourceMarks
from penstock.operators.progress.promises import Said
from penstock.operators.progress.trackers import Tracker

INCOMPLETE = 5
"""What a row is that has no value in an attribute that progresses, or punctuation that has none; see `marks`."""


@dataclass(frozen=True)
class AttributeEntry:
    """What is declared of some attributes: one and its tracker, or several and the rows that speak for them."""

    attributes: tuple[int, ...]
    """Their places in the order of declaration."""
    tracker: Tracker | None
    marks_of: SourceMarks | PunctuationMarks | None

    @property
    def is_punctuated(self) -> bool:
        """Whether rows are its punctuation."""
        return isinstance(self.marks_of, PunctuationMarks)


@dataclass(frozen=True)
class Seen:
    """A batch as the entrance sees it."""

    values: np.ndarray
    """Per attribute and row the tick, `MIN_TICK` where it is null."""
    valid: np.ndarray
    """Per attribute and row whether it is not null."""
    kinds: np.ndarray
    """What each row is."""
    marks: tuple[Coded | np.ndarray | None, ...]
    """Per entry what its tracker asks for of each row, or which rows are its punctuation."""

    def is_said(self, entry: int) -> np.ndarray:
        """Which rows are punctuation of an entry that takes part."""
        said: np.ndarray = (self.kinds == PUNCTUATION) & (np.asarray(self.marks[entry]) == PUNCTUATION)
        return said


@dataclass(frozen=True)
class SeveralTracker:
    """Follows the progress of each attribute of a stream."""

    schema: Schema
    entries: tuple[AttributeEntry, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes, in the order of declaration."""
        return self.schema.attributes

    # What a batch shows

    def see(self, batch: Batch) -> Seen:
        """What each row is, and has."""
        columns = [_ticks(batch, self.schema.index(name)) for name in self.names]
        values, valid = np.array([c[0] for c in columns]), np.array([c[1] for c in columns])
        marks = tuple([None if e.marks_of is None else e.marks_of(batch) for e in self.entries])
        kinds, speaks = np.full(len(batch), DATA, np.int8), np.zeros(len(batch), np.bool_)
        for entry, own in zip(self.entries, marks, strict=True):
            if entry.is_punctuated:
                mine = np.asarray(own)
                np.maximum(kinds, mine, out=kinds, casting="unsafe")
                speaks |= (mine == PUNCTUATION) & valid[list(entry.attributes)].any(axis=0)
        kinds[(kinds == DATA) & ~valid.all(axis=0)] = INCOMPLETE
        kinds[(kinds == PUNCTUATION) & ~speaks] = INCOMPLETE
        return Seen(values, valid, kinds, marks)

    def _taking_part(self, entry: AttributeEntry, number: int, seen: Seen) -> np.ndarray:
        """The places of the rows that an entry's tracker is given."""
        taken = seen.kinds == DATA
        if entry.is_punctuated:
            taken = taken | (seen.is_said(number) & seen.valid[entry.attributes[0]])
        return np.flatnonzero(taken)

    def said_in(self, seen: Seen) -> list[Said]:
        """What punctuation rows promise of several attributes together, in order."""
        found: list[Said] = []
        for number, entry in enumerate(self.entries):
            if len(entry.attributes) < 2:
                continue
            for place in np.flatnonzero(seen.is_said(number)).tolist():
                bounds = [(self.names[a], int(seen.values[a, place])) for a in entry.attributes if seen.valid[a, place]]
                if bounds:
                    found.append(Said(place, Punctuation(tuple(sorted(bounds))), 0))
        return sorted(found, key=lambda said: said.place)

    # The trackers

    def summarise(self, seen: Seen) -> list[Any]:
        """What counts of some rows that arrived, per entry."""
        found = []
        for number, entry in enumerate(self.entries):
            if entry.tracker is not None:
                places = self._taking_part(entry, number, seen)
                marks = chosen_marks(seen.marks[number], places)
                found.append(entry.tracker.summarise(seen.values[entry.attributes[0], places], marks))
        return found

    def join(self, left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        """The summary of both."""
        return [t.join(one, other) for (_, t), one, other in zip(self._trackers, left, right, strict=True)]

    def advance(self, state: Sequence[Any] | None, summary: Sequence[Any]) -> list[Any]:
        """The state after a batch with that summary."""
        states = self._states(state)
        return [t.advance(own, shown) for (_, t), own, shown in zip(self._trackers, states, summary, strict=True)]

    def by_row(self, state: Sequence[Any] | None, seen: Seen) -> tuple[np.ndarray, list[Any]]:
        """Per attribute the bound that precedes each row, its tracker's or not, and the state after them all."""
        before = np.full(seen.values.shape, MIN_TICK, np.int64)
        states = self._states(state)
        after: list[Any] = []
        for number, entry in enumerate(self.entries):
            if entry.tracker is not None:
                (at,), own = entry.attributes, states[len(after)]
                places = self._taking_part(entry, number, seen)
                marks = chosen_marks(seen.marks[number], places)
                bounds, own = entry.tracker.by_row(own, seen.values[at, places], marks)
                # A row that the tracker is not given is preceded by what precedes the next one that it is given.
                following = np.searchsorted(places, np.arange(seen.values.shape[1]))
                before[at] = np.append(bounds, entry.tracker.bound(own))[following]
                after.append(own)
        return before, after

    def bounds(self, state: Sequence[Any] | None) -> list[int]:
        """Per attribute, no later row is below this by its own tracker."""
        found = [MIN_TICK] * len(self.names)
        for (at, tracker), own in zip(self._trackers, self._states(state), strict=True):
            found[at] = tracker.bound(own)
        return found

    def bound(self, state: Sequence[Any] | None) -> int:
        """The bound of the stream's time."""
        return self.bounds(state)[self.names.index(str(self.schema.time))]

    @property
    def _trackers(self) -> list[tuple[int, Tracker]]:
        return [(e.attributes[0], e.tracker) for e in self.entries if e.tracker is not None]

    def _states(self, state: Sequence[Any] | None) -> Sequence[Any]:
        return [None] * len(self._trackers) if state is None else state


def _ticks(batch: Batch, index: int) -> tuple[np.ndarray, np.ndarray]:
    """A column as ticks, and which of them are there."""
    if not batch.columnar:
        given = [row[index] for row in batch.rows]
        values = np.array([MIN_TICK if v is None else v for v in given], np.int64)
        return values, np.array([v is not None for v in given], np.bool_)
    column = batch.table.column(index)
    valid = np.asarray(pc.is_valid(column).to_numpy(), np.bool_)
    if valid.all():
        return ticks_of(column), valid
    values = np.full(len(batch), MIN_TICK, np.int64)
    values[valid] = ticks_of(column.filter(pa.array(valid)))
    return values, valid
