"""A state table as it runs: every operator has its row of it, and operators that run together are a part.

Whoever changes the graph says which operators have other arcs than before (`touch`), and only their rows are made anew,
so that a query joins a thousand operators in the time that its own take; another strategy (`forget`) is another table.
What is under way is in the graph, and is found again there: the operators that have something to do are woken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from penstock.runtime.arcs import Arc
from penstock.runtime.rules import rules_of
from penstock.runtime.state_table import Fork, Link, StateTable, tabulated
from penstock.runtime.strategies import DEPTH_FIRST, Strategy

if TYPE_CHECKING:
    from penstock.runtime.graph_node import GraphNode

Table = StateTable["GraphNode", Arc]
STALE, BUSY = 1, 2


def table_of(nodes: list[GraphNode], strategy: Callable[[GraphNode], Strategy]) -> Table:
    """The state table of a graph."""
    links = [
        Link(arc, node, arc.consumer, arc.ends_path) for node in nodes for arc in node.arcs if arc.consumer is not None
    ]
    return tabulated(nodes, links, strategy)


class Part:
    """Operators that are joined by arcs which are not broken, and what is under way among them."""

    __slots__ = ("is_clear", "is_compiled", "is_ready", "is_retired", "is_spent", "nodes", "path", "slope", "woken")

    def __init__(self, nodes: Iterable[GraphNode], *, is_compiled: bool) -> None:
        """Nothing is under way yet; it `is_compiled` if depth-first rules are not interpreted."""
        self.nodes, self.is_compiled = set(nodes), is_compiled
        self.path: list[Arc | GraphNode] = []
        """How control came to where it is; compiled, also the arcs that have not been looked at."""
        self.woken: deque[GraphNode] = deque()
        """Operators that have something to do, apart from those that control will come back to on the path."""
        self.is_ready = False
        """Whether the scheduler knows that there is something to do."""
        self.is_retired = False
        """Whether another table has taken its place."""
        self.is_clear = is_compiled
        """Whether nothing waits behind the operator that is run: depth-first, unless the table came in between."""
        self.is_spent = False
        """Where parts are ranked: whether it has taken what it may before others have their turn."""
        self.slope = 0.0
        """Where parts are ranked, the steepest of those that have something to do goes first."""


class InstalledTable:
    """The rows of a graph's operators."""

    def __init__(self) -> None:
        """No graph yet."""
        self.compiles = True
        """Whether depth-first rules are compiled; a test says no."""
        self.unsettled = STALE
        """Whether the table is not up to date, or something is under way, or both; 0 if all is well."""
        self.table: Table | None = None
        """As it was made last; None if the graph has changed since then."""
        self.number = 0
        """So many tables came before, or were made anew in part."""
        self._touched: set[GraphNode] | None = None
        """The operators whose rows may have changed; None if all may have."""
        self.slopes: dict[GraphNode, float] = {}
        """How many rows a second the part of an operator lets go of, where parts are ranked (`runtime.chain`)."""
        self._parts: list[Part] = []
        self._ready: deque[Part] = deque()
        """Parts that have something to do, apart from the one at work."""

    def forget(self) -> None:
        """Another table is wanted."""
        self.table = self._touched = None
        self.unsettled |= STALE

    def touch(self, *nodes: GraphNode) -> None:
        """These operators have come, or have other arcs than before."""
        self.table = None
        self.unsettled |= STALE
        if self._touched is not None:
            self._touched.update(nodes)

    def leave(self, node: GraphNode) -> None:
        """An operator has left the graph."""
        self.touch(*(arc.producer for arc in node.inputs))
        if node.part is not None:
            node.part.nodes.discard(node)
        if self._touched is not None:
            self._touched.discard(node)
        self.slopes.pop(node, None)

    def install(self, table: Table, strategy: Callable[[GraphNode], Strategy]) -> None:
        """Run by the table of the graph; what is under way goes on by it."""
        self.table = table
        several: dict[GraphNode, list[Arc]] = {}
        for row in table.rows:
            if isinstance(row.state, Fork):
                assert row.by is not None
                several.setdefault(row.state.of, []).append(row.by)
            else:
                row.state.rule = row.rule
                row.state.go_on(() if row.by is None else (row.by,))
        for node, arcs in several.items():
            node.go_on(tuple(arcs))
        for part in self._parts:
            part.is_retired = True
        self._parts = [self._part(nodes, strategy) for nodes in table.parts]
        self._ready.clear()
        self.number += 1
        if self.unsettled & BUSY:
            for part in self._parts:
                part.is_clear = False
            self._wake_all(table)
        self.unsettled &= BUSY
        self._touched = set()

    def patch(self, strategy: Strategy) -> bool:
        """Make anew only the rows that have changed, of a table of one strategy; whether that can be done.

        Not if something is under way, or by round-robin, whose break nodes come and go with the arcs beside them.
        """
        if self._touched is None or self.unsettled & BUSY or strategy.kind == "round_robin":
            return False
        rules = rules_of(strategy)
        for node in self._touched:
            forward = tuple([arc for arc in node.arcs if arc.consumer is not None and not arc.ends_path])
            before = [arc.producer for arc in node.inputs if not arc.ends_path]
            node.rule = rules.at(is_first=not before, is_last=not forward)
            node.go_on(forward)
            beside = [*before, *(arc.consumer for arc in forward if arc.consumer is not None)]
            self._join_part(node, {each.part for each in (node, *beside) if each.part is not None}, strategy)
        self._touched.clear()
        self.number += 1
        self.unsettled &= BUSY
        return True

    def _join_part(self, node: GraphNode, parts: set[Part], strategy: Strategy) -> None:
        """A node belongs to the part of those beside it; if there are several they are one from now on."""
        if not parts:
            self._parts.append(self._part([node], lambda _: strategy))
            return
        largest = max(parts, key=lambda part: len(part.nodes))
        for part in parts - {largest}:
            part.is_retired = True
            self._parts.remove(part)
            largest.nodes |= part.nodes
            for each in part.nodes:
                each.part = largest
        node.part = largest
        largest.nodes.add(node)

    def _part(self, nodes: Iterable[GraphNode], strategy: Callable[[GraphNode], Strategy]) -> Part:
        made = Part(nodes, is_compiled=self.compiles and all(strategy(node) == DEPTH_FIRST for node in nodes))
        for node in made.nodes:
            node.part, node.is_woken = made, False
        if self.slopes:
            made.slope = max(self.slopes.get(node, 0.0) for node in made.nodes)
        return made

    def _wake_all(self, table: Table) -> None:
        """Whatever was under way; what is nearer to the results goes first."""
        for row in reversed(table.rows):
            if not isinstance(node := row.state, Fork) and node.has_more():
                self.wake(node)

    def wake(self, node: GraphNode) -> None:
        """An operator has something to do that control would not come to by itself."""
        self.unsettled |= BUSY
        part = node.part
        if not node.is_woken:
            node.is_woken = True
            part.woken.append(node)
        if not part.is_ready:
            part.is_ready = True
            self._ready.append(part)
