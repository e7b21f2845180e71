"""Nothing takes a revision for a row: what reads inserts only is given a merged stream that never revises.

A merge of elements may put an event out, move its end and take it back, each as a row. An aggregate, a duplicate
elimination or a numbering above it would count each of them. So below such an operator the merge is *settled*: its
policy is made `conservative`, under which an event comes out once, when it can no longer change, and the merge's bound
waits for it (the papers' Cleanse, within the merge). `explain` says so. What only passes rows on sees the revisions.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.plan.nodes import Distinct, Merge, Node, NumberRows, WindowAggregate

SETTLED = "conservative"
_INSERTS_ONLY = (WindowAggregate, Distinct, NumberRows)


def settled(plan: Node) -> Node:
    """The plan in which merges of elements below a consumer of inserts put out inserts alone."""
    return plan.transform(_settle_below)


def _settle_below(consumer: Node) -> Node:
    """Settle what a consumer of inserts reads; those below it were looked at before, so the nearest one is named."""
    if not isinstance(consumer, _INSERTS_ONLY):
        return consumer

    def settle(node: Node) -> Node:
        if not isinstance(node, Merge) or not node.elements or node.policy == SETTLED:
            return node
        taker = type(consumer).__name__
        why = f"{node.why}; settled, since {taker} takes no revisions: an event comes out once, when it is final"
        return replace(node, policy=SETTLED, why=why)

    return consumer.with_inputs(*[below.transform(settle) for below in consumer.inputs])
