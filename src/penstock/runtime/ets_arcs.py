"""ETS arcs: a promise goes past the operators that do not care (Stream Mill, section 4, the Enhanced Query Graph).

An operator *cares* about a promise if anything follows of it: rows are released, a window closes, state is given up, or
what it promises itself depends on other inputs too. All others only *carry* it (`Operator.carries`): a bound on the
time of their input is one on their own time, as it is, moved, or computed. An ETS arc leads from whoever promises past
all that carry to the next operator that cares, a result, a break node or a queue; of a fork there is one for each.

A promise that goes by it is put where it would have come to: on the last arc, behind whatever waits there. On the way
it leaves what it would have left, registers and statistics, but nobody is run. It goes only if nothing waits on the
way, else it would overtake; then it goes from operator to operator, as an element like any other. So does a promise of
some groups, one on another attribute than the time, and one that comes to nothing on the way. Where a time goes by two
names it is promised under both: who gives it both cares.

Cost: a few assignments for each operator that is passed. The arcs are derived when the first promise is made after the
graph, or its table, has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.model.elements import Punctuation, linear
from penstock.operators.operator import AS_IT_IS, Carry

if TYPE_CHECKING:
    from penstock.runtime.arcs import Arc
    from penstock.runtime.graph_node import GraphNode
    from penstock.runtime.sampling import Trace


@dataclass(frozen=True)
class Passed:
    """An operator that is passed, the arc by which it would have taken the promise, and what it makes of the bound."""

    arc: Arc
    node: GraphNode
    carry: Carry


@dataclass(frozen=True)
class Landing:
    """Where promises are put: the operator that gives them to those that care, and its arcs to others, passed by."""

    node: GraphNode
    time: str
    at: int
    """What is promised there, by its place among what is promised on the way."""
    passed_by: tuple[Arc, ...]


class EtsArcs:
    """The ETS arcs that lead away from an operator."""

    __slots__ = ("_from", "_is_plain", "_time", "backward", "landings", "passed")

    def __init__(self, node: GraphNode, passed: list[tuple[int, Passed]]) -> None:
        """Past these operators, each with the place, among them, of the one before it; 0 is `node` itself."""
        self.passed = tuple([each for _, each in passed])
        self._from = tuple([before for before, _ in passed])
        self._time = str(node.operator.schema.time)
        taken = {each.arc for each in self.passed}
        landings = [self._landing(at, each, taken) for at, each in enumerate([node, *(p.node for p in self.passed)])]
        self.landings = tuple([landing for landing in landings if landing is not None])
        """In the order in which control would have come to them."""
        self.backward = tuple(_last_first(node, taken))
        """The arcs by which those take the promise that are run next, the last one first."""
        self._is_plain = all(each.carry is AS_IT_IS for each in self.passed)

    @staticmethod
    def _landing(at: int, node: GraphNode, taken: set[Arc]) -> Landing | None:
        passed_by = tuple([arc for arc in node.arcs if arc in taken])
        if len(passed_by) == len(node.arcs):
            return None
        return Landing(node, str(node.operator.schema.time), at, passed_by)

    @property
    def is_clear(self) -> bool:
        """Whether nothing waits on the way."""
        return all(each.node.given is None and not each.arc.unread for each in self.passed)

    def carry(self, promise: Punctuation, trace: Trace | None = None) -> bool:
        """Put a promise that was given where it comes to; False, and nothing is done, where it cannot go so.

        A `trace` that it has goes with it.
        """
        bounds = promise.bounds
        if len(bounds) > 1 or promise.constants or bounds[0][0] != self._time:
            return False
        bound = bounds[0][1]
        reached = None if self._is_plain else self._mapped(bound)
        if not self._is_plain and reached is None:
            return False
        for at, each in enumerate(self.passed):
            node, statistics = each.node, each.node.statistics
            if reached is None:
                each.arc.register = node.promised = bound
            else:
                each.arc.register, node.promised = reached[self._from[at]], reached[at + 1]
            statistics.punctuations_in += 1
            statistics.punctuations_out += 1
        for landing in self.landings:
            value = bound if reached is None else reached[landing.at]
            said = promise if value == bound and landing.time == self._time else linear(landing.time, value)
            landing.node.giving = trace
            landing.node.hold(said)
            for arc in landing.passed_by:
                arc.head += 1
        return True

    def each(self) -> Iterator[tuple[tuple[GraphNode, ...], Arc]]:
        """Every arc: whom it passes, and the last stretch of the way, by which somebody takes what is promised."""
        ways: list[tuple[GraphNode, ...]] = [()]
        for before, each in zip(self._from, self.passed, strict=True):
            ways.append((*ways[before], each.node))
        for landing in self.landings:
            for arc in landing.node.arcs:
                if arc not in landing.passed_by and ways[landing.at]:
                    yield ways[landing.at], arc

    def _mapped(self, bound: int) -> list[int] | None:
        """What is promised by whoever begins and by everyone who is passed; None if somebody would say nothing."""
        reached = [bound]
        for before, each in zip(self._from, self.passed, strict=True):
            found = each.carry(reached[before])
            if found is None:
                return None
            reached.append(found)
        return reached


def ets_arcs(node: GraphNode) -> EtsArcs | None:
    """The ETS arcs that lead away from an operator, by the table as it is; None if nobody is passed on them."""
    passed: list[tuple[int, Passed]] = []
    visited = [(0, arc) for arc in node.backward]
    while visited:
        before, arc = visited.pop()
        carry = carries(arc)
        if carry is not None and arc.consumer is not None:
            passed.append((before, Passed(arc, arc.consumer, carry)))
            visited += [(len(passed), each) for each in arc.consumer.backward]
    return EtsArcs(node, passed) if passed else None


def carries(arc: Arc) -> Carry | None:
    """What the operator that an arc leads to makes of a bound on the time, if it does nothing else with it."""
    consumer, time = arc.consumer, arc.producer.operator.schema.time
    if consumer is None or time is None or len(consumer.inputs) > 1 or not consumer.arcs:
        return None
    return consumer.operator.carries(time)


def shown(nodes: Iterable[GraphNode]) -> str:
    """All ETS arcs of a graph, a line each, as they are when nothing waits."""
    lines = []
    for node in nodes:
        is_passed = len(node.inputs) == 1 and not node.inputs[0].ends_path and carries(node.inputs[0]) is not None
        found = None if is_passed else ets_arcs(node)
        for passed, arc in () if found is None else found.each():
            end = arc.consumer.label if arc.consumer is not None else getattr(arc, "name", "")
            lines.append(f"{node.stream or node.label} -> {end}, past {', '.join(each.label for each in passed)}")
    return "\n".join(lines)


def _last_first(node: GraphNode, taken: set[Arc]) -> Iterator[Arc]:
    """The arcs that are not passed, among those by which control goes on."""
    for arc in node.backward:
        if arc not in taken:
            yield arc
        elif arc.consumer is not None:
            yield from _last_first(arc.consumer, taken)
