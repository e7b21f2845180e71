"""Closing windows of some groups of a columnar aggregate: their part of the panes, and what is left of it.

The numbers of the groups are taken out of the panes as a small aggregate of their own, whose windows are put together
as those of all groups are. Then the groups leave the panes that none of their open windows needs. A group that is left
in panes which are also in windows that came out is *ahead* (`chosen.py`) until all have come as far. Cost: a look at
every pane per promise, and work for the numbers of the groups alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.model.time import MIN_TICK
from penstock.operators.aggregates.chosen import AHEAD, Chosen, Key
from penstock.operators.aggregates.group_codes import GroupCodes
from penstock.operators.aggregates.measures import Array
from penstock.operators.aggregates.pane_numbers import Pane, read_pane
from penstock.operators.aggregates.slide import Slide
from penstock.operators.aggregates.sliding_total import SlidingTotal
from penstock.operators.aggregates.window_tables import Block
from penstock.operators.aggregates.word_table import UNKNOWN
from penstock.operators.state import MemoryPages, Pages
from penstock.operators.windows.sliding import Sliding


@dataclass(frozen=True)
class Ahead:
    """Which windows of which groups came out before those of the others."""

    firsts: dict[Key, int]
    by_code: Array
    """Per code: the first window that did not."""

    @staticmethod
    def of(pages: Pages, codes: GroupCodes) -> Ahead | None:
        """What is known of the groups that have a code; None if none is ahead."""
        firsts: dict[Key, int] | None = pages.get(AHEAD)
        if not firsts:
            return None
        by_code = np.full(len(codes), MIN_TICK, np.int64)
        found = codes.find(list(firsts))
        known = found != UNKNOWN
        by_code[found[known]] = np.fromiter(firsts.values(), np.int64)[known]
        return Ahead(firsts, by_code)

    def without(self, block: Block) -> Block:
        """The results that did not come out yet."""
        wids, codes, numbers = block
        kept = self.by_code[codes] <= wids
        return wids[kept], codes[kept], [n[kept] for n in numbers]

    def forget(self, pages: Pages, first_open: int) -> None:
        """All have come as far as this window: who is not further is ahead no more."""
        _keep(pages, {key: first for key, first in self.firsts.items() if first > first_open})


def _keep(pages: Pages, firsts: dict[Key, int]) -> None:
    if firsts:
        pages.put(AHEAD, firsts)
    else:
        pages.delete(AHEAD)


@dataclass(frozen=True)
class GroupsPart:
    """The panes of some groups, with codes and pages of their own."""

    own: Array
    """The codes that the groups have among all."""
    codes: GroupCodes
    among: int
    """How many groups have a code among all."""
    state: Slide
    pages: MemoryPages

    @staticmethod
    def of(state: Slide, pages: Pages, codes: GroupCodes, sliding: SlidingTotal, chosen: Chosen) -> GroupsPart | None:
        """What the panes hold of the groups; None if nothing."""
        own = codes.chosen(chosen)
        if not len(own):
            return None
        part = GroupsPart(own, codes.keep(own), len(codes), Slide(closed=state.closed), MemoryPages())
        for pane in state.panes:
            held, numbers = read_pane(pages, f"p{pane}", sliding.measures)
            at = _places(held, own)
            if len(at):
                part.pages.put(f"p{pane}", (np.searchsorted(own, held[at]), [n[at] for n in numbers]))
                part.state.panes.append(pane)
                sliding.values.copy_part(pages, pane, own, part.pages)
        return part if part.state.panes else None

    def let_go(
        self, state: Slide, pages: Pages, window: Sliding, sliding: SlidingTotal, first_open: int | None
    ) -> None:
        """Take the groups out of the panes that they need no more; `first_open` is their first open window, if any."""
        needed = None if first_open is None else window.first_pane(first_open)
        left: dict[int, int] = {}  # by code, the first pane that is left of a group
        for pane in self.state.panes:
            members = self.own[self.pages.get(f"p{pane}")[0]]
            if needed is None or pane < needed:
                self._leave(state, pages, sliding, pane, members)
            else:
                left = dict.fromkeys(members.tolist(), pane) | left
        firsts: dict[Key, int] = pages.get(AHEAD) or {}
        for code, key in zip(self.own.tolist(), self.codes.keys, strict=True):
            first = firsts.pop(key, first_open)
            if first_open is not None and first is not None and code in left:
                first = max(first, first_open)
                if window.first_of_pane(left[code]) < first:
                    firsts[key] = first
        _keep(pages, firsts)

    def _leave(self, state: Slide, pages: Pages, sliding: SlidingTotal, pane: int, members: Array) -> None:
        held: Pane = pages.get(f"p{pane}")
        codes, numbers = held
        at = _places(codes, members)
        sliding.drop(state.totals, pane, self.among, (codes[at], [n[at] for n in numbers]), pages)
        if len(at) == len(codes):
            pages.delete(f"p{pane}")
            sliding.values.give_up([pane], pages)
            state.panes.remove(pane)
            state.pass_weight(pane)
        else:
            pages.put(f"p{pane}", (np.delete(codes, at), [np.delete(n, at, axis=0) for n in numbers]))


def _places(held: Array, wanted: Array) -> Array:
    """Where in ascending codes some of ascending others are."""
    at = np.searchsorted(held, wanted)
    there = at < len(held)
    at, wanted = at[there], wanted[there]
    found: Array = at[held[at] == wanted]
    return found
