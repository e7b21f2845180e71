"""A queue of windows stands on what the first aggregate above it reads.

What is chosen and computed of a conflated stream on the way to an aggregate is done before rows wait, so that the queue
holds what the aggregate reads, and nothing that no window needs. Selections and projections therefore change places
with such a queue; a key goes by the names that it has there.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.plan.nodes import Conflate, Node, Project, Select


def queued_windows(plan: Node) -> Node:
    """The plan with queues of windows lifted to where windows are made."""
    return plan.transform(_lifted)


def _lifted(node: Node) -> Node:
    if not isinstance(node, Select | Project):
        return node
    queue = node.input
    if not isinstance(queue, Conflate) or queue.windows is None:
        return node
    key = queue.key
    if isinstance(node, Project):
        key = tuple(node.first_names[name] for name in key)
    return replace(queue, input=node.with_inputs(queue.input), key=key)
