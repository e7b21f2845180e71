"""A query that runs in-process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from penstock.engines.local.execution import LocalExecution
from penstock.errors import StreamError, UnsupportedError
from penstock.flow.declaring import check_name
from penstock.flow.local_run import LocalRun, replacing_of
from penstock.flow.query import Query, StartOptions
from penstock.flow.results import Results
from penstock.io.broker_uris import by_uri
from penstock.io.elements import LocalSource
from penstock.io.event_loops import at_home
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
from penstock.plan.read_columns import read_of
from penstock.plan.rules.multiway import candidates
from penstock.plan.rules.settle import settled_for
from penstock.storage.files import place_of
from penstock.storage.patterns import real

Out = TypeVar("Out")
"""What somebody iterates over: elements, or tables."""


class LocalQuery(Query):
    """A checked query over in-process streams."""

    engine = "in-process"

    def __init__(self, name: str, sql: str, plan: Node, catalog: Catalog, sources: Mapping[str, LocalSource]) -> None:
        """Made by `Flow.query`."""
        super().__init__(name, sql, plan, catalog)
        self.physical = in_process(plan, catalog)
        self.given = sources
        """The streams that it may read."""
        self._sources = {key: source.reading(read_of(plan, key)) for key, source in sources.items()}
        self._whole = settled_for(plan, "the whole result")
        self._live = {key: source.ahead for key, source in sources.items() if source.ahead is not None}
        self._last = self.execution()
        self._paths = {name: sources[name.lower()].paths for name in self._last.streams}

    @property
    def streams(self) -> list[str]:
        """The streams that it reads."""
        return list(self._last.streams)

    def _with_plan(self, plan: Node) -> LocalQuery:
        """A query of the same streams with another plan, which reads what this one gives."""
        return LocalQuery(self.name, self.sql, plan, self.catalog, self.given)

    def explain(self) -> str:
        """The plan as a tree, with the algorithm of each operator and why.

        Where results are revised, that of `collect` too, which gives what they come to.
        """
        shown = explain(self.physical)
        if self._whole is self.plan:
            return shown
        return f"{shown}\n\ncollect() gives what revisions come to:\n{explain(in_process(self._whole, self.catalog))}"

    def execution(self, planned: Physical | None = None) -> LocalExecution:
        """A fresh run that is fed by hand; `planned` says how its nodes run, if not as `explain` does."""
        if planned is not None and (not isinstance(planned, Physical) or planned.node not in candidates(self.plan)):
            raise StreamError("Not a physical plan of the query.", where=self.name, got=repr(planned)[:200])
        return LocalExecution(self.plan, self.catalog, planned or self.physical, name=self.name)

    def _for_tables(self) -> LocalExecution:
        """A fresh run for somebody who takes rows as tables: they are not cut where punctuation stood among them."""
        return LocalExecution(self.plan, self.catalog, self.physical, bounds_in_place=False, name=self.name)

    def items(
        self,
        execution: LocalExecution | None = None,
        max_dead: float | None = None,
        stopped: Callable[[], object] | None = None,
        between: Callable[[], object] | None = None,
        *,
        apart: bool | None = None,
    ) -> Iterator[Batch | Punctuation]:
        """Run an execution over the query's sources: batches, hidden columns and all, and punctuation.

        A single stream is read when its next item is wanted. Of several, those that may block are read beside the
        others, and so is one of a run that may be stopped meanwhile, unless `apart` says otherwise.
        """
        if execution is not None and not isinstance(execution, LocalExecution):
            raise StreamError("Not an execution.", where=self.name, got=repr(execution)[:200], hint="q.execution()")
        self._last = execution = execution if execution is not None else self.execution()
        if apart is None:
            apart = stopped is not None or self._is_apart(execution)
        live = self._live if apart else {}
        yield from execution.run(self._sources, max_dead, stopped, live=live, between=between)

    @staticmethod
    def _is_apart(execution: LocalExecution) -> bool:
        return len(execution.streams) > 1 or bool(execution.graph.queued)

    def collect(self, *, max_dead: float | None = None) -> pa.Table:
        """Run bounded inputs to their end and give the whole result, of what is revised what it comes to.

        Streams are read in turn, a batch from each, so that the same inputs always give the same rows in the same
        order. With `max_dead`, a number of rows or a fraction of them, the run stops when more are dead letters.
        """
        planned = self.physical if self._whole is self.plan else None
        self._last = LocalExecution(self._whole, self.catalog, planned, bounds_in_place=False)
        batches = [b for b in self._last.run(self._sources, max_dead) if isinstance(b, Batch)]
        return ResultForm(self._whole.schema).table(concat(self._whole.schema, batches))

    def elements(self, *, max_dead: float | None = None) -> Results[Element]:
        """Inserts, adjusts and punctuation as they come, for `for` and `async for`."""
        execution = self.execution()
        execution.demand.is_endless = True  # promises are among what is read
        return self._results(execution, _elements_of, max_dead)

    def batches(self, *, max_dead: float | None = None) -> Results[pa.Table]:
        """The result as it comes, in Arrow tables, for `for` and `async for`."""
        return self._results(self._for_tables(), self._tables_of, max_dead)

    def _tables_of(self, item: Batch | Punctuation) -> Sequence[pa.Table]:
        return (self.form.table(item),) if isinstance(item, Batch) else ()

    def _results(
        self,
        execution: LocalExecution,
        made: Callable[[Batch | Punctuation], Sequence[Out]],
        max_dead: float | None,
    ) -> Results[Out]:
        """What comes out of an execution, which is over when nobody wants more of it."""
        left = threading.Event()
        apart = self._is_apart(execution)

        def portions() -> Generator[Sequence[Out], None, None]:
            for item in self.items(execution, max_dead, left.is_set, apart=apart):
                yield made(item)
            replacing.over()

        def leave() -> None:
            left.set()
            execution.halt()

        replacing = replacing_of(self, execution, lambda _: None)
        prompt = apart or all(self.given[name.lower()].ahead is None for name in execution.streams)
        return Results(portions(), leave, is_prompt=prompt, replacing=replacing)

    @property
    def df(self) -> Any:
        """In-process there is none."""
        raise UnsupportedError(
            "A query that runs in-process has no DataFrame.",
            where=self.name,
            hint="q.collect() gives an Arrow table, q.to_pandas() a frame of pandas; pk.Flow(spark) runs on Spark",
        )

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

    def _start(self, sink: Any, options: StartOptions) -> LocalRun:
        """In a thread."""
        name = options.name
        _check_options(
            self.name, trigger=options.trigger, buckets=options.buckets, retention=options.retention,
            superseded=options.superseded,
        )  # fmt: skip
        if name is not None:
            check_name(name, "run", partial(StreamError, where=self.name))
        given = {"results": sink, "late rows": options.late, "dead letters": options.dead_letters}
        targets = {output: by_uri(target) for output, target in given.items()}
        check_apart(targets, self.name)
        for target in targets.values():
            if isinstance(target, str | os.PathLike):
                check_not_read(target, self._paths, self.name)
        DeadLimit(options.max_dead)  # a wrong limit is said here and not in the background
        with at_home(), ExitStack() as opened:
            sinks: dict[str, Sink] = {}
            for output, target in targets.items():
                sinks[output] = open_sink(target, self.form.arrow if output == "results" else None)
                opened.callback(sinks[output].abandon)
            late, dead = sinks["late rows"], sinks["dead letters"]
            run = LocalRun(self, sinks["results"], late, dead, options.max_dead, name or "")
            opened.pop_all()  # from here on the run closes them
        run._begin(needs_loop=any(self.given[name.lower()].is_async for name in run.execution.streams))
        return run


def _elements_of(item: Batch | Punctuation) -> Sequence[Element]:
    return item.elements() if isinstance(item, Batch) else (item,)


def _check_options(name: str, **options: object) -> None:
    """What only Spark has is refused, not passed over."""
    given = [option for option, value in options.items() if value is not None]
    if given:
        raise StreamError(
            f"Only a run on Spark has {' and '.join(given)}.",
            where=name,
            hint="leave that out, or pk.Flow(spark, path=…)",
        )


def check_apart(sinks: Mapping[str, Any], name: str) -> None:
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
