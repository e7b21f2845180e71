"""Which rows of a table those of a stream meet: by what is to be equal, and by the version that is valid.

Made once of the table. Keys are small numbers, column by column: the place of a value among those that the table has in
that column, and with it the place of what came of the columns before. Of many rows at once each step is an array
operation; of a few, one look into a dictionary. Null equals nothing, NaN is equal to NaN, the two zeros are one.

Rows come in the order of the table. Versions of a key are kept in the order of their starts, and of those starts only
the rank counts: how many of all that there are come no later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Row, rows_of, ticks_of
from penstock.model.nested import column_of_bytes
from penstock.model.time import END_OF_TIME
from penstock.model.values import canonical_row

Places = np.ndarray
NONE = -1


@dataclass(frozen=True)
class Versions:
    """From when on rows of a table are valid, and until when."""

    starts: np.ndarray
    ends: np.ndarray

    @staticmethod
    def of(table: pa.Table, valid_from: str, valid_to: str | None) -> Versions:
        """Those that columns tell; an end that is null does not come."""
        starts = ticks_of(table.column(valid_from))
        if valid_to is None:
            return Versions(starts, np.full(len(starts), END_OF_TIME))
        ends = table.column(valid_to)
        known = np.asarray(ends.is_valid().to_numpy())
        found = np.full(len(starts), END_OF_TIME)
        found[known] = ticks_of(ends.drop_null())
        return Versions(starts, found)


class TableIndex:
    """Finds rows of a table."""

    def __init__(self, keys: Sequence[pa.ChunkedArray], size: int, versions: Versions | None = None) -> None:
        """`keys` are the columns of the table that are to be equal, each as long as its `size`."""
        self.keys, self.size, self.versions = [_even(key) for key in keys], size, versions
        self._given = list(keys)
        self._values = [pc.unique(key).drop_null() for key in self.keys]
        self._steps: list[np.ndarray] = []
        codes = self._codes(self.keys, size, learns=True)
        known = np.flatnonzero(codes != NONE)
        if versions is None:
            self._order = known[np.argsort(codes[known], kind="stable")]
        else:
            self._ranks = np.unique(versions.starts)
            self._order = known[np.lexsort((versions.starts[known], codes[known]))]
            rank = np.searchsorted(self._ranks, versions.starts[self._order], side="right")
            self._ranked = codes[self._order] * (len(self._ranks) + 1) + rank
        self._sorted = codes[self._order]
        # By code, and at the end, which is where `NONE` points, nothing.
        self._counts = np.append(np.bincount(self._sorted), 0)
        self._first = np.cumsum(self._counts) - self._counts

    def repeated(self) -> int | None:
        """The place of a version that starts when another of its key does, if there is one."""
        again = np.flatnonzero(np.diff(self._ranked) == 0)
        return int(self._order[again[0]]) if len(again) else None

    def _codes(self, keys: Sequence[pa.ChunkedArray], size: int, *, learns: bool = False) -> np.ndarray:
        """A number for each key of the table, and `NONE` for others; `learns` which there are, of the table itself."""
        codes = np.zeros(size, np.int64)
        for step, (key, values) in enumerate(zip(keys, self._values, strict=True)):
            own = pc.index_in(key, value_set=values).fill_null(NONE).to_numpy().astype(np.int64)
            if step == 0:
                codes = own
                continue
            both = np.where((codes == NONE) | (own == NONE), NONE, codes * len(values) + own)
            if learns:
                self._steps.append(np.unique(both[both != NONE]))
            codes = _place_among(self._steps[step - 1], both)
        return codes

    # Many rows

    def find(self, keys: Sequence[pa.ChunkedArray], times: pa.ChunkedArray | None, size: int) -> tuple[Places, Places]:
        """How many rows of the table each row of a stream meets, and where in the index the first of them is."""
        codes = self._codes([_even(key) for key in keys], size)
        if self.versions is None:
            return self._counts[codes], self._first[codes]
        assert times is not None
        return self._valid(codes, times)

    def _valid(self, codes: np.ndarray, times: pa.ChunkedArray) -> tuple[Places, Places]:
        assert self.versions is not None
        known = np.asarray(times.is_valid().to_numpy())
        at = np.zeros(len(codes), np.int64)
        at[known] = ticks_of(times.drop_null())
        rank = np.searchsorted(self._ranks, at, side="right")
        place = np.searchsorted(self._ranked, codes * (len(self._ranks) + 1) + rank, side="right") - 1
        found = known & (codes != NONE) & (place >= 0)
        if len(self._order):
            found &= (self._sorted[place] == codes) & (at < self.versions.ends[self._order[place]])
        return found.astype(np.int64), place

    def pairs(self, counts: Places, first: Places) -> tuple[Places, Places]:
        """The places of the rows of the stream and of the table that meet, from what was found."""
        if len(counts) and counts.max() <= 1:
            left = np.flatnonzero(counts)
            return left, self._order[first[left]]
        left = np.repeat(np.arange(len(counts)), counts)
        before = np.repeat(np.cumsum(counts) - counts, counts)
        return left, self._order[np.repeat(first, counts) + np.arange(len(left)) - before]

    # Few rows

    def single(self, key: Row, time: Any = None) -> Sequence[int]:
        """The places of the rows of the table that one row meets."""
        if None in key:
            return ()
        found = self._by_key.get(canonical_row(key), ())
        if self.versions is None or not found:
            return found
        if time is None:
            return ()
        at = bisect_right(self._starts[canonical_row(key)], time) - 1
        return [found[at]] if at >= 0 and time < self.versions.ends[found[at]] else ()

    @cached_property
    def _by_key(self) -> dict[Row, list[int]]:
        names = [str(n) for n in range(len(self.keys))]
        rows = rows_of(pa.table(self._given, names)) if self._given else [()] * self.size
        found: dict[Row, list[int]] = {}
        for place in self._order.tolist():
            found.setdefault(canonical_row(rows[place]), []).append(place)
        return found

    @cached_property
    def _starts(self) -> dict[Row, list[int]]:
        assert self.versions is not None
        return {key: self.versions.starts[places].tolist() for key, places in self._by_key.items()}


def _even(key: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column in which the two zeros of floating point are one; nested values as bytes."""
    if pa.types.is_nested(key.type):
        return pa.chunked_array([column_of_bytes(key)])
    return pc.add(key, pa.scalar(0.0, key.type)) if pa.types.is_floating(key.type) else key


def _place_among(known: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The place of each value among some that are sorted, `NONE` for one that is not there."""
    if not len(known):
        return np.full(len(values), NONE)
    place = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[place] == values, place, NONE)
