"""How long the steps of a lane take, of a sample of the rows.

A lane is one function for all that a row goes through alone (`lane`), so nobody sees when one step ends and the next
begins. Of the rows that are timed a second function takes care: the same code, in which the clock is read before every
step. Which row is the next is drawn as for elements (`sampling`); a row that is not timed pays for one comparison.

What is handed on behind the lane is traced, as what comes of a row that came in when the function was called.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from penstock.runtime.sampling import IN_LANES, NEVER, Clocks, Points, Trace, stands_still

if TYPE_CHECKING:
    from penstock.runtime.graph_node import GraphNode

READ = "times.append(clock())"
"""Code: before a step, and after the last one."""
TRACE = "trace(came)"
"""Code: before a row is handed on behind the lane."""
TOOK = "took(times)"
"""Code: after all of it."""


def untimed(lines: Iterable[str]) -> list[str]:
    """The code of a lane for rows that are not timed."""
    return [line for line in lines if line.strip() not in (READ, TRACE, TOOK)]


class LaneSample:
    """What the timed function of a lane calls."""

    def __init__(self, clocks: Clocks, steps: Sequence[GraphNode], last: GraphNode) -> None:
        """`steps` are the operators in order, `last` is the one behind which a row is handed on."""
        self._clocks, self._steps, self._last = clocks, steps, last
        self._points = Points(clocks.every * IN_LANES if clocks.every > 1 else 1)
        self.processor = clocks.processor or stands_still

    def gap(self) -> int:
        """How many rows go by until the next that is timed."""
        return NEVER if self._clocks.processor is None else self._points.gap()

    def begin(self) -> float:
        """A row comes in."""
        return self._clocks.stopwatch()

    def trace(self, entered: float) -> None:
        """What is handed on next goes back to a row that came in then."""
        self._last.giving = Trace(entered)

    def took(self, times: Sequence[float]) -> None:
        """The clock as each step began, and when the last had ended; a row that is left out takes no more steps."""
        for node, began, ended in zip(self._steps, times, times[1:], strict=False):
            node.meter.take_row(ended - began)
