"""How long the rows of a batch live: an end for each, and for a row that revises the end that it had before.

A row starts at its time. Where a stream says no more, it lives as long as its schema says and there are no lives: that
is the fast path. Lives are two columns of int64 beside the rows. A row whose old end is `NO_OLD` is an insert of
`[start, end)`; any other is an adjust, which moves the end of an event that came before from the old end to the end,
and takes the event back where the end is its start. An adjust repeats the row of its insert: payload and start say
which event it is of.

Lateness is judged by the start of the stretch of time that an element changes: an insert's start, the lesser of an
adjust's two ends. So the end of an event that is under way may be told when it comes (LMerge, section III).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.model.elements import Adjust, Insert
from penstock.model.time import MIN_TICK

NO_OLD = MIN_TICK
"""The old end of an insert: no event ends there."""
NOT_AN_ELEMENT = "not an element: an event needs a start and a later end, an adjust an old end as well"
"""Why a row dies whose start and ends make no sense."""

UNKNOWN_EVENT = "an adjust of an event that is not there"
"""Why an adjust dies where somebody keeps the events."""


@dataclass(frozen=True, slots=True, eq=False)
class Lives:
    """The ends and the old ends of some rows."""

    ends: np.ndarray
    olds: np.ndarray

    @staticmethod
    def of(elements: Sequence[Insert | Adjust]) -> Lives:
        """The lives of elements."""
        ends = np.fromiter((e.ve for e in elements), np.int64, len(elements))
        olds = np.fromiter((e.v_old if isinstance(e, Adjust) else NO_OLD for e in elements), np.int64, len(elements))
        return Lives(ends, olds)

    @staticmethod
    def of_inserts(ends: np.ndarray) -> Lives:
        """Rows that all are inserts."""
        return Lives(ends, np.full(len(ends), NO_OLD, np.int64))

    def __len__(self) -> int:
        """Of how many rows."""
        return len(self.ends)

    @property
    def revises(self) -> np.ndarray:
        """Which rows are adjusts."""
        found: np.ndarray = self.olds != NO_OLD
        return found

    def take(self, which: np.ndarray | Sequence[int]) -> Lives:
        """The lives of some rows, by mask or by place."""
        chosen = np.asarray(which)
        if not len(chosen):
            chosen = chosen.astype(np.int64)
        return Lives(self.ends[chosen], self.olds[chosen])

    def part(self, start: int, end: int) -> Lives:
        """The lives of neighbouring rows."""
        return Lives(self.ends[start:end], self.olds[start:end])

    def judged_by(self, starts: np.ndarray) -> np.ndarray:
        """For each row the time that a bound is compared with."""
        found: np.ndarray = np.where(self.revises, np.minimum(self.olds, self.ends), starts)
        return found

    def sound(self, starts: np.ndarray) -> np.ndarray:
        """Which rows are elements: an insert lives, an adjust is of an event that lived and does not end too early."""
        adjusts = self.revises
        found: np.ndarray = np.where(adjusts, (self.ends >= starts) & (self.olds > starts), self.ends > starts)
        return found


def joined(parts: Iterable[Lives]) -> Lives:
    """Lives one after the other."""
    all_ = list(parts)
    return Lives(np.concatenate([p.ends for p in all_]), np.concatenate([p.olds for p in all_]))
