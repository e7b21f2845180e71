"""The rows of one input of a join of several streams: in runs that came together, or loose, a few at a time.

Rows are looked up by some of their columns and by time, and which columns that are depends on who looks. So there is an
index for each choice of columns that was asked for, made when it is first asked for: of a run by hash and time
(`index`), of loose rows by key, each in order of time. Indexes are no part of the state.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.batch import Row
from penstock.model.time import END_OF_TIME
from penstock.model.values import canonical_row
from penstock.operators.joins.forms import Side
from penstock.operators.joins.index import Index
from penstock.operators.joins.keys import KeyRows

Columns = tuple[int, ...]


class MultiRun:
    """Rows that came together, or were joined with others."""

    def __init__(self, table: pa.Table, times: np.ndarray) -> None:
        """A table, and the times of its rows."""
        self.table, self.times = table, times
        self._indexes: dict[Columns, Index] = {}

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.times)

    @cached_property
    def newest(self) -> int:
        """The greatest time."""
        return int(self.times.max())

    @cached_property
    def oldest(self) -> int:
        """The least time."""
        return int(self.times.min())

    def index(self, columns: Columns) -> Index:
        """The index by some columns."""
        found = self._indexes.get(columns)
        if found is None:
            keys = KeyRows.of(self.table, columns)
            found = self._indexes[columns] = Index.of(keys, self.times)
            keys.forget()
        return found

    def since(self, settled: int) -> MultiRun | None:
        """Itself, if at least half of it is of a time or later; or what of it is; None if nothing is."""
        if self.oldest >= settled:
            return self
        if self.newest < settled:
            return None
        kept = self.times >= settled
        if 2 * int(kept.sum()) >= len(self):
            return self
        return MultiRun(self.table.filter(pa.array(kept)), self.times[kept])


def runs_joined(runs: Sequence[MultiRun], side: Side) -> MultiRun:
    """Runs as one."""
    if len(runs) == 1:
        return runs[0]
    table = pa.concat_tables([run.table for run in runs]).combine_chunks()
    return MultiRun(table, side.times(table))


Held = tuple[int, int, Row]
"""The time of a row, its number, and itself."""


class LooseInput:
    """Loose rows."""

    __slots__ = ("_by_time", "_indexes", "_made")

    def __init__(self, rows: Iterable[tuple[int, Row]] = ()) -> None:
        """Rows with their times."""
        self._by_time: list[Held] = [(time, number, row) for number, (time, row) in enumerate(rows)]
        self._made = len(self._by_time)
        self._indexes: dict[Columns, dict[tuple[Any, ...], list[Held]]] = {}
        heapify(self._by_time)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._by_time)

    def __iter__(self) -> Iterator[Row]:
        """All of them, in the order in which they came."""
        return (row for _, _, row in sorted(self._by_time, key=lambda held: held[1]))

    def add(self, time: int, row: Row) -> None:
        """Keep a row."""
        held = (time, self._made, row)
        self._made += 1
        heappush(self._by_time, held)
        for columns, index in self._indexes.items():
            _place(index.setdefault(_key(columns, row), []), held)

    def find(self, columns: Columns, key: tuple[Any, ...], first: int, last: int) -> list[Held]:
        """The rows that have a key in some columns, from the first time to the last."""
        index = self._indexes.get(columns)
        if index is None:
            index = self._indexes[columns] = {}
            for held in sorted(self._by_time, key=_order):
                index.setdefault(_key(columns, held[2]), []).append(held)
        own = index.get(key)
        if own is None or own[-1][0] < first or own[0][0] > last:
            return []
        start = bisect_left(own, first, key=_time)
        return own[start : bisect_right(own, last, start, key=_time)]

    def give_up(self, settled: int) -> bool:
        """Forget the rows below a time; says whether there was any."""
        before = len(self._by_time)
        while self._by_time and (settled == END_OF_TIME or self._by_time[0][0] < settled):
            gone = heappop(self._by_time)
            for columns, index in self._indexes.items():
                key = _key(columns, gone[2])
                own = index[key]
                del own[0]  # it is the earliest of its key, too
                if not own:
                    del index[key]
        return len(self._by_time) < before

    def least(self) -> int:
        """The least time."""
        return self._by_time[0][0] if self._by_time else END_OF_TIME


def _place(own: list[Held], held: Held) -> None:
    if own and own[-1][:2] > held[:2]:
        own.insert(bisect_left(own, held[:2], key=_order), held)
    else:
        own.append(held)


def _key(columns: Columns, row: Row) -> tuple[Any, ...]:
    return canonical_row(tuple([row[i] for i in columns]))


def _time(held: Held) -> int:
    return held[0]


def _order(held: Held) -> tuple[int, int]:
    return held[:2]
