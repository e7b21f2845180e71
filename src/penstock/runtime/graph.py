"""The query graph: operators joined by arcs (Stream Mill, sections 2 and 3).

Which operator runs next is a table (`state_table`), made of the graph by a strategy; `executor` runs the graph by it.
By default that is depth-first: an element goes as far as it can before the next one is looked at, nothing waits on an
arc but results that nobody has asked for, and of an operator that gives very much at one bound only a portion is held
at a time. Whatever the strategy, what is handed to the graph has been run to its end when the last step was taken.

The graph of one plan is a tree, with the identities of the plan. `shared_graph` joins the plans of several queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.errors import InternalError
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, linear
from penstock.model.time import END_OF_TIME
from penstock.operators.operator import Operator, Outputs, Rejected
from penstock.operators.progress.ingest import BatchIngest, RowIngest
from penstock.operators.progress.promises import Said
from penstock.operators.state import MemoryPages, Pages, open_snapshot, seal_snapshot
from penstock.plan.fingerprint import describe
from penstock.plan.identity import identities
from penstock.plan.nodes import Conflate, Source
from penstock.plan.physical import Physical
from penstock.plan.planner import MARKED
from penstock.plan.repeated import repeated
from penstock.runtime.arcs import Arc, Given, Outlet, QueuedArc, Result
from penstock.runtime.builder import Builder
from penstock.runtime.executor import Executor
from penstock.runtime.graph_node import GraphNode, Statistics
from penstock.runtime.graph_pages import held_elements, held_pages, plain_elements, plain_pages
from penstock.runtime.kept_positions import kept_positions
from penstock.runtime.marked_growing import grown_over_windows
from penstock.runtime.pacing import Pacing
from penstock.runtime.sampling import Clocks, Trace
from penstock.runtime.scheduled import Scheduled
from penstock.runtime.taking_up import check_snapshot

__all__ = ["Graph", "GraphNode", "QueryGraph", "Side", "Statistics"]
Side = Callable[[str, str | None, Rejected], None]


def _nobody(stream: str, operator: str | None, rejected: Rejected) -> None:
    raise InternalError("Rows that leave the graph are kept nowhere.", where=operator or stream)


class Graph(Scheduled):
    """Operators joined by arcs."""

    def __init__(self, builder: Builder) -> None:
        """No operators yet."""
        self.builder = builder
        self.sources: dict[str, list[GraphNode]] = {}
        """The readings of each stream; the first one speaks for the stream."""
        self.queued: list[QueuedArc] = []
        """The arcs with queues of their own, those that are nearer to the results first."""
        self.clock: Callable[[], int] = lambda: 0
        """What time it is, in microseconds, for queues."""
        self.side: Side = _nobody
        """Who is given rows that leave the graph, with their stream and the operator that failed on them."""
        self.node_kind: type[GraphNode] = GraphNode
        """What operators are made into."""
        self.clocks = Clocks()
        """By which it is measured how long operators take and elements wait."""
        super().__init__(Executor(self.reject, lambda: self.clock()))  # noqa: PLW0108 - whichever is the clock then

    def _add(self, planned: Physical, operator: Operator, identity: str) -> GraphNode:
        """A node of its own, without arcs."""
        node = planned.node
        if not node.takes_revisions and not all(i.properties.insert_only for i in node.inputs):
            raise InternalError("An operator that takes inserts only would be given revisions.", where=node.label)
        made = self.node_kind(node, operator, identity, how=planned.how)
        made.measure(self.clocks)
        self.nodes.append(made)
        self.executor.touch(made)
        if isinstance(node, Source):
            made.stream = node.name
            readings = self.sources.setdefault(node.name.lower(), [])
            # A reading that judges rows by their time speaks for the stream before one that only numbers them.
            readings.insert(0 if not node.by_arrival else len(readings), made)
        return made

    def measure(self, clocks: Clocks) -> None:
        """Measure by these clocks from now on, and anew."""
        self.clocks = clocks
        for node in self.nodes:
            node.measure(clocks)

    def join(self, producer: GraphNode, consumer: GraphNode, port: int) -> None:
        """An arc between two nodes; into a conflate, one with a queue."""
        plan = consumer.plan
        if isinstance(plan, Conflate):
            pacing = Pacing(plan.max_staleness, plan.budget)
            arc = QueuedArc(producer, consumer, port, pacing)
            consumer.inputs.append(arc)
            self.queued = [each for node in self.nodes for each in node.inputs if isinstance(each, QueuedArc)]
        else:
            consumer.inputs.append(Arc(producer, consumer, port))
        self.executor.touch(producer, consumer)

    # Running

    def admit(self, stream: str, elements: Sequence[Given]) -> None:
        """More has come at an entrance while something is under way; it has its turn as the table says."""
        for node in self.sources[stream.lower()]:
            node.come_together(elements, self.clocks.stopwatch())
            self.executor.wake(node)

    def push(self, stream: str, element: Given) -> None:
        """Hand an element to a stream and run until nothing is left to do."""
        for _ in self.steps(stream, element):
            pass

    def steps(self, stream: str, element: Given) -> Iterator[None]:
        """As `push`, with a halt whenever something has come out, so that very much need not be held at once.

        Between two halts the state is whole, and what is not run on comes with the next bound. Where the plan reads a
        stream twice to number its rows, their order counts, so they are handed over one by one.
        """
        elements = [element]
        if isinstance(element, Batch) and self._is_numbered_twice(stream):
            elements = [element.part(at, at + 1) for at in range(len(element))]
        for part in elements:
            for node in list(self.sources[stream.lower()]):
                if self.executor.unsettled:
                    yield from self._settle()
                if node.is_traced(part):
                    node.follow(Trace(self.clocks.stopwatch()))
                yield from self.executor.begin(node, node.take_in(0, part))

    def burst(self, stream: str, elements: Sequence[Given]) -> Iterator[None]:
        """As `steps` for several elements that wait at an entrance: the strategy decides how they go on."""
        if self._is_numbered_twice(stream):
            for element in elements:
                yield from self.steps(stream, element)
            return
        if self.executor.unsettled:
            yield from self._settle()
        self.admit(stream, elements)
        yield from self.executor.rest()

    def _is_numbered_twice(self, stream: str) -> bool:
        readings = self.sources[stream.lower()]
        return sum(isinstance(node.plan, Source) and node.plan.by_arrival for node in readings) > 1

    def announce(self, stream: str, summary: object) -> None:
        """Tell a stream without order inside its batches what the batch shows whose rows come next."""
        for node in self.sources[stream.lower()]:
            assert isinstance(node.operator, BatchIngest)
            node.operator.announce(summary)

    def advance(self, stream: str, summary: object, said: Sequence[Said] = ()) -> None:
        """Tell a stream without order inside its batches that a batch is complete, and what it promised of groups."""
        for node in self.sources[stream.lower()]:
            assert isinstance(node.operator, BatchIngest)
            self.emit(node, node.operator.advance(summary, said))

    def emit(self, node: GraphNode, outputs: Outputs) -> None:
        """Pass on what a node gives by itself and run until nothing is left to do."""
        if self.executor.unsettled:
            for _ in self._settle():
                pass
        for _ in self.executor.begin(node, outputs):
            pass

    def tick(self, now: int) -> Iterator[None]:
        """Tell operators that ask for it what time it is, with a halt whenever something has come out."""
        for node in [node for node in self.nodes if node.operator.is_ticked]:
            if self.executor.unsettled:
                yield from self._settle()
            yield from self.executor.begin(node, node.operator.tick(now))

    def release(self, arc: QueuedArc, most: int) -> Iterator[None]:
        """Let at most so many rows of a queue go on, with a halt whenever something has come out."""
        assert arc.consumer is not None
        if self.executor.unsettled:
            yield from self._settle()
        yield from self.executor.begin(arc.consumer, arc.operator.release(self.clock(), most))

    def hand_on(self, node: GraphNode, element: Given) -> None:
        """Give an element to whatever follows a node, as the node itself would, and run; the node does not count it."""
        if self.executor.unsettled:
            for _ in self._settle():
                pass
        executor = self.executor
        promises = element.__class__ is Punctuation
        for _ in executor.promise(node, element) if promises else executor.hand_on(node, node.hold(element)):  # type: ignore[arg-type]
            pass

    def reject(self, node: GraphNode, rejected: Rejected) -> None:
        """Take rows out of the graph.

        A stream that the plan reads twice rejects the same rows twice; the first reading speaks for both. Operators
        that fail on a row each speak for themselves.
        """
        if rejected.batch.origin is not None:
            rejected = replace(rejected, batch=rejected.batch.complete())
        if rejected.kind == "failed" or node.stream is None:
            rejected = replace(rejected, kind="failed")
            node.statistics.failed += len(rejected.batch)
            names = dict.fromkeys(n.name for n in node.plan.walk() if isinstance(n, Source))
            self.side(", ".join(names), node.label, rejected)
        elif self.sources[node.stream.lower()][0] is node:
            self.side(node.stream, None, rejected)

    def close(self) -> None:
        """End every stream, so that every window up to the last row's is put out."""
        for name in self.sources:
            self.end(name)

    def end(self, stream: str) -> None:
        """End one stream: nothing more of it comes, so it holds back no other."""
        for _ in self.end_steps(stream):
            pass

    def end_steps(self, stream: str) -> Iterator[None]:
        """As `end`, with a halt whenever something has come out."""
        time = self.sources[stream.lower()][0].operator.schema.time
        assert time is not None
        return self.steps(stream, linear(time, END_OF_TIME))

    # What consumers say

    def _tell(self, arc: Arc, bound: int) -> None:
        """A consumer no longer needs what ends before `bound`: those that feed it hear what all consumers can miss."""
        arc.needed = bound if arc.needed is None else max(arc.needed, bound)
        node = arc.producer
        told = [each.needed for each in node.arcs]
        known = [each for each in told if each is not None]
        if len(known) < len(told):
            return
        passed_on = node.operator.feedback(min(known))
        if passed_on is not None:
            for below in node.inputs:
                self._tell(below, passed_on)


class QueryGraph(Graph):
    """The running form of one plan."""

    def __init__(self, planned: Physical, builder: Builder, *, shares: bool = False) -> None:
        """Build the operators of a physical plan; one for all sub-plans that are the same, if it `shares` them."""
        super().__init__(builder)
        self.plan = planned.node
        self._keys = repeated(planned) if shares else {}
        self._known: dict[str, GraphNode] = {}
        self._walked: list[GraphNode] = []
        """What runs each node of the plan, in the order in which it walks."""
        self._identities = [each.identity for each in planned.walk()]
        self.outlet = Outlet(self.grown(planned))
        self.knows_greatest = True
        """Whether entrances know the greatest times of all rows so far; snapshots of earlier releases did not say."""

    def grown(self, planned: Physical) -> GraphNode:
        """A node and all below it; consumers come before those that feed them."""
        key = self._keys.get(id(planned), "")
        found = self._known.get(key)
        if found is not None:
            self._walk_again(found)
            return found
        if planned.algorithm == MARKED:
            return grown_over_windows(self, planned, self._stood_for, lambda q: self.grown(q.inputs[0]), in_order=True)
        made = self.add(planned, self.builder.operator(planned), planned.identity)
        if key:
            self._known[key] = made
        for port, below in enumerate(planned.inputs):
            self.join(self.grown(below), made, port)
        return made

    def add(self, planned: Physical, operator: Operator, identity: str, *, stands_for: int = 1) -> GraphNode:
        """A node of its own, which runs a node of the plan, or so many of them one below the other."""
        made = self._add(planned, operator, identity)
        self._walked += [made] * stands_for
        return made

    def _stood_for(self, planned: Physical, operator: Operator, nodes: int) -> GraphNode:
        return self.add(planned, operator, planned.identity, stands_for=nodes)

    @property
    def walked(self) -> list[GraphNode]:
        """What runs each node of the plan, in the order in which it walks."""
        return list(self._walked)

    def _walk_again(self, node: GraphNode) -> None:
        self._walked.append(node)
        for arc in node.inputs:
            self._walk_again(arc.producer)

    def _by_identity(self) -> dict[str, GraphNode]:
        """What runs each node of the plan: state is kept of all of them, whether they share it or not."""
        return dict(zip(self._identities, self._walked, strict=True))

    def drain(self) -> list[Result]:
        """What has come out since the last call, in order."""
        self.executor.waiting.clear()
        return self.outlet.drain()

    def feedback(self, bound: int) -> None:
        """The consumer of the result no longer needs what ends before `bound`: tell every operator, the last first."""
        self._tell(self.outlet, bound)

    # State

    def attach(self, pages: list[Pages]) -> None:
        """Use these pages, one set per operator in the order of `nodes`."""
        for node, own in zip(self.nodes, pages, strict=True):
            node.operator.attach(own)

    def describe(self) -> dict[str, Any]:
        """What the state depends on: the query, and the kind and version of each operator's pages."""
        kinds = {identity: [n.operator.kind, n.operator.version] for identity, n in self._by_identity().items()}
        return {"query": self._described(), "kinds": kinds}

    def _described(self) -> dict[str, Any]:
        """The query, its operators by the identities that they go by here."""
        known = zip(identities(self.plan), self._identities, strict=True)
        return describe(self.plan, self.builder.catalog, [replace(k, identity=own) for k, own in known])

    def snapshot(self, positions: Mapping[str, Any] | None = None) -> bytes:
        """The state of every operator, and what has come out and not been taken, as plain data.

        `positions` are those of the sources, which belong to it.

        Take it between elements; nothing is under way then.
        """
        content = {
            "query": self._described(),
            "operators": {own: plain_pages(n.operator, n.label) for own, n in self._by_identity().items()},
            "outputs": plain_elements(self.outlet.producer.buffer.elements),
            "greatest": greatest_of(self._by_identity()),
        }
        return seal_snapshot(content | kept_positions(positions), self.plan.label)

    def restore(self, snapshot: bytes) -> None:
        """Take up the state of a snapshot of the same query, all of it or, with an error, nothing."""
        saved = open_snapshot(snapshot)
        own = {identity: node.operator.kind for identity, node in self._by_identity().items()}
        check_snapshot(saved, self._described(), own)
        pages = [held_pages(saved.get("operators"), n.identity, n.operator, n.label) for n in self.nodes]
        outputs = held_elements(saved.get("outputs", ()), self.plan.schema)
        self.attach([MemoryPages(own) for own in pages])
        self.knows_greatest = "greatest" in saved
        for identity, node in self._by_identity().items():
            if isinstance(node.operator, RowIngest):
                node.operator.greatest = saved.get("greatest", {}).get(identity)
        self.outlet.drain()
        for output in outputs:
            self.outlet.producer.hold(output)


def greatest_of(nodes: Mapping[str, GraphNode]) -> dict[str, int | None]:
    """The greatest times of rows that entrances have seen, by identity."""
    found = {identity: node.operator for identity, node in nodes.items()}
    return {identity: each.greatest for identity, each in found.items() if isinstance(each, RowIngest)}
