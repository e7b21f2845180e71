"""A query that runs in-process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from penstock.engines.local.builder import Builder
from penstock.engines.local.execution import LocalExecution, Opener
from penstock.engines.local.explain import how
from penstock.errors import PenstockError
from penstock.flow.query import Query
from penstock.io.sinks import Sink, open_sink
from penstock.model.batch import Batch, concat
from penstock.model.elements import Element, Punctuation
from penstock.query.catalog import Catalog
from penstock.query.explain import explain
from penstock.query.nodes import Node


class LocalQuery(Query):
    """A checked query over in-process streams."""

    def __init__(self, name: str, sql: str, plan: Node, catalog: Catalog, sources: Mapping[str, Opener]) -> None:
        """Made by `Flow.query`."""
        super().__init__(name, sql, plan, catalog)
        self._sources = sources
        self._last = self.execution()

    def explain(self) -> str:
        """The plan as a tree, with the algorithm of each operator and why."""
        return explain(self.plan, how)

    def execution(self, builder: Builder | None = None) -> LocalExecution:
        """A fresh run that is fed by hand."""
        return LocalExecution(self.plan, self.catalog, builder)

    def _run(self) -> Iterator[Batch | Punctuation]:
        self._last = self.execution()
        yield from self._last.run(self._sources)

    def collect(self) -> pa.Table:
        """Run bounded inputs to their end and give the whole result."""
        batches = [b for b in self._run() if isinstance(b, Batch)]
        return concat(self.schema, batches).visible()

    def elements(self) -> Iterator[Element]:
        """Inserts and punctuation as they come."""
        for item in self._run():
            if isinstance(item, Batch):
                yield from item.inserts()
            else:
                yield item

    @property
    def late(self) -> pa.Table:
        """The late rows of the last run: stream, bound, row as JSON."""
        return self._last.late()

    @property
    def dead_letters(self) -> pa.Table:
        """The unusable rows of the last run: stream, reason, row as text."""
        return self._last.dead_letters()

    @property
    def counts(self) -> dict[str, int]:
        """Rows read, on time, late, dead and punctuation in the last run."""
        return asdict(self._last.counts)

    def start(self, sink: Any, *, late: Any = None, dead_letters: Any = None) -> LocalRun:
        """Run in the background; `sink` is a path, a list, or a function that is given Arrow tables."""
        run = LocalRun(self, open_sink(sink, self.schema.visible_arrow), open_sink(late), open_sink(dead_letters))
        run.begin()
        return run

    def batches(self, execution: LocalExecution) -> Iterator[Batch | Punctuation]:
        """Run an execution over the query's sources."""
        self._last = execution
        yield from execution.run(self._sources)


class LocalRun:
    """A query running in a thread."""

    def __init__(self, query: LocalQuery, sink: Sink, late: Sink, dead: Sink) -> None:
        """Made by `LocalQuery.start`."""
        self.query = query
        self.execution = query.execution()
        self._sink, self._late, self._dead = sink, late, dead
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name=f"penstock-{query.name}", daemon=True)

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    def _work(self) -> None:
        try:
            for item in self.query.batches(self.execution):
                if isinstance(item, Batch):
                    self._sink.write(item.visible())
                if self._stop.is_set():
                    break
        except BaseException as error:  # handed to whoever waits for the run
            self._error = error
        self._end()

    def _end(self) -> None:
        """Results of a failed run stay a part; late rows and dead letters are what they are, and kept in any case."""
        failed = self._error is not None
        for sink, found in (
            (self._sink, None), (self._late, self.execution.late), (self._dead, self.execution.dead_letters),
        ):  # fmt: skip
            try:
                if found is not None:
                    sink.write(found())
                if found is None and failed:
                    sink.abandon()
                else:
                    sink.close()
            except Exception as error:  # likewise; the first error is the reason
                self._error = self._error or error

    @property
    def progress(self) -> dict[str, int]:
        """Rows read, on time, late, dead and punctuation so far."""
        return asdict(self.execution.counts)

    @property
    def is_active(self) -> bool:
        """Whether the run goes on."""
        return self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> None:
        """Until the run ends; an error in it is raised here."""
        self._thread.join(timeout)
        if self._error is not None:
            if isinstance(self._error, PenstockError):
                raise self._error
            raise PenstockError("The query failed.", where=self.query.name, got=repr(self._error)) from self._error

    def stop(self) -> None:
        """Stop after the batch at hand."""
        self._stop.set()
        self.wait()

    def snapshot(self) -> bytes:
        """The state of the run; take it when it has ended or was stopped."""
        return self.execution.snapshot()
