"""What a tracker needs of each row besides its time: which source it is of, or whether it is punctuation.

Sources are told apart as group keys are (`canonical`): null is a source, NaN is one, and the two zeros are one. A
punctuation row carries a bound for the whole stream. One that also carries a value in a column that neither is the time
nor stands in the predicate might be meant for the rows with that value alone; read as a bound for all of them it would
condemn rows that nobody promised anything about, so it is told apart (`AMBIGUOUS`) and moves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import reason_of
from penstock.model.batch import Batch, Row, rows_of
from penstock.model.interrupts import let_through
from penstock.model.values import canonical

DATA, PUNCTUATION, GROUPWISE, AMBIGUOUS, UNJUDGED = 0, 1, 2, 3, 4
"""What a row is to its stream. Punctuation speaks for the whole of it, or group-wise for rows with some values.

A row is unjudged where evaluating the predicate fails: it is dead and moves nothing.
"""


@dataclass(frozen=True)
class Coded:
    """A source per row: a code, and what the codes stand for, each source once."""

    codes: np.ndarray
    sources: tuple[Any, ...]
    counted: np.ndarray | None = None
    """How many rows each has, if that is known."""

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.codes)

    def counts(self) -> np.ndarray:
        """How many rows each source has."""
        return np.bincount(self.codes, minlength=len(self.sources)) if self.counted is None else self.counted

    def part(self, start: int, end: int | None) -> Coded:
        """Neighbouring rows."""
        return Coded(self.codes[start:end], self.sources)


Marks = Coded | Sequence[Any] | np.ndarray | None


def coded(marks: Marks) -> Coded:
    """Sources given one by one, as codes."""
    if isinstance(marks, Coded):
        return marks
    known: dict[Any, int] = {}
    codes = [known.setdefault(source, len(known)) for source in (() if marks is None else marks)]
    return Coded(np.array(codes, np.int64), tuple(known))


class SourceMarks:
    """The source of each row, from a column."""

    def __init__(self, index: int) -> None:
        """The position of the column."""
        self.index = index

    def single(self, row: Row) -> Any:
        """The source of one row."""
        return canonical(row[self.index])

    def __call__(self, batch: Batch) -> Coded:
        """Each distinct value of a column is looked at once; rows are looked at one by one."""
        if not batch.columnar:
            return coded([canonical(row[self.index]) for row in batch.rows])
        column = batch.table.column(self.index)
        close = _close_integers(column)
        if close is not None:
            return close
        encoded = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        unified = coded([canonical(value) for (value,) in rows_of(pa.table([encoded.dictionary], names=["source"]))])
        indices = encoded.indices.to_numpy(zero_copy_only=False)
        if len(unified.sources) == len(unified):  # no two values are the same source
            return Coded(indices, unified.sources)
        return Coded(unified.codes[indices] if len(indices) else np.empty(0, np.int64), unified.sources)


def _close_integers(column: pa.ChunkedArray) -> Coded | None:
    """The sources of integers that are close together, which need not be looked up; None if they are not."""
    if not len(column) or column.null_count or not pa.types.is_signed_integer(column.type):
        return None
    values = np.asarray(column.to_numpy()).astype(np.int64, copy=False)
    low = int(values.min())
    span = int(values.max()) - low + 1
    if span > len(values):
        return None
    places = values - low
    counts = np.bincount(places, minlength=span)
    there = np.flatnonzero(counts)
    if len(there) == span:
        return Coded(places, tuple(range(low, low + span)), counts)
    codes = np.zeros(span, np.int64)
    codes[there] = np.arange(len(there))
    return Coded(codes[places], tuple((there + low).tolist()), counts[there])


class PunctuationMarks:
    """Which rows are punctuation, and which of those speak for some rows alone, or are ambiguous."""

    def __init__(
        self,
        by_row: Callable[[Row], Any],
        by_column: Callable[[Batch], pa.ChunkedArray | None],
        silent: Sequence[int],
        per: Sequence[int] = (),
    ) -> None:
        """The predicate in both forms, the columns that must be null in punctuation, and those that it may be about."""
        self.by_row, self.by_column, self.silent, self.per = by_row, by_column, tuple(silent), tuple(per)

    def single(self, row: Row) -> int:
        """What one row is."""
        try:
            if not self.by_row(row):
                return DATA
        except Exception as error:  # whatever the values or a user's code did; `reason` says what
            let_through(error)
            return UNJUDGED
        if any(row[i] is not None for i in self.silent):
            return AMBIGUOUS
        return GROUPWISE if any(row[i] is not None for i in self.per) else PUNCTUATION

    def reason(self, row: Row) -> str:
        """Why a row is unjudged."""
        try:
            self.by_row(row)
        except Exception as error:
            let_through(error)
            return reason_of(error)
        return "it could not be told whether the row is punctuation"

    def __call__(self, batch: Batch) -> np.ndarray:
        """By column where the predicate can be, else by row."""
        try:
            mask = self.by_column(batch) if batch.columnar and len(batch) else None
            if mask is None:
                found = np.fromiter((bool(self.by_row(row)) for row in batch.rows), np.bool_, count=len(batch))
        except Exception as error:  # some row has no answer: each by itself
            let_through(error)
            return np.fromiter((self.single(row) for row in batch.rows), np.int8, count=len(batch))
        if mask is not None:
            told = pc.fill_null(mask, False) if mask.null_count else mask
            found = np.asarray(told.to_numpy(zero_copy_only=False), np.bool_)
        marks = found.astype(np.int8)
        places = np.flatnonzero(found)
        for columns, mark in ((self.per, GROUPWISE), (self.silent, AMBIGUOUS)):
            if len(places) and columns:
                marks[places[self._speaks(batch, places, columns)]] = mark
        return marks

    @staticmethod
    def _speaks(batch: Batch, places: np.ndarray, columns: Sequence[int]) -> np.ndarray:
        """Whether the rows at some places have a value in some columns."""
        if not batch.columnar:
            rows = batch.rows
            return np.array([any(rows[at][i] is not None for i in columns) for at in places.tolist()], np.bool_)
        speaks = np.zeros(len(places), np.bool_)
        taken = batch.table.select(list(columns)).take(pa.array(places))
        for column in taken.columns:
            speaks |= np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False), np.bool_)
        return speaks
