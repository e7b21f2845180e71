"""Progress by source: a stream is as far as the slowest of its sources that are not idle (thesis 8.1, heartbeats).

A source is known once a row of it was on time. One that has fallen more than `idle` behind the greatest time of the
stream holds nothing back and is forgotten: when it speaks again it is as new, which makes no difference, since what it
could say of its past is idle too. So memory is bounded by the sources that were heard within `idle`; without `idle`
every source is kept, and one that falls silent holds the stream back for good. Sources that are named beforehand hold
the stream back until they were heard once, or until the stream has come more than `idle` from its first row.

Batches are judged by columns: while sources stay, by `sources_by_blocks.py` if only late rows are to be found, else by
`steady_sources.py`, however many they are; where sources become idle or are awaited, by `few_sources.py` if they are
few. What columns cannot tell is taken row by row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.progress.few_sources import bounds_of_few
from penstock.operators.progress.marks import Coded, Marks, coded
from penstock.operators.progress.source_state import Rule, State, hear, started
from penstock.operators.progress.sources_by_blocks import bounds_by_blocks
from penstock.operators.progress.steady_sources import bounds_of_steady

FEW = 16
"""Up to so many sources are judged by columns where they come and go, each a step function."""
MIN_COLUMNAR = 64
MAX_PAUSE = 15
"""While sources come and go, one in so many batches is looked at to see whether they stay."""

Sources = tuple[dict[Any, int], int | None]


@dataclass
class Patience:
    """How many batches to let pass before another try, after tries that were of no use: twice as many each time."""

    pause: int = 0
    left: int = 0

    def tries(self) -> bool:
        """Whether it is time for a try."""
        self.left = max(self.left - 1, -1)
        return self.left < 0

    def learn(self, *, was_of_use: bool) -> None:
        """How a try went."""
        self.pause = 0 if was_of_use else min(2 * self.pause + 1, MAX_PAUSE)
        self.left = self.pause


@dataclass(frozen=True)
class SourcesTracker:
    """The least bound over the sources that are not idle; marks name the source of each row.

    Summary: the greatest time per source, and the least time. The state is changed in place.
    """

    disorder: int
    idle: int | None
    sources: tuple[Any, ...]
    patience: Patience = field(default_factory=Patience, compare=False, repr=False)
    patience_with_blocks: Patience = field(default_factory=Patience, compare=False, repr=False)
    """Both decide how bounds are found, never which rows are late."""

    @cached_property
    def rule(self) -> Rule:
        """How the bound follows from the state."""
        return Rule(self.disorder, self.idle)

    def summarise(self, times: np.ndarray, marks: Marks) -> Sources:
        """The greatest time per source."""
        if not len(times):
            return {}, None
        found = coded(marks)
        greatest = np.full(len(found.sources), MIN_TICK, np.int64)
        np.maximum.at(greatest, found.codes, times)
        present = np.bincount(found.codes, minlength=len(found.sources)) > 0
        named = zip(found.sources, greatest.tolist(), present.tolist(), strict=True)
        return {source: time for source, time, there in named if there}, int(times.min())

    def join(self, left: Sources, right: Sources) -> Sources:
        """The greater per source."""
        greatest = dict(left[0])
        for source, time in right[0].items():
            greatest[source] = max(time, greatest.get(source, MIN_TICK))
        firsts = [first for first in (left[1], right[1]) if first is not None]
        return greatest, min(firsts, default=None)

    def advance(self, state: State | None, summary: Sources) -> State:
        """Take the summary in; the bound only goes up."""
        state = started(state, self.sources)
        greatest, first = summary
        if first is None:
            return state
        if state["first"] is None:
            state["first"] = first
        bound = state["bound"]
        for source, time in greatest.items():
            if time >= bound:  # a source of which everything was late is not made known by it
                hear(state, source, time)
        self.rule.settle(state)
        return state

    def bound(self, state: State | None) -> int:
        """The bound so far."""
        return MIN_TICK if state is None else int(state["bound"])

    def observe(self, state: State | None, time: int, mark: Any) -> State:
        """One row: only one that is the newest of its source can move the bound."""
        state = started(state, self.sources)
        self.settled(state, time, mark)
        return state

    def settled(self, state: State, time: int, source: Any) -> int:
        """Take one row in; the least of all sources, or without end if that is not known now.

        Rows of known sources that are above it move nothing, as long as they are not more than `idle` ahead of it.
        """
        if state["first"] is None:
            state["first"] = time
        if time < state["bound"] or not hear(state, source, time):
            return END_OF_TIME
        self.rule.settle(state)
        return END_OF_TIME if state["awaited"] else int(state["heap"][0][0])

    def by_row(
        self, state: State | None, times: np.ndarray, marks: Marks, *, loosely: bool = False
    ) -> tuple[np.ndarray, State]:
        """By columns as far as that goes, else row by row."""
        state = started(state, self.sources)
        found = coded(marks)
        if loosely and len(times) >= MIN_COLUMNAR and self.patience_with_blocks.tries():
            loose = bounds_by_blocks(self.rule, state, times, found)
            self.patience_with_blocks.learn(was_of_use=loose is not None)
            if loose is not None:
                return loose, state
        before: list[np.ndarray] = []
        if len(times) >= MIN_COLUMNAR and self.patience.tries():
            steady = bounds_of_steady(self.rule, state, times, found)
            if isinstance(steady, int) and steady <= len(times) // 2:  # new sources were heard up to there
                before.append(self._otherwise(state, times[:steady], found.part(0, steady)))
                times, found = times[steady:], found.part(steady, None)
                steady = bounds_of_steady(self.rule, state, times, found)
            self.patience.learn(was_of_use=not isinstance(steady, int))
            if not isinstance(steady, int):
                return np.concatenate((*before, steady)) if before else steady, state
        before.append(self._otherwise(state, times, found))
        return np.concatenate(before), state

    def _otherwise(self, state: State, times: np.ndarray, found: Coded) -> np.ndarray:
        """By columns if there are few sources and none makes itself known again by late rows, else row by row."""
        if len(times) >= MIN_COLUMNAR and len(found.sources) <= FEW:
            names = list(dict.fromkeys([*found.sources, *state["greatest"], *state["awaited"]]))
            before = bounds_of_few(self.rule, state, times, found, names) if len(names) <= FEW else None
            if before is not None:
                return before
        return self._one_by_one(state, times, found)

    def _one_by_one(self, state: State, times: np.ndarray, found: Coded) -> np.ndarray:
        """Row by row; while the source that is least stays so, and does not become idle, nothing can move."""
        if state["first"] is None and len(times):
            state["first"] = int(times[0])
        greatest, sources = state["greatest"], found.sources
        bound, newest = state["bound"], state["newest"]
        least = END_OF_TIME  # as long as the least is not known, every row is looked at
        reach = END_OF_TIME if self.idle is None else self.idle
        own = [greatest.get(source, MIN_TICK) for source in sources]
        before = []
        for time, code in zip(times.tolist(), found.codes.tolist(), strict=True):
            before.append(bound)
            if time > own[code] > least and time - least <= reach:
                if time >= bound:
                    own[code] = greatest[sources[code]] = time
                    if time > newest:  # noqa: PLR1730 - a call to max costs more than all the rest
                        newest = time
            elif time >= bound:
                state["newest"] = newest
                if hear(state, sources[code], time):
                    own[code] = time
                    self.rule.settle(state)
                    bound, newest = state["bound"], state["newest"]
                    least = END_OF_TIME if state["awaited"] else state["heap"][0][0]
        state["newest"] = newest
        return np.array(before, np.int64)
