"""Columns of packed rows: values at any places are had without looking at the others.

Numbers are kept as what each is above the least of them, in one, two, four or eight bytes. Where rows of a key lie
together, and keys have several, a column that is the same in all rows of a key is kept once a key. Texts of which many
are the same are kept once each. Whatever else there is, nulls among it, stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from penstock.operators.aggregates.group_codes import one_chunk

_WIDTHS = (np.uint8, np.uint16, np.uint32)
FEWER = 0.75
"""Columns are kept once a key if there are no more keys than this share of the rows."""


class Places:
    """Places of rows, and the groups of these, which are looked up once for all columns."""

    __slots__ = ("_groups", "_of_rows", "rows")

    def __init__(self, rows: np.ndarray, of_rows: np.ndarray | None) -> None:
        """`of_rows` is the group of each row that there is, if they are grouped."""
        self.rows, self._of_rows = rows, of_rows
        self._groups: np.ndarray | None = None

    @property
    def groups(self) -> np.ndarray:
        """The group of each."""
        if self._groups is None:
            assert self._of_rows is not None
            self._groups = self._of_rows.take(self.rows).astype(np.intp)
        return self._groups


class Column(Protocol):
    """A column."""

    def take(self, places: Places) -> pa.Array:
        """The values at some places."""

    def kept(self, places: Places, groups: Groups | None) -> Column:
        """The rows at some places, which are grouped like that."""


@dataclass(frozen=True)
class Groups:
    """Rows of which neighbours have the same key."""

    of_rows: np.ndarray
    """The group of each row, in ascending order."""
    firsts: np.ndarray
    """The place of the first row of each; only while they are made."""

    @staticmethod
    def of(keys: np.ndarray) -> Groups | None:
        """Of rows with these numbers for keys, which are in ascending order; None if most keys have one row."""
        begins = np.ones(len(keys), np.bool_)
        np.not_equal(keys[1:], keys[:-1], out=begins[1:])
        firsts = np.flatnonzero(begins)
        if len(firsts) > FEWER * len(keys):
            return None
        return Groups(narrow(np.cumsum(begins) - 1, len(firsts)), firsts)


def narrow(numbers: np.ndarray, most: int) -> np.ndarray:
    """Numbers from 0 to `most` in as few bytes as these need."""
    return numbers.astype(np.min_scalar_type(most), copy=False)


@dataclass(frozen=True)
class Plain:
    """Values as they are."""

    values: pa.Array

    def take(self, places: Places) -> pa.Array:
        """The values at some places."""
        return self.values.take(pa.array(places.rows))

    def kept(self, places: Places, groups: Groups | None) -> Column:
        """The rows at some places."""
        return Plain(self.take(places))


@dataclass(frozen=True)
class Numbers:
    """Whole numbers, and times, above the least of them."""

    wide: np.dtype
    """What holds any of the type."""
    least: np.integer
    above: np.ndarray
    by_group: bool
    """Whether there is a number for each group, and not for each row."""

    @staticmethod
    def of(values: np.ndarray, groups: Groups | None) -> Numbers:
        """Of some rows."""
        by_group = groups is not None and bool((values == values[groups.firsts][groups.of_rows]).all())
        if groups is not None and by_group:
            values = values[groups.firsts]
        kind = values.dtype.type
        least, greatest = int(values.min()), int(values.max())
        for width in _WIDTHS:
            if greatest - least <= np.iinfo(width).max and np.dtype(width).itemsize < values.dtype.itemsize:
                return Numbers(values.dtype, kind(least), (values - kind(least)).astype(width), by_group)
        return Numbers(values.dtype, kind(0), values, by_group)

    def take(self, places: Places) -> np.ndarray:
        """The values at some places."""
        taken = self.above.take(places.groups if self.by_group else places.rows)
        found: np.ndarray = taken.astype(self.wide, copy=False)
        if self.least:
            found += self.least
        return found

    def kept(self, places: Places, groups: Groups | None) -> Numbers:
        """The rows at some places, which are grouped like that."""
        return Numbers.of(self.take(places), groups)


@dataclass(frozen=True)
class Whole:
    """A column of numbers."""

    arrow: pa.DataType
    numbers: Numbers

    def take(self, places: Places) -> pa.Array:
        """The values at some places."""
        return as_arrow(self.numbers.take(places), self.arrow)

    def kept(self, places: Places, groups: Groups | None) -> Column:
        """The rows at some places."""
        return replace(self, numbers=self.numbers.kept(places, groups))


@dataclass(frozen=True)
class Coded:
    """Texts, each of which is kept once."""

    texts: pa.Array
    codes: Numbers

    def take(self, places: Places) -> pa.Array:
        """The values at some places."""
        return self.texts.take(pa.array(self.codes.take(places)))

    def kept(self, places: Places, groups: Groups | None) -> Column:
        """The rows at some places; texts that none has any more are kept until the rows are packed anew."""
        return replace(self, codes=self.codes.kept(places, groups))


def as_arrow(numbers: np.ndarray, arrow: pa.DataType) -> pa.Array:
    """Numbers of the width of a type, as that type."""
    return pa.Array.from_buffers(arrow, len(numbers), [None, pa.py_buffer(numbers)])


def packed(chunks: pa.ChunkedArray, order: np.ndarray, groups: Groups | None) -> Column:
    """A column in an order of its rows, which are grouped like that."""
    values = one_chunk(chunks)
    kind = values.type
    if not values.null_count and (pa.types.is_integer(kind) or pa.types.is_timestamp(kind)):
        numbers = values.view(pa.int64()) if pa.types.is_timestamp(kind) else values
        return Whole(kind, Numbers.of(numbers.to_numpy().take(order), groups))
    if not values.null_count and pa.types.is_string(kind):
        coded = values.dictionary_encode()
        if 2 * len(coded.dictionary) <= len(values):
            return Coded(coded.dictionary, Numbers.of(coded.indices.to_numpy().take(order), groups))
    return Plain(values.take(pa.array(order)))
