"""The least event time of the rows that wait: up to there promises may go on.

What comes can only lower it, which is known at once. What leaves may raise it, which is only known by looking at all
that waits. That is done when somebody asks, once as much has left since the last look as is to be looked at, or if what
waits is little. So it costs a few steps per row, and what is told may be less than what is true by what has left since.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penstock.model.time import END_OF_TIME

LITTLE = 256


class Floor:
    """A time that no row which waits is before."""

    __slots__ = ("_least", "_left")

    def __init__(self) -> None:
        """Nothing waits."""
        self._least = END_OF_TIME
        self._left = 0

    def came(self, time: int) -> None:
        """A row came, or rows of which this is the least time."""
        if time < self._least:  # noqa: PLR1730 - this is quicker, and done for every row
            self._least = time

    def left(self, rows: int) -> None:
        """So many rows have left, or were overwritten."""
        self._left += rows

    def at(self, waiting: int, times: Callable[[], np.ndarray]) -> int:
        """A time that none of those who wait is before; `times` are theirs."""
        if self._left and (waiting <= LITTLE or self._left >= waiting):
            self._least, self._left = int(times().min()), 0
        return self._least

    def forget(self) -> None:
        """Nothing is known: the next who asks looks at all."""
        self._left = 1 << 62
