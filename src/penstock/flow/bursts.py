"""The limit that a user sets on what comes out of a query's joins at a time."""

from __future__ import annotations

from penstock.errors import QueryError
from penstock.model.elements import is_whole
from penstock.plan.nodes import Node
from penstock.plan.rules.smooth import is_smoothed, smoothed


def with_burst(plan: Node, max_burst: int | None) -> Node:
    """The plan under such a limit; refused where it is no number, and where there is nothing that it limits."""
    if max_burst is None:
        return plan
    if not is_whole(max_burst) or max_burst < 1:
        raise QueryError("max_burst is a number of rows.", got=repr(max_burst)[:200], hint="max_burst=1000")
    if not any(is_smoothed(node) for node in plan.walk()):
        raise QueryError(
            "Nothing in this query comes out in bursts.",
            got=f"max_burst={max_burst}, and no outer or anti join of streams",
            hint="leave it out",
        )
    return smoothed(plan, int(max_burst))
