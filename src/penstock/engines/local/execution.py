"""One run of one query in-process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa

from penstock.engines.base import check
from penstock.engines.local.hosting import Hosting
from penstock.engines.local.opening import Opener
from penstock.engines.local.replacing import Migration, Prospect
from penstock.engines.local.replacing_alone import ReplacingAlone
from penstock.engines.local.support import SUPPORT
from penstock.errors import StreamError
from penstock.model.accounts import Counts
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, is_whole
from penstock.model.letters import DEAD_SCHEMA, late_schema
from penstock.plan.catalog import Catalog
from penstock.plan.explain import explain
from penstock.plan.kept import runs_alike
from penstock.plan.nodes import Node, Source
from penstock.plan.physical import Physical
from penstock.plan.planner import in_process
from penstock.runtime.adopted_graph import AdoptedGraph
from penstock.runtime.arcs import Outlet
from penstock.runtime.graph import QueryGraph
from penstock.runtime.kept_positions import positions_in
from penstock.runtime.side_outputs import SideOutputs
from penstock.runtime.taking_up import kept_in

__all__ = ["DEAD_SCHEMA", "Counts", "LocalExecution", "Opener", "SideOutputs", "late_schema"]


class LocalExecution(Hosting[Batch | Punctuation]):
    """The running graph of one query; it may be fed from several threads."""

    graph: QueryGraph | AdoptedGraph
    side: SideOutputs

    def __init__(
        self,
        plan: Node,
        catalog: Catalog,
        planned: Physical | None = None,
        *,
        bounds_in_place: bool = True,
        name: str = "query",
    ) -> None:
        """Refuse at once what the engine does not support; `planned` says how it runs, where that is known already.

        Without `bounds_in_place`, rows of a batch are not parted where punctuation stood among them: it comes after.
        """
        check(plan, "in-process", SUPPORT)
        super().__init__(catalog, bounds_in_place=bounds_in_place)
        self.name = name
        """Of the query, in statistics."""
        self.plan = plan
        self.planned = planned or in_process(plan, catalog)
        self.graph = QueryGraph(self.planned, self.builder, shares=True)
        sources = [n for n in plan.walk() if isinstance(n, Source)]
        self.streams = list(dict.fromkeys(s.name for s in sources))
        self.side = SideOutputs(late_schema(*(s.schema for s in sources)))
        self._take_care()
        self.replacing: ReplacingAlone | None = None
        """How it is replaced, once it was to be."""
        self.when_replaced: Callable[[], object] = lambda: None
        """Called when a replacement has come to its end, while nobody else touches the graph."""

    def _take_care(self) -> None:
        """The graph hands rows that leave it to whoever keeps them, and knows the time."""
        self.graph.side = self.side.take
        self.graph.clock = self._now
        self.graph.measure(self.clocks)

    @property
    def label(self) -> str:
        """The query's last operator."""
        return self.plan.label

    def _drained(self) -> list[Batch | Punctuation]:
        if isinstance(self.graph, QueryGraph):
            return self.graph.drain()
        assert self.replacing is not None
        between = bool(self.graph.handovers) and self._under_way is None
        if between:
            self.replacing.replacements.before_results()
        found = [element for _, element in self.graph.drain()]
        if between and self.replacing.replacements.after_results():
            self.plan, self.planned = self.replacing.now
            self.when_replaced()
        return found

    # Another query that takes its place

    def can_replace(self, plan: Node) -> Prospect:
        """What it would be to replace the query by another plan of the same columns and streams now."""
        with self._alone():
            return self._adopted().prospect(plan)[2]

    def replace(self, plan: Node) -> Migration:
        """Replace the query by another plan of the same columns and streams: old results, then new ones."""
        with self._alone():
            made = self._adopted().replace(plan)
            self.plan, self.planned = self._adopted().now
        return made

    def abandon(self) -> Migration:
        """Let the old plan go on, as long as nothing of the new one has come out."""
        with self._alone():
            return self._adopted().replacements.abandon(self.name)

    def _adopted(self) -> ReplacingAlone:
        if self.replacing is None:
            found = ReplacingAlone(self)
            self.replacing, self.graph = found, found.graph
        return self.replacing

    def outlets(self) -> Mapping[str, Outlet]:
        """Where results are taken, by the names of their queries."""
        return {self.name: self.graph.outlet}

    def _plans(self) -> Iterable[Node]:
        return (self.plan, *self._following())

    def _results(self) -> Iterable[tuple[Outlet, Node]]:
        return [(self.graph.outlet, plan) for plan in self._plans()]

    def _following(self) -> list[Node]:
        return [] if self.replacing is None else [m.new for m in self.replacing.replacements.under_way.values()]

    def feedback(self, bound: int) -> None:
        """The consumer no longer needs what ends before `bound`; the query skips what only serves that."""
        if not is_whole(bound):
            raise StreamError("A bound is an integer.", where="feedback", got=repr(bound)[:200], hint="ticks")
        with self._alone():
            if isinstance(self.graph, QueryGraph):
                self.graph.feedback(bound)
            else:
                self.graph.feedback(self.name, bound)

    def snapshot(self) -> bytes:
        """The state of every operator."""
        with self._alone():
            if isinstance(self.graph, QueryGraph):
                return self.graph.snapshot(self.positions)
            return self.graph.snapshot_of(self.planned, self.positions)

    def restore(self, snapshot: bytes) -> None:
        """Take up the state of a snapshot of the same query, which may fix how it runs: `explain` then says so.

        That takes an execution to which nothing was fed yet.
        """
        with self._alone():
            positions = positions_in(snapshot)
            planned = in_process(self.plan, self.builder.catalog, kept=kept_in(snapshot))
            graph = QueryGraph(planned, self.builder, shares=True)
            graph.restore(snapshot)
            if self._counted().read:
                raise StreamError(
                    "Rows were fed already, and a snapshot would take their place.",
                    where=self.plan.label,
                    got=f"{self._counted().read} rows",
                    hint="restore into a fresh q.execution()",
                )
            self.demand.is_endless = True  # the snapshot does not say how far rows went
            if not isinstance(self.graph, QueryGraph):
                raise StreamError(
                    "The query was replaced.", where=self.label, hint="restore into a fresh q.execution()"
                )
            if not self.lanes:
                self.graph, self.planned = graph, planned
                self._take_care()
            elif runs_alike(planned, self.planned):
                self.graph.restore(snapshot)
            else:
                raise StreamError(
                    "The state in the snapshot is of another algorithm or order than this execution's.",
                    where=self.plan.label,
                    got="an execution of which a pusher was taken",
                    hint="restore into a fresh q.execution(), and take pushers afterwards",
                )
            self.positions = positions

    def explain(self) -> str:
        """The plan as a tree, as this execution runs it."""
        return explain(self.planned)

    def late(self) -> pa.Table:
        """The late rows so far."""
        return self.side.late.table()

    def dead_letters(self) -> pa.Table:
        """The dead letters so far."""
        return self.side.letters.table()
