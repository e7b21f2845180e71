"""Which operator of a graph runs next: by the strategies of its operators and by break nodes (Stream Mill, section 3).

A table says it (`installed_table`), which is made when it is needed, and anew after the graph, a strategy or a break
node has changed; what is under way goes on by the new one, since it is in the graph itself. A *break node* ends the
part that is run as one: what is given there waits until all that came before has been done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.runtime.arcs import Arc
from penstock.runtime.chain import Segment, breaks_between, segments_of
from penstock.runtime.executor import Executor
from penstock.runtime.graph_node import GraphNode
from penstock.runtime.installed_table import STALE, Table, table_of
from penstock.runtime.strategies import DEPTH_FIRST, Strategy


class Scheduled:
    """Operators that are run by a table."""

    def __init__(self, executor: Executor) -> None:
        """No operators yet; all of them depth-first."""
        self.nodes: list[GraphNode] = []
        self.executor = executor
        self.strategy = DEPTH_FIRST
        """Of all operators that have none of their own."""
        self._is_broken = False
        """Whether somebody has put a break node."""
        self._placed: list[Arc] = []
        """The break nodes that were put by what was measured."""

    @property
    def table(self) -> Table:
        """Which operator runs next."""
        self.tabulate()
        if self.executor.table is None:
            self.executor.table = table_of(self.nodes, self._strategies())
        return self.executor.table

    def tabulate(self) -> None:
        """Make the rows of the table that are not up to date since the graph has changed."""
        if self.executor.unsettled & STALE and not (self._is_uniform and self.executor.patch(self.strategy)):
            strategies = self._strategies()
            self.executor.install(table_of(self.nodes, strategies), strategies)

    @property
    def _is_uniform(self) -> bool:
        """Whether all nodes have one strategy."""
        return True

    def _strategies(self) -> Callable[[GraphNode], Strategy]:
        """The strategy by which each node is run."""
        strategy = self.strategy
        return lambda _: strategy

    def use(self, strategy: Strategy) -> None:
        """Run by another strategy from here on; what is under way goes on by it."""
        self.strategy = strategy
        self.executor.forget()
        self.tabulate()

    def break_after(self, node: GraphNode, *, broken: bool = True) -> None:
        """Put a virtual break node at the output of an operator, before everybody who takes it, or take it away."""
        for arc in node.arcs:
            arc.is_break = broken and arc.consumer is not None
        self._is_broken = any(arc.is_break for each in self.nodes for arc in each.arcs)
        self.executor.forget()
        self.tabulate()

    def place_breaks(self, rule: str | None) -> list[Segment]:
        """Put break nodes by what was measured, in place of those that were put so before; without a rule, take these.

        `chain` is the only rule; the segments, between which the break nodes stand and of which the steepest that has
        something to do is run.
        """
        for arc in self._placed:
            arc.is_break = False
        found = [] if rule is None else segments_of(self.nodes)
        self._placed = breaks_between(found)
        for arc in self._placed:
            arc.is_break = True
        self.executor.slopes = {node: segment.slope for segment in found for node in segment.operators}
        self._is_broken = any(arc.is_break for each in self.nodes for arc in each.arcs)
        self.executor.forget()
        self.tabulate()
        return found

    @property
    def is_ranked(self) -> bool:
        """Whether of several parts that have something to do the steepest runs."""
        return bool(self.executor.slopes)

    @property
    def takes_bursts(self) -> bool:
        """Whether it matters that several elements came together."""
        return self.strategy != DEPTH_FIRST or self._is_broken

    def _settle(self) -> Iterator[None]:
        """Make the table if the graph has changed, and run whatever is under way to its end."""
        self.tabulate()
        return self.executor.rest()
