"""The greatest of some times so far, at each of them.

A running maximum, or minimum, waits for its last result at every step. So of long ones only every fourth step is taken
so, from the greatest of four to that of the next four; what is between follows with a few array operations.
"""

from __future__ import annotations

import numpy as np

LONG = 4096
_WIDTH = 4


def running_greatest(start: int, times: np.ndarray) -> np.ndarray:
    """What was greatest before each time, beginning with `start`, and at last after them all."""
    running = np.empty(len(times) + 1, np.int64)
    running[0] = start
    after = running[1:]
    accumulate(np.maximum, times, after)
    if len(times) and after[0] < start:
        after[: np.searchsorted(after, start)] = start
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
