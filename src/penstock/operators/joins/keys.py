"""The columns by which rows of a join must be equal: a hash of each row, and whether rows really are equal.

Nothing is kept of keys but the rows themselves: there is no table of those that were seen. Numbers and times are looked
at where they are; whatever else there is goes by its text. Hashes are others in every process, so whoever chooses keys
cannot choose those that meet; nothing that comes out depends on them, nor does its order. Rows with a null among their
keys are for others to leave out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import ticks_of
from penstock.operators.aggregates.group_codes import as_text, is_word, one_chunk, words_of
from penstock.operators.aggregates.text_codes import text_hashes
from penstock.operators.aggregates.word_table import hashed

Part: TypeAlias = "np.ndarray | pa.Array"
"""A key column: numbers, or texts."""


class Keys(Protocol):
    """Keys of rows, wherever these are kept."""

    def taken(self, places: np.ndarray) -> KeyRows:
        """The keys of the rows at some places."""


class KeyRows:
    """The keys of some rows, at hand."""

    def __init__(self, size: int, parts: list[Part]) -> None:
        """So many rows, with a part for each key."""
        self.size, self.parts = size, parts

    @staticmethod
    def of(table: pa.Table, columns: Sequence[int]) -> KeyRows:
        """The keys of the rows of a table; `columns` are their places."""
        return KeyRows(table.num_rows, [part_of(table.column(i)) for i in columns])

    def taken(self, places: np.ndarray) -> KeyRows:
        """The keys of the rows at some places."""
        parts = [part[places] if isinstance(part, np.ndarray) else part.take(pa.array(places)) for part in self.parts]
        return self._with_hashes(KeyRows(len(places), parts), places)

    def part(self, start: int, end: int) -> KeyRows:
        """The keys of neighbouring rows."""
        found = KeyRows(min(end, self.size) - start, [part[start:end] for part in self.parts])
        return self._with_hashes(found, slice(start, end))

    def _with_hashes(self, some: KeyRows, places: np.ndarray | slice) -> KeyRows:
        """Hashes that are known need not be made again."""
        if "hashes" in self.__dict__:
            some.hashes = self.hashes[places]
        return some

    @property
    def is_cheap(self) -> bool:
        """Whether hashes are quickly made."""
        return all(isinstance(part, np.ndarray) for part in self.parts)

    @cached_property
    def hashes(self) -> np.ndarray:
        """A number for each row; rows with equal keys have the same."""
        if not self.parts:
            return np.zeros(self.size, np.uint64)
        return hashed([_word(part) for part in self.parts])

    def forget(self) -> None:
        """Give back the memory of the hashes; they are made again when they are asked for."""
        self.__dict__.pop("hashes", None)

    @cached_property
    def order(self) -> np.ndarray:
        """The places of the rows by hash."""
        return np.argsort(self.hashes)

    def same(self, places: np.ndarray, other: Keys, others: np.ndarray) -> np.ndarray:
        """Whether rows at some places have the keys of rows of another side at others, one by one."""
        found = np.ones(len(places), np.bool_)
        if not len(places):
            return found
        at_hand = isinstance(other, KeyRows)
        theirs = other if isinstance(other, KeyRows) else other.taken(others)
        for own, its in zip(self.parts, theirs.parts, strict=True):
            if isinstance(own, np.ndarray):
                found &= own[places] == (its[others] if at_hand else its)
            else:
                equal = pc.equal(own.take(pa.array(places)), its.take(pa.array(others)) if at_hand else its)
                found &= equal.to_numpy(zero_copy_only=False)
        return found


def part_of(column: pa.ChunkedArray) -> Part:
    """A key column."""
    arrow = column.type
    if not is_word(arrow):
        return as_text(one_chunk(column))
    if pa.types.is_integer(arrow):
        return np.asarray(column.to_numpy())
    return ticks_of(column) if pa.types.is_timestamp(arrow) else words_of(column)


def _word(part: Part) -> np.ndarray:
    if isinstance(part, np.ndarray):
        return part.astype(np.int64, copy=False)
    return text_hashes(part)
