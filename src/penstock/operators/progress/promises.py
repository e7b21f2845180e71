"""Group-wise punctuation at the entrance of a stream: what is promised of the rows with some values (thesis 2.1, 4).

A punctuation row with values in columns of `per` promises that no later row with these values is below its time, or
with `final` that none comes at all. Values are told apart as group keys are. A promise goes backwards when its time is
below the bound of the stream, or its bound below another one that holds for all rows that it is about; then it says
nothing.

A row is judged by the greatest bound that holds for it. Over columns that is one look per distinct key and set of
columns that promises are about, and within a batch one more step per promise in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.progress.marks import GROUPWISE, SourceMarks


@dataclass(frozen=True)
class Said:
    """A promise that a punctuation row made."""

    place: int
    """Of the row in its batch."""
    promise: Punctuation
    at: int
    """The time of the row; the bound too, unless the promise is final."""
    known: int = MIN_TICK
    """The bound that held for the same rows before."""

    @property
    def bound(self) -> int:
        """What is promised."""
        return self.promise.value


@dataclass(frozen=True)
class GroupPromises:
    """How the punctuation rows of a stream speak for some rows alone."""

    schema: Schema
    per: tuple[int, ...]
    final: bool = False

    @property
    def attribute(self) -> str:
        """What is bounded: the time of the stream."""
        assert self.schema.time is not None
        return self.schema.time

    @property
    def names(self) -> tuple[str, ...]:
        """The columns whose values say which rows are meant."""
        return tuple([self.schema.fields[i].name for i in self.per])

    def said_in(self, batch: Batch, kinds: np.ndarray) -> list[Said]:
        """The promises in a batch, in order."""
        places = np.flatnonzero(kinds == GROUPWISE).tolist()
        rows = batch.select(kinds == GROUPWISE).rows if places else []
        return [self._said(place, row) for place, row in zip(places, rows, strict=True)]

    def _said(self, place: int, row: Row) -> Said:
        at = row[self.schema.time_index]
        assert isinstance(at, int)
        named = sorted((self.schema.fields[i].name, row[i]) for i in self.per if row[i] is not None)
        bound = END_OF_TIME if self.final else at
        return Said(place, Punctuation(((self.attribute, bound),), tuple(named)), at)

    def can_use(self, promise: Punctuation) -> bool:
        """Whether a promise from outside is one that this stream may be given."""
        named = [name for name, _ in promise.constants]
        return [n for n, _ in promise.bounds] == [self.attribute] and bool(named) and set(named) <= set(self.names)

    def bound(self, frontier: Frontier, row: Row) -> int:
        """The greatest bound that is promised of one row."""
        return frontier.bound(self.attribute, {self.schema.fields[i].name: row[i] for i in self.per})

    def taken(self, frontier: Frontier, said: Sequence[Said], linear: np.ndarray) -> tuple[list[Said], dict[int, int]]:
        """The promises that say something new, taken into the frontier; of those that go backwards, what forbids them.

        `linear` is the bound of the stream before each row of the batch.
        """
        taken: list[Said] = []
        forbidden: dict[int, int] = {}
        for each in said:
            stream = int(linear[each.place])
            known = max(stream, frontier.bound(self.attribute, dict(each.promise.constants)))
            if each.at < stream or each.bound < known:
                forbidden[each.place] = stream if each.at < stream else known
            elif each.bound > known and frontier.add(each.promise):
                taken.append(replace(each, known=known))
        return taken, forbidden

    def held(self, frontier: Frontier, batch: Batch) -> np.ndarray:
        """The greatest bound that a frontier promises of each row."""
        bounds = np.full(len(batch), MIN_TICK, np.int64)
        for columns in frontier.groupings(self.attribute):
            codes, keys = coded_keys(self.schema, batch, columns)
            starts = [frontier.bound_of(self.attribute, columns, key) for key in keys]
            np.maximum(bounds, np.array(starts, np.int64)[codes], out=bounds)
        return bounds

    def follow(self, bounds: np.ndarray, batch: Batch, said: Sequence[Said]) -> None:
        """Raise the bounds of the rows that come after a promise in the same batch."""
        by_columns: dict[tuple[str, ...], list[Said]] = {}
        for each in said:
            by_columns.setdefault(tuple([name for name, _ in each.promise.constants]), []).append(each)
        for columns, own in by_columns.items():
            codes, keys = coded_keys(self.schema, batch, columns)
            order = np.argsort(codes, kind="stable")
            edges = np.searchsorted(codes[order], np.arange(len(keys) + 1))
            for each in own:
                code = int(codes[each.place])
                alike = order[edges[code] : edges[code + 1]]
                after = alike[np.searchsorted(alike, each.place, side="right") :]
                bounds[after] = np.maximum(bounds[after], each.bound)


def coded_keys(schema: Schema, batch: Batch, columns: Sequence[str]) -> tuple[np.ndarray, list[tuple[Any, ...]]]:
    """A code per row for its values in some columns, and what the codes stand for."""
    codes = np.zeros(len(batch), np.int64)
    keys: list[tuple[Any, ...]] = [()]
    for name in columns:
        found = SourceMarks(schema.index(name))(batch)
        both, codes = np.unique(codes * len(found.sources) + found.codes, return_inverse=True)
        keys = [(*keys[n // len(found.sources)], found.sources[n % len(found.sources)]) for n in both.tolist()]
    return codes, keys
