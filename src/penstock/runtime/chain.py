"""Break nodes where Chain would have them, and which part of the graph runs first (Stream Mill, section 3; Chain).

A row that waits is held; what an operator does with it costs time and leaves so many rows to be held. Along a path of
operators that is a *progress chart*: a point (time spent, part of the row still held) after each of them. Chain's
strategy (Babcock, Babu, Datar and Motwani, 2003) takes its *lower envelope*: from where a row is, the operators up to
the point to which the descent is steepest are one *segment*, and so on from there. Of all segments for which something
waits the steepest runs, so that in a burst as much as possible is let go of as soon as possible.

Here a segment is a part of the graph: break nodes stand between segments, and within one an element goes depth-first as
far as it can. A result is taken by others, so the last operator of a path leaves nothing. A path ends where several
take from an operator, where an operator takes from several, and at break nodes and queues that are there anyway. Sizes
are in rows. Costs and selectivities are those that were measured; an operator that nobody has timed costs what the
others do on average, and lets everything through. Of equal slopes the longer segment is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from penstock.runtime.arcs import Arc

if TYPE_CHECKING:
    from penstock.runtime.graph_node import GraphNode

INSTANT = 1e-9
"""No operator takes less for a row."""


@dataclass(frozen=True)
class Step:
    """What an operator on a path does with a row: seconds that it takes, and rows that are left of it."""

    cost: float
    selectivity: float


@dataclass(frozen=True)
class Segment:
    """Operators that run as one, and how many rows a second they let go of."""

    operators: tuple[GraphNode, ...]
    slope: float


def envelope(path: Sequence[Step]) -> list[tuple[int, float]]:
    """The segments of a path: up to which operator each goes (its place, less one of the next), and its slope."""
    times, sizes = [0.0], [1.0]
    for step in path:
        times.append(times[-1] + sizes[-1] * max(step.cost, INSTANT))
        sizes.append(sizes[-1] * step.selectivity)
    found: list[tuple[int, float]] = []
    at = 0
    while at < len(path):
        if sizes[at] <= 0.0:  # nothing comes so far
            found.append((len(path), 0.0))
            break
        ahead = range(at + 1, len(path) + 1)
        slopes = {end: (sizes[at] - sizes[end]) / (times[end] - times[at]) for end in ahead}
        end = max(ahead, key=lambda each: (slopes[each], each))
        found.append((end, slopes[end]))
        at = end
    return found


def segments_of(nodes: Sequence[GraphNode]) -> list[Segment]:
    """The segments of all paths of a graph, those of the entrances first."""
    costs = {node: cost for node in nodes if (cost := _cost(node)) is not None}
    usual = sum(costs.values()) / len(costs) if costs else 0.0
    found = []
    for path in _paths(nodes):
        steps = [_step(node, costs.get(node, usual)) for node in path]
        ends = envelope(steps)
        for (begin, _), (end, slope) in pairwise([(0, 0.0), *ends]):
            found.append(Segment(tuple(path[begin:end]), slope))
    return found


def breaks_between(segments: Iterable[Segment]) -> list[Arc]:
    """The arcs that lead from one segment to another."""
    of = {node: segment for segment in segments for node in segment.operators}
    return [
        arc
        for node, segment in of.items()
        for arc in node.arcs
        if arc.consumer is not None and not arc.ends_path and of.get(arc.consumer) is not segment
    ]


def _cost(node: GraphNode) -> float | None:
    seconds = node.processor_seconds
    return None if seconds is None or not node.statistics.rows_in else seconds / node.statistics.rows_in


def _step(node: GraphNode, cost: float) -> Step:
    if node.arcs and all(arc.consumer is None for arc in node.arcs):
        return Step(cost, 0.0)
    counted = node.statistics
    return Step(cost, counted.rows_out / counted.rows_in if counted.rows_in else 1.0)


def _paths(nodes: Sequence[GraphNode]) -> list[list[GraphNode]]:
    """Operators that follow one another and nobody else."""
    return [_path(node) for node in nodes if _before(node) is None]


def _path(first: GraphNode) -> list[GraphNode]:
    path = [first]
    while (following := _after(path[-1])) is not None:
        path.append(following)
    return path


def _after(node: GraphNode) -> GraphNode | None:
    """The only one that takes from an operator and takes from nobody else."""
    if len(node.arcs) != 1 or node.arcs[0].ends_path:
        return None
    consumer = node.arcs[0].consumer
    return consumer if consumer is not None and len(consumer.inputs) == 1 else None


def _before(node: GraphNode) -> GraphNode | None:
    if len(node.inputs) != 1:
        return None
    producer = node.inputs[0].producer
    return producer if _after(producer) is node else None
