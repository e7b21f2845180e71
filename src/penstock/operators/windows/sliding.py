"""Sliding and tumbling windows on a time, integer or row attribute (thesis 5.1.2, with floors for Eq. 5.3).

Window `w` is `[origin + (w+1)*slide - range, origin + (w+1)*slide)`. Ids may be negative for values before the origin.
Where `range < slide` there are gaps between windows and a value may be in none. `wids` is the inverse of `extent`. A
pane is the widest stretch that no window cuts: GCD(range, slide) (thesis 6.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np


@dataclass(frozen=True)
class Sliding:
    """The arithmetic of one window specification; all lengths in ticks."""

    range: int
    slide: int
    origin: int = 0

    @property
    def is_tumbling(self) -> bool:
        """Whether each value is in exactly one window."""
        return self.range == self.slide

    def start(self, wid: int) -> int:
        """The first tick of a window."""
        return self.origin + (wid + 1) * self.slide - self.range

    def end(self, wid: int) -> int:
        """The first tick after a window."""
        return self.origin + (wid + 1) * self.slide

    def extent(self, wid: int) -> tuple[int, int]:
        """The stretch `[start, end)` of a window."""
        return self.start(wid), self.end(wid)

    def first(self, value: int) -> int:
        """The first window that can hold a value, and the first that is still open when a bound is `value`."""
        return (value - self.origin) // self.slide

    def last(self, value: int) -> int:
        """The last window that can hold a value; less than `first` where the value lies in a gap."""
        return (value - self.origin + self.range) // self.slide - 1

    def wids(self, value: int) -> Sequence[int]:
        """The ids of the windows that hold a value."""
        return range(self.first(value), self.last(value) + 1)

    @property
    def pane(self) -> int:
        """The length of a pane."""
        return gcd(self.range, self.slide)

    @property
    def panes_per_window(self) -> int:
        """How many panes make a window."""
        return self.range // self.pane

    def pane_of(self, value: int) -> int:
        """The pane that holds a value."""
        return (value - self.origin) // self.pane

    def panes_of(self, values: np.ndarray) -> np.ndarray:
        """The panes of many values."""
        return np.asarray(np.floor_divide(values - self.origin if self.origin else values, self.pane))

    def first_pane(self, wid: int) -> int:
        """The first pane of a window."""
        return ((wid + 1) * self.slide - self.range) // self.pane

    def end_pane(self, wid: int) -> int:
        """The first pane after a window."""
        return (wid + 1) * self.slide // self.pane

    def first_of_pane(self, pane: int) -> int:
        """The first window that holds a pane."""
        return (pane * self.pane) // self.slide

    def last_of_pane(self, pane: int) -> int:
        """The last window that holds a pane; less than the first where the pane lies in a gap."""
        return (pane * self.pane + self.range) // self.slide - 1

    def first_needed(self, bound: int) -> int:
        """The first window whose result, which lives for a slide, does not end before a bound."""
        return -((self.origin - bound) // self.slide) - 2

    def output_bound(self, bound: int) -> int:
        """The bound on window ends that a bound on values allows: the end of the first window still open."""
        return self.end(self.first(bound))
