"""A query that runs in-process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from penstock.engines.local.execution import LocalExecution
from penstock.errors import PenstockError, StreamError
from penstock.flow.query import Query
from penstock.io.elements import LocalSource
from penstock.io.files import check_not_read
from penstock.io.sinks import Sink, open_sink
from penstock.model.accounts import DeadLimit
from penstock.model.batch import Batch, concat
from penstock.model.changelog import ResultForm
from penstock.model.elements import Element, Punctuation
from penstock.plan.catalog import Catalog
from penstock.plan.explain import explain
from penstock.plan.nodes import Node
from penstock.plan.physical import Physical
from penstock.plan.planner import in_process
from penstock.plan.rules.settle import settled_for
from penstock.runtime.side_outputs import Kept
from penstock.storage.files import place_of
from penstock.storage.patterns import real


class LocalQuery(Query):
    """A checked query over in-process streams."""

    def __init__(self, name: str, sql: str, plan: Node, catalog: Catalog, sources: Mapping[str, LocalSource]) -> None:
        """Made by `Flow.query`."""
        super().__init__(name, sql, plan, catalog)
        self.physical = in_process(plan, catalog)
        self._sources = {key: source.open for key, source in sources.items()}
        self._whole = settled_for(plan, "the whole result")
        self._last = self.execution()
        self._paths = {name: sources[name.lower()].paths for name in self._last.streams}

    def explain(self) -> str:
        """The plan as a tree, with the algorithm of each operator and why."""
        return explain(self.physical)

    def execution(self, planned: Physical | None = None) -> LocalExecution:
        """A fresh run that is fed by hand; `planned` says how its nodes run, if not as `explain` does."""
        if planned is not None and (not isinstance(planned, Physical) or planned.node != self.plan):
            raise StreamError("Not a physical plan of the query.", where=self.name, got=repr(planned)[:200])
        return LocalExecution(self.plan, self.catalog, planned or self.physical)

    def _run(self, max_dead: float | None) -> Iterator[Batch | Punctuation]:
        self._last = self.execution()
        yield from self._last.run(self._sources, max_dead)

    def collect(self, *, max_dead: float | None = None) -> pa.Table:
        """Run bounded inputs to their end and give the whole result, of what is revised what it comes to.

        With `max_dead`, a number of rows or a fraction of them, the run stops when more are dead letters.
        """
        self._last = LocalExecution(self._whole, self.catalog)
        batches = [b for b in self._last.run(self._sources, max_dead) if isinstance(b, Batch)]
        return ResultForm(self._whole.schema).table(concat(self._whole.schema, batches))

    def elements(self, *, max_dead: float | None = None) -> Iterator[Element]:
        """Inserts, adjusts and punctuation as they come."""
        for item in self._run(max_dead):
            if isinstance(item, Batch):
                yield from item.elements()
            else:
                yield item

    @property
    def late(self) -> pa.Table:
        """The late rows of the last run: stream, bound, row as JSON."""
        return self._last.late()

    @property
    def dead_letters(self) -> pa.Table:
        """The unusable rows of the last run: stream, the operator that failed on it, reason, row as text."""
        return self._last.dead_letters()

    @property
    def counts(self) -> dict[str, int]:
        """Where the rows of the last run went: read, on time, late, dead, punctuation, skipped, and failed besides."""
        return asdict(self._last.counts)

    def start(
        self, sink: Any, *, late: Any = None, dead_letters: Any = None, max_dead: float | None = None
    ) -> LocalRun:
        """Run in the background.

        Args:
            sink: a path, a list, or a function that is given Arrow tables; results that are revised come as a
                changelog, see `model.changelog`.
            late: a sink for late rows, which are given to it as they come.
            dead_letters: a sink for dead letters, likewise.
            max_dead: so many dead letters, or such a fraction of the rows, are borne; with more the run stops.

        Returns:
            The run.
        """
        targets = {"results": sink, "late rows": late, "dead letters": dead_letters}
        _check_apart(targets, self.name)
        for target in targets.values():
            if isinstance(target, str | os.PathLike):
                check_not_read(target, self._paths, self.name)
        DeadLimit(max_dead)  # a wrong limit is said here and not in the background
        with ExitStack() as opened:
            sinks: dict[str, Sink] = {}
            for output, target in targets.items():
                sinks[output] = open_sink(target, self.form.arrow if output == "results" else None)
                opened.callback(sinks[output].abandon)
            run = LocalRun(self, sinks["results"], sinks["late rows"], sinks["dead letters"], max_dead)
            opened.pop_all()  # from here on the run closes them
        run._thread.start()
        return run

    def batches(
        self, execution: LocalExecution, max_dead: float | None = None, stopped: Callable[[], object] | None = None
    ) -> Iterator[Batch | Punctuation]:
        """Run an execution over the query's sources."""
        if not isinstance(execution, LocalExecution):
            raise StreamError("Not an execution.", where=self.name, got=repr(execution)[:200], hint="q.execution()")
        if stopped is not None and not callable(stopped):
            raise StreamError("stopped is asked, so it is a function.", where=self.name, got=repr(stopped)[:200])
        self._last = execution
        yield from execution.run(self._sources, max_dead, stopped)


FORWARD_ROWS = 10_000
"""Late rows and dead letters are handed to their sink when there are so many, and at the end."""


class _Forward:
    """Hands kept rows to a sink, each once."""

    def __init__(self, kept: Kept, sink: Sink) -> None:
        self.kept, self.sink, self.done = kept, sink, 0

    def forward(self, least: int = 0) -> None:
        """What has come since the last time, if it is that much; at the end also nothing, so that a file is made."""
        if (self.done and len(self.kept) == self.done) or len(self.kept) - self.done < least:
            return
        for table in self.kept.tables(self.done) if len(self.kept) else (self.kept.table(),):
            self.sink.write(table)
            self.done += table.num_rows


def _check_apart(sinks: Mapping[str, Any], name: str) -> None:
    """Of two outputs in one file only one would be left."""
    seen: dict[str, str] = {}
    for output, sink in sinks.items():
        if not isinstance(sink, str | os.PathLike):
            continue
        path = real(place_of(sink))
        if path in seen:
            raise StreamError(
                "Two outputs of a query go to one file.",
                where=name,
                got=f"{seen[path]} and {output} in {os.fspath(sink)}",
                hint="give each a file of its own",
            )
        seen[path] = output


class LocalRun:
    """A query running in a thread."""

    def __init__(self, query: LocalQuery, sink: Sink, late: Sink, dead: Sink, max_dead: float | None = None) -> None:
        """Made by `LocalQuery.start`."""
        self.query, self.max_dead = query, max_dead
        self.execution = query.execution()
        side = self.execution.side
        self._sink = sink
        self._side = (_Forward(side.late, late), _Forward(side.letters, dead))
        self._stop = threading.Event()
        self._cut = self._publish = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name=f"penstock-{query.name}", daemon=True)

    def _work(self) -> None:
        """Results, late rows and dead letters as they come; the latter two are kept even if the run fails."""
        try:
            for item in self.query.batches(self.execution, self.max_dead, self._is_cut_short):
                if isinstance(item, Batch):
                    self._sink.write(self.query.form.table(item))
                for side in self._side:
                    side.forward(FORWARD_ROWS)
        except BaseException as error:  # handed to whoever waits for the run
            self._error = error
        for side in self._side:
            self._attempt(side.forward)
            self._attempt(side.sink.close)
        whole = self._error is None and (self._publish or not self._cut)
        self._attempt(self._sink.close if whole else self._sink.abandon)

    def _is_cut_short(self) -> bool:
        """Asked while there is more to do, so that a run which had come to its end anyway is not cut short."""
        self._cut = self._cut or self._stop.is_set()
        return self._cut

    def _attempt(self, last_step: Callable[[], object]) -> None:
        """Every sink is closed, whatever became of the others; the first error is the run's."""
        try:
            last_step()
        except BaseException as error:
            self._error = self._error or error

    @property
    def progress(self) -> dict[str, int]:
        """Where the rows went so far."""
        return asdict(self.execution.settled if self.is_active else self.execution.counts)

    @property
    def is_active(self) -> bool:
        """Whether the run goes on."""
        return self._thread.is_alive()

    def wait(self, timeout: float | None = None) -> None:
        """Until the run ends, or for so many seconds; an error in it is raised here."""
        if timeout is not None and not (isinstance(timeout, int | float) and 0 <= timeout <= threading.TIMEOUT_MAX):
            raise StreamError("A time to wait is a number of seconds.", where=self.query.name, got=repr(timeout)[:200])
        self._thread.join(timeout)
        if self._error is not None:
            if isinstance(self._error, PenstockError):
                raise self._error
            raise PenstockError("The query failed.", where=self.query.name, got=repr(self._error)) from self._error

    @property
    def status(self) -> str:
        """`running`, `ended`, `stopped` before its sources had ended, or `failed`."""
        if self.is_active:
            return "running"
        return "failed" if self._error is not None else "stopped" if self._cut else "ended"

    def stop(self, *, publish: bool = False) -> None:
        """Stop after the batch at hand, unless the sources have ended by then.

        What was written of the results is a part of them, so a file keeps the name that it has until it is whole,
        `….partial`. With `publish` it gets its own: where a source has no end, what has come is all that was wanted.
        """
        self._publish = publish
        self._stop.set()
        self.wait()

    def snapshot(self) -> bytes:
        """The state of the run; take it when it has ended or was stopped."""
        return self.execution.snapshot()
