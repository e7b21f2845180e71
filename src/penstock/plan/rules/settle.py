"""Nothing takes a revision for a row: what reads inserts only is given events that have settled.

A stream with adjusts tells an event, moves its end and takes it back, each as a row. Selections, projections, unions
and merges pass that on or read it; an aggregate, a duplicate elimination or a numbering would count each of them. So a
`Settle` is put below such a node: events come out of it once, when they are final. A merge keeps its events anyway, so
where all that revises are merges they settle by themselves: their policy is made `conservative`, under which an event
comes out once it is final, and the merge's bound waits for it. `explain` says so.

A settle stands where a stream enters, below selections, projections and unions: an adjust finds its event among those
of its own stream, by all of its columns. Above a projection it might take another event that looks the same for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from penstock.errors import UnsupportedError
from penstock.plan.nodes import (
    AlterLifetime,
    Merge,
    Newest,
    Node,
    NumberRows,
    Project,
    Select,
    Settle,
    Source,
    Union,
    Unnest,
)

SETTLED = "conservative"


def settled(plan: Node) -> Node:
    """The plan in which every node that takes inserts only is given inserts only."""
    return plan.transform(_settle_below)


def _settle_below(consumer: Node) -> Node:
    """Settle what a consumer of inserts reads; those below it were looked at before, so the nearest one is named."""
    if consumer.takes_revisions:
        return consumer
    below = [settled_for(i, type(consumer).__name__) for i in consumer.inputs]
    if isinstance(consumer, NumberRows) and any(isinstance(n, Settle) for i in below for n in i.walk()):
        raise UnsupportedError(
            "Events that are revised cannot be numbered by arrival.",
            where=consumer.label,
            hint="use a window over the stream's time, or merge the stream first (flow.merge)",
        )
    return consumer.with_inputs(*below)


def settled_for(node: Node, consumer: str) -> Node:
    """What a consumer of inserts is given in place of a node."""
    if node.properties.insert_only:
        return node
    return node.transform(_conservatively(consumer)) if _only_merges_revise(node) else _settled_at_streams(node)


def _settled_at_streams(node: Node) -> Node:
    """Every stream that revises is settled where it enters."""
    if node.properties.insert_only:
        return node
    if isinstance(node, Select | Project | Unnest | Union | AlterLifetime):
        return node.with_inputs(*map(_settled_at_streams, node.inputs))
    return Settle(node)


def _only_merges_revise(node: Node) -> bool:
    if node.properties.insert_only or isinstance(node, Merge):
        return True
    return not isinstance(node, Source | Newest) and all(map(_only_merges_revise, node.inputs))


def _conservatively(consumer: str) -> Callable[[Node], Node]:
    """Merges put out inserts alone."""

    def settle(node: Node) -> Node:
        if not isinstance(node, Merge) or node.properties.insert_only:
            return node
        why = f"{node.why}; settled, since {consumer} takes no revisions: an event comes out once, when it is final"
        return replace(node, policy=SETTLED, why=why)

    return settle
