"""One run of a query in-process: sources in, elements out, late rows and dead letters kept apart.

Several streams are read in turn, a batch from each. At the end of each of them a closing punctuation is implied, so
that a stream that has ended holds back no other, and every window up to the last row's is put out.

What comes of one element is handed on in portions as it is made, so a bound that closes very many windows never has
them all in memory. Whoever touches the execution meanwhile has the element run to its end first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import pyarrow as pa

from penstock.engines.base import check
from penstock.engines.local.builder import Builder
from penstock.engines.local.gate import Gate
from penstock.engines.local.graph import QueryGraph
from penstock.engines.local.lane import Lane, at_rest, lane_of
from penstock.engines.local.side_outputs import SideOutputs
from penstock.engines.local.support import SUPPORT
from penstock.errors import StreamError
from penstock.model.accounts import Counts, DeadLimit
from penstock.model.batch import Batch, Row
from penstock.model.conform import DeadLetter
from penstock.model.elements import Punctuation
from penstock.model.letters import DEAD_SCHEMA, late_schema
from penstock.query.catalog import Catalog
from penstock.query.nodes import Node, Source

__all__ = ["DEAD_SCHEMA", "Counts", "LocalExecution", "Opener", "SideOutputs", "late_schema"]

Item = Batch | DeadLetter | Punctuation
Outputs = list[Batch | Punctuation]
Opener = Callable[[], Iterator[Item]]


class LocalExecution:
    """A running query graph with its counts; it may be fed from several threads."""

    def __init__(self, plan: Node, catalog: Catalog, builder: Builder | None = None) -> None:
        """Refuse at once what the engine does not support."""
        check(plan, "in-process", SUPPORT)
        self.plan = plan
        self.builder = builder or Builder(catalog)
        self.graph = QueryGraph(plan, self.builder)
        self.lanes: dict[str, Lane] = {}
        sources = [n for n in plan.walk() if isinstance(n, Source)]
        self.streams = list(dict.fromkeys(s.name for s in sources))
        self.side = SideOutputs(late_schema(sources[0].schema))
        self.graph.side = self.side.take
        self.counts = Counts()
        self._read = 0
        self._gate = Gate()
        self._under_way: Iterator[None] | None = None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else touches the graph, no lane holds anything back, and no element is under way."""
        with self._gate.alone(), at_rest(self.lanes.values()):
            for _ in self._under_way or ():
                pass
            self._under_way = None
            yield

    def feed(self, stream: str, item: Item) -> Outputs:
        """Take an item of a stream; what comes of it."""
        with self._alone():
            for _ in self._steps(stream, item):
                pass
            return self._collect()

    def _steps(self, stream: str, item: Item) -> Iterator[None]:
        if isinstance(item, DeadLetter):
            self._bury(stream, item)
            return iter(())
        if isinstance(item, Batch):
            self._read += len(item)
        return self.graph.steps(stream, item)

    def _bury(self, stream: str, letter: DeadLetter) -> None:
        self._read += 1
        self.side.bury(stream, letter)

    def pusher(self, stream: str) -> Callable[[Row], None]:
        """A function that takes one row of a stream at a time, at the least cost per row; `take` gives the results.

        A row is a tuple in the order of the schema. Times may be ticks, which is cheapest, or datetimes. A row that
        does not fit the schema is a dead letter. Several threads may push.
        """
        name = stream.lower()
        if name not in self.graph.sources:
            raise StreamError("The query reads no such stream.", got=stream, hint=f"it reads {', '.join(self.streams)}")
        with self._alone():
            if name not in self.lanes:
                bury = partial(self.side.bury, stream)
                self.lanes[name] = lane_of(self.graph, name, self.builder.functions, bury, self._gate)
        return self.lanes[name].push

    def take(self) -> Outputs:
        """What has come out since the last time."""
        with self._alone():
            return self._collect()

    def end(self, stream: str) -> Outputs:
        """End one stream, so that it holds back no other; what comes of it."""
        with self._alone():
            self.graph.end(stream)
            return self._collect()

    def close(self) -> Outputs:
        """End all streams; what comes of it. Every row that was read must be accounted for by then."""
        with self._alone():
            self.graph.close()
            found = self._collect()
        self.counts.check(self.plan.label)
        return found

    def feedback(self, bound: int) -> None:
        """The consumer no longer needs what ends before `bound`; the query skips what only serves that."""
        with self._alone():
            self.graph.feedback(bound)

    def snapshot(self) -> bytes:
        """The state of every operator."""
        with self._alone():
            return self.graph.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Take up the state of a snapshot of the same query."""
        with self._alone():
            self.graph.restore(snapshot)

    def run(
        self, sources: Mapping[str, Opener], max_dead: float | None = None, stopped: Callable[[], object] | None = None
    ) -> Iterator[Batch | Punctuation]:
        """Read every source to its end, a batch from each in turn, then close.

        Args:
            sources: how to open each stream.
            max_dead: how many dead letters are borne, see `DeadLimit`.
            stopped: asked between two outputs; once it says so the run ends as it is, without closing.
        """
        limit = DeadLimit(max_dead)
        stopped = stopped or (lambda: False)
        reading = {name: sources[name.lower()]() for name in self.streams}
        while reading and not stopped():
            for name, items in list(reading.items()):
                item = next(items, None)
                if item is None:
                    del reading[name]
                    steps = partial(self.graph.end_steps, name)
                else:
                    steps = partial(self._steps, name, item)
                yield from self._in_portions(steps, stopped)
                limit.check(self.counts, self.plan.label, self.side.last)
                if stopped():
                    return
        self.counts.check(self.plan.label)
        limit.check(self.counts, self.plan.label, self.side.last, at_end=True)

    def _in_portions(
        self, begin: Callable[[], Iterator[None]], stopped: Callable[[], object]
    ) -> Iterator[Batch | Punctuation]:
        """Run an element, and hand on what comes out before the rest of it is run."""
        with self._alone():
            steps = self._under_way = begin()
        more = True
        while more and not stopped():
            with self._gate.alone(), at_rest(self.lanes.values()):
                # What is no longer under way was run to its end by somebody else.
                more = self._under_way is steps and next(steps, self) is not self
                if not more:
                    self._under_way = None
                found = self._collect()
            yield from found

    def _collect(self) -> Outputs:
        entrances = [nodes[0] for nodes in self.graph.sources.values()]  # one read twice by the plan counts once
        ingests = [node.operator for node in entrances]
        self.counts = Counts(
            read=self._read + sum(lane.read() for lane in self.lanes.values()),
            on_time=sum(node.statistics.rows_out for node in entrances),
            late=len(self.side.late),
            dead=self.side.dead,
            punctuation=sum(ingest.punctuation for ingest in ingests),  # type: ignore[attr-defined]
            skipped=sum(ingest.skipped for ingest in ingests),  # type: ignore[attr-defined]
            failed=self.side.failed,
        )
        return self.graph.drain()

    def late(self) -> pa.Table:
        """The late rows so far."""
        return self.side.late.table()

    def dead_letters(self) -> pa.Table:
        """The dead letters so far."""
        return self.side.letters.table()
