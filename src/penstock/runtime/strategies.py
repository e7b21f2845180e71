"""Execution strategies: in which order the operators of a query graph run (Stream Mill, section 2.3).

- **Depth-first** sends what an operator gives on at once, as far as it goes: the least latency, and nothing waits.
- **Depth-first in batches of k** lets an operator take up to k elements before what it gave is sent on.
- **Breadth-first** lets an operator take all that waits for it before the next one runs.
- **Round-robin** is breadth-first on paths: a graph is broken into paths, and control goes back to the scheduler when
  a path has nothing left.

The paper's `processedCount <= k` would take k + 1; k is k here. And where its rule for batches goes back after k
elements of which nothing came, although more wait, ours goes on with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.errors import StreamError
from penstock.model.elements import is_whole

Kind = Literal["dfs", "bfs", "round_robin"]
SHORT: dict[str, str] = {"dfs": "DFS", "bfs": "BFS", "round_robin": "RR"}


@dataclass(frozen=True)
class Strategy:
    """Which operator runs next."""

    kind: Kind
    batch: int = 1
    """Depth-first: so many elements are taken before what comes of them is sent on."""

    @property
    def short(self) -> str:
        """As in the paper's tables."""
        return SHORT[self.kind] if self.batch == 1 else f"{SHORT[self.kind]}({self.batch})"

    def __str__(self) -> str:
        """As it is given."""
        return self.kind if self.batch == 1 else f"dfs(batch={self.batch})"


DEPTH_FIRST = Strategy("dfs")
BREADTH_FIRST = Strategy("bfs")
ROUND_ROBIN = Strategy("round_robin")
NAMED: dict[str, Strategy] = {strategy.kind: strategy for strategy in (DEPTH_FIRST, BREADTH_FIRST, ROUND_ROBIN)}


def dfs(batch: int = 1) -> Strategy:
    """Depth-first; with `batch`, an operator takes so many elements before what it gave is sent on."""
    if not is_whole(batch) or batch < 1:
        raise StreamError(
            "A batch of a depth-first strategy is at least one element.",
            where="pk.dfs",
            got=f"batch={batch!r}"[:200],
            hint="pk.dfs(batch=64)",
        )
    return Strategy("dfs", int(batch))


def strategy_of(given: object, where: str) -> Strategy:
    """A strategy, or the one of a name."""
    if isinstance(given, Strategy):
        return given
    found = NAMED.get(given) if isinstance(given, str) else None
    if found is None:
        raise StreamError(
            "There is no such execution strategy.",
            where=where,
            got=repr(given)[:200],
            hint=f"{', '.join(map(repr, NAMED))}, or pk.dfs(batch=64)",
        )
    return found
