"""One run of a query in-process: sources in, elements out, late rows and dead letters kept apart.

Several streams are read in turn, a batch from each. At the end of each of them a closing punctuation is implied, so
that a stream that has ended holds back no other, and every window up to the last row's is put out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from penstock.algorithms.operator import Rejected
from penstock.engines.base import check
from penstock.engines.local.builder import Builder
from penstock.engines.local.graph import QueryGraph
from penstock.engines.local.lane import Lane, at_rest, lane_of
from penstock.engines.local.support import SUPPORT
from penstock.errors import StreamError
from penstock.model.batch import Batch, Row
from penstock.model.conform import DeadLetter, row_json
from penstock.model.elements import Punctuation
from penstock.model.schema import BIGINT, STRING, Field, Schema
from penstock.query.catalog import Catalog
from penstock.query.nodes import Node, Source

Opener = Callable[[], Iterator[Batch | DeadLetter | Punctuation]]


def late_schema(schema: Schema) -> Schema:
    """The columns of a late output: the stream, the bound that condemned the row, and the row as JSON."""
    bound = schema[schema.time].type if schema.time is not None else BIGINT
    return Schema((Field("stream", STRING), Field("bound", bound), Field("row", STRING)))


DEAD_SCHEMA = Schema((Field("stream", STRING), Field("reason", STRING), Field("row", STRING)))


@dataclass
class Counts:
    """Where the rows of the input went; `read` is the sum of the others."""

    read: int = 0
    on_time: int = 0
    late: int = 0
    dead: int = 0
    punctuation: int = 0
    skipped: int = 0
    """Rows in time that nobody needed, by the consumer's own word."""


@dataclass
class SideOutputs:
    """Late rows and dead letters, as rows of their schemas."""

    late: list[tuple[object, ...]] = field(default_factory=list)
    dead: list[tuple[object, ...]] = field(default_factory=list)

    def take(self, stream: str, rejected: Rejected) -> None:
        """Keep rejected rows."""
        schema = rejected.batch.schema
        for row, bound, reason in zip(rejected.batch.rows, rejected.bounds, rejected.reasons, strict=True):
            text = row_json(schema, row)
            if rejected.kind == "late":
                self.late.append((stream, bound, text))
            else:
                self.dead.append((stream, reason, text))


class LocalExecution:
    """A running query graph with its counts."""

    def __init__(self, plan: Node, catalog: Catalog, builder: Builder | None = None) -> None:
        """Refuse at once what the engine does not support."""
        check(plan, "in-process", SUPPORT)
        self.plan = plan
        self.builder = builder or Builder(catalog)
        self.graph = QueryGraph(plan, self.builder)
        self.lanes: dict[str, Lane] = {}
        self.side = SideOutputs()
        self.counts = Counts()
        self.unreadable = 0
        sources = [n for n in plan.walk() if isinstance(n, Source)]
        self.streams = list(dict.fromkeys(s.name for s in sources))
        self.bound_schema = late_schema(sources[0].schema)

    def feed(self, stream: str, item: Batch | DeadLetter | Punctuation) -> list[Batch | Punctuation]:
        """Take an item of a stream; what comes of it."""
        if isinstance(item, DeadLetter):
            self._bury(stream, item)
            return []
        with at_rest(self.lanes.values()):
            self.graph.push(stream, item)
            return self._collect()

    def _bury(self, stream: str, letter: DeadLetter) -> None:
        self.side.dead.append((stream, letter.reason, letter.row))
        self.unreadable += 1
        self._count()

    def pusher(self, stream: str) -> Callable[[Row], None]:
        """A function that takes one row of a stream at a time, at the least cost per row; `take` gives the results.

        A row is a tuple in the order of the schema. Times may be ticks, which is cheapest, or datetimes. A row that
        does not fit the schema is a dead letter.
        """
        name = stream.lower()
        if name not in self.graph.sources:
            raise StreamError("The query reads no such stream.", got=stream, hint=f"it reads {', '.join(self.streams)}")
        if name not in self.lanes:
            self.lanes[name] = lane_of(self.graph, name, self.builder.functions, partial(self._bury, stream))
        return self.lanes[name].push

    def take(self) -> list[Batch | Punctuation]:
        """What has come out since the last time."""
        with at_rest(self.lanes.values()):
            return self._collect()

    def end(self, stream: str) -> list[Batch | Punctuation]:
        """End one stream, so that it holds back no other; what comes of it."""
        with at_rest(self.lanes.values()):
            self.graph.end(stream)
            return self._collect()

    def close(self) -> list[Batch | Punctuation]:
        """End all streams; what comes of it."""
        with at_rest(self.lanes.values()):
            self.graph.close()
            return self._collect()

    def feedback(self, bound: int) -> None:
        """The consumer no longer needs what ends before `bound`; the query skips what only serves that."""
        with at_rest(self.lanes.values()):
            self.graph.feedback(bound)

    def snapshot(self) -> bytes:
        """The state of every operator."""
        with at_rest(self.lanes.values()):
            return self.graph.snapshot()

    def restore(self, snapshot: bytes) -> None:
        """Take up the state of a snapshot of the same query."""
        with at_rest(self.lanes.values()):
            self.graph.restore(snapshot)

    def run(self, sources: Mapping[str, Opener]) -> Iterator[Batch | Punctuation]:
        """Read every source to its end, a batch from each in turn, then close."""
        reading = {name: sources[name.lower()]() for name in self.streams}
        while reading:
            for name, items in list(reading.items()):
                item = next(items, None)
                if item is None:
                    del reading[name]
                    yield from self.end(name)
                else:
                    yield from self.feed(name, item)
        yield from self.close()

    def _collect(self) -> list[Batch | Punctuation]:
        for stream, rejected in self.graph.rejected:
            self.side.take(stream, rejected)
        self.graph.rejected.clear()
        self._count()
        return self.graph.drain()

    def _count(self) -> None:
        self.counts.read = self.unreadable + sum(n[0].statistics.rows_in for n in self.graph.sources.values())
        self.counts.late = len(self.side.late)
        self.counts.dead = len(self.side.dead)
        self.counts.on_time = self._on_time()
        self.counts.skipped = sum(n[0].operator.skipped for n in self.graph.sources.values())  # type: ignore[attr-defined]
        known = self.counts.on_time + self.counts.late + self.counts.dead + self.counts.skipped
        self.counts.punctuation = self.counts.read - known

    def _on_time(self) -> int:
        """Rows that got past the streams' entrances; a stream that is read twice by the plan counts once."""
        return sum(nodes[0].statistics.rows_out for nodes in self.graph.sources.values())

    def late(self) -> pa.Table:
        """The late rows so far."""
        return Batch(self.bound_schema, self.side.late).table

    def dead_letters(self) -> pa.Table:
        """The dead letters so far."""
        return Batch(DEAD_SCHEMA, self.side.dead).table
