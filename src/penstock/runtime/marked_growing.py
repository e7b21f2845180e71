"""Aggregates over a queue of windows in a graph: one operator for all of them, fed by the queue (`marked_building`)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from penstock.operators.queues.conflate_windows import ConflateWindows
from penstock.operators.queues.window_cells import Promise
from penstock.operators.queues.window_choosing import window_queue_for
from penstock.plan.nodes import Conflate
from penstock.plan.physical import Physical
from penstock.plan.update_marks import marks_of
from penstock.runtime.marked_building import marked_plan
from penstock.runtime.queue_building import NAMES, memory_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.operators.operator import Operator
    from penstock.runtime.graph import Graph
    from penstock.runtime.graph_node import GraphNode


def grown_over_windows(
    graph: Graph,
    planned: Physical,
    add: Callable[[Physical, Operator, int], GraphNode],
    fed: Callable[[Physical], GraphNode],
    *,
    in_order: bool,
) -> GraphNode:
    """The last aggregate over a queue of windows, with all below it; it stands for the nodes down to the queue.

    `add` makes a node that runs so many nodes of the plan, one below the other; `fed` gives what feeds the queue. If
    rows come `in_order`, where they are promised to, windows close as rows come.
    """
    chain = [planned]
    while not isinstance(chain[-1].node, Conflate):
        (below,) = chain[-1].inputs
        chain.append(below)
    queue = chain[-1]
    node = queue.node
    assert isinstance(node, Conflate)
    assert node.windows is not None
    marks = marks_of(planned.node, node, node.key)
    made = add(planned, marked_plan(planned, marks, graph.builder), len(chain) - 1)
    promise = Promise.ORDERED if in_order and node.input.properties.ordered else Promise.NOTHING
    build = partial(
        window_queue_for,
        node.input.schema,
        node.key,
        marks.extents,
        node.windows,
        NAMES.get(node.policy, node.policy),
        memory_name(node),
        promise=promise,
    )
    conflated = add(queue, ConflateWindows(node.schema, build), 1)
    graph.join(conflated, made, 0)
    graph.join(fed(queue), conflated, 0)
    return made
