"""What a run is, on either engine: a query at work in the background.

A run is `running` until it is over. Then it is one of three: `finished`, everything that was to come was taken, every
stream was closed, and what was open is out; `stopped`, it was cut short and can go on from its state; `failed`, and
`exception` says why. `wait`, `stop` and `finish` raise that reason, so that a failure cannot be overlooked.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from penstock.errors import PenstockError, StreamError, UnsupportedError
from penstock.flow.awaiting import Awaitable
from penstock.flow.drawing import html_table
from penstock.flow.run_progress import RunProgress
from penstock.model.elements import is_whole
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.monitor.picture import Picture
from penstock.runtime.graph_statistics import GraphStatistics

if TYPE_CHECKING:
    from penstock.flow.replacement import Replacement, ReplacementCheck

RUNNING, FINISHED, STOPPED, FAILED = "running", "finished", "stopped", "failed"
LOGGER = logging.getLogger("penstock.run")
LONGEST = 10.0**9
"""So many seconds are as good as for ever."""


class Run(Awaitable):
    """A query at work. As a context manager it is stopped when the block is left.

    In asyncio `await run` waits for its end, and `async with` stops it while the event loop goes on.
    """

    name: str
    """Of the run: its query's, unless `start` was given another."""

    @property
    @abstractmethod
    def status(self) -> str:
        """`running`, `finished`, `stopped` or `failed`."""

    @property
    @abstractmethod
    def progress(self) -> RunProgress:
        """Where the rows went so far, how far the streams and the result have come."""

    def statistics(self) -> GraphStatistics:
        """What is known of every operator, arc and result of a graph that runs in-process.

        How many rows went in and out and at which rate, how long operators take, what waits and for how long, and how
        many bytes are held: fields (`statistics().operators`), dictionaries (`rows()`) and Arrow tables (`table`,
        `arc_table`, `result_table`).
        """
        raise UnsupportedError(
            "Statistics are of graphs that run in-process.",
            where=f"run {self.name}",
            hint="run.progress.operators has the counts; Spark's own page has the times",
        )

    def graph(self) -> Picture:
        """The graph that runs in-process, as a drawing: what is shared, what waits, and its statistics.

        A notebook shows it, `print` gives trees; it has `svg`, `mermaid`, `dot`, `json` and `text`.
        """
        raise UnsupportedError(
            "Graphs are drawn of what runs in-process.",
            where=f"run {self.name}",
            hint="query.explain() tells Spark's plan",
        )

    @property
    @abstractmethod
    def exception(self) -> PenstockError | None:
        """Why the run has failed, the reason first; None if it has not."""

    @property
    def is_active(self) -> bool:
        """Whether the run goes on."""
        return self.status == RUNNING

    @property
    @abstractmethod
    def late(self) -> Any:
        """The late rows so far, an Arrow table or, on Spark, a DataFrame: stream, bound, row as JSON."""

    @property
    @abstractmethod
    def dead_letters(self) -> Any:
        """The unusable rows so far, likewise: stream, the operator that failed on it, reason, row as text."""

    def wait(self, timeout: float | None = None) -> bool:
        """Until the run is over, or for so many seconds; whether it is over. If it has failed, that is raised."""
        number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        if timeout is not None and not (number and 0 <= timeout <= LONGEST):
            raise StreamError("A time to wait is a number of seconds.", where=self.name, got=repr(timeout)[:200])
        over = self._wait(timeout)
        if over:
            self._over()
        return over

    def stop(self, *, publish: bool = False) -> None:
        """Stop after what is at hand: windows that are open stay open, and the state is kept.

        If the run has failed, that is raised. A run that was over by then stays what it was.

        Args:
            publish: in-process, whether a file of results gets its name although it is a part of them; where a
                source has no end, what has come is all that was wanted. On Spark whatever is written is published.
        """
        self._stop(publish)
        self._over()

    def finish(self, *, for_good: bool = False) -> None:
        """Take what has come, close every stream, put out the windows that were still open, and stop.

        Streams are closed up to the end of the last window that holds a row: if the query goes on from here, rows from
        there on are on time, and rows before it are late. With `for_good` they have ended, and the query does not go
        on; that is so in any case where a row can matter for ever, as elements can. A failure is raised.
        """
        self._finish(for_good)
        self._over()

    @abstractmethod
    def process_available(self) -> None:
        """Until everything that the sources have given is processed, or the run is over; a failure is raised."""

    @abstractmethod
    def snapshot(self) -> bytes:
        """The state of a run in-process; take it when the run is over. On Spark the checkpoint has it."""

    def read(self, key: Any = ()) -> dict[str, object] | None:
        """What the query says of a key of its result now: what becomes of the newest row that has come.

        That is the row that waits in the last queue, or else the one that went on last, put through the selections and
        projections above the queue: None if they leave it out, or if none has come. Where more than these stands above
        the queue, or there is none, it is the row of the key that was delivered last.

        Of a result that is an update stream, by the value of its update key, or a tuple of several in the order of the
        result's columns, as they would be given to a stream.
        """
        raise self._unread()

    def staleness(self, key: Any = ()) -> Mapping[str, float]:
        """How stale what was delivered of a key is, in seconds: now and on average, as in `progress`."""
        raise self._unread()

    def _unread(self) -> PenstockError:
        return UnsupportedError(
            "The result of this run cannot be read by key.",
            where=f"run {self.name}",
            hint="query.start(…) of an update stream in-process, see pk.conflate",
        )

    @abstractmethod
    def punctuate(self, stream: str, bound: int) -> None:
        """Tell a stream from outside that nothing below `bound` (in ticks) comes any more."""

    @abstractmethod
    def _wait(self, timeout: float | None) -> bool:
        """Whether the run is over after at most so long."""

    @abstractmethod
    def _stop(self, publish: bool) -> None:
        """Until it is over."""

    @abstractmethod
    def _finish(self, for_good: bool) -> None:
        """Until it is over."""

    def _over(self) -> None:
        """Whoever meets the end of a run is told if it was a failure."""
        failure = self.exception
        if failure is not None:
            raise failure

    @staticmethod
    def _stream_told(stream: object, bound: object, streams: list[str]) -> str:
        """The stream that is told a bound, by its own name."""
        names = {name.lower(): name for name in streams}
        if not isinstance(stream, str) or stream.lower() not in names:
            raise StreamError(
                "The query does not read that stream.",
                got=str(stream)[:200],
                hint=f"it reads {', '.join(names.values())}",
            )
        if not is_whole(bound) or not MIN_TICK <= bound <= END_OF_TIME:  # type: ignore[operator]
            raise StreamError(
                "A bound is a number of ticks.",
                where=f"stream {stream}",
                got=repr(bound)[:200],
                hint="ticks are the numbers of an integer column, or microseconds since 1970; pk.END_OF_TIME ends it",
            )
        return names[stream.lower()]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except PenstockError as failure:
            if error is None:
                raise
            if failure is not error:  # the error of the block goes on, and the run's is not lost
                LOGGER.error("run %s: %s", self.name, failure)

    def __repr__(self) -> str:
        return f"<run {self.name}: {self.progress.summary}>"

    def _repr_html_(self) -> str:
        """A run in a notebook."""
        shown = self.progress
        return html_table(f"run {self.name}", [(key, value) for key, value in shown.rows()])


class ReplaceableRun(Run):
    """The run of one query, whose place another query can take."""

    def can_replace(self, sql: Any, *, mapping: Mapping[str, str] | None = None) -> ReplacementCheck:
        """Whether the query can be replaced by another one now; see `replace`. Nothing changes.

        The report says from which time on the new query would speak and what postpones that, what of it is at work
        already, or why it cannot be and what to do instead.
        """
        raise self._not_replaceable()

    def replace(self, sql: Any, *, mapping: Mapping[str, str] | None = None) -> Replacement:
        """Replace the query by another one while it runs, without losing or repeating a result.

        Old results come up to a time, the split, and new ones from there on. Until the old query has said all, both
        run. What cannot be is refused, and the old query goes on.

        Args:
            sql: what is asked from then on; its results have the same columns.
            mapping: where columns have other names, from the new name to the old one.

        Returns:
            The replacement: `wait()`, `abandon()`, and what came of it.
        """
        raise self._not_replaceable()

    def _not_replaceable(self) -> PenstockError:
        return UnsupportedError("This run cannot be replaced.", where=f"run {self.name}", hint="stop it, start another")
