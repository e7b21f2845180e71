"""The rows of one side of a join, as runs of rows that came together.

A run is an Arrow table beside its rows' times, and an index once one is of use (`finding`). Runs of similar size are
joined, so that there are few: a row is looked at again as often as the side has doubled. A run of which nothing can be
met any more is given up as a whole; one of which that is true for half is made smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

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

    def kept(self, mask: np.ndarray) -> Run:
        """Only some of its rows."""
        hashes = None if self.hashes is None else self.hashes[mask]
        return Run(self.table.filter(pa.array(mask)), self.times[mask], self.met[mask], hashes, scans=self.scans)


def joined(runs: list[Run], times: Callable[[pa.Table], np.ndarray]) -> Run:
    """Runs as one, in the order of the list; `times` are those of the rows of a table."""
    if len(runs) == 1:
        return runs[0]
    table = pa.concat_tables([run.table for run in runs]).combine_chunks()
    known = [run.hashes for run in runs if run.hashes is not None]
    hashes = np.concatenate(known) if len(known) == len(runs) else None
    met = np.concatenate([run.met for run in runs])
    return Run(table, times(table), met, hashes, scans=min(run.scans for run in runs))
