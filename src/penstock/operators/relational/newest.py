"""Newest: of each key, rows that are newer than all that came out of it (UpStream, section 3.2: Union).

A row is compared with the newest of its key that has come out: by time, then by the columns of `ties`, null being less
than all else, then by how early its stream was named; one that is equal in all of that is the newer, since it came
later. An older one overwrites nothing: it is left out and counted. Nothing waits: whichever stream is ahead is
followed, and what the others bring too late is of no use to anybody.

With lives, a row lives until the next of its key comes out: the row comes as an insert without an end, and its end with
the next one, as an adjust. Of two that start together the first is taken back. Bounds pass on as they do in a union: no
end is told that is before the row that brings it.

A key costs an entry. Without lives it is forgotten once all inputs promise that nothing as old comes: whatever comes of
it then is newer. Entries are gone over when there are twice as many as were left the last time. With lives the newest
row of a key is kept for good, since its end is still to be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.lives import NO_OLD, Lives
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.model.values import canonical_row
from penstock.operators.operator import Outputs
from penstock.operators.relational.meld import MeldOperator

NEWEST, OLDER = "newest", "older"
"""The pages: by key its rank and row, and how many rows were left out."""
LEAST = 1024
"""Fewer entries are never gone over."""


class NewestOperator(MeldOperator):
    """Keeps the rank of the newest row of each key, and the row itself where rows have lives."""

    kind = "newest"
    version = 1

    def __init__(
        self, schema: Schema, ports: int, inputs: Sequence[Schema], key: Sequence[str], ties: Sequence[str] = ()
    ) -> None:
        """`key` and `ties` name columns of the output; rows have lives if the schema has."""
        super().__init__(schema, ports, inputs)
        self.key = tuple(schema.index(name) for name in key)
        self.ties = tuple(schema.index(name) for name in ties)
        self._forgets_at = LEAST

    @property
    def older(self) -> int:
        """How many rows came too late to matter."""
        found: int = self.pages.get(OLDER) or 0
        return found

    def process(self, port: int, batch: Batch) -> Outputs:
        """Pass on what is new; with lives, before each row the end of the one that it follows."""
        known: dict[Row, tuple[tuple[Any, ...], Row]] = self.pages.get(NEWEST) or {}
        lived, places, followed = self.schema.lives is not None, list[int](), list[Row | None]()
        for at, row in enumerate(batch.rows):
            key, rank = canonical_row(tuple([row[i] for i in self.key])), self._rank(port, row)
            before = known.get(key)
            if before is not None and rank < before[0]:
                continue
            known[key] = rank, row if lived else ()
            places.append(at)
            followed.append(None if before is None else before[1])
        self.pages.put(NEWEST, known)
        if len(places) < len(batch):
            self.pages.put(OLDER, self.older + len(batch) - len(places))
        if not places:
            return
        if lived:
            yield self._with_ends([batch.rows[at] for at in places], followed)
        else:
            yield batch if len(places) == len(batch) else batch.take(np.array(places))

    def punctuate_all(self, promises: Iterable[tuple[int, Punctuation]]) -> Outputs:
        """As in a union; and what is before the bound of all inputs need not be known any more."""
        yield from super().punctuate_all(promises)
        known: dict[Row, tuple[tuple[Any, ...], Row]] = self.pages.get(NEWEST) or {}
        if self.schema.lives is not None or len(known) < self._forgets_at:
            return
        bound = self.passed_on.last(self.pages)
        left = {key: entry for key, entry in known.items() if entry[0][0] >= bound}
        self._forgets_at = max(LEAST, 2 * len(left))
        if len(left) < len(known):
            self.pages.put(NEWEST, left)

    def feedback(self, bound: int) -> int | None:
        """What nobody needs may still be the newest of its key; without lives it is not asked for any more."""
        return None if self.schema.lives is not None else bound

    def _rank(self, port: int, row: Row) -> tuple[Any, ...]:
        ties = [(row[i] is not None, row[i]) for i in self.ties]
        return (row[self.schema.time_index], *[tie if tie[0] else (False, 0) for tie in ties], -port)

    def _with_ends(self, rows: Sequence[Row], followed: Sequence[Row | None]) -> Batch:
        made: list[Row] = []
        ends, olds = list[int](), list[int]()
        for row, before in zip(rows, followed, strict=True):
            if before is not None:
                made.append(before)
                ends.append(row[self.schema.time_index])  # type: ignore[arg-type]
                olds.append(END_OF_TIME)
            made.append(row)
            ends.append(END_OF_TIME)
            olds.append(NO_OLD)
        return Batch(self.schema, made, lives=Lives(np.array(ends, np.int64), np.array(olds, np.int64)))

    def to_plain(self, key: str, page: Any) -> Any:
        """Keys with their ranks and rows, in a list."""
        if key == NEWEST:
            return [(own, rank, row) for own, (rank, row) in page.items()]
        return super().to_plain(key, page)

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        if key == NEWEST:
            return {tuple(own): (tuple(rank), tuple(row)) for own, rank, row in data}
        return data if key == OLDER else super().from_plain(key, data, MeldOperator.version)
