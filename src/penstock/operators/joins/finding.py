"""How rows of a join are kept, and how the partners of a batch are found among them (thesis, chapter 9).

What is kept of a side is decided as the inputs go, from how many rows there are, how long they will stay and how far
the inputs are apart. A row of which all partners have come is *not kept*. Rows are *bare*, as they came, at first. A
bare run may be *scanned* when a batch comes near it: the batch is indexed, and each row of the run looks for partners
there. Or it is *indexed*, and the rows of the batch look there: if more batches are to come near than an index is
worth, judged by the time that a batch is of, the length of the run and how near rows must be; and in any case once it
was scanned as often. The index of a batch serves all runs that it comes near, so that how large both are says nothing.

Rows that are many, and that many batches will pass before they are given up, since bands are long or the other input is
late, are *packed* (`packed`): in the order of their index, in few bytes. Rows that wait for a late input take half of
the room, and keys of which there are many rows less than that. Rows that stay for shorter are not worth the packing.

This is the adaptive way; to compare with, a join can be told to index all rows as they come, or to scan all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal

import numpy as np

from penstock.operators.joins.forms import Side
from penstock.operators.joins.index import AT_ONCE, Index
from penstock.operators.joins.keys import KeyRows
from penstock.operators.joins.nearness import Nearness
from penstock.operators.joins.packed import Packed
from penstock.operators.joins.runs import Run

Form = Literal["adaptive", "indexed", "scanned"]
MOST = 1 << 17
"""About so many pairs come out at once."""
SCANS = 3
"""An index costs about as much as so many scans."""
MANY = 1 << 12
"""So many rows are packed, if they stay."""
PASSES = 4
"""So many batches, each of the time that the newest is of, must pass until packing has paid."""
Places = tuple[np.ndarray, np.ndarray]
"""Of pairs: places of rows of the batch, and of the run."""
Kept = Run | Packed
Found = tuple[int, Kept, np.ndarray, np.ndarray]
"""A run by its number and as it is, and of pairs the places of rows of a batch, and of those of the run."""


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

    def __init__(
        self, sides: tuple[Side, Side], near: Nearness, notes: Sequence[bool], form: Form = "adaptive"
    ) -> None:
        """`notes` says of each side whether it counts which rows have met one; other forms are for comparison."""
        self.sides, self.near, self.notes, self.form = sides, near, notes, form

    def found(self, port: int, run: Run, others: Sequence[tuple[int, Kept]]) -> Iterator[Found]:
        """The pairs of a batch that has come on a side, and the runs of the other side."""
        if others:
            probe = Probe(port, run, self.near, self.sides[port])
            for number, other in others:
                for own, places in self.partners(probe, other):
                    yield number, other, own, places

    def partners(self, probe: Probe, other: Kept) -> Iterator[Places]:
        """The pairs of a batch and a run of the other side."""
        if other.newest < probe.low or other.oldest > probe.high:
            return iter(())
        if isinstance(other, Packed):
            return other.index.partners(probe.keys, probe.first, probe.last, MOST)
        return self._by_index(probe, other) if self._indexes(probe, other) else self._by_scan(probe, other)

    def _indexes(self, probe: Probe, other: Run) -> bool:
        """Whether a run is to be indexed."""
        if self.form != "adaptive":
            return self.form == "indexed"
        if other.index is not None:
            return True
        if other.scans >= SCANS:
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
        """Rows of a run look for partners in a batch, some at a time."""
        port = 1 - probe.port
        keys = _keys(self.sides[port], other)
        for at in range(0, len(other), AT_ONCE):
            own, times = keys.part(at, at + AT_ONCE), other.times[at : at + AT_ONCE]
            near = np.flatnonzero((times >= probe.low) & (times <= probe.high))
            if len(near) < len(times):
                own, times = own.taken(near), times[near]
            if len(near):
                first, last = self.near.partners(port, times)
                for found, places in probe.index.partners(own, first, last, MOST):
                    yield places, near[found] + at

    def kept(self, port: int, run: Run, bound: int, batch: int) -> Kept:
        """A run in the form in which it is kept.

        `bound` is the other side's, and `batch` the time that a batch is of.
        """
        if self.form == "indexed":
            self._index(port, run)
        if self.form != "adaptive" or len(run) < MANY or self._stays(port, run, bound) <= PASSES * batch:
            return run
        return Packed.of(run, self._index(port, run), self.sides[port], notes=self.notes[port])

    def _stays(self, port: int, run: Run, bound: int) -> int:
        """For how much of the other side's time the newest rows of a run are going to be kept."""
        _, last = self.near.partners(port, np.array([run.newest]))
        return int(last[0]) - bound


def _keys(side: Side, run: Run) -> KeyRows:
    """The keys of a run; hashes that are not quickly made are made once."""
    keys = KeyRows.of(run.table, side.keys)
    if run.hashes is not None:
        keys.hashes = run.hashes
    elif not keys.is_cheap:
        run.hashes = keys.hashes
    return keys
