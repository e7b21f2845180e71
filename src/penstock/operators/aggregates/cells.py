"""A batch brought down to cells: one number per pane, group and measure.

Where the batch has nearly as many rows as there are pairs of a pane and a group, each pair has a slot, and numbers are
added up in arrays of slots. Otherwise rows are sorted by pane and group, and each run of equal ones is a cell. So a
batch costs its rows, however many groups are alive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from penstock.model.batch import Batch
from penstock.operators.aggregates.measures import Array, Measure, values_of
from penstock.operators.aggregates.moments import NOTHING_KNOWN, Known
from penstock.operators.aggregates.pane_numbers import Pane, compress, in_order
from penstock.operators.aggregates.side_by_side import at_once
from penstock.operators.aggregates.slide import Slide

Columns = dict[int | None, tuple[Array | None, Array | None]]
"""Per column that is measured its numbers, and which of them are not null."""
SLOTS_PER_ROW = 4
SPARE_SLOTS = 4096
FAR = 1 << 63


@dataclass(frozen=True)
class Cells:
    """Brings batches down."""

    measures: Sequence[Measure]

    def of(self, batch: Batch, panes: Array, codes: Array, groups: int, state: Slide) -> Iterator[tuple[int, Pane]]:
        """The panes of a batch, ascending, each with its cells; `codes` are those of rows, of `groups` in all."""
        if int(panes.max()) - int(panes.min()) >= FAR:
            yield from self._far_apart(batch, panes, codes, groups, state)
            return
        present, edges, cells, numbers = self.together(batch, panes, codes, groups, state)
        ends = edges.tolist()
        for pane, lo, hi in zip(present.tolist(), ends, ends[1:], strict=False):
            yield pane, (cells[lo:hi].copy(), _parts(numbers, lo, hi))

    def together(
        self, batch: Batch, panes: Array, codes: Array, groups: int, state: Slide
    ) -> tuple[Array, Array, Array, list[Array]]:
        """The panes of a batch that is not too far apart, where the cells of each begin and end, and all cells."""
        first, last = int(panes.min()), int(panes.max())
        columns = self._columns(batch)
        self._weigh(columns, state, last)
        places = panes - first
        size = (last - first + 1) * groups
        if size <= SLOTS_PER_ROW * len(batch) + SPARE_SLOTS:
            slots = places if groups == 1 else places * groups + codes
            cells, numbers = self._by_slots(columns, slots, size, state)
            steps = cells // groups
            present = steps = steps[_starts(steps)]
        else:
            present, places = compress(places)
            cells, numbers = self._by_runs(columns, places * groups + codes, state)
            steps = np.arange(len(present))
        starts = steps * groups
        edges = np.append(np.searchsorted(cells, starts), len(cells))
        cells -= np.repeat(starts, np.diff(edges))
        return present + first, edges, cells, numbers

    def _far_apart(
        self, batch: Batch, panes: Array, codes: Array, groups: int, state: Slide
    ) -> Iterator[tuple[int, Pane]]:
        """The same of rows so far apart that a number of 64 bits does not hold the distance: those below zero first."""
        for part in (panes < 0, panes >= 0):
            yield from self.of(batch.select(part), panes[part], codes[part], groups, state)

    def _columns(self, batch: Batch) -> Columns:
        wanted = dict.fromkeys(m.column for m in self.measures if m.kind != "distinct")
        return {c: (None, None) if c is None else values_of(batch, c) for c in wanted}

    def _weigh(self, columns: Columns, state: Slide, last: int) -> None:
        """Say how large sums of integers may be by this batch, whose last pane is `last`."""
        for measure in self.measures:
            if measure.kind == "sum" and not measure.is_float:
                values = columns[measure.column][0]
                assert values is not None
                state.weigh(last, max(abs(int(values.min())), abs(int(values.max()))) * len(values))

    def _by_slots(self, columns: Columns, slots: Array, size: int, state: Slide) -> Pane:
        def gathered(measure: Measure, known: Known = NOTHING_KNOWN) -> Array:
            values, valid = columns.get(measure.column, (None, None))
            return measure.gather(slots, size, values, valid, wide=state.is_wide(measure), known=known)

        first = next((at for at, m in enumerate(self.measures) if m.kind in ("sum", "min", "max")), 0)
        rows, ahead = at_once(
            len(slots) if first else 0,  # alone it is not handed over
            lambda: gathered(self.measures[0]),
            lambda: gathered(self.measures[first]) if first else None,
        )
        cells = np.flatnonzero(rows)
        all_there = len(cells) == size
        numbers: list[Array] = [rows if all_there else rows[cells]]
        sums: dict[int | None, Array] = {}
        for at, measure in enumerate(self.measures[1:], 1):
            valid = columns.get(measure.column, (None, None))[1]
            if measure.kind == "distinct" or (measure.kind == "count" and valid is None):
                numbers.append(numbers[0])
                continue
            known = Known(None if valid is not None else rows, sums.get(measure.column))
            made = ahead if at == first and ahead is not None else gathered(measure, known)
            if measure.kind == "sum" and made.dtype == np.int64:
                sums[measure.column] = made
            numbers.append(made if all_there else made[cells])
        return cells, numbers

    def _by_runs(self, columns: Columns, slots: Array, state: Slide) -> Pane:
        ordered, order = in_order(slots)
        starts = _starts(ordered)
        sorted_columns = {
            c: tuple([None if part is None else part[order] for part in parts]) for c, parts in columns.items()
        }

        def gathered(*, moments: bool) -> dict[int, Array]:
            found: dict[int, Array] = {}
            for at, measure in enumerate(self.measures):
                values, valid = sorted_columns.get(measure.column, (None, None))
                as_rows = at and (measure.kind == "distinct" or (measure.kind == "count" and valid is None))
                if not as_rows and (measure.kind == "moments") == moments:
                    wide = state.is_wide(measure)
                    found[at] = measure.gather_runs(starts, len(slots), values, valid, wide=wide)
            return found

        large = len(slots) if any(m.kind == "moments" for m in self.measures) else 0
        others, moments = at_once(large, partial(gathered, moments=False), partial(gathered, moments=True))
        found = others | moments
        return ordered[starts], [found.get(at, found[0]) for at in range(len(self.measures))]


def _starts(ordered: Array) -> Array:
    """Where each run of equal numbers begins."""
    return np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))


def _parts(numbers: list[Array], lo: int, hi: int) -> list[Array]:
    """Copies, since a view would keep the whole batch's numbers for as long as its pane lives; equal ones once."""
    made: list[Array] = []
    for at, n in enumerate(numbers):
        made.append(made[0] if at and n is numbers[0] else n[lo:hi].copy())
    return made
