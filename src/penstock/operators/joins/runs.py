"""The rows of one side of a join, as runs of rows that came together.

A run is an Arrow table beside its rows' times, and an index once one is of use (`finding`); one of many rows that stay
for long is packed (`packed`). Runs of similar size are
joined, so that there are few: a row is looked at again as often as the side has doubled. A run of which nothing can be
met any more is given up as a whole; one of which that is true for half is made smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.operators.joins.index import Index


@dataclass
class Run:
    """Some rows, in the order in which they came."""

    table: pa.Table
    times: np.ndarray
    met: np.ndarray
    """Which rows need not be told of any more: those that had a partner, where that counts, or were given out."""
    hashes: np.ndarray | None = None
    """Of the keys, where they are not quickly made."""
    index: Index | None = None
    scans: int = 0
    """How often it was looked through without an index."""
    came: np.ndarray | None = None
    """Of each row, its place as they came, if that is another."""

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

    def take(self, places: np.ndarray) -> pa.Table:
        """The rows at some places, in their order."""
        return self.table.take(pa.array(places))

    def chosen(self, places: np.ndarray) -> pa.Table:
        """The rows at some places, in the order in which they came."""
        return self.take(places if self.came is None else places[np.argsort(self.came[places])])

    def select(self, columns: Sequence[int]) -> pa.Table:
        """Some columns, of all rows."""
        return self.table.select(list(columns))

    def kept(self, mask: np.ndarray) -> Run:
        """Only some of its rows."""
        hashes, came = (None if own is None else own[mask] for own in (self.hashes, self.came))
        return Run(self.table.filter(pa.array(mask)), self.times[mask], self.met[mask], hashes, None, self.scans, came)

    def unpacked(self) -> Run:
        """Itself."""
        return self

    def to_plain(self) -> Any:
        """Rows, times and which are met, in the order in which they came; no index."""
        if self.came is None:
            return [self.table, self.times, self.met]
        order = np.argsort(self.came)
        return [self.take(order), self.times[order], self.met[order]]


class Unpackable(Protocol):
    """A run in any form."""

    def unpacked(self) -> Run:
        """As a run of its own kind."""


def joined(kept: Sequence[Unpackable], times: Callable[[pa.Table], np.ndarray]) -> Run:
    """Runs as one, in the order of the list; `times` are those of the rows of a table."""
    runs = [run.unpacked() for run in kept]
    if len(runs) == 1:
        return runs[0]
    table = pa.concat_tables([run.table for run in runs]).combine_chunks()
    known = [run.hashes for run in runs if run.hashes is not None]
    hashes = np.concatenate(known) if len(known) == len(runs) else None
    met = np.concatenate([run.met for run in runs])
    return Run(table, times(table), met, hashes, None, min(run.scans for run in runs), _came(runs))


def _came(runs: list[Run]) -> np.ndarray | None:
    """The places as they came, in runs that come one after the other."""
    if all(run.came is None for run in runs):
        return None
    parts, before = [], 0
    for run in runs:
        own = np.arange(len(run)) if run.came is None else run.came.astype(np.int64)
        parts.append(own + before)
        before += int(own.max()) + 1
    return np.concatenate(parts)
