"""A total that slides over panes: each window's numbers from those of the window before it.

Measures that can be taken out again are added when a pane enters and taken out when it leaves. For the others
(extremes, floating point sums, moments) there are two totals. One is of the panes that entered last. The other is of
those before them: it is made from the last of them to the first, and with each pane goes a note of what the numbers of
its groups were without it, so that a pane leaves by putting them back. When all of these have left, the panes that
entered take their place.

Totals are kept of the groups that are in the window, each in a place of its own, and of no others: a group that comes
is given the next place, and when many places are of groups that have left, the others move together. So a
window costs a few array operations over its groups and over the panes that enter and leave, amortised, however many
panes it has and however many groups there are. What is kept besides the panes is a number per group in the window, and
the notes, which together are no larger than the panes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from penstock.operators.aggregates.distinct_values import DistinctValues
from penstock.operators.aggregates.measures import Array, Measure
from penstock.operators.aggregates.pane_numbers import Pane, read_pane
from penstock.operators.aggregates.totals import Totals
from penstock.operators.state import Pages

SPARE_PLACES = 256
"""So many places of groups that have left, and half as many as are of others, may wait before these move together."""
WIDE_PLACES = 1 << 16
"""Up to so many groups, places are as wide as what numpy finds elements by, and need not be widened each time."""
STACK_PAGE = 32
"""The notes of so many panes are kept in one page, since they are written at once and read in order."""


class SlidingTotal:
    """The arithmetic on `Totals`; panes and notes are read from pages."""

    def __init__(self, measures: Sequence[Measure]) -> None:
        """What is totalled."""
        self.measures = measures
        self.others = [at for at, m in enumerate(measures) if not m.is_invertible]
        self.values = DistinctValues(measures)
        self.counts = [at for at, m in enumerate(measures) if m.kind == "count"]
        self.plain = [at for at, m in enumerate(measures) if m.is_invertible and m.kind != "distinct"]
        # Where each group is in the total: made anew from the total when it is of another one.
        self._places = np.zeros(0, np.int32)
        self._placed: Array | None = None

    def advance(self, totals: Totals, panes: list[int], lo: int, hi: int, size: int, pages: Pages) -> Pane:
        """The groups of the window that holds the panes from `lo` to `hi`, and their numbers; `size` have a code.

        Windows come in order, so panes leave at one end and enter at the other, and what is between is not looked at.
        """
        places = self._places_of(totals, size)
        first = panes[lo]
        entering = lo
        if totals.first is not None:
            for pane in panes[bisect_left(panes, totals.first) : min(lo, bisect_left(panes, totals.last + 1))]:
                self._leave(totals, pane, pages, places)
            if totals.last >= first:
                entering = bisect_left(panes, totals.last + 1, lo)
        anew = totals.turned is None or first >= totals.turned
        for pane in panes[entering:hi]:
            self._enter(totals, pane, pages, places, with_others=not anew)
        totals.first, totals.last = first, panes[hi - 1]
        if self.others and anew:
            self._turn(totals, panes[lo:hi], pages, places)
        return self._numbers(totals, first)

    def alone(self, pane: int, pages: Pages) -> Pane:
        """The groups of a window that is one pane, and their numbers."""
        codes, numbers = read_pane(pages, f"p{pane}", self.measures)
        if self.values.columns:
            numbers = list(numbers)
            for at in self.values.columns:
                numbers[at] = self.values.alone(at, pane, codes, pages)
        return codes, numbers

    def retire(self, totals: Totals, panes: list[int], first_needed: int, size: int, pages: Pages) -> None:
        """Take out the panes before `first_needed`, which are about to be given up."""
        if totals.first is not None and totals.first < first_needed:
            places = self._places_of(totals, size)
            for pane in panes[bisect_left(panes, totals.first) : bisect_left(panes, first_needed)]:
                if pane > totals.last:
                    break
                self._leave(totals, pane, pages, places)
            totals.first = first_needed if first_needed <= totals.last else None
            self._move_together(totals)
        self._give_up_stack(totals, bisect_left(totals.stack, first_needed // STACK_PAGE), pages)

    @staticmethod
    def _give_up_stack(totals: Totals, count: int, pages: Pages) -> None:
        """Forget the first pages of notes."""
        for number in totals.stack[:count]:
            pages.delete(f"s{number}")
        totals.stack = totals.stack[count:]

    def drop(self, totals: Totals, pane: int, size: int, left: Pane, pages: Pages) -> None:
        """Some groups leave a pane before it leaves; what has notes is made anew at the next window."""
        if totals.first is not None and totals.first <= pane <= totals.last:
            codes, numbers = left
            places = self._places_of(totals, size)
            self._subtract(totals, _at(places, codes), numbers)
            self.values.drop(totals, pane, codes, pages, places)
            self._forget_notes(totals, pages)
        else:
            self.values.drop(None, pane, left[0], pages, self._places)

    def begin_anew(self, totals: Totals, pages: Pages) -> None:
        """No pane is in the total any more."""
        self._give_up_stack(totals, len(totals.stack), pages)
        vars(totals).update(vars(Totals()))

    def _forget_notes(self, totals: Totals, pages: Pages) -> None:
        self._give_up_stack(totals, len(totals.stack), pages)
        totals.entered, totals.leaving, totals.turned = {}, {}, None

    def renumber(self, totals: Totals, lookup: Array) -> None:
        """Groups have other codes, in the same order; those that have none are in no pane."""
        codes = lookup[totals.groups]
        totals.groups = codes
        if len(codes) and codes.min() < 0:
            self._keep(totals, np.flatnonzero(codes >= 0))

    # Places

    def _places_of(self, totals: Totals, size: int) -> Array:
        """Per code the place of a group in the total, -1 where it has none."""
        self._move_together(totals)
        if self._placed is not totals.groups or len(self._places) < size:
            wanted = max(size + size // 4, len(self._places))
            self._places = np.full(wanted, -1, np.int64 if wanted <= WIDE_PLACES else np.int32)
            self._place(totals)
        return self._places

    def _place(self, totals: Totals) -> None:
        self._places[totals.groups] = np.arange(len(totals.groups))
        self._placed = totals.groups

    def _move_together(self, totals: Totals) -> None:
        rows = totals.added.get(0)
        if rows is not None and len(rows) > SPARE_PLACES:
            left = np.flatnonzero(rows)
            if len(rows) > len(left) + len(left) // 2 + SPARE_PLACES:
                self._keep(totals, left)

    def _keep(self, totals: Totals, left: Array) -> None:
        """Only the groups at these places stay in the total."""
        is_placed = self._placed is totals.groups
        if is_placed:
            self._places[totals.groups] = -1
        totals.groups = totals.groups[left]
        rows = totals.added.get(0)
        for kept in (totals.added, totals.entered, totals.leaving):
            for at, numbers in kept.items():
                kept[at] = totals.added[0] if at and numbers is rows else numbers[left]
        if is_placed:
            self._place(totals)

    def _grow(self, totals: Totals, codes: Array, places: Array) -> Array:
        """The places of groups in the total, those that are new behind the others."""
        where = _at(places, codes)
        if len(where) and where.min() < 0:
            fresh = where < 0
            added = codes[fresh]
            size = len(totals.groups)
            where[fresh] = places[added] = np.arange(size, size + len(added))
            totals.groups = np.concatenate([totals.groups, added])
            self._placed = totals.groups
        if len(totals.added.get(0, ())) < len(totals.groups) or (self.others and not totals.entered):
            self._grow_numbers(totals, len(totals.groups))
        return where

    def _grow_numbers(self, totals: Totals, size: int) -> None:
        rows = totals.added.get(0)
        for at, measure in enumerate(self.measures):
            if at in self.counts and totals.added.get(at) is rows:
                totals.added[at] = totals.added[0]
                continue
            for kept in (totals.added,) if measure.is_invertible else (totals.entered, totals.leaving):
                kept[at] = measure.grown(kept[at], size) if at in kept else measure.neutral(size)

    # Panes

    def _numbers(self, totals: Totals, first: int) -> Pane:
        """What is in the window."""
        both = totals.turned is not None and first < totals.turned
        rows = totals.added[0]
        there = slice(None) if np.count_nonzero(rows) == len(rows) else np.flatnonzero(rows)
        numbers: list[Array] = []
        for at, measure in enumerate(self.measures):
            if at and totals.added.get(at) is rows:
                numbers.append(numbers[0])
            elif both and not measure.is_invertible:
                numbers.append(measure.combine(totals.entered[at][there], totals.leaving[at][there]))
            else:
                total = (totals.added if measure.is_invertible else totals.entered)[at]
                numbers.append(total.copy() if isinstance(there, slice) else total[there])
        return totals.groups[there], numbers

    def _enter(self, totals: Totals, pane: int, pages: Pages, places: Array, *, with_others: bool) -> None:
        codes, numbers = read_pane(pages, f"p{pane}", self.measures)
        where = self._grow(totals, codes, places)
        for at in self._apart(totals, numbers):
            if numbers[at].dtype == object and totals.added[at].dtype != object:
                totals.added[at] = totals.added[at].astype(object)
            totals.added[at][where] += numbers[at]
        for at in self.others if with_others else ():
            total = totals.entered[at]
            total[where] = self.measures[at].combine(total[where], numbers[at])
        self.values.enter(totals, pane, pages, places)

    def _subtract(self, totals: Totals, where: Array, numbers: Sequence[Array]) -> None:
        for at in self._apart(totals, numbers):
            totals.added[at][where] -= numbers[at]

    def _apart(self, totals: Totals, numbers: Sequence[Array]) -> list[int]:
        """The measures to add, or to take out, one by one: not those whose values are as many as the rows so far."""
        rows = totals.added[0]
        as_rows = [at for at in self.counts if totals.added[at] is rows]
        for at in as_rows:
            if numbers[at] is not numbers[0]:
                totals.added[at] = rows.copy()
        return [at for at in self.plain if not at or totals.added[at] is not rows] if as_rows else self.plain

    def _leave(self, totals: Totals, pane: int, pages: Pages, places: Array) -> None:
        codes, numbers = read_pane(pages, f"p{pane}", self.measures)
        where = _at(places, codes)
        self._subtract(totals, where, numbers)
        self.values.leave(totals, pane, pages, places)
        if self.others and totals.turned is not None and pane < totals.turned:
            notes = pages.get(f"s{pane // STACK_PAGE}")[pane]
            for at, without in zip(self.others, notes, strict=True):
                totals.leaving[at][where] = without

    def _turn(self, totals: Totals, panes: list[int], pages: Pages, places: Array) -> None:
        """Make the total of the panes of a window from the last to the first, with a note of each step."""
        size = len(totals.groups)
        running = [self.measures[at].neutral(size) for at in self.others]
        self._give_up_stack(totals, len(totals.stack), pages)
        stack: dict[int, dict[int, list[Array]]] = {}
        for pane in reversed(panes):
            codes, numbers = read_pane(pages, f"p{pane}", self.measures)
            where = _at(places, codes)
            notes = []
            for total, at in zip(running, self.others, strict=True):
                without = total[where]
                total[where] = self.measures[at].combine(without, numbers[at])
                notes.append(without)
            stack.setdefault(pane // STACK_PAGE, {})[pane] = notes
        totals.stack = sorted(stack)
        for number, page in stack.items():
            pages.put(f"s{number}", page)
        totals.turned = panes[-1] + 1
        for total, at in zip(running, self.others, strict=True):
            totals.leaving[at] = total
            totals.entered[at] = self.measures[at].neutral(size)


def _at(places: Array, codes: Array) -> Array:
    """The places of groups, to find elements by."""
    found: Array = places[codes].astype(np.int64, copy=False)
    return found
