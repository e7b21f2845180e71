"""What a columnar aggregate keeps from bound to bound besides the panes themselves.

Sums of integers are kept in 64 bits as long as the weights of the living panes say that these suffice, and as Python's
integers from then on.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.operators.aggregates.measures import SAFE, Measure
from penstock.operators.aggregates.totals import Totals


@dataclass
class Slide:
    """The panes there are, how far windows are closed, and how the total over panes stands."""

    panes: list[int] = field(default_factory=list)
    """The panes, ascending, that have something in them and are not given up."""
    closed: int | None = None
    """The first window not yet put out."""
    totals: Totals = field(default_factory=Totals)
    live: int = 0
    """How many groups were in panes when it was last looked at."""
    live_pairs: dict[int, int] = field(default_factory=dict)
    """The same of pairs of a group and a value, per measure that counts distinct ones."""
    weights: dict[int, int] = field(default_factory=dict)
    """No sum of integers over living panes can be greater than these together.

    Each is of integers in panes up to the one that it is under.
    """

    def open(self, pane: int) -> bool:
        """Something is put into a pane; whether it is the first."""
        at = bisect_left(self.panes, pane)
        if self.panes[at : at + 1] == [pane]:
            return False
        self.panes.insert(at, pane)
        return True

    def give_up(self, first_needed: int) -> list[int]:
        """Forget panes before one, which are returned."""
        cut = bisect_left(self.panes, first_needed)
        gone, self.panes = self.panes[:cut], self.panes[cut:]
        for pane in gone:
            self.weights.pop(pane, None)
        return gone

    def weigh(self, pane: int, weight: int) -> None:
        """Integers that come to no more than `weight` go under a pane."""
        self.weights[pane] = self.weights.get(pane, 0) + weight

    def forget_weights(self, first_needed: int) -> None:
        """What is weighed under panes before one is gone."""
        self.weights = {pane: weight for pane, weight in self.weights.items() if pane >= first_needed}

    def pass_weight(self, pane: int) -> None:
        """A pane is gone, and panes before it may still hold integers that are weighed under it."""
        weight, before = self.weights.pop(pane, 0), bisect_left(self.panes, pane)
        if weight and before:
            self.weigh(self.panes[before - 1], weight)

    def is_wide(self, measure: Measure) -> bool:
        """Whether 64 bits might not hold a sum."""
        return measure.kind == "sum" and not measure.is_float and sum(self.weights.values()) >= SAFE

    def to_plain(self) -> dict[str, Any]:
        """By name."""
        return {**vars(self), "totals": vars(self.totals)}

    @staticmethod
    def from_plain(data: dict[str, Any], version: int) -> Slide:
        """The other way.

        Version 1 kept whole totals with every pane, which are made anew at the next window; up to version 2 totals
        were of all groups that had a code, and it was counted in how many panes each group is.
        """
        totals = data["totals"]
        if version == 1:
            inside, added, stack = totals["inside"], totals["added"], totals["stack"]
            ends = {"first": inside[0], "last": inside[-1]} if inside else {}
            totals = {"added": added, "stack": stack, **ends}
        if version <= 2:
            data = {name: value for name, value in data.items() if name != "holders"}
            totals = {**totals, "groups": np.arange(len(totals["added"].get(0, ())))}
        return Slide(**{**data, "totals": Totals(**totals)})
