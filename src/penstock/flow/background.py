"""What runs in-process in a thread: results, late rows and dead letters are handed on as they come.

Late rows and dead letters are kept even if the run fails.
"""

from __future__ import annotations

import threading
import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, TypeVar

import pyarrow as pa

from penstock.engines.local.hosting import Hosting
from penstock.errors import DeadLetterError, PenstockError, RunError, StreamError, reason_of
from penstock.flow.destinations import Forward, ResultDestination
from penstock.flow.estimate_progress import EstimateProgress, estimate_of
from penstock.flow.graphs import graph_of
from penstock.flow.pyspark_names import PySparkNames
from penstock.flow.queue_progress import queue_progress
from penstock.flow.run import FAILED, FINISHED, LOGGER, RUNNING, STOPPED, Run
from penstock.flow.run_progress import OperatorProgress, RunProgress, lag, shown
from penstock.io.buffered import cancel_all, channel_of, tell_failure
from penstock.io.event_loops import at_home, would_block
from penstock.io.sinks import Sink
from penstock.model.accounts import Counts
from penstock.model.elements import linear
from penstock.model.time import END_OF_TIME, Domain
from penstock.monitor.picture import Picture
from penstock.plan.nodes import Source
from penstock.plan.progressing import follows_time
from penstock.runtime.graph import GraphNode
from penstock.runtime.graph_statistics import GraphStatistics

Out = TypeVar("Out")


class BackgroundRun(PySparkNames, Run, Generic[Out]):
    """Something at work in a thread."""

    execution: Hosting[Out]
    _results: ResultDestination | None = None
    """Where results go, if they are of one query."""

    def __init__(self, name: str, side: Sequence[Forward], max_dead: float | None) -> None:
        """`side` are the sinks of late rows and dead letters."""
        self.name, self.max_dead = name, max_dead
        self._side = tuple(side)
        self._asked = threading.Event()
        self._cut = self._publish = False
        self._error: PenstockError | None = None
        with at_home() as self._home:  # the event loop, if any, in which it was started
            begin = partial(copy_context().run, self._work)
        self._thread = threading.Thread(target=begin, name=f"penstock-{self.name}", daemon=True)

    @abstractmethod
    def _items(self) -> Iterator[Out]:
        """What comes out, as it comes."""

    @abstractmethod
    def _take(self, item: Out) -> None:
        """Hand a result on."""

    @abstractmethod
    def _close(self, *, whole: bool) -> None:
        """No more results come; they are `whole`, or a part."""

    def _begin(self, *, needs_loop: bool = False) -> None:
        """Set it going; `needs_loop` if sources of it are read in the event loop that runs here."""
        if needs_loop and self._home is not None:
            self._home.is_used = True
        LOGGER.info("run %s: started in-process", self.name)
        self._thread.start()

    def _work(self) -> None:
        try:
            for item in self._items():
                self._take(item)
        except BaseException as error:  # handed to whoever waits for the run
            self._fail(error)
        self.execution.begun.set()
        if self._error is None:
            self._attempt(self._before_closing)
        for side in self._side:
            self._attempt(side.last)
            self._attempt(side.sink.close)
        if self._error is not None:
            for sink in self._result_sinks():
                tell_failure(sink, self._error)
        self._close(whole=self._error is None and (self._publish or not self._cut))
        self._tell()

    def _before_closing(self) -> None:
        """Everything has come that was to come, and the sinks are still open."""

    def _forward(self) -> None:
        for side in self._side:
            side.forward()

    def _is_cut_short(self) -> bool:
        """Asked while there is more to do, so that a run which had come to its end anyway is not cut short."""
        self._cut = self._cut or self._asked.is_set()
        return self._cut

    def _attempt(self, last_step: Callable[[], object]) -> None:
        """Every sink is closed, whatever became of the others; the first error is the run's."""
        try:
            last_step()
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if self._error is not None:
            LOGGER.error("run %s: and then: %s", self.name, reason_of(error))
        else:
            self._error = as_ours(error, self.name)

    def _tell(self) -> None:
        if self._error is None:
            LOGGER.info("run %s: %s", self.name, STOPPED if self._cut else FINISHED)
        elif isinstance(self._error, DeadLetterError):
            LOGGER.error("run %s: stopped at a limit: %s", self.name, reason_of(self._error))
        else:
            LOGGER.error("run %s: failed: %s", self.name, reason_of(self._error))

    @property
    def status(self) -> str:
        """`running`, `finished`, `stopped` before its sources had ended, or `failed`."""
        if self._thread.is_alive():
            return RUNNING
        return FAILED if self._error is not None else STOPPED if self._cut else FINISHED

    @property
    def exception(self) -> PenstockError | None:
        """Why the run has failed; None if it has not, or not yet come to an end."""
        return None if self._thread.is_alive() else self._error

    @property
    def progress(self) -> RunProgress:
        """Where the rows went so far, and how far the streams, the result of a query and every operator have come."""
        status, execution = self.status, self.execution
        return progress_of(
            execution,
            name=self.name,
            status=status,
            failure=self.exception,
            counts=execution.settled if status == RUNNING else execution.counts,
            streams=execution.streams,
            nodes=execution.graph.nodes,
            results=self._results,
        )

    def statistics(self) -> GraphStatistics:
        """What is known of every operator, arc and result of the graph that runs."""
        return self.execution.statistics()

    def graph(self) -> Picture:
        """The graph that runs as a drawing: what is shared, what waits, and its statistics."""
        return graph_of(self.execution)

    def _wait(self, timeout: float | None) -> bool:
        self._not_inside()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _not_inside(self) -> None:
        """Whoever is called by the run cannot wait for it."""
        if threading.current_thread() is self._thread:
            raise StreamError(
                "A sink cannot wait for the run that calls it.",
                where=f"run {self.name}",
                hint="set a flag, and let another thread stop, finish or wait",
            )
        self._not_in_its_loop()

    def _not_in_its_loop(self) -> None:
        """Nor whoever runs the event loop in which a source or a sink of it runs."""
        if self._home is not None and self._home.is_used and self._home.is_here:
            raise would_block(f"run {self.name}")

    def _stop(self, publish: bool) -> None:
        """After the batch at hand, unless the sources have ended by then; a source that is waited for is left.

        What was written of the results is a part of them, so a file keeps the name that it has until it is whole,
        `….partial`, unless it is to be published.
        """
        self._not_inside()
        self._publish = bool(publish)
        self._asked.set()
        self._release()
        self.execution.halt()
        self._thread.join()

    def _finish(self, for_good: bool) -> None:
        """Sources at rest are read to their end; of others, what they have given."""
        self._not_inside()
        self._release()
        self.execution.finish(for_good=for_good)
        self._thread.join()

    def _release(self) -> None:
        """Nobody who takes results slowly holds the end up."""
        for sink in self._all_sinks():
            channel = channel_of(sink)
            if channel is not None:
                channel.release()

    def _all_sinks(self) -> list[Sink]:
        return [*(side.sink for side in self._side), *self._result_sinks()]

    def _cancel_sinks(self) -> bool:
        return cancel_all(self._all_sinks())

    @abstractmethod
    def _result_sinks(self) -> Iterable[Sink]:
        """Where results go."""

    def process_available(self) -> None:
        """Until everything that the sources have given is processed, or the run is over; a failure is raised."""
        self._not_inside()
        self.execution.begun.wait()
        self.execution.process_available()
        if self.execution.is_over:
            self._thread.join()
            self._over()

    def punctuate(self, stream: str, bound: int) -> None:
        """Tell a stream from outside that nothing below `bound` (in ticks) comes any more."""
        name = self._stream_told(stream, bound, self.execution.streams)
        time = self.execution.graph.sources[name.lower()][0].operator.schema.time
        assert time is not None
        self.execution.say(name, linear(time, bound))

    @property
    def dead_letters(self) -> pa.Table:
        """The dead letters so far."""
        return self.execution.side.letters.table()


def as_ours(error: BaseException, run: str) -> PenstockError:
    """An error of ours as it is, another one as the failure of a run."""
    if isinstance(error, PenstockError):
        return error
    made = RunError(reason_of(error), where=f"query {run}", stack="".join(traceback.format_exception(error)))
    made.__cause__ = error
    return made


def progress_of(
    execution: Hosting[Any],
    *,
    name: str,
    status: str,
    failure: PenstockError | None,
    counts: Counts,
    streams: Sequence[str],
    nodes: Sequence[GraphNode],
    results: ResultDestination | None,
) -> RunProgress:
    """How far some streams, a result, if they have one, and its operators have come."""
    newest: Mapping[str, int | None] = {n: tick for n, tick in execution.newest().items() if n in streams}
    reached = {n: tick for n, tick in execution.frontier().items() if n in streams}
    domains = {n: execution.domain(n) for n in streams}
    known = [tick for tick in newest.values() if tick is not None]
    bound = None if results is None else results.bound
    domain = Domain.INTEGER if results is None else results.query.schema.domain
    follows = results is not None and follows_time(results.query.plan)
    return RunProgress(
        name=name,
        status=status,
        reason=None if failure is None else failure.what,
        counts=counts,
        batches=execution.taken,
        frontier={n: shown(tick, domains[n]) for n, tick in reached.items()},
        group_frontier={n: told for n, told in execution.promised().items() if n in streams},
        newest={n: shown(tick, domains[n]) for n, tick in newest.items()},
        bound=shown(bound, domain),
        bound_ticks=bound,
        group_bounds=() if results is None else results.promised.shown(results.query.schema),
        lag=lag(max(known, default=None), bound, domain) if follows else None,
        ended=bound == END_OF_TIME,
        operators=tuple(
            OperatorProgress(n.identity, n.label, **vars(n.statistics), older=getattr(n.operator, "older", 0))
            for n in nodes
        ),
        queues=tuple(queue_progress(execution, arc) for arc in execution.graph.queued if arc.consumer in nodes),
        estimates={name: one for name in streams if (one := _estimate(execution, name)) is not None},
    )


def _estimate(execution: Hosting[Any], stream: str) -> EstimateProgress | None:
    entrance = execution.graph.sources[stream.lower()][0]
    assert isinstance(entrance.plan, Source)
    return estimate_of(entrance.plan, entrance.operator.pages.get("progress"))
