"""The greatest of some times so far, at each of them.

A running maximum, or minimum, waits for its last result at every step. So of long ones only every fourth step is taken
so, from the greatest of four to that of the next four; what is between follows with a few array operations.

Who asks which rows come late needs to know what was greatest before such a row alone. Of blocks of rows the greatest
and the least tell which blocks can have one, and hardly any has.
"""

from __future__ import annotations

import numpy as np

LONG = 4096
_WIDTH = 4
BLOCK, MANY = 32, 4096


def running_greatest(start: int, times: np.ndarray) -> np.ndarray:
    """What was greatest before each time, beginning with `start`, and at last after them all."""
    running = np.empty(len(times) + 1, np.int64)
    running[0] = start
    after = running[1:]
    accumulate(np.maximum, times, after)
    if len(times) and after[0] < start:
        after[: np.searchsorted(after, start)] = start
    return running


def greatest_before_late(start: int, times: np.ndarray, delay: int) -> np.ndarray:
    """What was greatest before each time, as `running_greatest`, and at last after them all; for whoever judges.

    It is exact for a time that is more than `delay` below it. Others may be given what was greatest before all of them.
    """
    whole = len(times) // BLOCK * BLOCK
    if whole < MANY:
        return running_greatest(start, times)
    firsts = np.arange(0, whole, BLOCK)
    reached = np.maximum.accumulate(np.maximum.reduceat(times[:whole], firsts))
    np.maximum(reached, start, out=reached)
    least = np.minimum.reduceat(times[:whole], firsts)
    # Also a distance that no int64 holds is a number without a sign.
    below = reached.view(np.uint64) - least.view(np.uint64)
    behind = np.flatnonzero(below > np.uint64(delay))
    if 2 * len(behind) > len(firsts):
        return running_greatest(start, times)
    running = np.full(len(times) + 1, start)
    before = np.append(start, reached[:-1])
    within = np.column_stack([before[behind], times[:whole].reshape(-1, BLOCK)[behind, :-1]])
    running[:whole].reshape(-1, BLOCK)[behind] = np.maximum.accumulate(within, axis=1)
    running[whole:] = running_greatest(int(reached[-1]), times[whole:])
    return running


def accumulate(extreme: np.ufunc, times: np.ndarray, out: np.ndarray) -> None:
    """A running maximum or minimum, which may take the place of what is given."""
    if len(times) < LONG:
        extreme.accumulate(times, out=out)
        return
    whole = len(times) // _WIDTH * _WIDTH
    given, made = times[:whole].reshape(-1, _WIDTH), out[:whole].reshape(-1, _WIDTH)
    within = [given[:, 0]]
    for at in range(1, _WIDTH):
        within.append(extreme(within[-1], given[:, at]))
    accumulate(extreme, within[-1], last := np.empty(len(given), np.int64))
    made[0] = [own[0] for own in within]
    for at, own in enumerate(within):
        extreme(last[:-1], own[1:], out=made[1:, at])
    if whole < len(times):
        rest = out[whole:]
        extreme.accumulate(times[whole:], out=rest)
        extreme(rest, last[-1], out=rest)
