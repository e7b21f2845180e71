"""The queue of a conflated stream, as its node asks for it."""

from __future__ import annotations

from penstock.operators.queues.adaptive import AdaptiveQueue
from penstock.operators.queues.choosing import memory_of, order_of, queue_for
from penstock.operators.queues.paced import PacedQueue
from penstock.operators.queues.queue import Queue
from penstock.operators.queues.update_queue import UpdateQueue
from penstock.plan.nodes import Conflate

NAMES = {"in_place": "in-place", "shedding": "shed", "on_demand": "on-demand"}
"""What policies are called in the papers, where that is no name in Python."""


def queue_of(node: Conflate) -> Queue:
    """An empty queue."""
    assert node.windows is None, "a queue of windows is made for the aggregates above it"
    schema, policy, memory = node.input.schema, NAMES.get(node.policy, node.policy), memory_name(node)
    if node.adaptive:
        return AdaptiveQueue(schema, node.key, node.max_staleness, memory=memory_of(memory))
    queue = (
        PacedQueue(schema, node.key, order_of(policy), node.every, dict(node.pace), memory_of(memory))
        if node.every is not None or node.pace
        else queue_for(schema, node.key, policy, memory)
    )
    if isinstance(queue, UpdateQueue):
        queue.forget_after = node.forget_after
    return queue


def memory_name(node: Conflate) -> str:
    """What its memory manager is called in the papers."""
    return NAMES.get(node.memory, node.memory)
