"""Select: the rows for which a predicate is true. Order-insensitive; punctuation passes through (thesis 8.2).

A row for which the predicate has no value, since evaluating it fails, is given back as failed. Lives pass through: an
insert and its adjusts are the same row, so all of them are kept or none is.

Columns that nobody reads further up are not copied: they are null, and the `origin` of the batch has them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Batch, Row
from penstock.model.interleaved import Interleaved
from penstock.model.interrupts import let_through
from penstock.model.schema import Schema
from penstock.operators.operator import Outputs, Stateless
from penstock.operators.relational.attempt import attempt

RowFilter = Callable[[Sequence[Row]], list[Row]]
ColumnPredicate = Callable[[Batch], pa.ChunkedArray | None]


class SelectOperator(Stateless):
    """Keeps the rows for which the predicate is true; null is not true."""

    starts_with_the_last = True

    def __init__(
        self, schema: Schema, by_rows: RowFilter, by_column: ColumnPredicate, unread: Collection[str] = ()
    ) -> None:
        """`by_column` gives the mask of a columnar batch, or None where these values have no columnar answer.

        `unread` are columns that nobody reads of what comes out.
        """
        super().__init__(schema)
        self.by_rows, self.by_column = by_rows, by_column
        self.unread = frozenset(unread)

    def process(self, port: int, batch: Batch) -> Outputs:
        """Filter in the form at hand."""
        return attempt(self.schema, batch, self._whole, self.single, chooses=True)

    def interleave(self, port: int, given: Interleaved) -> Outputs:
        """Filter all rows at once, if that is possible by columns, and find where each punctuation stands then."""
        whole = given.whole
        try:
            mask = self.by_column(whole) if whole.columnar else None
        except Exception as error:  # some row has no answer: `attempt` finds it
            let_through(error)
            mask = None
        if mask is None:
            yield from super().interleave(port, given)
            return
        kept = _known(mask)
        if given.kept is not None:
            kept = pc.and_(kept, pa.array(given.kept))
        so_far = np.cumsum(kept.to_numpy(), dtype=np.int32)
        yield from self.carried_over(port, given, self._filtered(whole, kept), _kept_before(given, so_far))

    def _whole(self, batch: Batch) -> Batch:
        mask = self.by_column(batch) if batch.columnar else None
        if mask is not None:
            return self._filtered(batch, _known(mask))
        rows = self.by_rows(batch.rows)
        if batch.lives is None and batch.origin is None:
            return Batch(self.schema, rows)
        places = _places(batch, rows)
        lives = None if batch.lives is None else batch.lives.take(places)
        origin = None if batch.origin is None else partial(_taken_again, batch.origin, places)
        return Batch(self.schema, rows, lives=lives, origin=origin)

    def _filtered(self, batch: Batch, kept: pa.ChunkedArray) -> Batch:
        lives = None if batch.lives is None else batch.lives.take(np.asarray(kept.to_numpy(), np.bool_))
        if not self.unread:
            origin = None if batch.origin is None else partial(_again, batch.origin, kept)
            return Batch(self.schema, table=batch.table.filter(kept), lives=lives, origin=origin)
        read = [field.name for field in self.schema.fields if field.name not in self.unread]
        table = batch.table.select(read).filter(kept)
        columns = [
            pa.chunked_array([pa.nulls(table.num_rows, field.type)]) if field.name in self.unread else table[field.name]
            for field in self.schema.arrow
        ]
        made = pa.Table.from_arrays(columns, schema=self.schema.arrow)
        return Batch(self.schema, table=made, lives=lives, origin=partial(_again, batch.complete, kept))

    def single(self, row: Row) -> Row | None:
        """The row if it is kept; fails where the predicate does."""
        return row if self.by_rows((row,)) else None


def _again(origin: Callable[[], Batch], kept: pa.ChunkedArray) -> Batch:
    return origin().select(kept.to_numpy())


def _taken_again(origin: Callable[[], Batch], places: Sequence[int]) -> Batch:
    return origin().take(np.asarray(places, np.int64))


def _kept_before(given: Interleaved, so_far: np.ndarray) -> list[int]:
    """How many rows are kept before each punctuation, from how many are kept so far at each row."""
    if given.kept is None:
        ends = given.places
    else:  # counted among the rows of the whole batch, up to the one which it stands before
        left_out = np.flatnonzero(~given.kept)
        own = left_out - np.arange(len(left_out))
        ends = (np.asarray(given.places) + np.searchsorted(own, given.places)).tolist()
    return [int(so_far[end - 1]) if end else 0 for end in ends]


def _known(mask: pa.ChunkedArray) -> pa.ChunkedArray:
    """What is unknown is not true."""
    return pc.fill_null(mask, False) if mask.null_count else mask


def _places(batch: Batch, kept: Sequence[Row]) -> list[int]:
    """Where in a batch the rows are that a filter kept, which are the very same objects in the same order."""
    places: list[int] = []
    for place, row in enumerate(batch.rows):
        if len(places) < len(kept) and kept[len(places)] is row:
            places.append(place)
    return places
