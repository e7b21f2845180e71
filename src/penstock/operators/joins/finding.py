"""How the partners of a batch are found among the rows that the other side of a join keeps (thesis, chapter 9).

A run of rows that is kept is in one of three forms. *Bare*, it is the rows alone. Rows of which nothing has come near
yet are that, so an input that is far ahead of the other keeps no more than its rows. A bare run may be *scanned* when a
batch comes near it: the batch is indexed, and each row of the run looks for partners there. Or the run is *indexed*,
and the rows of the batch look there. A row of which all partners have come is not kept at all.

An index costs about as much to make as some scans do, and memory for as long as the run is kept. So it is made if the
run is no larger than the batch, which would have to be indexed instead; if more batches are to come near the run than
that, judged by the time that a batch is of, the length of the run and how near rows must be; and in any case once the
run was scanned as often. This is the adaptive way; to compare with, a join can be told to index all runs as they come,
or to scan all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

import numpy as np

from penstock.operators.joins.forms import Side
from penstock.operators.joins.index import Index
from penstock.operators.joins.keys import KeyRows
from penstock.operators.joins.nearness import Nearness
from penstock.operators.joins.runs import Run

Form = Literal["adaptive", "indexed", "scanned"]
MOST = 1 << 18
"""About so many pairs come out at once."""
SCANS = 3
"""An index costs about as much as so many scans."""
Places = tuple[np.ndarray, np.ndarray]
"""Of pairs: places of rows of the batch, and of the run."""


class Probe:
    """A batch that looks for partners, and what is computed of it once for all runs."""

    def __init__(self, port: int, run: Run, near: Nearness, side: Side) -> None:
        """`side` is that of the batch."""
        self.port, self.run, self.side = port, run, side
        self.first, self.last = near.partners(port, run.times)
        self.low, self.high = int(self.first.min()), int(self.last.max())

    @cached_property
    def keys(self) -> KeyRows:
        """The keys of the batch."""
        return _keys(self.side, self.run)

    @cached_property
    def index(self) -> Index:
        """An index of the batch."""
        return Index.of(self.keys, self.run.times)


class Finding:
    """Finds partners, and decides in which form runs are kept."""

    def __init__(self, sides: tuple[Side, Side], near: Nearness, form: Form = "adaptive") -> None:
        """`form` other than adaptive is for comparison."""
        self.sides, self.near, self.form = sides, near, form

    def came(self, port: int, run: Run) -> Probe:
        """A batch that has come on a side."""
        return Probe(port, run, self.near, self.sides[port])

    def partners(self, probe: Probe, other: Run) -> Iterator[Places]:
        """The pairs of a batch and a run of the other side."""
        if other.newest < probe.low or other.oldest > probe.high:
            return iter(())
        return self._by_index(probe, other) if self._indexes(probe, other) else self._by_scan(probe, other)

    def _indexes(self, probe: Probe, other: Run) -> bool:
        """Whether a run is to be indexed."""
        if self.form != "adaptive":
            return self.form == "indexed"
        if other.index is not None or other.scans >= SCANS or len(other) <= len(probe.run):
            return True
        spans = [run.newest - run.oldest for run in (probe.run, other)]
        other.scans += 1
        return self.near.width + spans[1] > (SCANS - 1) * spans[0]

    def _by_index(self, probe: Probe, other: Run) -> Iterator[Places]:
        return self._index(1 - probe.port, other).partners(probe.keys, probe.first, probe.last, MOST)

    def _index(self, port: int, run: Run) -> Index:
        if run.index is None:
            keys = _keys(self.sides[port], run)
            run.index = Index.of(keys, run.times)
            keys.forget()
        return run.index

    def _by_scan(self, probe: Probe, other: Run) -> Iterator[Places]:
        near = np.flatnonzero((other.times >= probe.low) & (other.times <= probe.high))
        keys = _keys(self.sides[1 - probe.port], other)
        if len(near) < len(other):
            keys = keys.taken(near)
        first, last = self.near.partners(1 - probe.port, other.times[near])
        for at, places in probe.index.partners(keys, first, last, MOST):
            yield places, near[at]

    def keep(self, port: int, run: Run) -> None:
        """A run is going to be kept."""
        if self.form == "indexed":
            self._index(port, run)


def _keys(side: Side, run: Run) -> KeyRows:
    """The keys of a run; hashes that are not quickly made are made once."""
    keys = KeyRows.of(run.table, side.keys)
    if run.hashes is not None:
        keys.hashes = run.hashes
    elif not keys.is_cheap:
        run.hashes = keys.hashes
    return keys
