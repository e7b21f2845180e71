"""What is told of the queues of a run, and what is read of them while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from penstock.engines.local.hosting import Hosting
from penstock.errors import StreamError
from penstock.flow.current_values import CurrentValues
from penstock.flow.reading_path import ReadingPath, reading_path
from penstock.flow.run_progress import QueueProgress
from penstock.operators.queues.queue import QueueCounts, Staleness
from penstock.plan.nodes import Conflate
from penstock.runtime.arcs import Outlet, QueuedArc

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
        told, waiting, stale, held = queue.counts.as_dict(), len(queue), queue.staleness(now), queue.memory(now)
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
        memory=held.bytes,
        average_memory=held.average_bytes,
        memory_usage=held.effective,
    )


def in_seconds(stale: Staleness) -> dict[str, Any]:
    """Times in seconds, and numbers of updates, under the names that they have in `progress`."""
    return {
        name if "unapplied" in name else f"{name}_staleness": ticks if "unapplied" in name else ticks / SECOND
        for name, ticks in asdict(stale).items()
    }


def read_current(
    execution: Hosting[Any], path: ReadingPath | None, current: CurrentValues, key: Any
) -> dict[str, object] | None:
    """What the query says of a key: what becomes of its newest row, or the last that came out where that is unknown."""
    own = current.key_of(key)
    if path is None or not path.is_whole:
        return current.read(own)
    with execution.alone():
        return current.shown(path.read(path.key_of(own, current.names)))


def staleness_of(
    execution: Hosting[Any], path: ReadingPath | None, current: CurrentValues, key: Any
) -> Mapping[str, float]:
    """How stale what was delivered of a key is."""
    own = current.key_of(key)
    if path is None:
        raise StreamError(
            "Nothing waits on the way to this result, so nothing is stale.", where="staleness", hint="see pk.conflate"
        )
    with execution.alone():
        operator = path.operator
        return in_seconds(operator.queue.staleness(operator.at(execution.clock()), path.key_of(own, current.names)))


def path_to(outlet: Outlet, current: CurrentValues) -> ReadingPath | None:
    """The way to a result: if it can be read along it, the queue remembers what goes on, and the result does not."""
    path = reading_path(outlet.producer)
    if path is not None and path.is_whole and current.key is not None:
        path.operator.remembers, current.is_kept = True, False
    return path
