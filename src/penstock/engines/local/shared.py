"""Several queries in-process as one run: streams are read and judged once, and what plans have in common runs once.

Queries may come and go at any time, also while sources are `run`, from any thread. What comes out is handed on with the
name of its query.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from penstock.engines.base import check
from penstock.engines.local.hosting import Hosting
from penstock.engines.local.opening import Given, Opener, at_position, let_go, opened
from penstock.engines.local.replacing import Migration, Prospect, Replacements, cannot_replace, check_running
from penstock.engines.local.support import SUPPORT
from penstock.errors import PenstockError, StreamError, UnsupportedError
from penstock.model.accounts import Counts
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation, is_whole
from penstock.model.letters import late_schema
from penstock.model.time import MIN_TICK
from penstock.plan.catalog import Catalog
from penstock.plan.nodes import Conflate, Node, Source
from penstock.plan.physical import Physical
from penstock.plan.planner import in_process
from penstock.plan.reach import Endless
from penstock.plan.rules.read_through import read_through
from penstock.runtime.arcs import Outlet
from penstock.runtime.ets_arcs import shown
from penstock.runtime.graph import GraphNode
from penstock.runtime.kept_positions import positions_in
from penstock.runtime.lane import at_rest, lane_of
from penstock.runtime.lane_books import Lane
from penstock.runtime.pulling import Pulling
from penstock.runtime.replacing_graph import ReplacingGraph
from penstock.runtime.shared_explain import explain_shared
from penstock.runtime.shared_state import notes_in, restored, snapshot_of
from penstock.runtime.shares import Shares
from penstock.runtime.side_outputs import SidesByStream
from penstock.runtime.state_table import Fork
from penstock.runtime.strategies import Strategy

Named = tuple[str, Batch | Punctuation]
ENDED = "The streams have ended, and no other is read any more."
OVER = "start the flow again, with this query"


@dataclass(frozen=True)
class PlacedSegment:
    """Operators between break nodes, by their names in the state table, and how many rows a second they let go of."""

    operators: tuple[str, ...]
    slope: float


class SharedExecution(Hosting[Named]):
    """The running graph of several queries; it may be fed from several threads."""

    graph: ReplacingGraph
    side: SidesByStream

    def __init__(
        self, catalog: Catalog, plans: Mapping[str, Node] | None = None, *, bounds_in_place: bool = True
    ) -> None:
        """`plans` are those of the queries that are there from the start, by their names."""
        super().__init__(catalog, bounds_in_place=bounds_in_place)
        self.graph = ReplacingGraph(self.builder)
        self.replacements = Replacements(self)
        """Queries that are on their way to another plan."""
        self.side = SidesByStream(lambda: self.graph.rejecting)
        self.graph.side, self.graph.clock = self.side.take, self._now
        self.graph.measure(self.clocks)
        self.receive: Callable[[str, Batch | Punctuation], None] | None = None
        """Who is given what comes out, while nobody else touches the graph; it is handed on afterwards as well."""
        self.lose: Callable[[str, PenstockError], None] | None = None
        """Who is told that the source of a stream has failed, and may raise that; without it the run fails."""
        self.notes: dict[str, Any] = {}
        """What whoever runs the queries wants to be kept in snapshots: plain data."""
        self.when_replaced: Callable[[], object] = _nothing
        """Called when replacements have come to their end, while nobody else touches the graph."""
        self.plans: dict[str, Node] = {}
        self.planned: dict[str, Physical] = {}
        self._changing = threading.RLock()
        """Held while the graph changes, or must not."""
        self.weights: dict[str, float] = {}
        """Of queries that have more or less than others of the time of a run."""
        self._schemas = [stream.schema for stream in catalog.streams.values()]
        """Of all streams that there are: late rows of a run have one form, whichever of them it reads."""
        if plans:
            self.add(plans)

    @property
    def label(self) -> str:
        """The names of the queries."""
        return f"queries {', '.join(self.plans)}"

    def _drained(self) -> list[Named]:
        between = bool(self.graph.handovers) and self._under_way is None
        if between:
            self.replacements.before_results()
        found = list(self.graph.drain())
        if self.receive is not None:
            for name, element in found:
                self.receive(name, element)
        if between and self.replacements.after_results():
            self._renew_lanes()
            self._reshare()
            self.when_replaced()
        return found

    def _source_failed(self, stream: str, error: PenstockError) -> None:
        if self.lose is None:
            raise error
        self.lose(stream, error)

    def outlets(self) -> Mapping[str, Outlet]:
        """Where results are taken, by the names of their queries."""
        return self.graph.outlets

    def _plans(self) -> Iterable[Node]:
        return [*self.plans.values(), *(each.new for each in self.replacements.under_way.values())]

    def _results(self) -> Iterable[tuple[Outlet, Node]]:
        found = [(self.graph.outlets[name], plan) for name, plan in self.plans.items()]
        return found + [(self.graph.outlets[n], each.new) for n, each in self.replacements.under_way.items()]

    @staticmethod
    def _rows_in(out: Named) -> int:
        return len(out[1]) if isinstance(out[1], Batch) else 0

    # Queries

    def add(self, plans: Mapping[str, Node], openers: Mapping[str, Opener] | None = None) -> dict[str, int | None]:
        """Let queries join; from which time on each is complete, None if nothing was missed.

        Refuses at once what the engine does not support, and with it all of them. While sources are run, `openers` are
        asked for streams that nobody has read so far.
        """
        for plan in plans.values():
            check(plan, "in-process", SUPPORT)
            _check_alone(plan)
        planned = {name: in_process(read_through(plan), self.builder.catalog) for name, plan in plans.items()}
        with self._changing, self._alone():
            fresh = [source for plan in plans.values() for source in _sources(plan)]
            with self._to_read(fresh, openers or {}) as begin:
                outlets = self.graph.add(planned)
                self.plans |= plans
                self.planned |= planned
                self._let_in(fresh, begin, lambda: self._leave_all(plans))
            self._reshare()
        return {name: None if o.complete_from == MIN_TICK else o.complete_from for name, o in outlets.items()}

    def _let_in(self, fresh: Iterable[Source], begin: Callable[[], None], undo: Callable[[], object]) -> None:
        """What has joined the graph is given rows from here on; if its sources cannot be read it is undone."""
        for source in fresh:
            self.side.open(source.name, late_schema(source.schema, *self._schemas))
        self._renew_lanes()
        try:
            begin()
        except BaseException:
            undo()
            self._renew_lanes()
            raise

    @contextmanager
    def _to_read(self, fresh: Iterable[Source], openers: Mapping[str, Opener]) -> Iterator[Callable[[], None]]:
        """What has streams read that nobody has read so far; before `run` that begins with the run.

        Their sources are open from here on, and are let go of again if it comes to nothing.
        """
        known, pulling = {name.lower() for name in self.streams}, self._pulling
        names = list({s.name.lower(): s.name for s in fresh if s.name.lower() not in known}.values())
        if names and self.begun.is_set() and (pulling is None or pulling.is_done):
            raise StreamError(ENDED, where=names[0], hint=OVER)
        reading: dict[str, Iterator[Given]] = {}
        known_positions = set(self.positions)
        try:
            for name in names if pulling is not None else ():
                reading[name] = opened(name, openers)
                at_position(name, reading[name], self.positions)
            yield partial(self._begin, pulling, names, reading)
        except BaseException:
            let_go(reading.values())
            for name in {name.lower() for name in reading} - known_positions:
                self.positions.pop(name, None)
            raise

    def _begin(
        self, pulling: Pulling[Given] | None, names: Sequence[str], reading: Mapping[str, Iterator[Given]]
    ) -> None:
        self._reading |= reading
        for name in names:
            if pulling is not None and not pulling.add(name, reading[name], self._ahead.get(name.lower())):
                for each in names:  # the run has come to its end meanwhile
                    pulling.drop(each)
                    self._reading.pop(each, None)
                raise StreamError(ENDED, where=name, hint=OVER)
        self.streams += names

    def _open(self, sources: Mapping[str, Opener]) -> Pulling[Given]:
        """Nobody joins while the sources are opened: it would not be known whose they are."""
        with self._changing:
            return super()._open(sources)

    def remove(self, name: str) -> list[Batch | Punctuation]:
        """Let a query go, with the state that only it needs; what it gave and nobody has taken."""
        if name not in self.plans:
            raise StreamError(
                "There is no such query running.", got=str(name)[:200], hint=f"running: {', '.join(self.plans) or '-'}"
            )
        with self._changing, self._alone():
            if name in self.graph.handovers:
                self.replacements.before_results()
            left = self.graph.outlets[name].drain()
            self._leave(name)
            self._reshare()
        return left

    def _leave_all(self, names: Iterable[str]) -> None:
        for name in names:
            self._leave(name)

    def _leave(self, name: str) -> None:
        self.graph.remove(name)
        self.replacements.forget(name)
        del self.plans[name], self.planned[name]
        self.weights.pop(name, None)
        self._renew_lanes()

    # Queries that are replaced

    def can_replace(self, name: str, plan: Node) -> Prospect:
        """What it would be to replace a query by another plan of the same columns now; nothing changes."""
        planned = self._planned_anew(name, plan)
        with self._changing, self._alone():
            self._check_replaceable(name)
            return self.replacements.prospect(name, plan, planned)

    def replace(self, name: str, plan: Node, openers: Mapping[str, Opener] | None = None) -> Migration:
        """Replace a query by another plan of the same columns: old results before a time, new ones from there on.

        Everybody else goes on as before. Results that were not taken yet stay where they are.
        """
        planned = self._planned_anew(name, plan)
        with self._changing, self._alone():
            self._check_replaceable(name)
            prospect = self.replacements.prospect(name, plan, planned)
            if prospect.endless is not None:
                raise cannot_replace(name, prospect.endless)
            fresh = _sources(plan)
            with self._to_read(fresh, openers or {}) as begin:
                made = self.replacements.begin(name, plan, planned, prospect)
                self._let_in(fresh, begin, lambda: self.replacements.abandon(name))
            self._reshare()
        return made

    def abandon(self, name: str) -> Migration:
        """Let the old plan of a query go on, as long as nothing of the new one has come out."""
        with self._changing, self._alone():
            made = self.replacements.abandon(name)
            self._renew_lanes()
            self._reshare()
        return made

    def stand_for(self, name: str, plan: Node) -> None:
        """Before a snapshot is taken up: this is the plan that a query had."""
        self.plans[name], self.planned[name] = plan, self._planned_anew(name, plan)
        self._read_too(plan)

    def _read_too(self, plan: Node) -> None:
        """Before anything is read: so will be the streams of this plan."""
        fresh = _sources(plan)
        with self._to_read(fresh, {}) as begin:
            begin()
        for source in fresh:
            self.side.open(source.name, late_schema(source.schema, *self._schemas))

    def _planned_anew(self, name: str, plan: Node) -> Physical:
        check(plan, "in-process", SUPPORT)
        _check_alone(plan)
        planned = in_process(read_through(plan), self.builder.catalog)
        if name in self.plans and not planned.node.properties.insert_only:
            raise cannot_replace(name, Endless("its results are revised", plan.label, "add it as a query of its own"))
        return planned

    def _check_replaceable(self, name: str) -> None:
        if name not in self.plans:
            raise StreamError(
                "There is no such query running.", got=str(name)[:200], hint=f"running: {', '.join(self.plans) or '-'}"
            )
        if name in self.replacements.under_way:
            raise StreamError(
                "The query is being replaced already.",
                where=f"query {name}",
                hint="wait until that has come to its end, or abandon() it",
            )
        check_running([self._entrance(stream).reached() for stream in self.streams_of(name)], name)

    def explain(self) -> str:
        """The graph as it is now: what each query runs, and what of it is shared with whom."""
        with self._alone():
            return explain_shared(self.graph)

    def nodes_of(self, name: str) -> list[GraphNode]:
        """The operators that a query takes part in, the last one first."""
        found: dict[GraphNode, None] = {}

        def visit(node: GraphNode) -> None:
            if node not in found:
                found[node] = None
                for arc in node.inputs:
                    visit(arc.producer)

        visit(self.graph.outlets[name].producer)
        return list(found)

    def streams_of(self, name: str) -> list[str]:
        """The streams that a query reads."""
        made = self.replacements.under_way.get(name)
        plans = [self.plans[name], *([] if made is None else [made.new])]
        return list(dict.fromkeys(source.name for plan in plans for source in _sources(plan)))

    def feedback(self, name: str, bound: int) -> None:
        """The consumer of a query no longer needs what ends before `bound`; what nobody needs is skipped."""
        if not is_whole(bound):
            raise StreamError("A bound is an integer.", where="feedback", got=repr(bound)[:200], hint="ticks")
        with self._alone():
            self.graph.feedback(name, bound)

    def counts_of(self, streams: Iterable[str], failed: int) -> Counts:
        """Where the rows of some streams went, since each was first read; so many failed in operators."""
        with self._gate.alone(), at_rest(self.lanes.values()):
            return replace(self._counted_of([stream.lower() for stream in streams]), failed=failed)

    def _left(self, streams: set[str]) -> dict[str, int]:
        side = self.side
        return {
            "late": sum(len(kept) for stream, kept in side.by_stream.items() if stream in streams),
            "dead": sum(count for stream, count in side.dead_of.items() if stream in streams),
            "failed": side.failed,
        }

    # State

    def snapshot(self, sinks: Mapping[str, Any] | None = None) -> bytes:
        """The state of every operator, what each query has missed, results that nobody has taken, where sources are.

        `sinks` are the positions of sinks, by whatever name whoever writes to them has for each.
        """
        with self._alone():
            following = {name: each.new for name, each in self.replacements.under_way.items()}
            kept = [self.replacements.to_plain(), self.notes]
            return snapshot_of(self.graph, self.plans, self.positions, sinks, following, kept)

    def restore(self, snapshot: bytes, following: Mapping[str, Node] | None = None) -> None:
        """Take up the state of a snapshot of the same queries; nothing may have been fed before.

        Of queries that were being replaced, `following` are the plans that take their places.
        """
        new = {name: (plan, self._planned_anew(name, plan)) for name, plan in (following or {}).items()}
        with self._changing, self._alone():
            if self._reads or self.lanes or self._pulling is not None:
                raise StreamError("Rows were fed already.", where=self.label, hint="restore before anything is fed")
            self.graph = restored(self.graph, snapshot, self.plans, self.planned, new)
            self.positions = positions_in(snapshot)
            for plan, _ in new.values():
                self._read_too(plan)
            under_way, self.notes = notes_in(snapshot) or ({}, {})
            self.replacements.take_up(under_way, new)

    # Which operator runs next

    def use(self, strategy: Strategy, query: str | None = None) -> None:
        """Run by another strategy from here on, all queries or one; what is under way goes on by it."""
        with self._changing:
            table = self.graph.table_by(strategy, query)  # which takes longer than anybody should have to wait
            with self._gate.alone(), at_rest(self.lanes.values()):
                self.graph.use(strategy, query, table)
                self._renew_lanes()

    def break_after(self, state: str, *, broken: bool = True) -> None:
        """Put a virtual break node behind an operator, by its name in the table, or take it away."""
        with self._changing, self._gate.alone(), at_rest(self.lanes.values()):
            names = {name: node for node, name in self.graph.table.names().items() if not isinstance(node, Fork)}
            node = names.get(state) if isinstance(state, str) else None
            if node is None or not _is_taken(node):
                known = ", ".join(name for name, each in names.items() if _is_taken(each)) or "none"
                raise StreamError(
                    "A break node stands between an operator and those that take what it gives.",
                    where="break_after",
                    got=repr(state)[:200],
                    hint=f"one of {known}, see table()",
                )
            self.graph.break_after(node, broken=broken)
            self._renew_lanes()

    def place_breaks(self, rule: str | None) -> list[PlacedSegment]:
        """Put break nodes by what was measured so far, or take away those that were put so; the steepest first."""
        with self._changing, self._gate.alone(), at_rest(self.lanes.values()):
            nodes = self.graph.nodes
            if rule is not None and all(node.processor_seconds is None for node in nodes):
                raise StreamError(
                    "Nothing has been measured yet by which break nodes could be placed.",
                    where="place_breaks",
                    hint="ask again when rows have gone through, see statistics()",
                )
            found = self.graph.place_breaks(rule)
            self._renew_lanes()
            names = self.graph.table.names()
            placed = [PlacedSegment(tuple(names[node] for node in each.operators), each.slope) for each in found]
            return sorted(placed, key=lambda each: -each.slope)

    def weigh(self, weights: Mapping[str, float]) -> None:
        """Share the time of a run among components by the weights of their queries; one that is not said weighs 1."""
        with self._gate.alone():
            self.weights |= weights
            self._reshare()

    def components(self) -> list[tuple[set[str], list[str]]]:
        """What has no arc between them: the streams of each, in lower case, and its queries."""
        found: list[tuple[set[str], list[str]]] = []
        for name in self.plans:
            streams = {stream.lower() for stream in self.streams_of(name)}
            met = [each for each in found if each[0] & streams]
            found = [each for each in found if not each[0] & streams]
            queries = [query for _, others in met for query in others]
            found.append((streams.union(*(own for own, _ in met)), [*queries, name]))
        return found

    def _reshare(self) -> None:
        former = self.shares
        if not self.weights:
            self.shares = None
        else:
            components = self.components()
            own = {at: sum(self.weights.get(q, 1.0) for q in queries) for at, (_, queries) in enumerate(components)}
            self.shares = Shares({s: at for at, (streams, _) in enumerate(components) for s in streams}, own)
            if former is not None:
                self.shares.take_over(former)
        if self._pulling is not None:
            self._pulling.shares = self.shares

    def table(self) -> str:
        """The state table of the graph as it is now, and what each state is."""
        with self._gate.alone():
            return self.graph.table.show(lambda node: node.label)

    def ets_arcs(self) -> str:
        """The ways by which promises go past operators that do not care, a line each."""
        with self._gate.alone():
            self.graph.tabulate()
            return shown(self.graph.nodes)

    def use_ets_arcs(self, *, used: bool) -> None:
        """Whether promises go by ETS arcs, as they do by default, or from operator to operator."""
        with self._alone():
            self.graph.executor.skips = used

    # Single rows

    def pusher(self, stream: str) -> Callable[[Row], None]:
        """As `Hosting.pusher`; the function goes on when queries come and go."""
        name = self._known(stream)
        if self.stamps.bare(name) is not None:
            return super().pusher(name)
        with self._alone():
            if name not in self.lanes:
                self.lanes[name] = self._lane(name)
        return partial(self._push, name)

    def _push(self, stream: str, row: Row) -> None:
        self.lanes[stream].push(row)

    def _lane(self, stream: str) -> Lane:
        bury = partial(self.side.bury, str(self.graph.sources[stream][0].stream))
        return lane_of(self.graph, stream, self.builder.functions, bury, self._gate, partial(self._push, stream))

    def _renew_lanes(self) -> None:
        """Lanes are compiled for a graph: when it changes they are made anew, and an old one hands rows to the new."""
        for name, lane in list(self.lanes.items()):
            self._reads[name] += lane.read()
            lane.retire()
            self.lanes[name] = self._lane(name)


def _is_taken(node: GraphNode) -> bool:
    return any(arc.consumer is not None for arc in node.arcs)


def _check_alone(plan: Node) -> None:
    """Refuse what shares its operators with nobody."""
    queue = next((n for n in plan.walk() if isinstance(n, Conflate) and n.windows is not None), None)
    if queue is not None:
        raise UnsupportedError(
            "Aggregates over a queue of windows are run for one query.", where=queue.label,
            hint="query.start(sink), or conflate the stream without windows=…",
        )  # fmt: skip


def _sources(plan: Node) -> list[Source]:
    return [node for node in plan.walk() if isinstance(node, Source)]


def _nothing() -> None:
    pass
