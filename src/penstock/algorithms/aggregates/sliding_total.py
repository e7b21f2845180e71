"""A total that slides over panes: each window's numbers from those of the window before it.

Measures that can be taken out again are added when a pane enters and taken out when it leaves. For the others
(extremes, floating point sums, moments) two stacks are kept: the panes that leave first, each with the combination of
itself and everything after it in the stack, and one combination of the panes that entered since. Either way a window
costs a few array operations over the groups, amortised, however many panes it has.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.algorithms.aggregates.measures import Array, Measure
from penstock.algorithms.state import Pages

STACK_PAGE = 32
"""So many panes of the leaving stack are kept in one page, since it is written whole and read in order."""
Pane = tuple[Array, list[Array]]
"""The codes of the groups in a pane, ascending, and per measure their numbers."""


@dataclass
class Totals:
    """What is kept from window to window."""

    inside: list[int] = field(default_factory=list)
    """The panes in the total, ascending."""
    added: dict[int, Array] = field(default_factory=dict)
    """Per measure that can be taken out: the total over `inside`."""
    entered: dict[int, Array] = field(default_factory=dict)
    """Per other measure: the combination of the panes since `turned`."""
    turned: int | None = None
    """Panes before this one are in the leaving stack."""
    stack: list[int] = field(default_factory=list)
    """The numbers of the pages that hold the leaving stack, ascending."""


class SlidingTotal:
    """The arithmetic on `Totals`; panes and stacks are read from pages."""

    def __init__(self, measures: Sequence[Measure]) -> None:
        """What is totalled."""
        self.measures = measures
        self.others = [at for at, m in enumerate(measures) if not m.is_invertible]

    def advance(self, totals: Totals, panes: list[int], size: int, pages: Pages) -> list[Array]:
        """Per measure the numbers of all `size` groups in the window that holds these panes.

        Windows come in order, so panes leave at one end and enter at the other. The arrays are the totals themselves:
        copy what is to be kept.
        """
        self._grow(totals, size)
        left = bisect_left(totals.inside, panes[0])
        for pane in totals.inside[:left]:
            self._leave(totals, pane, pages)
        newest = totals.inside[-1] if len(totals.inside) > left else None
        for pane in panes if newest is None else panes[bisect_left(panes, newest + 1) :]:
            self._enter(totals, pane, pages)
        totals.inside = panes
        if self.others and (totals.turned is None or panes[0] >= totals.turned):
            self._turn(totals, panes, size, pages)
        return self._numbers(totals, panes[0], size, pages)

    def retire(self, totals: Totals, first_needed: int, pages: Pages) -> None:
        """Take out the panes before `first_needed`, which are about to be given up."""
        cut = bisect_left(totals.inside, first_needed)
        for pane in totals.inside[:cut]:
            self._leave(totals, pane, pages)
        totals.inside = totals.inside[cut:]
        self._give_up_stack(totals, bisect_left(totals.stack, first_needed // STACK_PAGE), pages)

    @staticmethod
    def _give_up_stack(totals: Totals, count: int, pages: Pages) -> None:
        """Forget the first pages of the leaving stack."""
        for number in totals.stack[:count]:
            pages.delete(f"s{number}")
        totals.stack = totals.stack[count:]

    def renumber(self, totals: Totals, live: Array, pages: Pages) -> None:
        """Only the groups with these codes are left; the stacks are made anew at the next window."""
        self._give_up_stack(totals, len(totals.stack), pages)
        totals.added = {at: numbers[live] for at, numbers in totals.added.items()}
        totals.entered, totals.turned = {}, None

    def _numbers(self, totals: Totals, first: int, size: int, pages: Pages) -> list[Array]:
        leaving: list[Array] | None = None
        if self.others and totals.turned is not None and first < totals.turned:
            leaving = pages.get(f"s{first // STACK_PAGE}")[first]
        numbers: list[Array] = []
        other = 0
        for at, measure in enumerate(self.measures):
            if at in totals.added:
                numbers.append(totals.added[at])
                continue
            total = totals.entered[at]
            if leaving is not None:
                total = measure.combine(total, measure.grown(leaving[other], size))
            numbers.append(total)
            other += 1
        return numbers

    def _grow(self, totals: Totals, size: int) -> None:
        for at, measure in enumerate(self.measures):
            kept = totals.added if measure.is_invertible else totals.entered
            kept[at] = measure.grown(kept[at], size) if at in kept else measure.neutral(size)

    def _enter(self, totals: Totals, pane: int, pages: Pages) -> None:
        codes, numbers = pages.get(f"p{pane}")
        where = _all_or(codes, len(next(iter((totals.added or totals.entered).values()))))
        for at, measure in enumerate(self.measures):
            if measure.is_invertible:
                if numbers[at].dtype == object and totals.added[at].dtype != object:
                    totals.added[at] = totals.added[at].astype(object)
                totals.added[at][where] += numbers[at]
            else:
                totals.entered[at][where] = measure.combine(totals.entered[at][where], numbers[at])

    def _leave(self, totals: Totals, pane: int, pages: Pages) -> None:
        codes, numbers = pages.get(f"p{pane}")
        for at, total in totals.added.items():
            total[_all_or(codes, len(total))] -= numbers[at]

    def _turn(self, totals: Totals, panes: list[int], size: int, pages: Pages) -> None:
        """Stack the panes of a window; none has entered since."""
        running = [self.measures[at].neutral(size) for at in self.others]
        self._give_up_stack(totals, len(totals.stack), pages)
        stack: dict[int, dict[int, list[Array]]] = {}
        for pane in reversed(panes):
            codes, numbers = pages.get(f"p{pane}")
            following = []
            for total, at in zip(running, self.others, strict=True):
                mine = total.copy()
                where = _all_or(codes, size)
                mine[where] = self.measures[at].combine(mine[where], numbers[at])
                following.append(mine)
            running = following
            stack.setdefault(pane // STACK_PAGE, {})[pane] = running
        totals.stack = sorted(stack)
        for number, page in stack.items():
            pages.put(f"s{number}", page)
        totals.turned = panes[-1] + 1
        for at in self.others:
            totals.entered[at] = self.measures[at].neutral(size)


def _all_or(codes: Array, size: int) -> Array | slice:
    """The codes as an index; a slice, which is cheaper, when they are all there are."""
    return slice(None) if len(codes) == size else codes
