"""A query running in-process, in a thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.engines.local.execution import LocalExecution
from penstock.flow.background import BackgroundRun, Destination, Forward, progress_of
from penstock.flow.run import RUNNING
from penstock.flow.run_progress import RunProgress
from penstock.io.sinks import Sink
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.recent_promises import RecentPromises

if TYPE_CHECKING:
    from penstock.flow.local import LocalQuery


class LocalRun(BackgroundRun[Batch | Punctuation]):
    """A query running in a thread."""

    execution: LocalExecution

    def __init__(
        self, query: LocalQuery, sink: Sink, late: Sink, dead: Sink, max_dead: float | None = None, name: str = ""
    ) -> None:
        """Made by `LocalQuery.start`."""
        self.query, self.execution = query, query.execution()
        side, name = self.execution.side, name or query.name
        self._results = Destination("results", sink, name)
        self._bound: int | None = None
        self._promised = RecentPromises()
        forwards = (
            Forward("late rows", late, name, lambda: (side.late,)),
            Forward("dead letters", dead, name, lambda: (side.letters,)),
        )
        super().__init__(name, forwards, max_dead)

    def _items(self) -> Iterator[Batch | Punctuation]:
        return self.query.items(self.execution, self.max_dead, self._is_cut_short, self._forward)

    def _take(self, item: Batch | Punctuation) -> None:
        if isinstance(item, Batch):
            self._results.write(self.query.form.table(item))
        else:
            self._promised.add(item)
            if item.is_linear and item.attribute == self.query.plan.schema.time:
                self._bound = item.value

    def _close(self, *, whole: bool) -> None:
        self._attempt(self._results.sink.close if whole else self._results.sink.abandon)

    @property
    def progress(self) -> RunProgress:
        """Where the rows went so far, and how far the streams, the result and every operator have come."""
        status, execution = self.status, self.execution
        return progress_of(
            execution,
            name=self.name,
            status=status,
            failure=self.exception,
            counts=execution.settled if status == RUNNING else execution.counts,
            streams=execution.streams,
            nodes=execution.graph.nodes,
            bound=self._bound,
            plan=self.query.plan,
            promised=self._promised.shown(self.query.schema),
            domain=self.query.schema.domain,
        )

    @property
    def late(self) -> pa.Table:
        """The late rows so far."""
        return self.execution.late()

    def snapshot(self) -> bytes:
        """The state of the run; take it when it is over."""
        return self.execution.snapshot()
