"""Nothing takes a revision for a row: what reads inserts only is given a merged stream that never revises.

A merge of elements may put an event out, move its end and take it back, each as a row. An aggregate, a duplicate
elimination or a numbering above it would count each of them. So below such an operator the merge is *settled*: its
policy is made `conservative`, under which an event comes out once, when it can no longer change, and the merge's bound
waits for it (the papers' Cleanse, within the merge). `explain` says so. What only passes rows on sees the revisions.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.plan.nodes import Distinct, Merge, Nary, Node, NumberRows, Unary, WindowAggregate

SETTLED = "conservative"
_INSERTS_ONLY = (WindowAggregate, Distinct, NumberRows)


def settled(node: Node, consumer: str | None = None) -> Node:
    """The plan in which merges of elements below a consumer of inserts put out inserts alone."""
    if isinstance(node, _INSERTS_ONLY):
        consumer = type(node).__name__
    if isinstance(node, Merge):
        if not node.elements or consumer is None or node.policy == SETTLED:
            return node
        why = f"{node.why}; settled, since {consumer} takes no revisions: an event comes out once, when it is final"
        return replace(node, policy=SETTLED, why=why)
    if isinstance(node, Unary):
        below = settled(node.input, consumer)
        return node if below is node.input else replace(node, input=below)
    if isinstance(node, Nary):
        branches = tuple(settled(b, consumer) for b in node.branches)
        same = all(a is b for a, b in zip(branches, node.branches, strict=True))
        return node if same else replace(node, branches=branches)
    return node
