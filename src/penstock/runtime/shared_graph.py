"""One graph for many queries: they share the entrances of their streams and every sub-plan that is the same.

Two nodes are the same if they say the same over the same inputs, by the same algorithm, whatever query they are of.
Streams belong to the flow: an entrance judges rows once for all queries, and stays when the last of them has left.
Window aggregates that differ in their functions alone are faces of one family (`families`).

Queries come and go while the graph is at work. One that comes is told what was promised, and what it gives is complete
from a time on that follows from what was seen before (`plan.completeness`); with it comes what nobody else has asked
for, and nothing that others use is touched. One that goes takes along its head, and the operators that nobody else
takes from, with their state. Whenever the graph changes, sources are told anew which bounds are of use to anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.errors import StreamError
from penstock.model.elements import linear
from penstock.model.time import MIN_TICK
from penstock.operators.operator import Rejected
from penstock.operators.progress.ingest import Ingest
from penstock.plan.completeness import last_incomplete, never_complete
from penstock.plan.identity import canonical, digest
from penstock.plan.nodes import NumberRows, Project, Select, Source, Union, Unnest, WindowAggregate
from penstock.plan.physical import Physical
from penstock.plan.planner import in_process
from penstock.plan.update_nodes import needs
from penstock.plan.useful import EVERY, Useful, useful_below, useful_to_any
from penstock.runtime.arcs import Arc, Outlet
from penstock.runtime.builder import Builder
from penstock.runtime.families import Families, WantedMeasures, wanted_of
from penstock.runtime.graph import Graph, GraphNode
from penstock.runtime.installed_table import Table, table_of
from penstock.runtime.strategies import Strategy
from penstock.runtime.takers import takers_of
from penstock.sql.predicates import source_of


class SharedGraph(Graph):
    """The running form of many plans."""

    def __init__(self, builder: Builder) -> None:
        """No queries yet."""
        super().__init__(builder)
        self.outlets: dict[str, Outlet] = {}
        self.own_strategies: dict[str, Strategy] = {}
        """Of queries that have one of their own: it holds for what no other query takes part in."""
        self.rejecting: str | None = None
        """The identity of the operator that rejected rows last."""
        self._known: dict[str, GraphNode] = {}
        self._useful: dict[GraphNode, Useful] = {}
        """The bounds that are of use to those who take from an operator, as it was told last."""
        self._keys: dict[int, tuple[Physical, str]] = {}
        self._families = Families(self)

    def reject(self, node: GraphNode, rejected: Rejected) -> None:
        """Take rows out of the graph, and say whose they are."""
        self.rejecting = node.identity
        super().reject(node, rejected)

    # Queries that come

    def add(self, plans: Mapping[str, Physical]) -> dict[str, Outlet]:
        """Let queries join, all of them or, with an error, none; those that come together share families."""
        froms = {name: self._complete_from(name, planned) for name, planned in plans.items()}
        self._families.want(each for planned in plans.values() for each in planned.walk())
        for name, planned in plans.items():
            self.outlets[name] = Outlet(self._grown(planned), name, froms[name])
            self.executor.touch(self.outlets[name].producer)
        self._keys.clear()
        fresh = [node for node in self.nodes if node not in self._useful]
        for node in dict.fromkeys([*(self.outlets[name].producer for name in plans), *fresh]):
            self._require(node)
        for arc in [arc for node in fresh for arc in node.inputs]:
            self._catch_up(arc)
        return {name: self.outlets[name] for name in plans}

    def grow_again(
        self, plans: Mapping[str, Physical], families: Mapping[str, list[list[Any]]], faces: Mapping[str, str]
    ) -> None:
        """A graph as it was: queries, the families that there were, and whose face each aggregate was."""
        with self._families.as_they_were(families, faces):
            for name, planned in plans.items():
                self.outlets[name] = Outlet(self._grown(planned), name)
        self.executor.forget()
        self._keys.clear()

    def as_kept(self, planned: Physical, kept: Collection[str]) -> Physical:
        """The plan with the algorithms under which its nodes are among those that were kept, where there are such."""
        below = tuple(self.as_kept(each, kept) for each in planned.inputs)
        same = all(new is old for new, old in zip(below, planned.inputs, strict=True))
        made = planned if same else replace(planned, inputs=below)
        if self._key(made) in kept or made.choice is None:
            return made
        others = [replace(made, algorithm=name, choice=replace(made.choice, name=name)) for name in made.choice.costs]
        return next((other for other in others if self._key(other) in kept), made)

    def keep_entrances(self, streams: Sequence[Sequence[Any]]) -> None:
        """The entrances that there were, also of streams that no query reads any more."""
        for name, by_arrival in streams:
            source = source_of(self.builder.catalog, name)
            if isinstance(source, Source):
                self._grown(in_process(replace(source, by_arrival=by_arrival), self.builder.catalog))
        self._keys.clear()

    def _complete_from(self, name: str, planned: Physical) -> int:
        if name in self.outlets:
            raise StreamError(
                "A query of that name is running.", got=name, hint="give it another name, or remove that one first"
            )
        found = last_incomplete(planned, self._seen)
        if found is None:
            raise StreamError(
                "This query cannot join streams at work: there is no time from which on it would be complete.",
                where=name,
                got=str(never_complete(planned, self._seen)),
                hint="start it with the flow; rows that came before can matter for ever, or are counted, in its plan",
            )
        return MIN_TICK if found == MIN_TICK else found + 1

    def _seen(self, planned: Physical) -> int | None:
        """The last start that was seen of a source, or that an operator with state has given."""
        node = planned.node
        if isinstance(node, Source):
            readings = self.sources.get(node.name.lower(), [])
            return max((_greatest(reading) for reading in readings), default=MIN_TICK)
        found = self._known.get(self._key(planned))
        match node:
            case NumberRows(keeps_time=False) if found is not None:
                following: int = found.operator.pages.get("next") or 0
                return following - 1 if following else MIN_TICK
            case NumberRows() if found is not None:
                return last_incomplete(planned.inputs[0], self._seen)
            case Select() | Project() | Unnest() | Union():
                return None
            case WindowAggregate() if found is None:
                found = self._families.serving(planned)
        return None if found is None else found.last_given

    # Nodes and what they are known by

    def _key(self, planned: Physical) -> str:
        """The same for nodes that say the same over the same inputs."""
        known = self._keys.get(id(planned))
        if known is None or known[0] is not planned:
            below = [self._key(each) for each in planned.inputs]
            known = planned, digest([canonical(planned.node), planned.algorithm, below, *needs(planned.node)])
            self._keys[id(planned)] = known
        return known[1]

    def _grown(self, planned: Physical) -> GraphNode:
        """The node that is there, or a new one over those that are there."""
        key = self._key(planned)
        found = self._known.get(key)
        if found is not None:
            return found
        wanted = self._wants(planned)
        last = last_incomplete(planned, self._seen)
        if wanted is not None:
            made = self._families.face(planned, key, wanted)
        else:
            made = self._add(planned, self.builder.operator(_for_anybody(planned)), key)
            for port, below in enumerate(planned.inputs):
                self.join(self._grown(below), made, port)
        if isinstance(planned.node, Source):
            self._take_over(made)
        else:
            made.keeps_last = not isinstance(planned.node, Select | Project | Unnest | Union)
            made.last_given = MIN_TICK if last is None else last
        self._known[key] = made
        return made

    def _wants(self, planned: Physical) -> WantedMeasures | None:
        """What an aggregate wants of a family; None if it is not a member of one."""
        return wanted_of(planned, self.builder.catalog)

    def _take_over(self, made: GraphNode) -> None:
        """A reading that now speaks for its stream goes on counting where another one was."""
        readings = self.sources[str(made.stream).lower()]
        if readings[0] is made and len(readings) > 1:
            before, ingest = readings[1].operator, made.operator
            assert isinstance(before, Ingest)
            assert isinstance(ingest, Ingest)
            made.statistics = replace(readings[1].statistics)
            ingest.punctuation, ingest.skipped = before.punctuation, before.skipped

    # What runs next

    def use(self, strategy: Strategy, query: str | None = None, table: Table | None = None) -> None:
        """Run by another strategy from here on: one query, or all of them; the `table` may have been made before."""
        self.strategy, self.own_strategies = self._with(strategy, query)
        self.executor.forget()
        if table is not None:
            self.executor.install(table, self._strategies())
        self.tabulate()

    def table_by(self, strategy: Strategy, query: str | None = None) -> Table:
        """The table that there would be by another strategy; the graph must not change meanwhile, but may run."""
        usual, own = self._with(strategy, query)
        return table_of(list(self.nodes), self._strategies(usual, own))

    def _with(self, strategy: Strategy, query: str | None) -> tuple[Strategy, dict[str, Strategy]]:
        return (strategy, {}) if query is None else (self.strategy, {**self.own_strategies, query: strategy})

    @property
    def takes_bursts(self) -> bool:
        """Whether it matters to any query that several elements came together."""
        return bool(self.own_strategies) or super().takes_bursts

    @property
    def _is_uniform(self) -> bool:
        return not self.own_strategies

    def _strategies(
        self, usual: Strategy | None = None, own: Mapping[str, Strategy] | None = None
    ) -> Callable[[GraphNode], Strategy]:
        usual = self.strategy if usual is None else usual
        own = self.own_strategies if own is None else own
        if not own:
            return lambda _: usual
        takers = takers_of(self.nodes, self.outlets)
        found = {node: own.get(next(iter(names)), usual) for node, names in takers.items() if len(names) == 1}
        return lambda node: found.get(node, usual)

    # What changes with the graph

    def require(self) -> None:
        """Tell every operator that gives bounds of its own which of them are of use to anybody."""
        self._useful.clear()
        for arc in [arc for node in self.nodes for arc in node.arcs]:
            arc.useful = EVERY
        for node in self.nodes:
            self._require(node)

    def _require(self, node: GraphNode) -> None:
        """The same after others have come to take from an operator, or have left: what that changes for those below.

        An arc whose consumer has not been asked yet wants every bound, and is asked before long.
        """
        wanted = useful_to_any([arc.useful for arc in node.arcs])
        if self._useful.get(node) == wanted:
            return
        self._useful[node] = wanted
        node.operator.require(wanted, node.promised)
        for arc in node.inputs:
            arc.useful = useful_below(node.plan, wanted)
            self._require(arc.producer)

    def _catch_up(self, arc: Arc) -> None:
        """A consumer that came later is told what was promised before it came."""
        producer, consumer = arc.producer, arc.consumer
        if consumer is None or arc.is_told:
            return
        arc.is_told = True
        assert producer.operator.schema.time is not None
        self.emit(consumer, consumer.take_in(arc.port, linear(producer.operator.schema.time, arc.register)))

    # Queries that go

    def remove(self, name: str) -> None:
        """Let a query go, with all that nobody else takes from."""
        outlet = self.outlets.pop(name)
        self.own_strategies.pop(name, None)
        outlet.cut()
        self.executor.touch(outlet.producer)
        self._let_go(outlet.producer)

    def _let_go(self, node: GraphNode) -> None:
        if node.arcs or node.stream is not None:
            self._require(node)
            return
        self.nodes.remove(node)
        self._useful.pop(node, None)
        self.executor.leave(node)
        self._known = {key: known for key, known in self._known.items() if known is not node}
        self._families.leave(node)
        self.queued = [arc for arc in self.queued if arc.consumer is not node]
        for arc in node.inputs:
            arc.cut()
            self._let_go(arc.producer)

    # Results

    def feedback(self, name: str, bound: int) -> None:
        """The consumer of a query no longer needs what ends before `bound`."""
        self._tell(self.outlets[name], bound)

    def drain(self) -> Iterator[tuple[str, Any]]:
        """What has come out since the last time, of each query in order."""
        waiting, self.executor.waiting = self.executor.waiting, []
        for outlet in waiting:
            if self.outlets.get(outlet.name) is outlet:
                for element in outlet.drain():
                    yield outlet.name, element


def _for_anybody(planned: Physical) -> Physical:
    """Queries that come later may read any column, and use any attribute that progresses, where several do."""
    attributes = planned.node.schema.attributes if isinstance(planned.node, Source) else ()
    return replace(planned, wanted=tuple((name, EVERY) for name in attributes), unread=frozenset())


def _greatest(reading: GraphNode) -> int:
    """The last start that a reading of a stream has seen, or will not let anybody see."""
    operator = reading.operator
    assert isinstance(operator, Ingest)
    seen = getattr(operator, "greatest", None)
    return max(MIN_TICK if seen is None else seen, operator.needed() - 1 if operator.needed() > MIN_TICK else MIN_TICK)
