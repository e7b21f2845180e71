"""The windows of panes, one after the other, each as the total of its panes.

A total slides over the panes (`sliding_total`), so a window costs its groups and the panes that enter and leave. A
window is a block; a run of windows that hold the same panes has one total, which is repeated. Many windows of few
groups are made at once (`many_windows`), as one block; so are windows that are a pane each. Windows that hold no pane
are passed over, however many there are. A block has the groups of its windows alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.operators.aggregates.emission import PORTION
from penstock.operators.aggregates.many_windows import ManyWindows
from penstock.operators.aggregates.pane_numbers import Pane
from penstock.operators.aggregates.slide import Slide
from penstock.operators.aggregates.sliding_total import SlidingTotal
from penstock.operators.aggregates.window_tables import Block
from penstock.operators.state import Pages
from penstock.operators.windows.sliding import Sliding

ALIKE = 8
"""From so many windows on that hold the same panes, they are put together as one."""


@dataclass(frozen=True)
class PaneWindows:
    """Goes over the windows of an aggregate."""

    window: Sliding
    sliding: SlidingTotal

    @cached_property
    def _many(self) -> ManyWindows:
        return ManyWindows(self.window, self.sliding.measures)

    def blocks(self, state: Slide, end: int, pages: Pages, size: int) -> Iterator[Block]:
        """The windows that have groups, in blocks; `size` groups have a code, and the panes are in `pages`."""
        wid = self.window.first_of_pane(state.panes[0])
        if state.closed is not None:
            wid = max(wid, state.closed)
        while (many := self._together(state, wid, end, pages, size)) is not None:
            wid, block = many
            if len(block[0]):  # panes may lie between windows
                yield block
        if self.window.is_tumbling:
            yield from self._panes_alone(state.panes, wid, end, pages)
            return
        while wid < end:
            lo = bisect_left(state.panes, self.window.first_pane(wid))
            hi = bisect_left(state.panes, self.window.end_pane(wid))
            if lo == hi:
                wid = max(wid + 1, self.window.first_of_pane(state.panes[hi])) if hi < len(state.panes) else end
                continue
            if self.window.panes_per_window == 1:
                window = self.sliding.alone(state.panes[lo], pages)
                following = wid + 1
            else:
                window = self.sliding.advance(state.totals, state.panes, lo, hi, size, pages)
                following = min(self._next_change(state.panes, lo, hi), end)
            if following - wid >= ALIKE:
                yield from self._alike(wid, following, window)
                wid = following
            else:
                yield np.full(len(window[0]), wid), *window
                wid += 1

    def _panes_alone(self, panes: list[int], wid: int, end: int, pages: Pages) -> Iterator[Block]:
        """Windows that are a pane each, as they are; many small ones in one block."""
        taken: list[int] = []
        held: list[Pane] = []
        rows = 0
        for pane in panes[bisect_left(panes, wid) : bisect_left(panes, end)]:
            window = self.sliding.alone(pane, pages)
            taken.append(pane)
            held.append(window)
            rows += len(window[0])
            if rows >= PORTION:
                yield _side_by_side(taken, held)
                taken, held, rows = [], [], 0
        if held:
            yield _side_by_side(taken, held)

    def _together(self, state: Slide, wid: int, end: int, pages: Pages, size: int) -> tuple[int, Block] | None:
        """The next windows as one block, where they are many and the groups few, and which one comes after them.

        A total over panes is then begun anew.
        """
        if self.sliding.values.columns:
            return None
        end = min(end, wid + max(PORTION // size, 1))
        lo = bisect_left(state.panes, self.window.first_pane(wid))
        hi = bisect_left(state.panes, self.window.end_pane(end - 1))
        if not self._many.suit(wid, end, hi - lo, size):
            return None
        self.sliding.begin_anew(state.totals, pages)
        return end, self._many.block(wid, end, state.panes[lo:hi], size, pages)

    def _next_change(self, panes: list[int], lo: int, hi: int) -> int:
        """The first window after one with these panes that has others."""
        loses = self.window.last_of_pane(panes[lo]) + 1
        return loses if hi == len(panes) else min(loses, self.window.first_of_pane(panes[hi]))

    def _alike(self, wid: int, end: int, window: Pane) -> Iterator[Block]:
        """A run of windows that hold the same panes, and so the same numbers."""
        codes, present = window
        step = max(PORTION // len(codes), 1)
        for start in range(wid, end, step):
            count = min(step, end - start)
            repeated = [np.concatenate([n] * count) if len(codes) > 1 else np.repeat(n, count, axis=0) for n in present]
            yield np.repeat(np.arange(start, start + count), len(codes)), np.tile(codes, count), repeated


def _side_by_side(wids: list[int], windows: list[Pane]) -> Block:
    """Windows one after the other as one block."""
    sizes = [len(codes) for codes, _ in windows]
    numbers = zip(*(numbers for _, numbers in windows), strict=True)
    return np.repeat(wids, sizes), np.concatenate([c for c, _ in windows]), [np.concatenate(each) for each in numbers]
