"""A query running in-process, in a thread."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.errors import DeadLetterError, PenstockError, RunError, reason_of
from penstock.flow.pyspark_names import PySparkNames
from penstock.flow.run import FAILED, FINISHED, LOGGER, RUNNING, STOPPED, Run
from penstock.flow.run_progress import OperatorProgress, RunProgress, lag, shown
from penstock.io.sinks import Sink
from penstock.model.batch import Batch
from penstock.model.elements import linear
from penstock.model.recent_promises import RecentPromises
from penstock.model.time import END_OF_TIME
from penstock.runtime.side_outputs import Kept

if TYPE_CHECKING:
    from penstock.flow.local import LocalQuery


class _Output:
    """A sink with what goes to it; an error says that it was the sink."""

    def __init__(self, name: str, sink: Sink, run: str) -> None:
        self.name, self.sink, self.run = name, sink, run

    def write(self, table: pa.Table) -> None:
        """Hand a table to the sink."""
        try:
            self.sink.write(table)
        except PenstockError:
            raise
        except Exception as error:  # it is the user's code
            raise RunError(
                f"The sink of the {self.name} failed.",
                where=f"query {self.run}",
                got=reason_of(error),
                hint="what was handed to it before stays there; late rows and dead letters are kept",
                stack=traceback.format_exc(),
            ) from error


class _Forward(_Output):
    """Hands kept rows to a sink as they come, each once."""

    def __init__(self, name: str, sink: Sink, run: str, kept: Kept) -> None:
        super().__init__(name, sink, run)
        self.kept, self.done = kept, 0

    def forward(self) -> None:
        """What has come since the last time."""
        if len(self.kept) == self.done:
            return
        if self.done == 0:
            LOGGER.warning("run %s: the first %s: %s", self.run, self.name, self.kept.last)
        for table in self.kept.tables(self.done):
            self.write(table)
            self.done += table.num_rows

    def last(self) -> None:
        """The same at the end; also nothing, so that a file is made."""
        self.forward()
        if not self.done:
            self.write(self.kept.table())


class LocalRun(PySparkNames, Run):
    """A query running in a thread."""

    def __init__(
        self, query: LocalQuery, sink: Sink, late: Sink, dead: Sink, max_dead: float | None = None, name: str = ""
    ) -> None:
        """Made by `LocalQuery.start`."""
        self.query, self.max_dead, self.name = query, max_dead, name or query.name
        self.execution = query.execution()
        side = self.execution.side
        self._results = _Output("results", sink, self.name)
        self._side = (
            _Forward("late rows", late, self.name, side.late),
            _Forward("dead letters", dead, self.name, side.letters),
        )
        self._asked = threading.Event()
        self._cut = self._publish = False
        self._bound: int | None = None
        self._promised = RecentPromises()
        self._error: PenstockError | None = None
        self._thread = threading.Thread(target=self._work, name=f"penstock-{self.name}", daemon=True)

    def _begin(self) -> None:
        """Set it going."""
        LOGGER.info("run %s: started in-process", self.name)
        self._thread.start()

    def _work(self) -> None:
        """Results, late rows and dead letters as they come; the latter two are kept even if the run fails."""
        try:
            for item in self.query.items(self.execution, self.max_dead, self._is_cut_short, self._forward):
                if isinstance(item, Batch):
                    self._results.write(self.query.form.table(item))
                else:
                    self._promised.add(item)
                    self._bound = item.value if item.is_linear else self._bound
        except BaseException as error:  # handed to whoever waits for the run
            self._fail(error)
        self.execution.begun.set()
        for side in self._side:
            self._attempt(side.last)
            self._attempt(side.sink.close)
        whole = self._error is None and (self._publish or not self._cut)
        self._attempt(self._results.sink.close if whole else self._results.sink.abandon)
        self._tell()

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
        elif isinstance(error, PenstockError):
            self._error = error
        else:
            stack = "".join(traceback.format_exception(error))
            self._error = RunError(reason_of(error), where=f"query {self.name}", stack=stack)
            self._error.__cause__ = error

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
        """Where the rows went so far, and how far the streams, the result and every operator have come."""
        status, execution = self.status, self.execution
        counts = execution.settled if status == RUNNING else execution.counts
        failure, bound = self.exception, self._bound
        domains = {n: execution.domain(n) for n in execution.streams}
        newest = execution.newest()
        known = [tick for tick in newest.values() if tick is not None]
        domain = self.query.schema.domain
        return RunProgress(
            name=self.name,
            status=status,
            reason=None if failure is None else failure.what,
            counts=counts,
            batches=execution.taken,
            frontier={n: shown(tick, domains[n]) for n, tick in execution.frontier().items()},
            group_frontier=execution.promised(),
            newest={n: shown(tick, domains[n]) for n, tick in newest.items()},
            bound=shown(bound, domain),
            bound_ticks=bound,
            group_bounds=self._promised.shown(self.query.schema),
            lag=lag(max(known, default=None), bound, domain),
            ended=bound == END_OF_TIME,
            operators=tuple(
                OperatorProgress(node.identity, node.label, **vars(node.statistics)) for node in execution.graph.nodes
            ),
        )

    def _wait(self, timeout: float | None) -> bool:
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _stop(self, publish: bool) -> None:
        """After the batch at hand, unless the sources have ended by then; a source that is waited for is left.

        What was written of the results is a part of them, so a file keeps the name that it has until it is whole,
        `….partial`, unless it is to be published.
        """
        self._publish = bool(publish)
        self._asked.set()
        self.execution.halt()
        self._thread.join()

    def _finish(self, for_good: bool) -> None:
        """Sources at rest are read to their end; of others, what they have given."""
        self.execution.finish(for_good=for_good)
        self._thread.join()

    def process_available(self) -> None:
        """Until everything that the sources have given is processed, or the run is over; a failure is raised."""
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
    def late(self) -> pa.Table:
        """The late rows so far."""
        return self.execution.late()

    @property
    def dead_letters(self) -> pa.Table:
        """The dead letters so far."""
        return self.execution.dead_letters()

    def snapshot(self) -> bytes:
        """The state of the run; take it when it is over."""
        return self.execution.snapshot()
