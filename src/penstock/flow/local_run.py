"""A query running in-process, in a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.engines.local.execution import LocalExecution
from penstock.flow.background import BackgroundRun
from penstock.flow.destinations import Forward, ResultDestination
from penstock.flow.queue_progress import path_to, read_current, staleness_of
from penstock.flow.run import ReplaceableRun
from penstock.io.sinks import Sink
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation

if TYPE_CHECKING:
    from penstock.flow.local import LocalQuery
    from penstock.flow.replacement import Replacement, ReplacementCheck
    from penstock.flow.replacing_one import ReplacingOne


class LocalRun(BackgroundRun[Batch | Punctuation], ReplaceableRun):
    """A query running in a thread."""

    execution: LocalExecution

    def __init__(
        self, query: LocalQuery, sink: Sink, late: Sink, dead: Sink, max_dead: float | None = None, name: str = ""
    ) -> None:
        """Made by `LocalQuery.start`."""
        self.query, self.execution = query, query._for_tables()
        side, name = self.execution.side, name or query.name
        self._results: ResultDestination = ResultDestination(query, sink, name)
        self._path = path_to(self.execution.graph.outlet, self._results.current)
        forwards = (
            Forward("late rows", late, name, lambda: (side.late,)),
            Forward("dead letters", dead, name, lambda: (side.letters,)),
        )
        self._replacing = replacing_of(query, self.execution, self._goes_on_as)
        super().__init__(name, forwards, max_dead)

    def can_replace(self, sql: Any, *, mapping: Mapping[str, str] | None = None) -> ReplacementCheck:
        """Whether the query can be replaced by another one now, from when on, and what that would share."""
        return self._replacing.can_replace(sql, mapping)

    def replace(self, sql: Any, *, mapping: Mapping[str, str] | None = None) -> Replacement:
        """Replace the query by another one while it runs: old results up to a time, new ones from there on."""
        return self._replacing.replace(sql, mapping)

    @property
    def replacement(self) -> Replacement | None:
        """The last replacement of the query, which may be under way; None if there was none."""
        return self._replacing.replacement

    def _goes_on_as(self, query: LocalQuery) -> None:
        self.query = self._results.query = query
        self._path = path_to(self.execution.graph.outlet, self._results.current)

    def _items(self) -> Iterator[Batch | Punctuation]:
        return self.query.items(self.execution, self.max_dead, self._is_cut_short, self._forward)

    def _take(self, item: Batch | Punctuation) -> None:
        self._results.take(item)

    def _result_sinks(self) -> tuple[Sink, ...]:
        return (self._results.sink,)

    def _close(self, *, whole: bool) -> None:
        self._attempt(self._results.sink.close if whole else self._results.sink.abandon)
        self._replacing.over()

    @property
    def late(self) -> pa.Table:
        """The late rows so far."""
        return self.execution.late()

    def read(self, key: Any = ()) -> dict[str, object] | None:
        """What the query says of a key of its result now."""
        return read_current(self.execution, self._path, self._results.current, key)

    def staleness(self, key: Any = ()) -> Mapping[str, float]:
        """How stale what was delivered of a key is, in seconds."""
        return staleness_of(self.execution, self._path, self._results.current, key)

    def snapshot(self) -> bytes:
        """The state of the run; take it when it is over."""
        return self.execution.snapshot()


def replacing_of(
    query: LocalQuery, execution: LocalExecution, goes_on_as: Callable[[LocalQuery], None]
) -> ReplacingOne:
    """How an execution of a query is replaced."""
    from penstock.flow.replacing_one import ReplacingOne  # which makes queries, and these make runs

    return ReplacingOne(query, execution, goes_on_as)
