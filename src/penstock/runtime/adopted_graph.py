"""The graph of one query, from the moment on at which another query is to take its place.

A query that runs by itself has a graph that is made for it alone (`QueryGraph`). When it is to be replaced for the
first time, its operators are adopted, as they are, by a graph in which queries can be replaced; results that nobody has
taken stay where they are. What an adopted operator has given was not kept in mind, so it is taken to have given all
that rows up to now could have made. An operator that leaves out columns which nobody read serves no other query.

Aggregates stay by themselves here, and make no families: so the state of a query that has been replaced is what it
would be of the new query alone, and a snapshot is of that kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.errors import CheckpointError, UnsupportedError
from penstock.operators.state import seal_snapshot
from penstock.plan.completeness import last_incomplete
from penstock.plan.fingerprint import describe
from penstock.plan.identity import identities
from penstock.plan.nodes import Project, Select, Source, Union, Unnest
from penstock.plan.physical import Physical
from penstock.plan.planner import MARKED
from penstock.runtime.arcs import Outlet
from penstock.runtime.families import WantedMeasures
from penstock.runtime.graph import QueryGraph, greatest_of
from penstock.runtime.graph_node import GraphNode
from penstock.runtime.graph_pages import plain_elements, plain_pages
from penstock.runtime.kept_positions import kept_positions
from penstock.runtime.replacing_graph import ReplacingGraph


class AdoptedGraph(ReplacingGraph):
    """One query, which may be replaced."""

    def __init__(self, former: QueryGraph, planned: Physical, name: str) -> None:
        """The operators of a graph, in the order in which its plan walks, are this one's from now on."""
        super().__init__(former.builder)
        self.name = name
        self._check(planned)
        if not former.knows_greatest:
            raise CheckpointError(
                "The query goes on from a snapshot that does not say how far its rows went, so no split is known.",
                where=f"query {name}",
                hint="flow.start({query: sink}) has snapshots that say so",
            )
        self.side, self.clock, self.clocks = former.side, former.clock, former.clocks
        self.strategy, self._is_broken, self._placed = former.strategy, former._is_broken, former._placed
        self.nodes, self.sources, self.queued = former.nodes, former.sources, former.queued
        self.executor = former.executor
        self.executor.reject = self.reject
        self._own: dict[str, GraphNode] = {}
        """All operators of the plan as it was, by what they are known by."""
        walked = dict(
            zip(map(self._key, planned.walk()), zip(planned.walk(), former.walked, strict=True), strict=False)
        )
        lasts = {key: last_incomplete(each, self._seen) for key, (each, _) in walked.items()}
        for key, (each, node) in walked.items():
            self._own[key] = node
            last = lasts[key]
            if not isinstance(each.node, Source | Select | Project | Unnest | Union) and last is not None:
                node.keeps_last, node.last_given = True, last
            if last is not None and (isinstance(each.node, Source) or not each.unread):
                self._known[key] = node
        outlet = former.outlet
        outlet.name = name
        self.outlets[name] = outlet
        self._keys.clear()
        self.executor.forget()
        self.require()

    @property
    def outlet(self) -> Outlet:
        """Where results are taken."""
        return self.outlets[self.name]

    @staticmethod
    def _check(planned: Physical) -> None:
        for each in planned.walk():
            if each.algorithm == MARKED or (isinstance(each.node, Source) and each.node.schema.attributes):
                raise UnsupportedError(
                    "This query cannot be replaced while it runs by itself.",
                    where=each.node.label,
                    hint="flow.start({query: sink}) runs it so that it can be: run.runs[name].replace(sql)",
                )

    def _wants(self, planned: Physical) -> WantedMeasures | None:
        """No aggregate is a member of a family."""
        return None

    def snapshot_of(self, planned: Physical, positions: Mapping[str, Any] | None = None) -> bytes:
        """The state of the query that runs now, as that of a query by itself."""
        if self.handovers:
            raise CheckpointError(
                "The query is being replaced, and a snapshot of one query has no room for two.",
                where=f"query {self.name}",
                hint="wait for the end of the replacement, or abandon it; flow.start(…) has snapshots at any time",
            )
        own = [each.identity for each in planned.walk()]
        known = zip(identities(planned.node), own, strict=True)
        nodes = {each.identity: self._node_of(each) for each in planned.walk()}
        outlet = self.outlet
        waiting = list(outlet.producer.buffer.elements)[len(outlet.producer.buffer.elements) - outlet.unread :]
        content = {
            "query": describe(planned.node, self.builder.catalog, [replace(k, identity=i) for k, i in known]),
            "operators": {identity: plain_pages(node.operator, node.label) for identity, node in nodes.items()},
            "outputs": plain_elements(waiting),
            "greatest": greatest_of(nodes),
        }
        self._keys.clear()
        return seal_snapshot(content | kept_positions(positions), planned.node.label)

    def _node_of(self, planned: Physical) -> GraphNode:
        key = self._key(planned)
        found = self._known.get(key)
        return self._own[key] if found is None else found
