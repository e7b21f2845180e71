"""A total that slides over panes: each window's numbers from those of the window before it.

Measures that can be taken out again are added when a pane enters and taken out when it leaves. For the others
(extremes, floating point sums, moments) there are two totals. One is of the panes that entered last. The other is of
those before them: it is made from the last of them to the first, and with each pane goes a note of what the numbers of
its groups were without it, so that a pane leaves by putting them back. When all of these have left, the panes that
entered take their place.

A window costs a few array operations over the groups, amortised, however many panes it has. What is kept besides the
panes is a number per group, and the notes, which together are no larger than the panes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.operators.aggregates.measures import Array, Measure
from penstock.operators.state import Pages

STACK_PAGE = 32
"""The notes of so many panes are kept in one page, since they are written at once and read in order."""
Pane = tuple[Array, list[Array]]
"""The codes of the groups in a pane, ascending, and per measure their numbers."""


@dataclass
class Totals:
    """What is kept from window to window."""

    first: int | None = None
    """The first pane in the total; None if there is none."""
    last: int = 0
    """The last one."""
    added: dict[int, Array] = field(default_factory=dict)
    """Per measure that can be taken out: the total."""
    entered: dict[int, Array] = field(default_factory=dict)
    """Per other measure: the total of the panes since `turned`."""
    leaving: dict[int, Array] = field(default_factory=dict)
    """Per other measure: the total of the panes before `turned`."""
    turned: int | None = None
    """Of panes before this one there are notes; None if everything is to be made anew."""
    stack: list[int] = field(default_factory=list)
    """The numbers of the pages that hold the notes, ascending."""


class SlidingTotal:
    """The arithmetic on `Totals`; panes and notes are read from pages."""

    def __init__(self, measures: Sequence[Measure]) -> None:
        """What is totalled."""
        self.measures = measures
        self.others = [at for at, m in enumerate(measures) if not m.is_invertible]

    def advance(self, totals: Totals, panes: list[int], lo: int, hi: int, size: int, pages: Pages) -> list[Array]:
        """Per measure the numbers of all `size` groups in the window that holds the panes from `lo` to `hi`.

        Windows come in order, so panes leave at one end and enter at the other, and what is between is not looked at.
        The arrays may be the totals themselves: copy what is to be kept.
        """
        self._grow(totals, size)
        first = panes[lo]
        entering = lo
        if totals.first is not None:
            for pane in panes[bisect_left(panes, totals.first) : min(lo, bisect_left(panes, totals.last + 1))]:
                self._leave(totals, pane, pages)
            if totals.last >= first:
                entering = bisect_left(panes, totals.last + 1, lo)
        anew = totals.turned is None or first >= totals.turned
        for pane in panes[entering:hi]:
            self._enter(totals, pane, pages, with_others=not anew)
        totals.first, totals.last = first, panes[hi - 1]
        if self.others and anew:
            self._turn(totals, panes[lo:hi], size, pages)
        return self._numbers(totals, first)

    def retire(self, totals: Totals, panes: list[int], first_needed: int, pages: Pages) -> None:
        """Take out the panes before `first_needed`, which are about to be given up."""
        if totals.first is not None and totals.first < first_needed:
            for pane in panes[bisect_left(panes, totals.first) : bisect_left(panes, first_needed)]:
                if pane > totals.last:
                    break
                self._leave(totals, pane, pages)
            totals.first = first_needed if first_needed <= totals.last else None
        self._give_up_stack(totals, bisect_left(totals.stack, first_needed // STACK_PAGE), pages)

    @staticmethod
    def _give_up_stack(totals: Totals, count: int, pages: Pages) -> None:
        """Forget the first pages of notes."""
        for number in totals.stack[:count]:
            pages.delete(f"s{number}")
        totals.stack = totals.stack[count:]

    def drop(self, totals: Totals, pane: int, codes: Array, numbers: Sequence[Array], pages: Pages) -> None:
        """Some groups leave a pane before it leaves; what has notes is made anew at the next window."""
        if totals.first is not None and totals.first <= pane <= totals.last:
            for at, total in totals.added.items():
                total[codes] -= numbers[at]
            self._forget_notes(totals, pages)

    def _forget_notes(self, totals: Totals, pages: Pages) -> None:
        self._give_up_stack(totals, len(totals.stack), pages)
        totals.entered, totals.leaving, totals.turned = {}, {}, None

    def renumber(self, totals: Totals, live: Array, pages: Pages) -> None:
        """Only the groups with these codes are left; what has notes is made anew at the next window."""
        totals.added = {at: numbers[live] for at, numbers in totals.added.items()}
        self._forget_notes(totals, pages)

    def _numbers(self, totals: Totals, first: int) -> list[Array]:
        both = totals.turned is not None and first < totals.turned
        numbers: list[Array] = []
        for at, measure in enumerate(self.measures):
            if measure.is_invertible:
                numbers.append(totals.added[at])
            elif both:
                numbers.append(measure.combine(totals.entered[at], totals.leaving[at]))
            else:
                numbers.append(totals.entered[at])
        return numbers

    def _grow(self, totals: Totals, size: int) -> None:
        for at, measure in enumerate(self.measures):
            for kept in (totals.added,) if measure.is_invertible else (totals.entered, totals.leaving):
                kept[at] = measure.grown(kept[at], size) if at in kept else measure.neutral(size)

    def _enter(self, totals: Totals, pane: int, pages: Pages, *, with_others: bool) -> None:
        codes, numbers = pages.get(f"p{pane}")
        where = _all_or(codes, len(next(iter((totals.added or totals.entered).values()))))
        for at, measure in enumerate(self.measures):
            if measure.is_invertible:
                if numbers[at].dtype == object and totals.added[at].dtype != object:
                    totals.added[at] = totals.added[at].astype(object)
                totals.added[at][where] += numbers[at]
            elif with_others:
                totals.entered[at][where] = measure.combine(totals.entered[at][where], numbers[at])

    def _leave(self, totals: Totals, pane: int, pages: Pages) -> None:
        codes, numbers = pages.get(f"p{pane}")
        for at, total in totals.added.items():
            total[_all_or(codes, len(total))] -= numbers[at]
        if self.others and totals.turned is not None and pane < totals.turned:
            notes = pages.get(f"s{pane // STACK_PAGE}")[pane]
            for at, without in zip(self.others, notes, strict=True):
                total = totals.leaving[at]
                total[_all_or(codes, len(total))] = without

    def _turn(self, totals: Totals, panes: list[int], size: int, pages: Pages) -> None:
        """Make the total of the panes of a window from the last to the first, with a note of each step."""
        running = [self.measures[at].neutral(size) for at in self.others]
        self._give_up_stack(totals, len(totals.stack), pages)
        stack: dict[int, dict[int, list[Array]]] = {}
        for pane in reversed(panes):
            codes, numbers = pages.get(f"p{pane}")
            where = _all_or(codes, size)
            notes = []
            for total, at in zip(running, self.others, strict=True):
                without = total[where].copy()
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


def _all_or(codes: Array, size: int) -> Array | slice:
    """The codes as an index; a slice, which is cheaper, when they are all there are."""
    return slice(None) if len(codes) == size else codes
