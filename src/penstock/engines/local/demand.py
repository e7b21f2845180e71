"""Which idle sources are asked how far they have come: those for which something waits (Stream Mill, section 4).

A stream that has nothing in its turn is asked for a promise, or the clock for it, only where a greater bound could let
something out. Two things say so:

- What a query has taken and not given yet, it gives by the bounds that close it (`plan.closing`), one for each stream,
  which follow from the greatest times of the rows so far. A stream that has come so far has nothing more to say. Where
  there are no such bounds, any is waited for. Before its first row a query waits for a first word of each stream.
- From such a query control goes back through the graph as backtracking does: past a union to the inputs that were
  promised least, since no other can move what it promises; past any other operator to all of its inputs, since a join
  lets rows of a side go by the promises of the other, whichever has come further.

Where a query is replaced, streams are waited for until its old plan has reached the split.

Asked once in a turn, a source that does not help is left alone until its next turn; one that does may make another
stream the one that is behind, which is asked in its turn. What waits is looked at again when rows have come, or
promises have moved, so that asking nobody costs next to nothing.

A source speaks of its stream's time. Where rows are only numbered as they arrive, or windows are on another attribute,
a query has no use for that, and its streams are not asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.migration.handover import HandoverOperator, Phase
from penstock.operators.progress.ingest import RowIngest
from penstock.operators.progress.several_ingest import SeveralByRow
from penstock.plan.closing import Closing
from penstock.plan.nodes import Node, Union
from penstock.plan.progressing import read_by_time
from penstock.runtime.arcs import Outlet
from penstock.runtime.graph import Graph
from penstock.runtime.graph_node import GraphNode

Results = Callable[[], Iterable[tuple[Outlet, Node]]]
"""Where the results of each query come out, with its plan."""


class _Waiting:
    """What one query waits for."""

    def __init__(self, plan: Node) -> None:
        self.plan, self._closing = plan, Closing(plan)
        self._streams = read_by_time(plan)

    def needed(self, graph: Graph, until: int | None) -> dict[str, int]:
        """The bounds on streams that let everything out; of one of which none is waited for, a first word.

        The query is to come `until` there, whether rows have or not.
        """
        streams = self._streams
        newest = {name: time for name in streams if (time := _greatest(graph.sources[name])) is not None}
        if until is not None:
            newest = {name: max(newest.get(name, until), until) for name in streams}
        found = self._closing.bounds(newest) if newest else {}
        if found is None:
            return dict.fromkeys(streams, END_OF_TIME)
        return {name: found.get(name, MIN_TICK + 1) for name in streams}


class Demand:
    """The streams of a running graph that somebody waits for."""

    def __init__(self, graph: Callable[[], Graph], results: Results) -> None:
        """Of whichever graph is run, and whichever queries."""
        self._graph, self._results = graph, results
        self.is_endless = False
        """Whether any promise is waited for: its reader wants to see them, or does not know how far rows went."""
        self._known: Any = None
        self._wanted: set[str] = set()
        self._waiting: dict[int, _Waiting] = {}
        """By the queries' plans, each of which is kept here."""

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
        results = list(self._results())
        self._waiting = {id(plan): self._waiting.get(id(plan)) or _Waiting(plan) for _, plan in results}
        for outlet, plan in results:
            handover, until = outlet.producer.operator, None
            if isinstance(handover, HandoverOperator) and handover.phase is Phase.BOTH:
                until = handover.split - 1  # the old plan is to come to there
            needed = self._waiting[id(plan)].needed(graph, until)
            for entrance in _leading_to(outlet.producer):
                stream = str(entrance.stream).lower()
                if stream in needed and _ingest(entrance).reached() < _of_use(entrance, needed[stream]):
                    found.add(stream)
        return found


def _of_use(entrance: GraphNode, needed: int) -> int:
    """The first bound, from one that is needed on, that an entrance passes on: a multiple of a step."""
    operator = _ingest(entrance)
    step, origin = operator.step, operator.origin
    if isinstance(operator, SeveralByRow):
        step, origin = operator.wanted.get(str(operator.schema.time), (step, origin))
    return needed if needed == END_OF_TIME else needed + (origin - needed) % step


def _leading_to(node: GraphNode) -> list[GraphNode]:
    """The entrances of the streams that can move what an operator promises, or lets out."""
    found: list[GraphNode] = []
    visited = {node}
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.stream is not None:
            found.append(node)
        inputs = node.inputs
        if isinstance(node.plan, Union):
            least = min(arc.register for arc in inputs)
            inputs = [arc for arc in inputs if arc.register == least]
        fresh = [arc.producer for arc in inputs if arc.producer not in visited]
        visited.update(fresh)
        waiting += fresh
    return found


def _ingest(node: GraphNode) -> RowIngest:
    assert isinstance(node.operator, RowIngest)
    return node.operator


def _reached(nodes: list[GraphNode]) -> int:
    """How far a stream has come."""
    return _ingest(nodes[0]).reached()


def _greatest(nodes: list[GraphNode]) -> int | None:
    """The greatest time of a row on time, by any reading of the stream."""
    known = [node.operator.greatest for node in nodes if isinstance(node.operator, RowIngest)]
    return max((time for time in known if time is not None), default=None)
