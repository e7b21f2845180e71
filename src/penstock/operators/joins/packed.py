"""Rows of a join in few bytes: a run in the order of its index, with columns no wider than what they hold.

Rows lie in the order of key and time, so the index (`index`) need not say where they are, and has their times. What a
row meets is one stretch of memory, and what all rows of a key have in common is kept once (`columns`). It takes about
as long to pack rows as to index them.

In which order rows came is remembered where they may come out by themselves. Of others only pairs do; as state, such
rows are in the order of their times, and of their keys where these are equal: nothing tells of hashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.operators.joins.columns import Column, Groups, Places, Whole, as_arrow, narrow, packed
from penstock.operators.joins.forms import Side
from penstock.operators.joins.index import Index
from penstock.operators.joins.keys import KeyRows, Part, part_of
from penstock.operators.joins.runs import Run

_AS_TICKS = (pa.int64(), pa.timestamp("us"), pa.timestamp("us", tz="UTC"))


@dataclass(frozen=True)
class InIndex:
    """The times, which the index has."""

    arrow: pa.DataType
    index: Index

    def take(self, places: Places) -> pa.Array:
        """The times at some places."""
        return as_arrow(self.index.times(self.index.ascending.take(places.rows)), self.arrow)

    def kept(self, places: Places, groups: Groups | None) -> Column:
        """They go with their index."""
        return self


@dataclass(frozen=True)
class PackedKeys:
    """The keys of packed rows."""

    columns: tuple[Column, ...]
    of_rows: np.ndarray | None
    """The groups of the rows."""

    def taken(self, places: np.ndarray) -> KeyRows:
        """The keys of the rows at some places."""
        at = Places(places, self.of_rows)
        return KeyRows(len(places), [_part(each, at) for each in self.columns])


def _part(column: Column, places: Places) -> Part:
    if isinstance(column, Whole) and pa.types.is_integer(column.arrow):
        return column.numbers.take(places)  # as it would come out of an Arrow array, sooner
    return part_of(pa.chunked_array([column.take(places)]))


class Packed:
    """A run in few bytes."""

    def __init__(
        self,
        side: Side,
        columns: list[Column],
        index: Index,
        groups: Groups | None,
        met: np.ndarray | None,
        came: np.ndarray | None,
    ) -> None:
        """Rows in the order of an index, by their keys; `met` and `came`, as of any run, where that counts."""
        # Its times are those of the index, and the keys of the index its own: nothing is held of what it was made of.
        times = replace(index, order=None, keys=PackedKeys((), None))
        self.columns = [InIndex(each.arrow, times) if isinstance(each, InIndex) else each for each in columns]
        self.of_rows = None if groups is None else groups.of_rows
        self.index = replace(times, keys=PackedKeys(tuple(self.columns[i] for i in side.keys), self.of_rows))
        self.side, self._met, self.came = side, met, came

    @staticmethod
    def of(run: Run, index: Index, side: Side, *, notes: bool) -> Packed:
        """A run, by its index; `notes` says whether it counts which rows have met one."""
        order = index.order
        assert order is not None
        groups, time = _groups(index), side.schema.index(side.attribute)
        columns: list[Column] = [
            InIndex(column.type, index) if i == time and column.type in _AS_TICKS else packed(column, order, groups)
            for i, column in enumerate(run.table.columns)
        ]
        if not notes:
            return Packed(side, columns, index, groups, None, None)
        came = order if run.came is None else run.came[order]
        return Packed(side, columns, index, groups, run.met[order], narrow(came, int(came.max())))

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.index.ascending)

    @property
    def met(self) -> np.ndarray:
        """As of any run; of none, on a side where that does not count."""
        return np.zeros(len(self), np.bool_) if self._met is None else self._met

    @met.setter
    def met(self, met: np.ndarray) -> None:
        self._met = met

    @property
    def times(self) -> np.ndarray:
        """The time of each row."""
        return self.index.times(self.index.ascending)

    @cached_property
    def newest(self) -> int:
        """The greatest time."""
        return int(self.times.max())

    @cached_property
    def oldest(self) -> int:
        """The least time."""
        return int(self.times.min())

    @cached_property
    def middle(self) -> int:
        """A time that half of the rows are below."""
        half = len(self) // 2
        return int(np.partition(self.times, half)[half])

    def take(self, places: np.ndarray) -> pa.Table:
        """The rows at some places, in their order."""
        at = Places(places, self.of_rows)
        return pa.Table.from_arrays([each.take(at) for each in self.columns], schema=self.side.schema.arrow)

    def chosen(self, places: np.ndarray) -> pa.Table:
        """The rows at some places, in the order in which they came."""
        assert self.came is not None
        return self.take(places[np.argsort(self.came[places])])

    def select(self, columns: Sequence[int]) -> pa.Table:
        """Some columns, of all rows."""
        every, fields = Places(np.arange(len(self)), self.of_rows), [self.side.schema.arrow.field(at) for at in columns]
        return pa.Table.from_arrays([self.columns[at].take(every) for at in columns], schema=pa.schema(fields))

    def kept(self, mask: np.ndarray) -> Packed:
        """Only some of its rows."""
        places = np.flatnonzero(mask)
        index = replace(self.index, ascending=self.index.ascending[places])
        groups = _groups(index)
        met, came = (None if own is None else own[places] for own in (self._met, self.came))
        at = Places(places, self.of_rows)
        return Packed(self.side, [each.kept(at, groups) for each in self.columns], index, groups, met, came)

    def unpacked(self) -> Run:
        """As a run, in the order of the index."""
        return Run(self.take(np.arange(len(self))), self.times, self.met, came=self.came)

    def to_plain(self) -> Any:
        """As that of a run that is not packed."""
        run = self.unpacked()
        if run.came is None:
            ordering = [run.times, *(run.table.column(i) for i in self.side.keys)]
            names = [str(i) for i in range(len(ordering))]
            by = pc.sort_indices(pa.table(ordering, names), [(name, "ascending") for name in names])
            run.came = np.empty(len(run), np.int64)
            run.came[by.to_numpy()] = np.arange(len(run))
        return run.to_plain()


def _groups(index: Index) -> Groups | None:
    """The rows of an index by their keys, if its numbers tell these apart."""
    return Groups.of(index.ascending >> index.bits) if index.is_clean else None
