"""Queries that are replaced while they run: asking whether it can be, doing it, undoing it, and what came of it.

A query without state is replaced *at once* by another one over the same streams that has none either: what came before
is the old one's, what comes after is the new one's. Any other replacement has a *split*, the time from which on the new
plan is right (`ReplacingGraph.split_of`). Both plans run until the old one has promised everything before it.

What belongs to streams goes on through all of it: what is late, dead letters, row numbers, progress. Nothing of an
operator's state is copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from penstock.errors import StreamError
from penstock.model.accounts import Counts
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.migration.handover import Phase
from penstock.operators.progress.ingest import RowIngest
from penstock.plan.kept_promises import are_groups_kept, attributes_apart
from penstock.plan.nodes import Lookup, Node, NumberRows, Project, Select, Source, Union, Unnest
from penstock.plan.physical import Physical
from penstock.plan.reach import Endless, Reach, plan_reach
from penstock.runtime.graph_node import GraphNode
from penstock.runtime.held_bytes import bytes_of_pages
from penstock.runtime.replacing_graph import ReplacingGraph

STATELESS = (Source, Select, Project, Unnest, Lookup, Union)


@dataclass(frozen=True)
class Moment:
    """How far streams had come."""

    arrivals: int
    """How many rows of the streams had been read."""
    on_time: int
    """How many of them were on time."""
    newest: Mapping[str, int | None]
    """Per stream, the greatest time of a row."""
    frontier: Mapping[str, int]
    """Per stream, the bound below which nothing more comes."""


@dataclass(frozen=True)
class Prospect:
    """What a replacement would be, if it were begun now."""

    split: int | None
    """From when on the new plan speaks; None if it takes over at once, or not at all."""
    endless: Endless | None
    """Why there is no such time."""
    reach: Mapping[str, Reach]
    """How long a row of each stream can matter to results of the new plan."""
    newest: Mapping[str, int | None]
    """The greatest time of a row of each of these streams so far."""
    shared: tuple[str, ...] = ()
    """Operators that are at work already."""
    fresh: tuple[str, ...] = ()
    """Operators that would be new."""

    @property
    def at_once(self) -> bool:
        """Whether nothing has to be waited for."""
        return self.split is None and self.endless is None

    @property
    def postponed_by(self) -> str | None:
        """The stream whose greatest row postpones the split most."""
        known = [
            (newest + reach, name)
            for name, reach in self.reach.items()
            if isinstance(reach, int) and (newest := self.newest.get(name)) is not None
        ]
        return max(known)[1] if known else None


@dataclass
class Migration:
    """A query on its way from one plan to another, or what came of it."""

    name: str
    old: Node = field(repr=False)
    new: Node = field(repr=False)
    old_planned: Physical = field(repr=False)
    new_planned: Physical = field(repr=False)
    split: int | None
    """None if it is at once."""
    began: Moment
    counted_from: int
    """How many rows had been on time when it began; less what was fed to both in runs before this one."""
    state: str = "under way"
    """`under way`, `done`, `abandoned`, `failed` if an error of the new plan has undone it, or `removed`."""
    ended: Moment | None = None
    fed_to_both: int = 0
    """How many rows on time went to both plans."""
    freed_operators: tuple[str, ...] = ()
    freed_bytes: int = 0
    error: Exception | None = None


class ReplacingHost(Protocol):
    """Who runs the graph."""

    plans: dict[str, Node]
    planned: dict[str, Physical]

    @property
    def graph(self) -> ReplacingGraph:
        """What runs."""

    def _counted_of(self, streams: Iterable[str]) -> Counts: ...

    def _entrance(self, stream: str) -> RowIngest: ...


class Replacements:
    """Of one running graph."""

    def __init__(self, host: ReplacingHost) -> None:
        """None so far."""
        self.host = host
        self.under_way: dict[str, Migration] = {}
        self.last: dict[str, Migration] = {}
        """What came of the last one of each query."""
        self._has_ended = False
        """Whether one has come to its end since somebody was told."""

    # Whether

    def prospect(self, name: str, plan: Node, planned: Physical) -> Prospect:
        """What a replacement would be now."""
        host = self.host
        reach, streams = plan_reach(plan), _streams(plan)
        newest = {stream: self._newest(stream) for stream in streams}
        there, fresh = host.graph.shares(planned)
        shared, own = tuple(p.node.label for p in there), tuple(p.node.label for p in fresh)
        if self._is_at_once(host.plans[name], plan):
            return Prospect(None, None, reach, newest, shared, own)
        if (apart := _scales_apart(host.plans[name], plan)) is not None:
            return Prospect(None, apart, reach, newest, shared, own)
        split = host.graph.split_of(name, host.planned[name], planned)
        if isinstance(split, Endless):
            return Prospect(None, split, reach, newest, shared, own)
        return Prospect(split, None, reach, newest, shared, own)

    @staticmethod
    def _is_at_once(old: Node, new: Node) -> bool:
        """Neither has state, both read the same streams, and what was promised holds of both."""
        if not (_is_stateless(old) and _is_stateless(new) and set(_streams(old)) == set(_streams(new))):
            return False
        return not attributes_apart(old, new) and are_groups_kept(old, new)

    def _newest(self, stream: str) -> int | None:
        readings = self.host.graph.sources.get(stream.lower(), [])
        operators = [node.operator for node in readings]
        known = [each.greatest for each in operators if isinstance(each, RowIngest) and each.greatest is not None]
        return max(known, default=None)

    # Doing it

    def begin(self, name: str, plan: Node, planned: Physical, prospect: Prospect) -> Migration:
        """Let a new plan take over; nobody else touches the graph meanwhile."""
        host = self.host
        began = self._moment(name, plan)
        made = Migration(
            name, host.plans[name], plan, host.planned[name], planned, prospect.split, began, began.on_time
        )
        split = MIN_TICK if prospect.split is None else prospect.split
        host.graph.hand_over(name, made.old_planned, planned, split, at_once=prospect.at_once)
        self.under_way[name] = self.last[name] = made
        self.after_results()  # the old plan may have said all by now
        return made

    def abandon(self, name: str) -> Migration:
        """Let the old plan go on."""
        made = self.under_way.get(name)
        if made is None:
            raise StreamError("No replacement is under way.", where=f"query {name}", hint="run.replace(sql) begins one")
        if self.host.graph.phase(name) is not Phase.BOTH or self.host.graph.is_begun(name):
            raise StreamError(
                "The replacement cannot be abandoned any more: results of the new query are out.",
                where=f"query {name}",
                hint="wait until it has come to its end, then replace the query once more",
            )
        self._undo(made, "abandoned")
        return made

    def _undo(self, made: Migration, state: str, error: Exception | None = None) -> None:
        self._end(made, state, self.host.graph.undo(made.name).nodes)
        made.error = error

    def before_results(self) -> None:
        """Results are about to be taken: what has waited comes out; a new plan that has failed is given up."""
        graph = self.host.graph
        for name, made in list(self.under_way.items()):
            failed = graph.failure(name)
            if failed is None:
                continue
            node, failure = failed
            if graph.phase(name) is not Phase.BOTH or graph.is_begun(name):
                raise failure
            self._undo(made, "failed", failure)
            if node in graph.nodes:  # somebody else takes from it too, and would lack what it did not give
                raise failure
        graph.let_new_out()

    def after_results(self) -> bool:
        """Results were taken: old plans that have said all go, and handovers that nobody needs; whether any did."""
        graph = self.host.graph
        for name in list(graph.handovers):
            made = self.under_way.get(name)
            if made is not None and graph.phase(name) is Phase.NEW:
                self._end(made, "done", graph.let_old_go(name).nodes)
                self.host.plans[name], self.host.planned[name] = made.new, made.new_planned
        retired = [name for name in list(graph.handovers) if graph.retire(name)]
        changed, self._has_ended = bool(retired) or self._has_ended, False
        return changed

    def forget(self, name: str) -> None:
        """A query has left."""
        made = self.under_way.pop(name, None)
        if made is not None:
            made.state = "removed"

    def to_plain(self) -> dict[str, Any]:
        """What is under way, for a snapshot: the split, how far streams had come, and what was fed to both."""
        found = {}
        for name, made in self.under_way.items():
            fed = self._moment(name, made.new).on_time - made.counted_from
            began = [made.began.arrivals, made.began.on_time, dict(made.began.newest), dict(made.began.frontier)]
            found[name] = [made.split, began, fed]
        return found

    def take_up(self, saved: Mapping[str, Any], following: Mapping[str, tuple[Node, Physical]]) -> None:
        """What was under way in a run before this one goes on."""
        host = self.host
        for name, (split, began, fed) in saved.items():
            plan, planned = following[name]
            self.under_way[name] = self.last[name] = Migration(
                name, host.plans[name], plan, host.planned[name], planned, split, Moment(*began), -fed
            )

    def _end(self, made: Migration, state: str, gone: Iterable[GraphNode]) -> None:
        nodes = list(gone)
        made.state, made.ended = state, self._moment(made.name, made.new, made.old)
        made.fed_to_both = 0 if made.split is None else made.ended.on_time - made.counted_from
        made.freed_operators = tuple(node.label for node in nodes)
        made.freed_bytes = sum(bytes_of_pages(node.operator.pages) for node in nodes)
        del self.under_way[made.name]
        self._has_ended = True

    def _moment(self, name: str, *plans: Node) -> Moment:
        host = self.host
        streams = list(dict.fromkeys(s for plan in (*plans, host.plans[name]) for s in _streams(plan)))
        known = [stream for stream in streams if stream.lower() in host.graph.sources]
        counts = host._counted_of([stream.lower() for stream in known])
        frontier = {stream: host._entrance(stream).reached() for stream in known}
        return Moment(counts.read, counts.on_time, {s: self._newest(s) for s in known}, frontier)


def _streams(plan: Node) -> list[str]:
    return list(dict.fromkeys(node.name for node in plan.walk() if isinstance(node, Source)))


def _is_stateless(plan: Node) -> bool:
    """Whether nothing of it depends on what came before, and rows are at the times at which they were."""
    return all(
        isinstance(node, STATELESS)
        and node.schema.lives is None
        and not getattr(node, "by_arrival", False)
        and not (isinstance(node, Project) and not node.keeps_time)
        for node in plan.walk()
    )


def _scales_apart(old: Node, new: Node) -> Endless | None:
    """Results of both must be on one scale, or no time divides them."""
    scales = _scale(old), _scale(new)
    if scales[0] == scales[1]:
        return None
    return Endless(
        f"its results are by {scales[1]}, and those of the query that runs by {scales[0]}, so no time divides them",
        new.label,
        "add it as a query of its own, and remove the other",
    )


def _scale(plan: Node) -> str:
    """What the times of results count."""
    for node in plan.walk():
        if isinstance(node, NumberRows) and not node.keeps_time:
            return "row numbers"
        if isinstance(node, Project) and not node.keeps_time:
            return f"`{node.label}`"
    return "time"


def cannot_replace(name: str, endless: Endless) -> StreamError:
    """Why a query cannot be replaced by another, and what to do instead."""
    return StreamError(
        "The query cannot be replaced by this one while it runs: there is no time from which on that would be right.",
        where=f"query {name}",
        got=str(endless),
        hint=endless.instead,
    )


def other_columns(name: str, differences: list[str]) -> StreamError:
    """A query whose results have other columns than those that are being written."""
    return StreamError(
        "The new query gives other columns, and whoever takes the results knows the old ones.",
        where=f"query {name}",
        got="; ".join(differences)[:400],
        hint="give the columns the names, types and order that they had, say mapping={'new name': 'old name'}, "
        "or add it as a query of its own and remove this one",
    )


def check_running(frontier: Iterable[int], name: str) -> None:
    """Streams that have all ended bring nothing for a new plan."""
    bounds = list(frontier)
    if bounds and min(bounds) >= END_OF_TIME:
        raise StreamError(
            "The streams of the query have ended, so nothing is left to replace.",
            where=f"query {name}",
            hint="start the new query on its own",
        )
