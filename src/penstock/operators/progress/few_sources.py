"""Rows of a few sources by columns: the least of one step function per source.

Only a row that is the newest of its source can move the bound, so everything is looked at where there is such a row and
nowhere else. How far a source has come is a step function over these places; the least of those that are not idle,
less the disorder, is the bound after each. That takes O(rows) per source for finding its own, and O(newest rows) for
the rest.

A late row of a source that is not known, or idle, would count as its newest, which it must not; columns cannot tell,
since whether it is late depends on the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.progress.marks import Coded
from penstock.operators.progress.source_state import Rule, State, before_by, hear


@dataclass(frozen=True)
class Steps:
    """The rows that are the newest of their source when they come."""

    source: Any
    places: np.ndarray
    times: np.ndarray


NO_STEPS = Steps(None, np.empty(0, np.int64), np.empty(0, np.int64))


def bounds_of_few(rule: Rule, state: State, times: np.ndarray, found: Coded, names: Sequence[Any]) -> np.ndarray | None:
    """The bound before each row, the state changed to that after them; None, and no change, where columns cannot tell.

    `names` are all sources that were heard, are heard now, or are awaited.
    """
    steps = _steps(state["greatest"], times, found)
    newest_of_its = np.zeros(len(times), np.bool_)
    for each in steps:
        newest_of_its[each.places] = True
    places = np.flatnonzero(newest_of_its)
    first = int(times[0]) if state["first"] is None else state["first"]
    bounds = _bounds(rule, state, first, (places, times[places]), {each.source: each for each in steps}, names)
    if (times[places] < bounds[:-1]).any():
        return None
    state["first"] = first
    for each in steps:
        if len(each.times):
            hear(state, each.source, int(each.times[-1]))
    if len(places):
        rule.settle(state)
    state["bound"] = int(bounds[-1])
    return np.repeat(bounds, np.diff(places, prepend=-1, append=len(times) - 1))


def _steps(greatest: dict[Any, int], times: np.ndarray, found: Coded) -> list[Steps]:
    codes = found.codes.astype(np.uint8)
    made = []
    for code, source in enumerate(found.sources):
        places = np.flatnonzero(codes == code)
        own = times[places]
        reached = np.maximum.accumulate(own)
        known = greatest.get(source)
        raises = np.ones(len(own), np.bool_)
        np.greater(own[1:], reached[:-1], out=raises[1:])
        if known is not None:
            raises &= own > known
        made.append(Steps(source, places[raises], own[raises]))
    return made


def _bounds(
    rule: Rule,
    state: State,
    first: int,
    raising: tuple[np.ndarray, np.ndarray],
    steps: dict[Any, Steps],
    names: Sequence[Any],
) -> np.ndarray:
    """The bound at the start, and after each of the rows that are the newest of their source."""
    places, times = raising
    floor = None
    if rule.idle is not None:
        newest = np.maximum.accumulate(np.concatenate(([state["newest"]], times)))
        floor = before_by(newest, rule.idle)
    least = np.full(len(places) + 1, END_OF_TIME, np.int64)
    held = np.zeros(len(places) + 1, np.bool_)
    for source in names:
        known = state["greatest"].get(source)
        own = steps.get(source, NO_STEPS)
        at = np.searchsorted(places, own.places) + 1
        if source in state["awaited"]:
            end = int(at[0]) if len(at) else len(held)
            held[:end] |= True if floor is None else first >= floor[:end]
        values = np.concatenate(([END_OF_TIME if known is None else known], own.times))
        greatest = np.repeat(values, np.diff(at, prepend=0, append=len(least)))
        if floor is not None:
            greatest[greatest < floor] = END_OF_TIME
        np.minimum(least, greatest, out=least)
    held |= least == END_OF_TIME
    allowed = before_by(least, rule.disorder)
    allowed[held] = MIN_TICK
    allowed[0] = state["bound"]
    made: np.ndarray = np.maximum.accumulate(allowed)
    return made
