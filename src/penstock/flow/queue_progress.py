"""What is told of the queues of a run, and what is read of them while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from penstock.engines.local.hosting import Hosting
from penstock.errors import StreamError
from penstock.flow.current_values import CurrentValues
from penstock.flow.run_progress import QueueProgress
from penstock.operators.queues.conflate import ConflateOperator
from penstock.operators.queues.queue import QueueCounts, Staleness
from penstock.plan.nodes import Conflate
from penstock.runtime.arcs import Outlet, QueuedArc
from penstock.runtime.graph import GraphNode

SECOND = 1e6
"""In ticks of the clock."""


def queue_progress(execution: Hosting[Any], arc: QueuedArc) -> QueueProgress:
    """How much waits in a queue, what became of its rows, how stale they are."""
    node, pacing = arc.consumer, arc.pacing
    assert node is not None
    assert isinstance(node.plan, Conflate)
    with execution.alone():
        operator = arc.operator
        queue, now = operator.queue, operator.at(execution.clock())
        told, waiting, stale = queue.counts.as_dict(), len(queue), queue.staleness(now)
    counts = {each.name: told[each.name] for each in fields(QueueCounts)}  # queues of windows count more
    least = pacing.least_bound
    return QueueProgress(
        node.identity,
        node.label,
        node.plan.policy,
        waiting,
        **counts,
        **in_seconds(stale),
        budget=pacing.most,
        cost=None if pacing.cost is None else pacing.cost / SECOND,
        max_staleness=None if pacing.max_staleness is None else pacing.max_staleness / SECOND,
        least_bound=None if least is None else least / SECOND,
        is_met=pacing.is_met,
    )


def in_seconds(stale: Staleness) -> dict[str, Any]:
    """Times in seconds, and numbers of updates, under the names that they have in `progress`."""
    return {
        name if "unapplied" in name else f"{name}_staleness": ticks if "unapplied" in name else ticks / SECOND
        for name, ticks in asdict(stale).items()
    }


def read_current(
    execution: Hosting[Any], outlet: Outlet | None, current: CurrentValues, key: Any
) -> dict[str, object] | None:
    """The newest row of a key: one that waits to be delivered, or else the one that was last."""
    own = current.key_of(key)
    operator = None if outlet is None else _last_queue(outlet)
    if operator is None:
        return current.read(own, None)
    with execution.alone():
        waiting = operator.queue.read(own)
    return current.read(own, waiting)


def staleness_of(
    execution: Hosting[Any], outlet: Outlet | None, current: CurrentValues, key: Any
) -> Mapping[str, float]:
    """How stale what was delivered of a key is."""
    own = current.key_of(key)
    operator = None if outlet is None else _last_queue(outlet, above_it=True)
    if operator is None:
        raise StreamError(
            "Nothing waits on the way to this result, so nothing is stale.", where="staleness", hint="see pk.conflate"
        )
    with execution.alone():
        return in_seconds(operator.queue.staleness(operator.at(execution.clock()), own))


def _last_queue(outlet: Outlet, *, above_it: bool = False) -> ConflateOperator | None:
    """The queue out of which a result comes: at once, or, with `above_it`, through operators of one input."""
    node: GraphNode = outlet.producer
    while above_it and not isinstance(node.operator, ConflateOperator) and len(node.inputs) == 1:
        node = node.inputs[0].producer
    return node.operator if isinstance(node.operator, ConflateOperator) else None
