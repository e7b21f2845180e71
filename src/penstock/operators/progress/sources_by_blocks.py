"""Rows of known sources by blocks, where that is enough to tell that none of them is late.

The bound only grows. So no row of a block of neighbouring rows is late if the least of their times is not below the
bound after the block, and which bound preceded each of them makes no difference. How far each source is after each
block takes one pass over the rows, in any order, and then as many steps as there are blocks times sources. In a block
where rows may be late the bound is found row by row (`steady_sources.py`).

The slowest of many sources is heard last some `sources * log(sources)` rows ago: blocks of a few times `sources` rows
are short beside that, so a stream whose rows are on time seldom is in doubt.
"""

from __future__ import annotations

import numpy as np

from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.progress.marks import Coded
from penstock.operators.progress.source_state import Rule, State, before_by
from penstock.operators.progress.steady_sources import bounds_of_steady

ROWS_PER_SOURCE = 4
MIN_BLOCK = 64
MAX_DOUBTFUL = 1 / 8
"""Where more of the blocks than this are in doubt, all rows are looked at as one."""


def bounds_by_blocks(rule: Rule, state: State, times: np.ndarray, found: Coded) -> np.ndarray | None:
    """A bound for each row, the state changed to that after them; None, and no change, where blocks do not tell.

    It is the bound that precedes the row where that may make it late, else one that precedes its block.
    """
    if state["awaited"] or not len(times):
        return None
    greatest = state["greatest"]
    start = [greatest.get(source) for source in found.sources]
    if None in start:
        return None
    absent = _absent(state, found)
    width = max(MIN_BLOCK, ROWS_PER_SOURCE * len(found.sources))
    firsts = np.arange(0, len(times), width)
    reached = _reached(start, times, found, width)
    least = np.minimum(reached.min(axis=1), absent)
    newest = np.maximum(reached.max(axis=1), state["newest"])
    if rule.idle is not None and (least[:-1] < before_by(newest[1:], rule.idle)).any():
        return None
    bounds = np.maximum(before_by(least, rule.disorder), state["bound"])
    doubtful = np.flatnonzero(np.minimum.reduceat(times, firsts) < bounds[1:])
    if len(doubtful) > len(firsts) * MAX_DOUBTFUL:
        return None
    made = np.repeat(bounds[:-1], width)[: len(times)]
    for block in doubtful.tolist():
        rows = slice(block * width, (block + 1) * width)
        then = {**state, "greatest": {**greatest, **_named(found, reached[block])}, "bound": int(bounds[block])}
        exact = bounds_of_steady(rule, then, times[rows], found.part(rows.start, rows.stop))
        if isinstance(exact, int):
            return None
        made[rows] = exact
    greatest.update(_named(found, reached[-1]))
    state["newest"], state["bound"] = int(newest[-1]), int(bounds[-1])
    return made


def _reached(start: list[int], times: np.ndarray, found: Coded, width: int) -> np.ndarray:
    """How far each source is before each block, and after the last."""
    blocks = -(-len(times) // width)
    reached = np.full((blocks + 1, len(start)), MIN_TICK, np.int64)
    reached[0] = start
    cells = np.repeat(np.arange(1, blocks + 1) * len(start), width)[: len(times)]
    cells += found.codes
    np.maximum.at(reached.reshape(-1), cells, times)
    return np.maximum.accumulate(reached, axis=0, out=reached)


def _absent(state: State, found: Coded) -> int:
    """The least of the known sources that are not among these."""
    if len(state["greatest"]) == len(found.sources):
        return END_OF_TIME
    present = set(found.sources)
    return int(min(time for source, time in state["greatest"].items() if source not in present))


def _named(found: Coded, reached: np.ndarray) -> dict[object, int]:
    return dict(zip(found.sources, reached.tolist(), strict=True))
