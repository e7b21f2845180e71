"""Several queries of a flow at work as one: streams are read once, and what the queries have in common runs once.

Queries join with `add` and leave with `stop`, while the others go on. One that joins later has missed rows: its results
are complete from `complete_from` on, and it gives none before that. A query whose sink fails leaves, and says why; the
others go on. Late rows and dead letters belong to the streams, so the flow's run has them all, and each query shows
those of its streams since it joined.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pyarrow as pa

from penstock.engines.local.shared import Named, PlacedSegment, SharedExecution
from penstock.errors import PenstockError, StreamError
from penstock.flow.background import BackgroundRun, as_ours
from penstock.flow.destinations import Destination, Forward
from penstock.flow.keeping import Keeping, kept_opener, positions_of
from penstock.flow.local import LocalQuery, check_apart
from penstock.flow.query import Query
from penstock.flow.query_run import QueryRun
from penstock.flow.replacement import Replacement, ReplacementCheck
from penstock.flow.replacing_together import ReplacingTogether
from penstock.io.broker_uris import by_uri
from penstock.io.buffered import BufferedSink
from penstock.io.elements import LocalSource
from penstock.io.event_loops import at_home
from penstock.io.files import check_not_read
from penstock.io.sinks import Sink, open_sink
from penstock.model.accounts import DeadLimit
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, is_whole
from penstock.plan.catalog import Catalog
from penstock.runtime.strategies import Strategy, strategy_of

REMEMBERED = 100
"""So many queries that have left are still to be found in a flow's run."""
MOST = sys.float_info.max
"""The greatest weight."""


class FlowRun(BackgroundRun[Named]):
    """Several queries at work in a thread."""

    def __init__(
        self,
        name: str,
        catalog: Catalog,
        sources: Mapping[str, LocalSource],
        late: Sink,
        dead: Sink,
        max_dead: float | None,
        max_held: int | None = None,
        keeping: Keeping | None = None,
    ) -> None:
        """Made by `Flow.start`."""
        self.execution: SharedExecution = SharedExecution(catalog, bounds_in_place=False)
        self.runs: dict[str, QueryRun] = {}
        """The queries by name, also those that have left."""
        self._keeping = keeping
        """Where snapshots are kept while the run goes on."""
        self._given = 0
        """How many tables have come out."""
        self._sources = sources
        self._openers = {key: source.open for key, source in sources.items()}
        self._live = {key: source.ahead for key, source in sources.items() if source.ahead is not None}
        side = self.execution.side
        forwards = (
            Forward("late rows", late, name, lambda: list(side.by_stream.values())),
            Forward("dead letters", dead, name, lambda: (side.letters,)),
        )
        self._joining = threading.RLock()
        """Held while queries come or go."""
        self._replacing = ReplacingTogether(self)
        self._ready: deque[QueryRun] = deque()
        self._is_over = False
        self.when_alone: Callable[[], object] = lambda: None
        """Called when the last query has left, and the run goes on without any."""
        self._max_held = max_held
        self._paths = {key: source.paths for key, source in sources.items()}
        super().__init__(name, forwards, max_dead)
        self.execution.receive, self.execution.lose = self._receive, self._lose

    # Queries

    def add(self, query: Query, sink: Any) -> QueryRun:
        """Let a query join; its results go to `sink`, as those of `Query.start` do."""
        return self._join([(query, by_uri(sink))])[query.name]

    def _join(self, queries: Iterable[tuple[Query, Any]]) -> dict[str, QueryRun]:
        with self._joining, at_home(self._home), ExitStack() as opened:
            made: dict[str, QueryRun] = {}
            for given, target in queries:
                query = self._checked(given, made)
                if isinstance(target, str | os.PathLike):
                    check_not_read(target, self._paths, query.name)
                self._check_kept(query)
                sink = open_sink(target, query.form.arrow, continued=self._keeping is not None)
                if self._max_held is not None:
                    sink = BufferedSink(sink, self._max_held, query.name)
                made[query.name] = QueryRun(self, query, sink)
                opened.callback(made[query.name]._results.sink.abandon)
            before = {n: r for n, r in self.runs.items() if n in made}
            for run in made.values():
                side = self.execution.side
                run._seen = {name: len(kept) for name, kept in side.by_stream.items()}
                run._letters = len(side.letters)
            # Results may come at once, so the queries are known before they join.
            self.runs |= made
            try:
                self.execution.add({n: r.query.plan for n, r in made.items()}, self._openers)
            except BaseException:
                self.runs = {n: r for n, r in (self.runs | before).items() if n not in made or n in before}
                raise
            for run in made.values():
                run._joined()
            opened.pop_all()  # from here on the runs close them
        self._hand_on_what_follows()  # from what was promised before
        return made

    def _check_kept(self, query: LocalQuery) -> None:
        """Where snapshots are kept, all streams of a query must be such that they can be gone on with."""
        for stream in query.streams if self._keeping is not None else ():
            self._openers[stream.lower()] = kept_opener(stream, self._sources[stream.lower()])

    def _checked(self, query: object, made: Mapping[str, QueryRun]) -> LocalQuery:
        if not isinstance(query, LocalQuery) or query.catalog is not self.execution.builder.catalog:
            raise StreamError(
                "Not a query of this flow.", where=self.name, got=repr(query)[:200], hint="flow.query('SELECT …')"
            )
        self._check_at_work()
        if query.name in made or query.name in self.execution.plans:
            raise StreamError(
                "A query of that name is running.",
                where=self.name,
                got=query.name,
                hint="flow.query(…, name=…) gives another name; run.runs[name].stop() lets one go",
            )
        return query

    def _check_at_work(self) -> None:
        if self._is_over:
            raise StreamError("The flow's run is over.", where=self.name, hint="start it again with flow.start(…)")

    def punctuate(self, stream: str, bound: int) -> None:
        """Tell a stream from outside that nothing below `bound` (in ticks) comes any more."""
        self._check_at_work()
        super().punctuate(stream, bound)

    def remove(self, name: str, *, publish: bool = False) -> None:
        """Let a query go; the others go on. See `Run.stop` for `publish`."""
        run = self.runs.get(name) if isinstance(name, str) else None
        if run is None:
            known = ", ".join(self.execution.plans) or "none"
            raise StreamError("There is no such query.", where=self.name, got=str(name)[:200], hint=f"running: {known}")
        run.stop(publish=publish)

    # Queries that are replaced

    def can_replace(self, name: str, sql: Any, *, mapping: Mapping[str, str] | None = None) -> ReplacementCheck:
        """Whether a query can be replaced by another one now; see `replace`."""
        return self._replacing.can_replace(self.runs[self._running(name)], sql, mapping)

    def replace(self, name: str, sql: Any, *, mapping: Mapping[str, str] | None = None) -> Replacement:
        """Replace a query by another one while it runs; the others do not notice. See `Run.replace`."""
        return self._replacing.replace(self.runs[self._running(name)], sql, mapping)

    def _hand_on_what_follows(self) -> None:
        """What follows from a change of the graph comes out at once."""
        if not self._thread.is_alive():
            return
        self.execution.take()
        if self._home is not None and self._home.is_here:  # a sink may need the loop that runs here
            threading.Thread(target=self._hand_on, name=f"penstock-{self.name}-joined", daemon=True).start()
        else:
            self._hand_on(wait=False)

    def _remove(self, run: QueryRun, *, publish: bool, error: PenstockError | None = None) -> None:
        if error is not None and self._keeping is not None:
            self._give_up(error)
        with self._joining:
            if run._is_removed or run._left.is_set() or self.runs.get(run.name) is not run:
                return
            run._is_removed = True
            if run.name in self.execution.plans:
                run._pending.extend(self.execution.remove(run.name))
            self._replacing.forget(run.name)
            gone = [name for name, each in self.runs.items() if each._is_removed]
            for name in gone[: len(gone) - REMEMBERED]:
                del self.runs[name]
        with run._handing:
            try:
                while error is None and run._broken is None and run._pending:
                    run._results.take(run._pending.popleft())
            except BaseException as failure:
                error = as_ours(failure, run.name)
            run._leave(error, whole=publish)
        if not self.execution.plans:
            self.when_alone()

    # Which operator runs next

    @property
    def strategy(self) -> str:
        """By which strategy queries run that have none of their own; set it to run all of them by another."""
        return str(self.execution.graph.strategy)

    @strategy.setter
    def strategy(self, strategy: str | Strategy) -> None:
        self.use(strategy)

    def use(self, strategy: str | Strategy, query: str | None = None) -> None:
        """Run by another strategy from now on: all queries, or what only one of them needs.

        `dfs`, depth-first, has the least latency; `bfs`, breadth-first, and `round_robin` run an operator for all that
        waits for it; `pk.dfs(batch=64)` is between them. The results are the same. Of a run that is over only the table
        changes.
        """
        wanted = strategy_of(strategy, self.name)
        self.execution.use(wanted, None if query is None else self._running(query))

    def table(self) -> str:
        """The state table of the graph as it is: which operator runs next, and by which rule."""
        return self.execution.table()

    def break_after(self, state: str, *, broken: bool = True) -> None:
        """Put a virtual break node behind an operator, by its name in `table()`; `broken=False` takes it away.

        What the operator gives waits there until all that came before it has been done.
        """
        if not isinstance(broken, bool):
            raise StreamError(
                "A break node is there or not.", where="break_after", got=repr(broken)[:200], hint="True or False"
            )
        self.execution.break_after(state, broken=broken)

    def ets_arcs(self) -> str:
        """The ways by which promises go past operators that do nothing with them, a line each."""
        return self.execution.ets_arcs()

    def place_breaks(self, rule: str | None = "chain") -> list[PlacedSegment]:
        """Put break nodes where Chain would, by the costs and selectivities that were measured so far.

        Between them are segments; of those that have something to do, the one runs that lets go of the most rows a
        second, so that in a burst as little waits as can be. Asked again, they are placed anew; `None` takes them away.
        Those that were put by `break_after` stay.

        Returns:
            The segments, the steepest first: the one that runs before the others.
        """
        if rule not in ("chain", None):
            raise StreamError(
                "There is no such rule for break nodes.", where=self.name, got=repr(rule)[:200], hint="'chain', or None"
            )
        return self.execution.place_breaks(rule)

    def share(self, weights: Mapping[str, float]) -> None:
        """Share the time of the run by weights of queries, by name; one that has none weighs 1.

        Queries that read the same streams are one component, and weigh what they do together.
        """
        self._check_at_work()
        self.execution.weigh(checked_weights(weights, self.name, self._running))

    def _running(self, query: object) -> str:
        """The name of a query that runs."""
        name = getattr(query, "name", query)
        if not isinstance(name, str) or name not in self.execution.plans:
            known = ", ".join(self.execution.plans) or "none"
            raise StreamError("There is no such query.", where=self.name, got=str(name)[:200], hint=f"running: {known}")
        return name

    def held(self) -> dict[str, int]:
        """How many results (batches and bounds) of each query have come out and were not taken by its sink.

        One thread runs all queries and writes to their sinks. A sink that does not come back holds up the others, so no
        more than what came out together is ever held; the query that holds them up is named first. With `max_held` each
        sink has a thread of its own, and holds up the others only when so many results wait for it.
        """
        runs = [run for run in self.runs.values() if not run._is_removed]
        return {run.name: run._held() for run in sorted(runs, key=lambda run: not run._is_writing)}

    def cut_off(self, name: str) -> None:
        """Let a query go whose sink does not take its results, without waiting for it; what waits for it is lost."""
        run = self.runs[self._running(name)]
        sink = run._results.sink
        if not isinstance(sink, BufferedSink):
            raise StreamError(
                "The run itself writes to this sink, and cannot leave it.",
                where=f"query {run.name}",
                hint="flow.start(…, max_held=1000) writes to sinks beside the run",
            )
        held = run._held()
        error = StreamError(
            "The query was cut off: its sink did not take its results.",
            where=f"query {run.name}",
            got=f"{held} results waited",
            hint="the others go on; start it again with another sink",
        )
        run._is_cut_off = True
        sink.cut(error)
        self._remove(run, publish=False, error=error)

    def process_available(self) -> None:
        """Until everything that the sources have given is processed, and sinks have taken what came of it."""
        super().process_available()
        for run in list(self.runs.values()):
            if isinstance(run._results.sink, BufferedSink):
                run._results.sink.flush()

    def explain(self) -> str:
        """The graph of the queries that run: a tree for each, and what of it is shared with whom."""
        return self.execution.explain()

    # Running

    def _items(self) -> Iterator[Named]:
        execution = self.execution
        return execution.run(self._openers, self.max_dead, self._is_cut_short, live=self._live, between=self._forward)

    def _receive(self, name: str, element: Batch | Punctuation) -> None:
        """Something has come out of a query; nobody else touches the graph meanwhile."""
        self._given += isinstance(element, Batch)
        run = self.runs[name]
        run._pending.append(element)
        self._ready.append(run)

    def _take(self, item: Named) -> None:
        self._hand_on()

    def _hand_on(self, *, wait: bool = True) -> None:
        """Hand on what has come out; of a query whose sink is busy, if that is not to be waited for, the next time."""
        busy = []
        while self._ready:
            try:
                run = self._ready.popleft()
            except IndexError:  # another thread was faster
                break
            if not run._hand_on(wait=wait):
                busy.append(run)
        self._ready.extend(busy)

    def _lose(self, stream: str, error: PenstockError) -> None:
        """The source of a stream has failed: the queries that read it leave, and the others go on, if there are any."""
        with self._joining:
            lost = [r for r in self.runs.values() if not r._is_removed and stream in r._streams]
            if self._keeping is not None or len(lost) == len(self.execution.plans):
                raise error
        for run in lost:
            self._remove(run, publish=False, error=error)

    def _result_sinks(self) -> list[Sink]:
        return [run._results.sink for run in list(self.runs.values()) if not run._left.is_set()]

    def _close(self, *, whole: bool) -> None:
        with self._joining:
            self._is_over = True
            runs = list(self.runs.values())
        self.execution.take()
        self._hand_on()
        for run in runs:
            if not run._left.is_set():
                run._leave(None, whole=whole)
            if run._replacement is not None:
                run._replacement.is_over()
        self._fail_with(runs)
        if self._keeping is not None:
            self._keeping.folder.release()

    def _fail_with(self, runs: Iterable[QueryRun]) -> None:
        """A flow of which no query has come to its end has failed; where snapshots are kept, each query matters."""
        broken = [run._error for run in runs if run._error is not None and not run._is_cut_off]
        well = any(run._error is None and not run._is_removed for run in runs)
        if self._error is None and broken and (self._keeping is not None or not well):
            self._fail(broken[0])

    # Snapshots

    def _forward(self) -> None:
        super()._forward()
        keeping = self._keeping
        if keeping is None or self._error is not None or self.execution.is_under_way:
            return
        if keeping.is_due(self.execution.clock(), self._come):
            self._keep(keeping)

    def _before_closing(self) -> None:
        if self._keeping is not None:
            super()._forward()
            self._keep(self._keeping)

    @property
    def _come(self) -> tuple[int, int]:
        """What has come in, and out."""
        return self.execution.taken, self._given

    def _keep(self, keeping: Keeping) -> None:
        """Keep a snapshot, of the graph, its sources and its sinks in one moment."""
        with self._joining:
            self.execution.take()  # what other threads have brought about
            self._hand_on()
            if self._error is None:
                snapshot = self.execution.snapshot(positions_of(self._sinks()))
                keeping.keep(snapshot, self.execution.clock(), self._come)

    def _sinks(self) -> dict[str, Destination]:
        """All sinks that are written to."""
        runs = [run for run in self.runs.values() if not run._is_removed]
        return {side.name: side for side in self._side} | {f"results of {run.name}": run._results for run in runs}

    def _give_up(self, error: PenstockError) -> None:
        """A query has failed, and without it no snapshot would be of all: the run goes on from the last one."""
        self._fail(error)
        self._asked.set()
        self.execution.halt()

    @property
    def late(self) -> pa.Table:
        """The late rows of all streams so far, if these have one kind of time."""
        tables = [kept.table() for kept in self.execution.side.by_stream.values()]
        if len({table.schema for table in tables}) > 1:
            raise StreamError(
                "Streams with different kinds of time have no late rows of one form.",
                where=self.name,
                hint="ask each query: run.runs[name].late",
            )
        return pa.concat_tables(tables)

    def snapshot(self) -> bytes:
        """The state of all queries; take it when the run is over."""
        return self.execution.snapshot()


def checked_weights(weights: object, where: str, running: Callable[[object], str]) -> dict[str, float]:
    """Weights of queries by name."""
    if not isinstance(weights, Mapping) or not all(
        isinstance(w, int | float) and not isinstance(w, bool) and 0 < w <= MOST for w in weights.values()
    ):
        raise StreamError(
            "Weights are numbers above zero, by query.",
            where=where,
            got=repr(weights)[:200],
            hint="{'alarms': 3, 'report': 1}",
        )
    return {running(query): float(weight) for query, weight in weights.items()}


def start_together(
    name: str,
    queries: Mapping[Query, Any],
    catalog: Catalog,
    sources: Mapping[str, LocalSource],
    late: Any,
    dead_letters: Any,
    max_dead: float | None,
    snapshot: bytes | None,
    strategy: str | Strategy,
    weights: Mapping[Any, float] | None,
    max_held: int | None,
    snapshots: str | os.PathLike[str] | None,
    every: Any,
    *,
    needs_loop: bool,
) -> FlowRun:
    """Run queries of a flow as one."""
    if not isinstance(queries, Mapping) or not queries:
        raise StreamError(
            "The queries of a flow are given with their sinks.", got=repr(queries)[:200], hint="{query: 'out.parquet'}"
        )
    queries = {query: by_uri(sink) for query, sink in queries.items()}
    late, dead_letters = by_uri(late), by_uri(dead_letters)
    DeadLimit(max_dead)  # a wrong limit is said here and not in the background
    chosen = strategy_of(strategy, name)
    if max_held is not None and (not is_whole(max_held) or max_held < 1):
        raise StreamError(
            "So many results may wait for a sink, at least one.",
            where=name,
            got=f"max_held={max_held!r}"[:200],
            hint="max_held=1000, or None to write within the run",
        )
    targets: dict[str, Any] = {f"results of {getattr(q, 'name', q)}": sink for q, sink in queries.items()}
    check_apart({**targets, "late rows": late, "dead letters": dead_letters}, name)
    for target in (late, dead_letters):
        if isinstance(target, str | os.PathLike):
            check_not_read(target, {key: source.paths for key, source in sources.items()}, name)
    if snapshot is not None and snapshots is not None:
        raise StreamError(
            "A run goes on from a snapshot that is given, or from the last in a folder.",
            where=name,
            got="snapshot= and snapshots=",
            hint="snapshots= keeps new ones, and finds the last by itself",
        )
    with at_home(), ExitStack() as opened:
        keeping = None if snapshots is None else Keeping(snapshots, every)
        if keeping is not None:
            opened.callback(keeping.folder.release)
            snapshot = keeping.begun_from
        lates, letters = (open_sink(each, continued=keeping is not None) for each in (late, dead_letters))
        for sink in (lates, letters):
            opened.callback(sink.abandon)
        run = FlowRun(name, catalog, sources, lates, letters, max_dead, max_held, keeping)
        run._join(queries.items())
        for each in run.runs.values():
            opened.callback(each._results.sink.abandon)
        run.execution.use(chosen)
        if weights is not None:
            run.share(weights)
        if snapshot is not None:
            run._replacing.resume(snapshot)
            for each in run.runs.values():
                each._joined()
        if keeping is not None:
            keeping.resume(run._sinks())
        opened.pop_all()
    run._begin(needs_loop=needs_loop)
    return run
