"""How many rows a second went through each operator lately.

Somebody looks now and then at what has been counted, at most once a second, with the time. A rate is what was counted
since the newest look that is long enough ago, by the time since then: so it is of a stretch of ten to eleven seconds
where somebody looks often, of a longer one where nobody did, and of all the time in the beginning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.runtime.graph_node import GraphNode

STRETCH = 10.0
"""Seconds."""
APART = 1.0
"""So many seconds are between two looks."""
Counted = tuple[int, int]
"""Rows in, rows out."""


class RecentRates:
    """What was counted of each operator, as somebody has seen it."""

    def __init__(self) -> None:
        """Nobody has looked yet."""
        self._looks: deque[tuple[float, dict[GraphNode, Counted]]] = deque()
        self.next = float("-inf")
        """When it is time to look again."""

    def look(self, now: float, nodes: Iterable[GraphNode]) -> None:
        """Keep what has been counted, if it is time to."""
        if now < self.next:
            return
        counted = {node: (node.statistics.rows_in, node.statistics.rows_out) for node in nodes}
        self._looks.append((now, counted))
        self.next = now + APART
        while len(self._looks) > 1 and self._looks[1][0] <= now - STRETCH:
            self._looks.popleft()

    def of(self, node: GraphNode, now: float) -> tuple[float, float] | None:
        """Rows in and out a second; None while no time has passed since the operator was first seen."""
        for then, counted in self._looks:
            before = counted.get(node)
            if before is not None and then < now:
                into, out = node.statistics.rows_in - before[0], node.statistics.rows_out - before[1]
                return into / (now - then), out / (now - then)
        return None
