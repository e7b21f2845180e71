"""The queue of a conflated stream, as its node asks for it."""

from __future__ import annotations

from penstock.operators.queues.adaptive import AdaptiveQueue
from penstock.operators.queues.choosing import order_of, queue_for
from penstock.operators.queues.paced import PacedQueue
from penstock.operators.queues.queue import Queue
from penstock.plan.nodes import Conflate

NAMES = {"in_place": "in-place", "shedding": "shed"}
"""What policies are called in the papers, where that is no name in Python."""


def queue_of(node: Conflate) -> Queue:
    """An empty queue."""
    assert node.windows is None, "a queue of windows is made for the aggregates above it"
    schema, policy = node.input.schema, NAMES.get(node.policy, node.policy)
    if node.adaptive:
        return AdaptiveQueue(schema, node.key, node.max_staleness)
    if node.every is not None or node.pace:
        return PacedQueue(schema, node.key, order_of(policy), node.every, dict(node.pace))
    return queue_for(schema, node.key, policy)
