"""Where what comes out of a run in-process goes: results, late rows and dead letters, each to a sink.

Sinks are the user's code: that one has failed is told as such.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from penstock.errors import PenstockError, RunError, reason_of
from penstock.flow.current_values import CurrentValues
from penstock.flow.query import Query
from penstock.flow.run import LOGGER
from penstock.io.sinks import ResumableSink, Sink
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.recent_promises import RecentPromises
from penstock.runtime.side_outputs import KeptRows


class Destination:
    """A sink with what goes to it; an error says that it was the sink."""

    def __init__(self, name: str, sink: Sink, run: str) -> None:
        """`name` is what goes there, `run` whose it is."""
        self.name, self.sink, self.run = name, sink, run

    def write(self, table: pa.Table) -> None:
        """Hand a table to the sink."""
        with self._told():
            self.sink.write(table)

    def position(self) -> Any:
        """Where the sink is, if it knows: None if not."""
        with self._told():
            return self.sink.position() if isinstance(self.sink, ResumableSink) else None

    def resume(self, position: Any) -> None:
        """Put the sink to a position, if it can be."""
        with self._told():
            if isinstance(self.sink, ResumableSink):
                self.sink.resume(position)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
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


class Forward(Destination):
    """Hands kept rows to a sink as they come, each once."""

    def __init__(self, name: str, sink: Sink, run: str, kept: Callable[[], Sequence[KeptRows]]) -> None:
        """`kept` gives where they are; there may be more places in time."""
        super().__init__(name, sink, run)
        self.kept, self.done = kept, dict[int, int]()

    def forward(self) -> None:
        """What has come since the last time."""
        for at, kept in enumerate(self.kept()):
            done = self.done.get(at, 0)
            if len(kept) == done:
                continue
            if not any(self.done.values()):
                LOGGER.warning("run %s: the first %s: %s", self.run, self.name, kept.last)
            for table in kept.tables(done):
                self.write(table)
                done += table.num_rows
                self.done[at] = done

    def last(self) -> None:
        """The same at the end; also nothing, so that a file is made."""
        self.forward()
        if not any(self.done.values()):
            for kept in self.kept()[:1]:
                self.write(kept.table())


class ResultDestination(Destination):
    """Where the results of a query go, and how far they have come."""

    def __init__(self, query: Query, sink: Sink, run: str) -> None:
        """Nothing has come yet."""
        super().__init__("results", sink, run)
        self.query = query
        self.bound: int | None = None
        self.promised = RecentPromises()
        self.current = CurrentValues(query.plan, f"query {run}")

    def take(self, item: Batch | Punctuation) -> None:
        """Hand rows to the sink; keep in mind what is promised."""
        if isinstance(item, Batch):
            self.write(self.query.form.table(item))
            self.current.take(item)
            return
        self.promised.add(item)
        if item.is_linear and item.attribute == self.query.schema.time:
            self.bound = item.value
