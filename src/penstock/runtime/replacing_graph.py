"""A graph of many queries in which a running query can be replaced by another one.

To replace is to edit the graph. The new plan grows beside the old one, over the operators that are there already: what
says the same over the same inputs is shared, and only what differs is new. Above both stands a *handover*
(`operators.migration.handover`), of which the query's results are taken from then on. When the old plan has said all
that it had to say, its arc is cut, and with it goes whatever nobody else takes from, with its state; when the new one
has promised as much as was promised, the handover goes too.

The new plan's own operators are on trial until the handover is past undoing: one that raises an error does not end the
run, the replacement is undone and the old plan goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.migration.handover import NEW, OLD, HandoverOperator, Phase
from penstock.operators.operator import Output, Outputs
from penstock.operators.progress.ingest import RowIngest
from penstock.plan.completeness import last_incomplete, never_complete
from penstock.plan.handover_node import Handover
from penstock.plan.identity import digest
from penstock.plan.kept_promises import are_groups_kept, attributes_apart, most_behind
from penstock.plan.nodes import (
    AlterLifetime,
    Distinct,
    Join,
    Lookup,
    Merge,
    Node,
    Project,
    RowNumber,
    Select,
    Source,
    Union,
    Unnest,
    WindowAggregate,
)
from penstock.plan.physical import Physical, Runs
from penstock.plan.reach import Endless, plan_reach
from penstock.plan.windows import SlidingWindow
from penstock.runtime.arcs import Given, Outlet
from penstock.runtime.builder import Builder
from penstock.runtime.graph_node import GraphNode
from penstock.runtime.shared_graph import SharedGraph

Failures = list[tuple[GraphNode, Exception]]
"""Operators, and the errors that they have raised."""


@dataclass(eq=False)
class TrialNode(GraphNode):
    """An operator of a new plan; while it is on trial its errors are noted and end nothing."""

    failures: Failures | None = None
    """What went wrong in the new plan; None if it is not on trial any more."""

    def take_in(self, port: int, element: Given) -> Outputs:
        """Give the operator an element of an input."""
        if self.failures is None:
            return super().take_in(port, element)
        return self._tried(port, element, self.failures)

    def _tried(self, port: int, element: Given, failures: Failures) -> Iterator[Output]:
        if failures:
            return  # what comes of it is not asked for any more
        try:
            yield from super().take_in(port, element)
        except Exception as error:
            failures.append((self, error))


@dataclass(frozen=True)
class Freed:
    """Operators that have left the graph."""

    nodes: tuple[GraphNode, ...] = ()


class ReplacingGraph(SharedGraph):
    """The running form of many plans, each of which may be replaced."""

    def __init__(self, builder: Builder) -> None:
        """No queries yet."""
        super().__init__(builder)
        self.handovers: dict[str, GraphNode] = {}
        """Where a query is handed over, or was and the new plan has not promised as much yet."""
        self._trials: dict[str, Failures] = {}

    # When

    def split_of(self, name: str, old: Physical, new: Physical) -> int | Endless:
        """The time from which on a new plan is right although it has seen nothing that only it would need.

        No result that starts there has been given, nothing was promised beyond it, and it is one at which results of
        the new plan can start.
        """
        endless = never_complete(new, self._seen) or never_complete(old, self._seen)
        lag, promised = most_behind(old.node, new.node), self._promised_by(old.node, new.node)
        if endless is not None:
            return endless
        if isinstance(lag, Endless):
            return lag
        complete, given = last_incomplete(new, self._seen), last_incomplete(old, self._seen)
        assert complete is not None
        assert given is not None
        outlet = self.outlets[name]
        least = max(_next(complete), _next(given), outlet.register, outlet.complete_from)
        if promised > MIN_TICK:
            least = max(least, promised + lag)
        split = least if least == MIN_TICK else next_start(new.node, least)
        return Endless("its results begin beyond all time", new.node.label) if split >= END_OF_TIME else split

    def _promised_by(self, old: Node, new: Node) -> int:
        """The last time of which anything was promised that the new plan might not keep, of columns or of groups."""
        streams = {node.name.lower() for node in old.walk() if isinstance(node, Source)}
        found = MIN_TICK
        for stream in streams if attributes_apart(old, new) or not are_groups_kept(old, new) else ():
            entrance = self.sources[stream][0].operator
            assert isinstance(entrance, RowIngest)
            frontier = entrance.frontier()
            bounds = [bound for each in frontier or () for _, bound in each.bounds]
            found = max(found, entrance.reached(), *bounds)
        reach = [each for each in plan_reach(old).values() if isinstance(each, int)]
        return found if found == MIN_TICK else found + max(reach, default=0) + 1

    def shares(self, planned: Physical) -> tuple[list[Physical], list[Physical]]:
        """The nodes of a plan that are at work already, and those that would be new."""
        there: list[Physical] = []
        fresh: list[Physical] = []

        def visit(each: Physical) -> None:
            if self._key(each) in self._known or self._families.serving(each) is not None:
                there.append(each)
                return
            fresh.append(each)
            for below in each.inputs:
                visit(below)

        visit(planned)
        self._keys.clear()
        return there, fresh

    # To replace

    def hand_over(self, name: str, old: Physical, new: Physical, split: int, *, at_once: bool = False) -> None:
        """Let a new plan take over from the old one of a query at a time, or at once."""
        before = set(self.nodes)
        outlet = self.outlets[name]
        self._families.want(new.walk())
        failures: Failures = []
        self.node_kind = TrialNode
        try:
            root = self._grown(new)
        finally:
            self.node_kind = GraphNode
        for node in self.nodes:
            if node not in before and isinstance(node, TrialNode) and node.stream is None:
                node.failures = failures
        self._trials[name] = failures
        left, prior = outlet.drain(), self.handovers.get(name)
        former = outlet.producer if prior is None else prior.inputs[0].producer
        outlet.cut()
        if prior is not None:  # what was said of times before that is out
            split = max(split, _operator(prior).spoken_from)
        made = self._handover(name, old, new, split, outlet.register)
        self.join(former, made, OLD)
        self.join(root, made, NEW)
        if prior is not None:  # the last one, which has one plan left, and has not promised as much as was promised
            _operator(made).speak_from(_operator(prior).spoken_from)
            self._let_go(prior)
        self._taken_at(made, outlet, left)
        self._keys.clear()
        fresh = [node for node in self.nodes if node not in before]
        for node in dict.fromkeys([former, root, *fresh]):
            self._require(node)
        for arc in [arc for node in fresh for arc in node.inputs]:
            self._catch_up(arc)
        if at_once:
            operator = made.operator
            assert isinstance(operator, HandoverOperator)
            self.emit(made, operator.take_over())

    def _handover(self, name: str, old: Physical, new: Physical, split: int, promised: int = MIN_TICK) -> GraphNode:
        plan = Handover(old.node, new.node, split)
        operator = HandoverOperator(old.node.schema, new.node.schema, split, promised)
        identity = digest(["handover", name, self._key(old), self._key(new), split])
        planned = Physical(
            plan, identity, (old, new), Runs.IN_PROCESS, "", "the old plan until then, the new one since"
        )
        made = self._add(planned, operator, identity)
        self.handovers[name] = made
        return made

    def _taken_at(self, producer: GraphNode, former: Outlet, left: list[Any]) -> None:
        """Results of a query are taken from another operator from now on, after those that nobody has taken yet."""
        made = Outlet(producer, former.name, former.complete_from)
        made.is_passed, made.register = former.is_passed, former.register
        producer.buffer.elements.extend(left)
        self.outlets[former.name] = made
        self.executor.touch(producer)
        if left:
            self.executor.waiting.append(made)

    # While it goes on

    def phase(self, name: str) -> Phase | None:
        """Who speaks for a query; None if there is no handover."""
        node = self.handovers.get(name)
        return None if node is None else _operator(node).phase

    def is_begun(self, name: str) -> bool:
        """Whether results of the new plan are out."""
        return _operator(self.handovers[name]).has_begun

    def failure(self, name: str) -> tuple[GraphNode, Exception] | None:
        """What went wrong in the new plan, and in which operator."""
        failures = self._trials.get(name)
        return failures[0] if failures else None

    def let_new_out(self) -> None:
        """Let results of new plans out that have waited for those of the old ones."""
        for name, node in list(self.handovers.items()):
            operator = _operator(node)
            if operator.is_waiting and not self._trials.get(name):
                self.emit(node, operator.release())

    def undo(self, name: str) -> Freed:
        """Let the old plan go on, and the new one go; that is possible until its results have come out."""
        node = self.handovers[name]
        self.emit(node, _operator(node).undo())
        return self._without(node, NEW, name)

    def let_old_go(self, name: str) -> Freed:
        """The old plan has said all; what only it needs goes."""
        return self._without(self.handovers[name], OLD, name)

    def _without(self, node: GraphNode, port: int, name: str) -> Freed:
        before = list(self.nodes)
        arc = next(arc for arc in node.inputs if arc.port == port)
        node.inputs.remove(arc)
        arc.cut()
        self.executor.touch(node, arc.producer)
        self._let_go(arc.producer)
        self._end_trial(name)
        there = set(self.nodes)
        return Freed(tuple(each for each in before if each not in there))

    def _end_trial(self, name: str) -> None:
        failures = self._trials.pop(name, None)
        for node in self.nodes:
            if isinstance(node, TrialNode) and node.failures is failures:
                node.failures = None

    def retire(self, name: str) -> bool:
        """Take a handover away whose one plan has promised as much as was promised; whether that was done.

        Everything that it gave must have been taken.
        """
        node = self.handovers[name]
        operator, outlet = _operator(node), self.outlets[name]
        if len(node.inputs) > 1 or outlet.producer is not node or outlet.unread:
            return False
        (arc,) = node.inputs
        if operator.bound(arc.port) < operator.last_promised() or arc.unread:
            return False
        outlet.cut()
        self._taken_at(arc.producer, outlet, [])
        del self.handovers[name]
        self._let_go(node)
        return True

    def remove(self, name: str) -> None:
        """Let a query go, with both of its plans if it is being replaced."""
        super().remove(name)
        self.handovers.pop(name, None)
        self._end_trial(name)

    # As it was

    def grow_again_with(
        self,
        plans: Mapping[str, Physical],
        following: Mapping[str, Physical],
        families: Mapping[str, list[list[Any]]],
        faces: Mapping[str, str],
        handovers: Mapping[str, tuple[str, int, list[int]]],
    ) -> None:
        """A graph as it was, with the plans that are `following` others, and where queries are handed over.

        Of each handover its identity, the split, and the ports on which it still takes something.
        """
        self.node_kind = TrialNode if following else GraphNode
        new = {name: f"{name} (next)" for name in following}
        while set(new.values()) & set(plans):
            new = {name: f"{other} " for name, other in new.items()}
        self.grow_again({**plans, **{new[name]: each for name, each in following.items()}}, families, faces)
        self.node_kind = GraphNode
        for other in new.values():
            self.outlets.pop(other).cut()
        for name, (identity, split, ports) in handovers.items():
            after = following.get(name, plans[name])
            self._hand_over_again(name, plans[name], after, split, ports, identity)
        self.outlets = {name: self.outlets[name] for name in plans}
        self.executor.forget()
        self._keys.clear()

    def _hand_over_again(
        self, name: str, old: Physical, new: Physical, split: int, ports: list[int], identity: str
    ) -> None:
        self.outlets.pop(name).cut()
        made = self._handover(name, old, new, split)
        made.identity = identity
        own = {port: self._grown(each) for port, each in ((OLD, old), (NEW, new)) if port in ports}
        for port, root in own.items():
            self.join(root, made, port)
        self.outlets[name] = Outlet(made, name)
        if len(own) > 1:
            failures: Failures = []
            self._trials[name] = failures
            others = [arc.producer for each in self.outlets.values() for arc in each.producer.inputs]
            elsewhere = self._below([own[OLD], *(root for root in others if root is not own[NEW])])
            for node in self._below([own[NEW]]) - elsewhere:
                if isinstance(node, TrialNode) and node.stream is None:
                    node.failures = failures

    @staticmethod
    def _below(roots: Iterable[GraphNode]) -> set[GraphNode]:
        """Some operators, and all that they take from."""
        found: set[GraphNode] = set()
        waiting = list(roots)
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += [arc.producer for arc in node.inputs]
        return found


def _operator(node: GraphNode) -> HandoverOperator:
    assert isinstance(node.operator, HandoverOperator)
    return node.operator


def _next(tick: int) -> int:
    return tick if tick == MIN_TICK else tick + 1


def next_start(node: Node, tick: int) -> int:
    """The first time, from a tick on, at which results of a plan can start, as far as its windows say so."""
    match node:
        case (
            WindowAggregate(window=SlidingWindow(slide=slide, origin=origin))
            | RowNumber(window=SlidingWindow(slide=slide, origin=origin))
        ):
            return origin - (origin - tick) // slide * slide
        case Select(input=below) | Distinct(input=below) | Unnest(input=below) | Lookup(input=below):
            return next_start(below, tick)
        case Project(input=below) if node.keeps_time:
            return next_start(below, tick)
        case AlterLifetime(input=below, shift=shift):
            return next_start(below, tick - shift) + shift
        case Union() | Merge() | Join():
            return max(next_start(below, tick) for below in node.inputs)
        case _:
            return tick
