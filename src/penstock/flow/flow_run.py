"""Several queries of a flow at work as one: streams are read once, and what the queries have in common runs once.

Queries join with `add` and leave with `stop`, while the others go on. One that joins later has missed rows: its results
are complete from `complete_from` on, and it gives none before that. A query whose sink fails leaves, and says why; the
others go on. Late rows and dead letters belong to the streams, so the flow's run has them all, and each query shows
those of its streams since it joined.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engines.local.opening import Opener
from penstock.engines.local.shared import Named, SharedExecution
from penstock.errors import PenstockError, StreamError, UnsupportedError, reason_of
from penstock.flow.background import BackgroundRun, Destination, Forward, as_ours, progress_of
from penstock.flow.local import LocalQuery, check_apart
from penstock.flow.query import Query
from penstock.flow.run import FAILED, LOGGER, RUNNING, STOPPED, Run
from penstock.flow.run_progress import RunProgress, shown
from penstock.io.sinks import Sink, open_sink
from penstock.model.accounts import DeadLimit
from penstock.model.batch import Batch
from penstock.model.recent_promises import RecentPromises
from penstock.model.time import Domain
from penstock.plan.catalog import Catalog
from penstock.runtime.graph import GraphNode


class QueryRun(Run):
    """One of the queries that a flow runs together."""

    def __init__(self, flow_run: FlowRun, query: LocalQuery, sink: Sink) -> None:
        """Made by `FlowRun.add`."""
        self.name, self.query, self._flow_run = query.name, query, flow_run
        self._results = Destination("results", sink, self.name)
        self._left = threading.Event()
        self._is_removed = False
        self._error: PenstockError | None = None
        self._bound: int | None = None
        self._promised = RecentPromises()
        self._from: int | None = None
        self._nodes: list[GraphNode] = []
        self._seen: dict[str, int] = {}
        """How many late rows of each stream there were when the query joined."""
        self._letters = 0

    def _joined(self, complete_from: int | None) -> None:
        execution = self._flow_run.execution
        self._from, self._nodes = complete_from, execution.nodes_of(self.name)
        self._streams = execution.streams_of(self.name)

    @property
    def complete_from(self) -> str | None:
        """Results that start before this time may lack rows that came before the query, and are left out.

        None if nothing was missed.
        """
        return shown(self._from, self.query.schema.domain)

    @property
    def status(self) -> str:
        """`running`, `finished` with the flow, `stopped`, or `failed`."""
        if self._error is not None:
            return FAILED
        return STOPPED if self._is_removed else self._flow_run.status

    @property
    def exception(self) -> PenstockError | None:
        """Why the query, or the flow's run as a whole, has failed."""
        return self._error if self._error is not None or self._is_removed else self._flow_run.exception

    @property
    def progress(self) -> RunProgress:
        """Where the rows of its streams went so far, and how far they, the result and every operator have come."""
        execution = self._flow_run.execution
        return progress_of(
            execution,
            name=self.name,
            status=self.status,
            failure=self.exception,
            counts=execution.counts_of(self._streams),
            streams=self._streams,
            nodes=self._nodes,
            bound=self._bound,
            promised=self._promised.shown(self.query.schema),
            domain=self.query.schema.domain,
        )

    def _take(self, item: Any) -> None:
        if isinstance(item, Batch):
            self._results.write(self.query.form.table(item))
        else:
            self._promised.add(item)
            if item.is_linear and item.attribute == self.query.plan.schema.time:
                self._bound = item.value

    def _leave(self, error: PenstockError | None, *, whole: bool) -> None:
        """No more comes; what came is whole, or a part."""
        self._error = error
        try:
            if whole:
                self._results.sink.close()
            else:
                self._results.sink.abandon()
        except BaseException as failure:
            self._error = self._error or as_ours(failure, self.name)
        self._left.set()
        if self._error is not None:
            LOGGER.error("run %s: failed: %s", self.name, reason_of(self._error))

    @property
    def late(self) -> pa.Table:
        """The late rows of its streams since it joined."""
        kept = self._flow_run.execution.side.by_stream
        tables = [t for n in self._streams for t in kept[n.lower()].tables(self._seen.get(n.lower(), 0))]
        return pa.concat_tables(tables) if tables else kept[self._streams[0].lower()].schema.arrow.empty_table()

    @property
    def dead_letters(self) -> pa.Table:
        """The dead letters of its streams and of its operators since it joined."""
        kept = self._flow_run.execution.side.letters
        letters = pa.concat_tables([kept.schema.arrow.empty_table(), *kept.tables(self._letters)])
        of_streams = pc.and_(
            pc.is_null(letters["operator"]), pc.is_in(letters["stream"], pa.array(self._streams, pa.string()))
        )
        of_operators = pc.is_in(letters["operator"], pa.array([n.label for n in self._nodes], pa.string()))
        return letters.filter(pc.or_(of_streams, pc.fill_null(of_operators, False)))

    def _wait(self, timeout: float | None) -> bool:
        return self._left.wait(timeout)

    def _stop(self, publish: bool) -> None:
        """Leave; the other queries go on."""
        self._flow_run._remove(self, publish=publish)

    def _finish(self, for_good: bool) -> None:
        raise UnsupportedError(
            "A query that shares its streams cannot close them.",
            where=f"query {self.name}",
            hint="finish() the flow's run, or stop() this query",
        )

    def process_available(self) -> None:
        """Until everything that the sources have given is processed."""
        self._flow_run.process_available()
        self._over()

    def punctuate(self, stream: str, bound: int) -> None:
        """Tell a stream from outside, for all queries, that nothing below `bound` (in ticks) comes any more."""
        self._flow_run.punctuate(stream, bound)

    def snapshot(self) -> bytes:
        """The flow's run has the state of all its queries."""
        raise UnsupportedError(
            "A query that shares its operators has no state of its own.",
            where=f"query {self.name}",
            hint="take the snapshot of the flow's run",
        )


class FlowRun(BackgroundRun[Named]):
    """Several queries at work in a thread."""

    def __init__(
        self,
        name: str,
        catalog: Catalog,
        sources: Mapping[str, tuple[Opener, int | None]],
        late: Sink,
        dead: Sink,
        max_dead: float | None,
    ) -> None:
        """Made by `Flow.start`."""
        self.execution: SharedExecution = SharedExecution(catalog)
        self.runs: dict[str, QueryRun] = {}
        """The queries by name, also those that have left."""
        self._openers = {key: opener for key, (opener, _) in sources.items()}
        self._live = {key: ahead for key, (_, ahead) in sources.items() if ahead is not None}
        side = self.execution.side
        forwards = (
            Forward("late rows", late, name, lambda: list(side.by_stream.values())),
            Forward("dead letters", dead, name, lambda: (side.letters,)),
        )
        self._joining = threading.Lock()
        super().__init__(name, forwards, max_dead)

    # Queries

    def add(self, query: Query, sink: Any) -> QueryRun:
        """Let a query join; its results go to `sink`, as those of `Query.start` do."""
        return self._join([(query, sink)])[query.name]

    def _join(self, queries: Iterable[tuple[Query, Any]]) -> dict[str, QueryRun]:
        with self._joining, ExitStack() as opened:
            made: dict[str, QueryRun] = {}
            for given, target in queries:
                query = self._checked(given, made)
                made[query.name] = QueryRun(self, query, open_sink(target, query.form.arrow))
                opened.callback(made[query.name]._results.sink.abandon)
            before = {n: r for n, r in self.runs.items() if n in made}
            for run in made.values():
                side = self.execution.side
                run._seen = {name: len(kept) for name, kept in side.by_stream.items()}
                run._letters = len(side.letters)
            # Results may come at once, so the queries are known before they join.
            self.runs |= made
            try:
                froms = self.execution.add({n: r.query.plan for n, r in made.items()}, self._openers)
            except BaseException:
                self.runs = {n: r for n, r in (self.runs | before).items() if n not in made or n in before}
                raise
            for name, run in made.items():
                run._joined(froms[name])
            opened.pop_all()  # from here on the runs close them
        return made

    def _checked(self, query: object, made: Mapping[str, QueryRun]) -> LocalQuery:
        if not isinstance(query, LocalQuery) or query.catalog is not self.execution.builder.catalog:
            raise StreamError(
                "Not a query of this flow.", where=self.name, got=repr(query)[:200], hint="flow.query('SELECT …')"
            )
        if self._thread.ident is not None and not self._thread.is_alive():
            raise StreamError("The flow's run is over.", where=self.name, hint="start it again with flow.start(…)")
        if query.name in made or query.name in self.execution.plans:
            raise StreamError(
                "A query of that name is running.",
                where=self.name,
                got=query.name,
                hint="flow.query(…, name=…) gives another name; run.runs[name].stop() lets one go",
            )
        return query

    def remove(self, name: str, *, publish: bool = False) -> None:
        """Let a query go; the others go on. See `Run.stop` for `publish`."""
        run = self.runs.get(name) if isinstance(name, str) else None
        if run is None:
            raise StreamError("There is no such query.", where=self.name, got=str(name)[:200])
        run.stop(publish=publish)

    def _remove(self, run: QueryRun, *, publish: bool, error: PenstockError | None = None) -> None:
        with self._joining:
            if run._left.is_set() or run.name not in self.execution.plans:
                return
            for element in self.execution.remove(run.name):
                if error is None:
                    run._take(element)
            run._is_removed = True
            run._leave(error, whole=publish and error is None)

    # Running

    def _items(self) -> Iterator[Named]:
        execution = self.execution
        return execution.run(self._openers, self.max_dead, self._is_cut_short, live=self._live, between=self._forward)

    def _take(self, item: Named) -> None:
        name, element = item
        run = self.runs[name]
        if run._left.is_set():
            return
        try:
            run._take(element)
        except BaseException as error:
            self._remove(run, publish=False, error=as_ours(error, name))

    def _close(self, *, whole: bool) -> None:
        for run in self.runs.values():
            if not run._left.is_set():
                run._leave(None, whole=whole)

    @property
    def progress(self) -> RunProgress:
        """Where the rows of all streams went so far, and how far they and every operator have come."""
        status, execution = self.status, self.execution
        return progress_of(
            execution,
            name=self.name,
            status=status,
            failure=self.exception,
            counts=execution.settled if status == RUNNING else execution.counts,
            streams=execution.streams,
            nodes=execution.graph.nodes,
            bound=None,
            domain=Domain.INTEGER,
        )

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


def start_together(
    name: str,
    queries: Mapping[Query, Any],
    catalog: Catalog,
    sources: Mapping[str, tuple[Opener, int | None]],
    late: Any,
    dead_letters: Any,
    max_dead: float | None,
    snapshot: bytes | None,
) -> FlowRun:
    """Run queries of a flow as one."""
    if not isinstance(queries, Mapping) or not queries:
        raise StreamError(
            "The queries of a flow are given with their sinks.", got=repr(queries)[:200], hint="{query: 'out.parquet'}"
        )
    DeadLimit(max_dead)  # a wrong limit is said here and not in the background
    targets: dict[str, Any] = {f"results of {getattr(q, 'name', q)}": sink for q, sink in queries.items()}
    check_apart({**targets, "late rows": late, "dead letters": dead_letters}, name)
    with ExitStack() as opened:
        lates, letters = open_sink(late), open_sink(dead_letters)
        for sink in (lates, letters):
            opened.callback(sink.abandon)
        run = FlowRun(name, catalog, sources, lates, letters, max_dead)
        run._join(queries.items())
        if snapshot is not None:
            run.execution.restore(snapshot)
        opened.pop_all()
    run._begin()
    return run
