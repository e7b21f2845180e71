"""Rows of one side of an as-of join in the order of their keys and times: of each key those up to a time are together.

Rows are sorted by the hash of their key, then by time, then as rows of one time are (`tie_order`). A number that says
key and time at once is ascending with that, so the latest rows of many keys up to many times are found by one binary
search for all of them. Which keys are equal is asked of the rows themselves; where two keys have the same hash, which
is known once a run is made, it is asked of each row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.operators.joins.forms import Side
from penstock.operators.joins.keys import KeyRows
from penstock.operators.joins.tie_order import in_order


class LatestRun:
    """Some rows in order."""

    def __init__(self, side: Side, table: pa.Table) -> None:
        """The rows of a table, in whatever order, of which none has a null among its keys."""
        keys, times = KeyRows.of(table, side.keys), side.times(table)
        order = in_order(keys.hashes, times, table)
        self.table = table.take(pa.array(order))
        self.times = times[order]
        hashes = keys.hashes[order]
        self.keys = keys.taken(order)
        self.ascending_times, ranks = np.unique(self.times, return_inverse=True)
        self.sorted_times = np.sort(self.times)
        begins = np.concatenate([[True], hashes[1:] != hashes[:-1]])
        self.starts = np.flatnonzero(begins)
        """Where the rows of each hash begin."""
        self.hashes = hashes[self.starts]
        self.group = np.cumsum(begins) - 1
        """Of each row, the number of its hash."""
        self.span = len(self.ascending_times) + 1
        self.ascending = self.group * self.span + ranks
        alike = np.flatnonzero(~begins)
        self.is_clean = bool(self.keys.same(alike - 1, self.keys, alike).all())
        """Whether rows with the same hash have the same key."""

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.times)

    def plain(self) -> pa.Table:
        """The rows in an order that does not depend on hashes, which are others in every process."""
        return self.table.take(pa.array(in_order(np.zeros(len(self), np.int64), self.times, self.table)))

    def up_to(self, time: int) -> int:
        """How many rows have this time or an earlier one."""
        return int(np.searchsorted(self.sorted_times, time, side="right"))

    def before(self, time: int) -> int:
        """How many rows have an earlier time."""
        return int(np.searchsorted(self.sorted_times, time))

    def latest(self, keys: KeyRows, until: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Places of rows with these keys, and of the `most` latest rows here of each, up to its time, in pairs."""
        group = np.minimum(np.searchsorted(self.hashes, keys.hashes), len(self.hashes) - 1)
        hits = np.flatnonzero(self.hashes[group] == keys.hashes)
        group = group[hits]
        reached = np.searchsorted(self.ascending_times, until[hits], side="right")
        ends = np.searchsorted(self.ascending, group * self.span + reached)
        if not self.is_clean:
            return self._one_by_one(keys, hits, self.starts[group], ends, most)
        begins = np.maximum(self.starts[group], ends - most)
        some = np.flatnonzero(ends > begins)
        some = some[keys.same(hits[some], self.keys, begins[some])]
        counts = (ends - begins)[some]
        places = np.arange(counts.sum()) + np.repeat(begins[some] - (np.cumsum(counts) - counts), counts)
        return np.repeat(hits[some], counts), places

    def _one_by_one(
        self, keys: KeyRows, hits: np.ndarray, starts: np.ndarray, ends: np.ndarray, most: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same where keys have to be compared row by row."""
        own: list[np.ndarray] = []
        found: list[np.ndarray] = []
        for hit, start, end in zip(hits.tolist(), starts.tolist(), ends.tolist(), strict=True):
            near = np.arange(start, end)
            near = near[keys.same(np.full(len(near), hit), self.keys, near)][-most:]
            own.append(np.full(len(near), hit))
            found.append(near)
        none = np.empty(0, np.int64)
        return np.concatenate([none, *own]), np.concatenate([none, *found])

    def needed(self, since: int, oldest: int, most: int) -> np.ndarray:
        """Which rows may be among the latest of their key up to a time that is not before `since`.

        Those before `oldest` may not.
        """
        kept: np.ndarray = self.times > since
        below = np.flatnonzero(~kept)
        if len(below):
            if self.is_clean:
                group = self.group[below]
                ends = np.append(np.flatnonzero(group[1:] != group[:-1]), len(group) - 1)
                last = ends[np.searchsorted(group[ends], group)]
                kept[below[last - np.arange(len(below)) < most]] = True
            else:
                until = np.full(len(self), since)
                kept[np.unique(self.latest(self.keys, until, most)[1])] = True
        result: np.ndarray = kept & (self.times >= oldest)
        return result


Found = tuple[np.ndarray, pa.Table, np.ndarray]
"""Places of rows that look for others, those that each has found in one run, and their times."""


def latest_of(found: Sequence[Found], most: int) -> tuple[np.ndarray, pa.Table]:
    """The `most` latest of what was found in several runs, with the place of who found it."""
    if len(found) == 1:
        return found[0][0], found[0][1]
    own = np.concatenate([places for places, _, _ in found])
    times = np.concatenate([each for _, _, each in found])
    table = pa.concat_tables([rows for _, rows, _ in found])
    order = in_order(own, times, table)
    own = own[order]
    ends = np.searchsorted(own, own, side="right")
    kept = ends - np.arange(len(own)) <= most
    return own[kept], table.take(pa.array(order[kept]))
