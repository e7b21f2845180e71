"""The query graph: operators joined by arcs, run depth-first (Stream Mill, sections 2 and 3).

A cycle has two steps: take one output of the current operator, then select the next operator: forward to the consumer
if there was one, back along the path if the operator has nothing more to give. So an element goes as far as it can
before the next one is looked at, nothing waits on an arc, and of an operator that gives very much at one bound only a
portion is held at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.errors import CheckpointError, InternalError
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, linear
from penstock.model.lives import Lives
from penstock.model.time import END_OF_TIME
from penstock.operators.operator import Operator, Output, Outputs, Rejected
from penstock.operators.progress.ingest import BatchIngest
from penstock.operators.progress.promises import Said
from penstock.operators.state import (
    MemoryPages,
    Pages,
    check_kind,
    open_page,
    open_snapshot,
    plain_page,
    seal_snapshot,
)
from penstock.plan.fingerprint import describe
from penstock.plan.nodes import Node, Source
from penstock.plan.physical import Physical
from penstock.runtime.builder import Builder
from penstock.runtime.taking_up import STATELESS, check_snapshot

Element = Batch | Punctuation
Side = Callable[[str, str | None, Rejected], None]


def _nobody(stream: str, operator: str | None, rejected: Rejected) -> None:
    raise InternalError("Rows that leave the graph are kept nowhere.", where=operator or stream)


@dataclass
class Statistics:
    """What has gone through an operator."""

    rows_in: int = 0
    rows_out: int = 0
    punctuations_in: int = 0
    punctuations_out: int = 0
    failed: int = 0


@dataclass
class GraphNode:
    """An operator and where its output goes."""

    plan: Node
    operator: Operator
    identity: str
    """What its state is kept under."""
    consumer: tuple[GraphNode, int] | None = None
    stream: str | None = None
    statistics: Statistics = field(default_factory=Statistics)

    @property
    def label(self) -> str:
        """What the operator does, in words."""
        return self.plan.label

    def take_in(self, port: int, element: Element) -> Outputs:
        """Give the operator an element of an input."""
        if isinstance(element, Batch):
            self.statistics.rows_in += len(element)
            return self.operator.process(port, element)
        self.statistics.punctuations_in += 1
        return self.operator.punctuate(port, element)


class QueryGraph:
    """The running form of one plan."""

    def __init__(self, planned: Physical, builder: Builder) -> None:
        """Build the operators of a physical plan."""
        self.plan, self.builder = planned.node, builder
        self.nodes: list[GraphNode] = []
        self.sources: dict[str, list[GraphNode]] = {}
        self.side: Side = _nobody
        """Who is given rows that leave the graph, with their stream and the operator that failed on them."""
        self.outputs: deque[Element] = deque()
        self._add(planned, None)

    def _add(self, planned: Physical, consumer: tuple[GraphNode, int] | None) -> None:
        node = planned.node
        if not node.takes_revisions and not all(i.properties.insert_only for i in node.inputs):
            raise InternalError("An operator that takes inserts only would be given revisions.", where=node.label)
        made = GraphNode(node, self.builder.operator(planned), planned.identity, consumer)
        self.nodes.append(made)
        if isinstance(node, Source):
            made.stream = node.name
            readings = self.sources.setdefault(node.name.lower(), [])
            # A reading that judges rows by their time speaks for the stream before one that only numbers them.
            readings.insert(0 if not node.by_arrival else len(readings), made)
        for port, below in enumerate(planned.inputs):
            self._add(below, (made, port))

    def push(self, stream: str, element: Element) -> None:
        """Hand an element to a stream and run until nothing is left to do."""
        for _ in self.steps(stream, element):
            pass

    def steps(self, stream: str, element: Element) -> Iterator[None]:
        """As `push`, with a halt whenever something has come out, so that very much need not be held at once.

        Between two halts the state is whole, and what is not run on comes with the next bound. Where the plan reads a
        stream twice to number its rows, their order counts, so they are handed over one by one.
        """
        readings = self.sources[stream.lower()]
        elements = [element]
        if isinstance(element, Batch) and sum(isinstance(n.plan, Source) and n.plan.by_arrival for n in readings) > 1:
            elements = [element.part(at, at + 1) for at in range(len(element))]
        for part in elements:
            for node in readings:
                yield from self._run(node, iter(node.take_in(0, part)))

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
        for _ in self._run(node, iter(outputs)):
            pass

    def feedback(self, bound: int) -> None:
        """The consumer of the result no longer needs what ends before `bound`: tell every operator, the last first."""
        told: dict[int, int] = {}
        for node in self.nodes:  # consumers come before those that feed them
            wanted = bound if node.consumer is None else told.get(id(node.consumer[0]))
            if wanted is not None:
                passed_on = node.operator.feedback(wanted)
                if passed_on is not None:
                    told[id(node)] = passed_on

    def hand_on(self, node: GraphNode, element: Element) -> None:
        """Give an element to whatever follows a node, as the node itself would, and run; the node does not count it."""
        if node.consumer is None:
            self.outputs.append(element)
        else:
            consumer, port = node.consumer
            for _ in self._run(consumer, iter(consumer.take_in(port, element))):
                pass

    def reject(self, node: GraphNode, rejected: Rejected) -> None:
        """Take rows out of the graph.

        A stream that the plan reads twice rejects the same rows twice; the first reading speaks for both. Operators
        that fail on a row each speak for themselves.
        """
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

    def drain(self) -> list[Element]:
        """What has come out since the last call, in order."""
        taken = list(self.outputs)
        self.outputs.clear()
        return taken

    def _run(self, node: GraphNode, outputs: Iterator[Output]) -> Iterator[None]:
        """Take the outputs of a node as far as they go, one after the other; a halt whenever something has come out."""
        path = [(node, outputs)]
        while path:
            current, outputs = path[-1]
            output = next(outputs, None)
            if output is None:
                path.pop()
                continue
            if isinstance(output, Rejected):
                self.reject(current, output)
                continue
            if isinstance(output, Batch):
                current.statistics.rows_out += len(output)
            else:
                current.statistics.punctuations_out += 1
            if current.consumer is None:
                self.outputs.append(output)
                yield
            else:
                consumer, port = current.consumer
                path.append((consumer, iter(consumer.take_in(port, output))))

    # State

    def attach(self, pages: list[Pages]) -> None:
        """Use these pages, one set per operator in the order of `nodes`."""
        for node, own in zip(self.nodes, pages, strict=True):
            node.operator.attach(own)

    def describe(self) -> dict[str, Any]:
        """What the state depends on: the query, and the kind and version of each operator's pages."""
        kinds = {n.identity: [n.operator.kind, n.operator.version] for n in self.nodes}
        return {"query": describe(self.plan, self.builder.catalog), "kinds": kinds}

    def snapshot(self) -> bytes:
        """The state of every operator, and what has come out and not been taken, as plain data.

        Take it between elements; nothing is under way then.
        """
        operators = {}
        for node in self.nodes:
            operator, pages = node.operator, node.operator.pages
            keys = pages.keys()
            plain = {key: plain_page(operator, key, pages.get(key), node.label) for key in keys}
            operators[node.identity] = {"kind": operator.kind, "version": operator.version, "pages": plain}
        content = {
            "query": describe(self.plan, self.builder.catalog),
            "operators": operators,
            "outputs": [_plain_output(output) for output in self.outputs],
        }
        return seal_snapshot(content, self.plan.label)

    def restore(self, snapshot: bytes) -> None:
        """Take up the state of a snapshot of the same query, all of it or, with an error, nothing."""
        saved = open_snapshot(snapshot)
        own = {node.identity: node.operator.kind for node in self.nodes}
        check_snapshot(saved, describe(self.plan, self.builder.catalog), own)
        held = [self._held(saved.get("operators"), node) for node in self.nodes]
        outputs = [self._output(output) for output in saved.get("outputs", ())]
        self.attach([MemoryPages(pages) for pages in held])
        self.outputs.clear()
        self.outputs.extend(outputs)

    def _output(self, saved: Any) -> Element:
        """An output that had come and not been taken."""
        try:
            kind, content, *lives = saved
            if kind == "punctuation":
                return Punctuation(*content)
            return Batch(self.plan.schema, **{kind: content}, lives=Lives(*lives) if lives else None)
        except (TypeError, ValueError) as error:
            raise CheckpointError(
                "The snapshot holds an output that is none.", got=repr(error), hint="use another copy"
            ) from None

    @staticmethod
    def _held(operators: Any, node: GraphNode) -> dict[str, Any]:
        """The pages of a node in a snapshot."""
        if node.operator.kind == STATELESS and isinstance(operators, dict) and node.identity not in operators:
            return {}  # it was not in the plan then
        try:
            saved = operators[node.identity]
            kind, version, pages = saved["kind"], saved["version"], dict(saved["pages"])
        except (TypeError, ValueError, LookupError) as error:
            raise CheckpointError(
                "The snapshot lacks the state of an operator.",
                where=node.label,
                got=repr(error),
                hint="use another copy",
            ) from None
        check_kind(node.operator, kind, version, node.label)
        return {
            key: open_page(node.operator, key, kind, version, data, where=node.label) for key, data in pages.items()
        }


def _plain_output(output: Element) -> tuple[Any, ...]:
    """Its kind and what is in it; of a batch with lives its ends and old ends as well."""
    if isinstance(output, Punctuation):
        return "punctuation", (output.bounds, output.constants)
    return ("table", output.table) if output.columnar else ("rows", list(output.rows))
