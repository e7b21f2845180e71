"""Many windows of few groups at once.

Where a bound closes many windows and there are few groups, going from window to window costs far more than what is in
them. So the panes are laid out as a matrix, a row for each pane and a column for each group, and all windows are made
of it with a few array operations. What can be taken out again is the difference of two running totals. The rest is put
together of stretches of panes whose lengths are powers of two, each made of two of half its length.

Cost: a number per pane and group, some twenty times; no state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.operators.aggregates.measures import Array, Measure
from penstock.operators.aggregates.pane_numbers import Pane, read_pane
from penstock.operators.aggregates.window_tables import Block
from penstock.operators.state import Pages
from penstock.operators.windows.sliding import Sliding

MANY = 8
"""From so many windows on they are made at once."""
FEW_GROUPS = 64
SPARSE = 4
"""At most so many times as many panes as have something in them are laid out."""
REACH = 8
"""Windows of more than so many times as many panes as there are windows are made one after the other, from a total that
is kept: laying their panes out each time would cost more."""


@dataclass(frozen=True)
class ManyWindows:
    """Makes windows of panes all at once."""

    window: Sliding
    measures: Sequence[Measure]

    def suit(self, wid: int, end: int, panes: int, groups: int) -> bool:
        """Whether windows from `wid` to `end`, which hold so many panes with something in them, are made so."""
        count, length = end - wid, self.window.panes_per_window
        if count < MANY or groups > FEW_GROUPS or length > REACH * count:
            return False
        return self._extent(wid, end) <= SPARSE * panes

    def _extent(self, wid: int, end: int) -> int:
        """How many panes there are from the first of a window to the last of those before another."""
        return self.window.end_pane(end - 1) - self.window.first_pane(wid)

    def block(self, wid: int, end: int, panes: Sequence[int], groups: int, pages: Pages) -> Block:
        """The windows from `wid` to `end` that have groups; `panes` are those that they hold."""
        first, height = self.window.first_pane(wid), self._extent(wid, end)
        held = [read_pane(pages, f"p{pane}", self.measures) for pane in panes]
        lengths = [len(codes) for codes, _ in held]
        slots = np.repeat((np.array(panes) - first) * groups, lengths) + np.concatenate([codes for codes, _ in held])
        rows = self._slid(0, held, slots, height, groups, end - wid)
        there = np.flatnonzero(rows)
        numbers = [rows[there]]
        for at in range(1, len(self.measures)):
            if all(n[at] is n[0] for _, n in held):
                numbers.append(numbers[0])
            else:
                numbers.append(self._slid(at, held, slots, height, groups, end - wid)[there])
        return there // groups + wid, there % groups, numbers

    def _slid(self, at: int, held: Sequence[Pane], slots: Array, height: int, groups: int, windows: int) -> Array:
        """A measure of every window and group, window by window."""
        measure = self.measures[at]
        given = np.concatenate([numbers[at] for _, numbers in held])
        laid_out = measure.neutral(height * groups, wide=given.dtype == object)
        laid_out[slots] = given
        shape = (height, groups, *laid_out.shape[1:])
        slid = self._differences if measure.is_invertible else self._stretches
        made = slid(measure, laid_out.reshape(shape), windows)
        return made.reshape(windows * groups, *laid_out.shape[1:])

    def _differences(self, measure: Measure, panes: Array, windows: int) -> Array:
        """What can be taken out: the running total at the end of a window less that before it."""
        length = self.window.panes_per_window
        if length == 1:
            return panes[:: self._step][:windows]
        totals = np.concatenate([np.zeros_like(panes[:1]), np.cumsum(panes, axis=0)])
        difference: Array = totals[length :: self._step][:windows] - totals[:: self._step][:windows]
        return difference

    def _stretches(self, measure: Measure, panes: Array, windows: int) -> Array:
        """What cannot: a window is a stretch for each power of two in its length, from the least to the greatest."""
        length, size, start = self.window.panes_per_window, 1, 0
        made: Array | None = None
        while True:
            if length & size:
                part = panes[start :: self._step][:windows]
                made = part if made is None else _joined(measure, made, part)
                start += size
            size *= 2
            if size > length:
                assert made is not None
                return made
            half = size // 2
            panes = _joined(measure, panes[:-half], panes[half:])

    @property
    def _step(self) -> int:
        """How many panes a window is after the one before it."""
        return self.window.slide // self.window.pane


def _joined(measure: Measure, left: Array, right: Array) -> Array:
    """Two arrays of panes and groups, number by number."""
    if measure.kind != "moments":
        return measure.combine(left, right)
    return measure.combine(left.reshape(-1, 3), right.reshape(-1, 3)).reshape(left.shape)
