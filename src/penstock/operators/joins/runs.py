"""The rows of one side of a join, as runs of rows that came together.

A run is an Arrow table beside its rows' times and key codes, and an order of the rows by code and then time, in which
those that a row of the other side meets stand next to each other: two binary searches find them, for all rows of a
batch at once. Code and time are one number, so that both sorting and searching are of plain arrays; where the two do
not fit into 64 bits, times go by their rank.

Runs of similar size are joined, so that there are few: a row is sorted again as often as the side has doubled. A run
of which nothing can be met any more is given up as a whole; one of which that is true for half is made smaller.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

_ROOM = 2**62


@dataclass
class Run:
    """Some rows, in the order in which they came."""

    table: pa.Table
    times: np.ndarray
    met: np.ndarray
    """Which rows need not be told of any more: those that had a partner, where that counts, or were given out."""
    codes: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    """Of the keys; no two rows of different keys have the same."""
    coded_by: object = None
    """Whose codes these are."""

    def code(self, codes: np.ndarray, by: object) -> Run:
        """The same run with other codes."""
        self.codes, self.coded_by = codes, by
        for name in ("_axis", "_span", "_keyed", "order", "_sorted"):
            self.__dict__.pop(name, None)
        return self

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

    @cached_property
    def middle(self) -> int:
        """A time that half of the rows are below."""
        half = len(self.times) // 2
        return int(np.partition(self.times, half)[half])

    @cached_property
    def _axis(self) -> np.ndarray | None:
        """The times by rank, where code and time are too much for one number."""
        span = self.newest - self.oldest + 1
        return None if (int(self.codes.max()) + 1) * span < _ROOM else np.unique(self.times)

    @cached_property
    def _span(self) -> int:
        return self.newest - self.oldest + 1 if self._axis is None else len(self._axis)

    @cached_property
    def _keyed(self) -> np.ndarray:
        """Code and time of each row as one number."""
        places = self.times - self.oldest if self._axis is None else np.searchsorted(self._axis, self.times)
        keyed: np.ndarray = self.codes * self._span + places
        return keyed

    @cached_property
    def order(self) -> np.ndarray:
        """The places of the rows by code, then time."""
        return np.argsort(self._keyed, kind="stable")

    @cached_property
    def _sorted(self) -> np.ndarray:
        ascending: np.ndarray = self._keyed[self.order]
        return ascending

    def find(self, codes: np.ndarray, first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of rows with these codes, from the first time to the last: where they begin in the order, and how many."""
        if self._axis is None:
            low = np.maximum(first, self.oldest) - self.oldest
            high = np.minimum(last, self.newest) - self.oldest
        else:
            low = np.searchsorted(self._axis, first)
            high = np.searchsorted(self._axis, last, side="right") - 1
        base = codes * self._span
        starts = np.searchsorted(self._sorted, base + low)
        ends = np.searchsorted(self._sorted, base + high, side="right")
        return starts, np.maximum(ends - starts, 0)

    def kept(self, mask: np.ndarray) -> Run:
        """Only some of its rows."""
        kept = Run(self.table.filter(pa.array(mask)), self.times[mask], self.met[mask])
        return kept.code(self.codes[mask], self.coded_by)


def joined(runs: list[Run]) -> Run:
    """Runs as one, in the order of the list."""
    if len(runs) == 1:
        return runs[0]
    made = Run(
        pa.concat_tables([r.table for r in runs]).combine_chunks(),
        np.concatenate([r.times for r in runs]),
        np.concatenate([r.met for r in runs]),
    )
    return made.code(np.concatenate([r.codes for r in runs]), runs[0].coded_by)


def pairs(starts: np.ndarray, counts: np.ndarray, most: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Places of rows with those, in the order of a run, of all that each meets; about `most` pairs at once."""
    totals = np.cumsum(counts)
    begin, done = 0, 0
    while begin < len(counts):
        end = max(int(np.searchsorted(totals, done + most, side="right")), begin + 1)
        number = int(totals[end - 1]) - done
        if number:
            own = np.repeat(np.arange(begin, end), counts[begin:end])
            offsets = starts[begin:end] - (totals[begin:end] - counts[begin:end] - done)
            yield own, np.arange(number) + np.repeat(offsets, counts[begin:end])
        begin, done = end, int(totals[end - 1])
