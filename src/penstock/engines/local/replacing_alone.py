"""A query that runs by itself, and is replaced: its graph is adopted by one in which that can be done.

Until the first replacement nothing is other than it was. The streams are those that the query reads: nobody has opened
others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.engines.base import check
from penstock.engines.local.replacing import (
    Migration,
    Prospect,
    Replacements,
    cannot_replace,
    check_running,
    other_columns,
)
from penstock.engines.local.support import SUPPORT
from penstock.errors import StreamError, UnsupportedError
from penstock.model.accounts import Counts
from penstock.operators.progress.ingest import RowIngest
from penstock.plan.nodes import Conflate, Node, Source
from penstock.plan.physical import Physical
from penstock.plan.planner import in_process
from penstock.plan.reach import Endless
from penstock.plan.same_columns import differences, fitted
from penstock.runtime.adopted_graph import AdoptedGraph
from penstock.runtime.graph import QueryGraph

if TYPE_CHECKING:
    from penstock.engines.local.execution import LocalExecution


class ReplacingAlone:
    """The replacements of one execution; nobody else touches its graph while any of these is called."""

    def __init__(self, host: LocalExecution) -> None:
        """The graph is adopted."""
        assert isinstance(host.graph, QueryGraph)
        if host.lanes:
            raise UnsupportedError(
                "The query cannot be replaced any more: a pusher of single rows was taken, which is made for its plan.",
                where=f"query {host.name}",
                hint="flow.start({query: sink}) runs it so that it can be",
            )
        self.host, self.name = host, host.name
        self.graph = AdoptedGraph(host.graph, host.planned, host.name)
        self.plans: dict[str, Node] = {host.name: host.plan}
        self.planned: dict[str, Physical] = {host.name: host.planned}
        self.replacements = Replacements(self)

    def _counted_of(self, streams: Iterable[str]) -> Counts:
        return self.host._counted_of(streams)

    def _entrance(self, stream: str) -> RowIngest:
        return self.host._entrance(stream)

    @property
    def now(self) -> tuple[Node, Physical]:
        """The plan that speaks."""
        return self.plans[self.name], self.planned[self.name]

    def prospect(self, plan: Node) -> tuple[Node, Physical, Prospect]:
        """What it would be to replace the query: the plan with its columns, how it runs, and from when on."""
        if not isinstance(plan, Node):
            raise StreamError(
                "A plan is expected.", where=f"query {self.name}", got=repr(plan)[:200], hint="query.plan"
            )
        found = differences(self.host.plan, plan)
        if found:
            raise other_columns(self.name, found)
        plan = fitted(self.host.plan, plan)
        check(plan, "in-process", SUPPORT)
        planned = in_process(plan, self.host.builder.catalog)
        if any(isinstance(node, Conflate) for node in plan.walk()) or not planned.node.properties.insert_only:
            why = Endless("its results are revised, or passed over", plan.label, "start it by itself")
            raise cannot_replace(self.name, why)
        known = {name.lower() for name in self.host.streams}
        others = [n.name for n in plan.walk() if isinstance(n, Source) and n.name.lower() not in known]
        if others:
            raise StreamError(
                "A query that runs by itself reads its own streams alone.",
                where=f"query {self.name}",
                got=", ".join(dict.fromkeys(others)),
                hint="flow.start({query: sink}) runs it so that a new query may read any stream of the flow",
            )
        if self.name in self.replacements.under_way:
            raise StreamError(
                "The query is being replaced already.",
                where=f"query {self.name}",
                hint="wait until that has come to its end, or abandon() it",
            )
        check_running([self._entrance(stream).reached() for stream in self.host.streams], self.name)
        return plan, planned, self.replacements.prospect(self.name, plan, planned)

    def replace(self, plan: Node) -> Migration:
        """Let another plan take over."""
        plan, planned, prospect = self.prospect(plan)
        if prospect.endless is not None:
            raise cannot_replace(self.name, prospect.endless)
        return self.replacements.begin(self.name, plan, planned, prospect)
