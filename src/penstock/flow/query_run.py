"""One of the queries that a flow runs together.

What comes out of it waits in a queue of its own until it is handed to the sink, in order, by whichever thread is
there: the run's, or that of whoever lets the query go. One lock is held while the sink is written to or closed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import PenstockError, UnsupportedError, reason_of
from penstock.flow.background import as_ours, progress_of
from penstock.flow.destinations import ResultDestination
from penstock.flow.generations import Asked, Generations
from penstock.flow.graphs import graph_of
from penstock.flow.local import LocalQuery
from penstock.flow.queue_progress import path_to, read_current, staleness_of
from penstock.flow.reading_path import ReadingPath
from penstock.flow.replacement import Replacement, ReplacementCheck
from penstock.flow.run import FAILED, LOGGER, STOPPED, ReplaceableRun
from penstock.flow.run_progress import RunProgress, shown
from penstock.io.buffered import BufferedSink, cancel_all, channel_of, tell_failure
from penstock.io.sinks import Sink
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.time import MIN_TICK
from penstock.monitor.picture import Picture
from penstock.runtime.graph import GraphNode
from penstock.runtime.graph_statistics import GraphStatistics

if TYPE_CHECKING:
    from penstock.flow.flow_run import FlowRun


class QueryRun(ReplaceableRun):
    """One of the queries that a flow runs together."""

    def __init__(self, flow_run: FlowRun, query: LocalQuery, sink: Sink) -> None:
        """Made by `FlowRun.add`."""
        self.name, self.query, self._flow_run = query.name, query, flow_run
        self._results = ResultDestination(query, sink, self.name)
        self._left = threading.Event()
        self._is_removed = False
        self._is_cut_off = False
        """Whether somebody let it go on purpose, although it is told as a failure."""
        self._error: PenstockError | None = None
        self._broken: PenstockError | None = None
        """What its sink has raised; nothing is handed to it from then on."""
        self._from: int | None = None
        self._nodes: list[GraphNode] = []
        self._path: ReadingPath | None = None
        self._streams: list[str] = []
        self._pending: deque[Batch | Punctuation] = deque()
        """What has come out and was not handed to the sink yet."""
        self._is_writing = False
        """Whether its sink has been given something and has not come back."""
        self._handing = threading.RLock()
        """Held while the sink is written to, or closed."""
        self._seen: dict[str, int] = {}
        """How many late rows of each stream there were when the query joined."""
        self._letters = 0
        self._replacement: Replacement | None = None
        self._generations = Generations([Asked(query.sql)])
        """What was asked, and is, under this name."""

    def _joined(self) -> None:
        execution = self._flow_run.execution
        outlet = execution.graph.outlets[self.name]
        self._from = None if outlet.complete_from == MIN_TICK else outlet.complete_from
        self._results.bound = None if outlet.register == MIN_TICK else outlet.register
        self._look_again()

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
            counts=execution.counts_of(self._streams, self._failed()),
            streams=self._streams,
            nodes=self._nodes,
            results=self._results,
        )

    def statistics(self) -> GraphStatistics:
        """What is known of the operators that the query takes part in, and of its result; nothing once it has left."""
        return self._flow_run.execution.statistics(self.name)

    def graph(self) -> Picture:
        """What the query takes part in, as a drawing."""
        return graph_of(self._flow_run.execution, self.name)

    def can_replace(self, sql: Any, *, mapping: Mapping[str, str] | None = None) -> ReplacementCheck:
        """Whether the query can be replaced by another one now, from when on, and what that would share."""
        return self._flow_run._replacing.can_replace(self, sql, mapping)

    def replace(self, sql: Any, *, mapping: Mapping[str, str] | None = None) -> Replacement:
        """Replace the query by another one while it runs: old results up to a time, new ones from there on."""
        return self._flow_run._replacing.replace(self, sql, mapping)

    @property
    def replacement(self) -> Replacement | None:
        """The last replacement of the query, which may be under way; None if there was none."""
        return self._replacement

    def _goes_on_as(self, query: LocalQuery) -> None:
        """Another query has taken its place; the columns are the same."""
        self.query = self._results.query = query

    def _look_again(self) -> None:
        """The graph of the query has changed."""
        execution = self._flow_run.execution
        with execution.alone():
            self._path = path_to(execution.graph.outlets[self.name], self._results.current)
            self._nodes, self._streams = execution.nodes_of(self.name), execution.streams_of(self.name)

    def _hand_on(self, *, wait: bool = True) -> bool:
        """Hand what has come out to the sink, in order, whichever thread calls; a sink that fails ends the query.

        Without `wait` that is left to whoever is writing to the sink at the moment; whether it was done.
        """
        if not self._handing.acquire(blocking=wait):
            return False
        try:
            while self._pending and self._broken is None and not self._left.is_set():
                try:
                    self._is_writing = True
                    self._results.take(self._pending.popleft())
                    self._is_writing = False
                except BaseException as error:
                    self._is_writing = False
                    self._broken = as_ours(error, self.name)  # for whoever is letting the query go already
                    self._flow_run._remove(self, publish=False, error=self._broken)
        finally:
            self._handing.release()
        return True

    def _held(self) -> int:
        outlet = self._flow_run.execution.graph.outlets.get(self.name)
        sink = self._results.sink
        beside = sink.held if isinstance(sink, BufferedSink) else 0
        return len(self._pending) + self._is_writing + beside + (0 if outlet is None else outlet.unread)

    def _leave(self, error: PenstockError | None, *, whole: bool) -> None:
        """No more comes; what came is whole, or a part."""
        with self._handing:
            if self._left.is_set():  # it was let go just when the run came to its end, or the other way round
                return
            self._error = error or self._broken
            if self._error is not None:
                tell_failure(self._results.sink, self._error)
            try:
                if whole and self._error is None:
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
        side = self._flow_run.execution.side
        letters = pa.concat_tables([side.letters.schema.arrow.empty_table(), *side.letters.tables(self._letters)])
        whose = side.whose[self._letters : self._letters + letters.num_rows]
        own = {node.identity for node in self._nodes}
        streams = letters["stream"].to_pylist()
        mine = [o in own if o is not None else s in self._streams for o, s in zip(whose, streams, strict=True)]
        return letters.filter(pa.array(mine, pa.bool_()))

    def _failed(self) -> int:
        """How many rows failed in its operators since it joined."""
        own = {node.identity for node in self._nodes}
        return sum(each in own for each in self._flow_run.execution.side.whose[self._letters :])

    def _wait(self, timeout: float | None) -> bool:
        self._flow_run._not_in_its_loop()
        return self._left.wait(timeout)

    def _stop(self, publish: bool) -> None:
        """Leave; the other queries go on."""
        self._flow_run._not_in_its_loop()
        channel = channel_of(self._results.sink)
        if channel is not None:
            channel.release()
        self._flow_run._remove(self, publish=publish)

    def _cancel_sinks(self) -> bool:
        return cancel_all([self._results.sink])

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

    def read(self, key: Any = ()) -> dict[str, object] | None:
        """What the query says of a key of its result now."""
        return read_current(self._flow_run.execution, self._path, self._results.current, key)

    def staleness(self, key: Any = ()) -> Mapping[str, float]:
        """How stale what was delivered of a key is, in seconds."""
        return staleness_of(self._flow_run.execution, self._path, self._results.current, key)

    def snapshot(self) -> bytes:
        """The flow's run has the state of all its queries."""
        raise UnsupportedError(
            "A query that shares its operators has no state of its own.",
            where=f"query {self.name}",
            hint="take the snapshot of the flow's run",
        )
