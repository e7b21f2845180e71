"""How many rows without a partner a query's joins give out at a time, as the user asks (thesis 8.3.3)."""

from __future__ import annotations

from dataclasses import replace

from penstock.plan.join_nodes import Latest
from penstock.plan.nodes import Join, Node


def is_smoothed(node: Node) -> bool:
    """Whether punctuation may settle many rows of a node at once that then come out: an outer or anti join."""
    return isinstance(node, Join) and (node.keeps_left or node.keeps_right) and not isinstance(node.near, Latest)


def smoothed(plan: Node, max_burst: int) -> Node:
    """The plan, in which no more than so many rows come out of a join with one element."""

    def rule(node: Node) -> Node:
        return replace(node, max_burst=max_burst) if isinstance(node, Join) and is_smoothed(node) else node

    return plan.transform(rule)
