"""Which idle sources are asked how far they have come: those for which something waits (Stream Mill, section 4).

A stream that has nothing in its turn is asked for a promise, or the clock for it, only where a greater bound could let
something out. Two things say so:

- What a query has taken and not given yet, it gives by the bound that closes it (`plan.closing`), which follows from
  the greatest time of the rows so far. A stream that has come so far has nothing more to say. Where there is no such
  bound, any is waited for. Before the first row of all its streams, a query waits for a first word of each.
- From such a query control goes back through the graph as backtracking does: past a union to the inputs that were
  promised least, since no other can move what it promises; past any other operator to all of its inputs, since a join
  lets rows of a side go by the promises of the other, whichever has come further.

Where a query is replaced, streams are waited for until its old plan has reached the split.

Asked once in a turn, a source that does not help is left alone until its next turn; one that does may make another
stream the one that is behind, which is asked in its turn. What waits is looked at again when rows have come, or
promises have moved, so that asking nobody costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.migration.handover import HandoverOperator, Phase
from penstock.operators.progress.ingest import RowIngest
from penstock.plan.closing import closing_bound
from penstock.plan.nodes import Node, Source, Union
from penstock.runtime.arcs import Outlet
from penstock.runtime.graph import Graph
from penstock.runtime.graph_node import GraphNode

Results = Callable[[], Iterable[tuple[Outlet, Node]]]
"""Where the results of each query come out, with its plan."""


class Demand:
    """The streams of a running graph that somebody waits for."""

    def __init__(self, graph: Callable[[], Graph], results: Results) -> None:
        """Of whichever graph is run, and whichever queries."""
        self._graph, self._results = graph, results
        self.is_endless = False
        """Whether any promise is waited for: its reader wants to see them, or does not know how far rows went."""
        self._known: Any = None
        self._wanted: set[str] = set()

    def wants(self, stream: str) -> bool:
        """Whether a greater bound on a stream could let something out."""
        if self.is_endless:
            return True
        graph = self._graph()
        graph.tabulate()  # which counts the changes of the graph
        now = (
            graph.executor.number,
            [_reached(nodes) for nodes in graph.sources.values()],
            [_greatest(nodes) for nodes in graph.sources.values()],
            [arc.consumer.promised for arc in graph.queued if arc.consumer is not None],
        )
        if now != self._known:
            self._known, self._wanted = now, self._waited_for(graph)
        return stream.lower() in self._wanted

    def _waited_for(self, graph: Graph) -> set[str]:
        found: set[str] = set()
        for outlet, plan in self._results():
            streams = {node.name.lower() for node in plan.walk() if isinstance(node, Source)}
            times = [time for name in streams if (time := _greatest(graph.sources[name])) is not None]
            handover = outlet.producer.operator
            if isinstance(handover, HandoverOperator) and handover.phase is Phase.BOTH:
                times.append(handover.split - 1)  # the old plan is to come to there
            needed = _needed(plan, max(times)) if times else MIN_TICK + 1
            behind = {name for name in streams if _reached(graph.sources[name]) < needed}
            if behind:
                found |= behind & _leading_to(outlet.producer)
        return found


def _needed(plan: Node, greatest: int) -> int:
    """The bound that lets everything out."""
    found = closing_bound(plan, greatest)
    return END_OF_TIME if found is None else found


def _leading_to(node: GraphNode) -> set[str]:
    """The streams that can move what an operator promises, or lets out."""
    found: set[str] = set()
    visited = {node}
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.stream is not None:
            found.add(node.stream.lower())
        inputs = node.inputs
        if isinstance(node.plan, Union):
            least = min(arc.register for arc in inputs)
            inputs = [arc for arc in inputs if arc.register == least]
        fresh = [arc.producer for arc in inputs if arc.producer not in visited]
        visited.update(fresh)
        waiting += fresh
    return found


def _reached(nodes: list[GraphNode]) -> int:
    """How far a stream has come."""
    operator = nodes[0].operator
    assert isinstance(operator, RowIngest)
    return operator.reached()


def _greatest(nodes: list[GraphNode]) -> int | None:
    """The greatest time of a row on time, by any reading of the stream."""
    known = [node.operator.greatest for node in nodes if isinstance(node.operator, RowIngest)]
    return max((time for time in known if time is not None), default=None)
