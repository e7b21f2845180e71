"""The graph of one stage of a plan that is cut (`plan.stages`).

The first stage has the entrances of streams, and whatever is between them and the first exchange, once more: rows are
judged where they are read and come in behind the exchange, but what is promised goes all the way, so that every place
knows it in the same way as if rows came with it. A later stage has, in the place of each exchange that feeds it, an
operator that takes promises from every bucket of the stage before and passes on the least, as Meld does.

What a stage sends on has an outlet for each exchange; the last one's is the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.model.elements import Punctuation
from penstock.operators.operator import Operator
from penstock.operators.relational.meld import MeldOperator
from penstock.operators.state import Pages
from penstock.plan.physical import Physical
from penstock.plan.planner import MARKED
from penstock.runtime.arcs import Outlet
from penstock.runtime.builder import Builder
from penstock.runtime.graph import Graph, GraphNode
from penstock.runtime.marked_growing import grown_over_windows


@dataclass(frozen=True)
class Sender:
    """A node whose output leaves the stage."""

    planned: Physical
    outlet: Outlet


class StageGraph(Graph):
    """The operators of one stage of a plan; with stage 0, of all of it."""

    def __init__(self, planned: Physical, builder: Builder, stage: int = 0, senders: int = 1) -> None:
        """`senders` is how many buckets the stage before has."""
        super().__init__(builder)
        self.planned, self.stage, self.senders = planned, stage, senders
        self.edges: dict[str, GraphNode] = {}
        """By the identity of the node that feeds the stage: whose consumers are given what comes."""
        self.received: list[GraphNode] = []
        """Those of them that stand for a node of another stage."""
        self.sent: list[Sender] = []
        self.result: Outlet | None = None
        if stage in (0, planned.stages):
            self.result = Outlet(self._grown(planned))
            return
        for below in planned.walk():
            inside = below.stage == stage or (stage == 1 and below.stage == 0)
            if inside and below.exchange is not None and below.exchange.stage > stage:
                self.sent.append(Sender(below, Outlet(self._grown(below))))

    def _grown(self, planned: Physical) -> GraphNode:
        """A node and all below it in this stage; consumers come before those that feed them."""
        if planned.algorithm == MARKED:  # parts of a micro-batch come in any order
            return grown_over_windows(self, planned, self._stood_for, lambda q: self._fed(q, 0), in_order=False)
        made = self._add(planned, self.builder.operator(planned), planned.identity)
        feeds = planned.exchange is not None and planned.exchange.stage == self.stage
        if feeds:
            self.edges[planned.identity] = made
        for port in range(len(planned.inputs)):
            self.join(self._fed(planned, port), made, port)
        return made

    def _stood_for(self, planned: Physical, operator: Operator, nodes: int) -> GraphNode:
        return self._add(planned, operator, planned.identity)

    def _fed(self, planned: Physical, port: int) -> GraphNode:
        """What feeds an input of a node: the node below, or what stands for it if that is in another stage."""
        below = planned.inputs[port]
        cut = below.exchange is not None and below.exchange.stage == self.stage > 1
        return self._stand_in(below, f"{planned.identity}<{port}") if cut else self._grown(below)

    def _stand_in(self, planned: Physical, identity: str) -> GraphNode:
        """A node in the place of one of another stage, known by whom it feeds: what is below may be worded anew."""
        operator: Operator = MeldOperator(planned.node.schema, self.senders)
        made = GraphNode(planned.node, operator, identity)
        self.nodes.append(made)
        self.executor.touch(made)
        self.received.append(made)
        self.edges[planned.identity] = made
        return made

    def promise(self, port: str, promises: Sequence[tuple[int, Punctuation]]) -> None:
        """Take what buckets of the stage before promise, each by its number, of what an exchange brings."""
        node = self.edges[port]
        meld = node.operator
        assert isinstance(meld, MeldOperator)
        self.emit(node, meld.punctuate_all(promises))

    def attach(self, pages: list[Pages]) -> None:
        """Use these pages, one set per operator in the order of `nodes`."""
        for node, own in zip(self.nodes, pages, strict=True):
            node.operator.attach(own)
