"""Lookup: rows of a stream with the rows of a table that they meet. No state; promises pass through.

A batch is looked up at once, as arrays, and comes out in the order in which it came; the rows of the table that one row
meets are in the table's order. A batch of a few rows stays rows. Where many pairs come of a batch they come out some at
a time. A pair for which the condition has no value is none, and is given back as failed.

Lives pass through: an insert and its adjusts are the same row, so they meet the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Batch, Row, rows_of
from penstock.model.interleaved import Interleaved
from penstock.model.interrupts import let_through
from penstock.model.schema import Schema
from penstock.operators.joins.forms import Condition
from penstock.operators.joins.table_index import TableIndex
from penstock.operators.operator import Outputs, Rejected, Stateless
from penstock.operators.relational.attempt import by_row

MOST = 1 << 18
"""About so many pairs are made at once."""
FEW_ROWS = 32
"""A batch of no more rows is looked up row by row."""


class LookupOperator(Stateless):
    """Looks up every row."""

    def __init__(
        self,
        schema: Schema,
        table: pa.Table,
        index: TableIndex,
        kind: str,
        keys: Sequence[int],
        names: Mapping[str, Sequence[str]],
        condition: Condition | None = None,
        as_of: int | None = None,
    ) -> None:
        """The stream's columns `keys` are what the index is of, and `as_of` is the time at which the table is seen."""
        super().__init__(schema, names)
        self.table, self.index, self.kind_of_join = table.combine_chunks(), index, kind
        self.keys, self.condition, self.as_of = tuple(keys), condition, as_of
        self._is_of_pairs = kind in ("inner", "left")
        self._arrow = schema.arrow
        self._none = (None,) * table.num_columns
        self._rows: list[Row] | None = None

    def process(self, port: int, batch: Batch) -> Outputs:
        """Look up in the form at hand."""
        if len(batch) <= FEW_ROWS and not batch.columnar:
            yield from self._by_rows(batch)
            return
        for part, counts, first in self._parts(batch):
            made, _, failed = self._made(part, counts, first)
            if len(made):
                yield made
            yield from failed

    def interleave(self, port: int, given: Interleaved) -> Outputs:
        """Look up all rows at once, unless that is too much, and find where each punctuation stands then."""
        parts = list(self._parts(given.batch))
        made = [self._made(*part) for part in parts] if len(parts) == 1 else []
        if not made or made[0][2]:
            yield from super().interleave(port, given)
            return
        batch, per_row, _ = made[0]
        so_far = np.concatenate([[0], np.cumsum(per_row)])
        yield from self.carried_over(port, given, batch, so_far[np.asarray(given.places, np.int64)].tolist())

    # Many rows

    def _parts(self, batch: Batch) -> Iterator[tuple[Batch, np.ndarray, np.ndarray]]:
        """A batch in parts of which not too many pairs come, with what was found for their rows."""
        table = batch.table
        times = None if self.as_of is None else table.column(self.as_of)
        counts, first = self.index.find([table.column(i) for i in self.keys], times, len(batch))
        so_far, start = np.cumsum(counts), 0
        while start < len(batch):
            before = int(so_far[start - 1]) if start else 0
            end = max(start + 1, int(np.searchsorted(so_far, before + MOST, side="right")))
            end = min(end, len(batch))
            yield batch.part(start, end), counts[start:end], first[start:end]
            start = end

    def _made(self, batch: Batch, counts: np.ndarray, first: np.ndarray) -> tuple[Batch, np.ndarray, list[Rejected]]:
        """What comes of some rows, how much of each, and what failed."""
        size, failed = len(batch), list[Rejected]()
        if self.condition is None and not self._is_of_pairs:
            kept = (counts > 0) == (self.kind_of_join == "semi")
            return self._chosen(batch, kept), kept.astype(np.int64), []
        left, right = self.index.pairs(counts, first)
        if self.condition is not None:
            holds, failed = self._holding(self.condition, batch, left, right)
            left, right = left[holds], right[holds]
            counts = np.bincount(left, minlength=size)
        if not self._is_of_pairs:
            kept = (counts > 0) == (self.kind_of_join == "semi")
            return self._chosen(batch, kept), kept.astype(np.int64), failed
        if self.kind_of_join == "left" and (counts == 0).any():
            alone = np.flatnonzero(counts == 0)
            order = np.argsort(np.concatenate([left, alone]), kind="stable")
            left = np.concatenate([left, alone])[order]
            right = np.concatenate([right, np.full(len(alone), -1)])[order]
            counts = np.maximum(counts, 1)
        return self._beside(self.schema, batch, left, right), counts, failed

    def _chosen(self, batch: Batch, kept: np.ndarray) -> Batch:
        chosen = batch if kept.all() else batch.select(kept)
        table = pa.Table.from_arrays(chosen.table.columns, schema=self._arrow)
        return Batch(self.schema, table=table, lives=chosen.lives)

    def _beside(self, schema: Schema, batch: Batch, left: np.ndarray, right: np.ndarray) -> Batch:
        """Rows of the stream and of the table at these places, side by side; -1 stands for nulls."""
        once = len(left) == len(batch) and bool((left == np.arange(len(left))).all())
        own = batch if once else batch.take(left)
        missing = right < 0
        places = pa.array(right, mask=missing) if missing.any() else pa.array(right)
        columns = [*own.table.columns, *(column.take(places) for column in self.table.columns)]
        return Batch(schema, table=pa.Table.from_arrays(columns, schema=schema.arrow), lives=own.lives)

    def _holding(
        self, condition: Condition, batch: Batch, left: np.ndarray, right: np.ndarray
    ) -> tuple[np.ndarray, list[Rejected]]:
        """Which pairs the condition holds for; those for which it has no value are given back."""
        pairs = self._beside(condition.schema, batch, left, right)
        try:
            mask = condition.by_column(pairs)
        except Exception as error:  # some pair has no answer: each by itself
            let_through(error)
            mask = None
        if mask is not None:
            told = pc.fill_null(mask, False) if mask.null_count else mask
            return np.asarray(told.to_numpy(), np.bool_), []
        good, failed = by_row(pairs.rows, lambda row: row if condition.by_row(row) else None)
        holds = np.zeros(len(pairs), np.bool_)
        holds[[place for place, _ in good]] = True
        if not failed:
            return holds, []
        wrong = pairs.take(np.array([place for place, _ in failed]))
        return holds, [Rejected("failed", wrong, (), [reason for _, reason in failed])]

    # Few rows

    def _by_rows(self, batch: Batch) -> Outputs:
        made: list[Row] = []
        places: list[int] = []
        failed: list[tuple[int, Row, str]] = []
        for place, row in enumerate(batch.rows):
            found = self._of_row(place, row, failed)
            made += found
            places += [place] * len(found)
        if made:
            yield Batch(self.schema, made, lives=None if batch.lives is None else batch.lives.take(places))
        if failed:
            assert self.condition is not None
            lives = None if batch.lives is None else batch.lives.take([place for place, _, _ in failed])
            wrong = Batch(self.condition.schema, [pair for _, pair, _ in failed], lives=lives)
            yield Rejected("failed", wrong, (), [reason for _, _, reason in failed])

    def _of_row(self, place: int, row: Row, failed: list[tuple[int, Row, str]]) -> list[Row]:
        time: Any = None if self.as_of is None else row[self.as_of]
        others = self.index.single(tuple(row[i] for i in self.keys), time)
        pairs: list[Row] = [(*row, *self.rows[other]) for other in others]
        if self.condition is not None:
            good, bad = by_row(pairs, lambda pair: pair if self.condition.by_row(pair) else None)  # type: ignore[union-attr]
            failed += [(place, pairs[at], reason) for at, reason in bad]
            pairs = [pair for _, pair in good]
        if not self._is_of_pairs:
            return [row] if bool(pairs) == (self.kind_of_join == "semi") else []
        return pairs if pairs or self.kind_of_join == "inner" else [(*row, *self._none)]

    @property
    def rows(self) -> list[Row]:
        """The rows of the table, made on first use."""
        if self._rows is None:
            self._rows = rows_of(self.table)
        return self._rows
