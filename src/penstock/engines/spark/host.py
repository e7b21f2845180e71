"""The query graph hosted in Spark: one graph per bucket, its pages in Spark's state store.

In streaming the host is a stateful processor: for each micro-batch it takes the bucket's rows of all streams, then
their progress, and puts out what follows. Pages are read on first touch and written once at the end, so a micro-batch
costs what it touches. In batch the same graph runs once per bucket and is closed at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from penstock.engines.spark.statistics import OPERATORS, added, counted
from penstock.engines.spark.wire import Note, dump, load, load_note, pack, unpack_batch
from penstock.model.accounts import Counts
from penstock.model.batch import Batch, concat
from penstock.model.causal_order import in_causal_order
from penstock.model.changelog import ResultForm
from penstock.model.conform import DeadLetter
from penstock.model.elements import Punctuation, linear
from penstock.model.letters import late_schema
from penstock.model.recent_promises import MOST, RecentPromises
from penstock.operators.progress.ingest import BatchIngest
from penstock.operators.progress.promises import Said
from penstock.operators.state import seal, unseal
from penstock.plan.catalog import Catalog
from penstock.plan.nodes import Source
from penstock.plan.physical import Physical
from penstock.runtime.builder import Builder
from penstock.runtime.graph import GraphNode, QueryGraph
from penstock.runtime.showing import tracker_of
from penstock.runtime.side_outputs import SideOutputs

_ABSENT = object()


class StatePages:
    """The pages of one operator in a Spark map state, with what was touched in this micro-batch at hand."""

    def __init__(self, state: Any, node: GraphNode) -> None:
        """Pages are kept under the identity of the operator."""
        self.state, self.keeper, self.where = state, node.operator, node.label
        self.prefix = f"{node.identity}/"
        self.cache: dict[str, Any] = {}
        self.dirty: set[str] = set()

    def get(self, key: str) -> Any:
        """The page, read once."""
        page = self.cache.get(key, _ABSENT)
        if page is _ABSENT:
            found = self.state.getValue((self.prefix + key,))
            page = None if found is None else unseal(self.keeper, key, bytes(found[0]), self.where)
            self.cache[key] = page
        return page

    def put(self, key: str, page: Any) -> None:
        """Keep a page; it is written by `flush`."""
        self.cache[key] = page
        self.dirty.add(key)

    def delete(self, key: str) -> None:
        """Forget a page."""
        self.cache[key] = None
        self.dirty.add(key)

    def keys(self) -> Iterator[str]:
        """The keys of all pages, written or not."""
        stored = {k[0][len(self.prefix) :] for k in self.state.keys() if k[0].startswith(self.prefix)}  # noqa: SIM118
        live = {k for k, page in self.cache.items() if page is not None}
        gone = {k for k, page in self.cache.items() if page is None}
        return iter((stored - gone) | live)

    def flush(self) -> None:
        """Write what has changed."""
        for key in self.dirty:
            page = self.cache[key]
            if page is None:
                self.state.removeKey((self.prefix + key,))
            else:
                self.state.updateValue((self.prefix + key,), (seal(self.keeper, key, page, self.where),))
        self.dirty.clear()


@dataclass
class BucketArrivals:
    """What reached a bucket in one micro-batch, sorted by stream."""

    rows: dict[str, list[bytes]] = field(default_factory=dict)
    notes: dict[str, list[Note]] = field(default_factory=dict)

    def add(self, stream: str, rows: bytes | None, note: bytes) -> None:
        """Take one packed row."""
        if rows is not None:
            self.rows.setdefault(stream, []).append(rows)
        self.notes.setdefault(stream, []).append(load_note(note))


class HostedGraph:
    """A query graph that is fed packed rows and gives tagged outputs."""

    def __init__(self, planned: Physical, catalog: Catalog, *, in_order: bool = True) -> None:
        """Build the graph; it judges lateness by micro-batch. `in_order`: there are micro-batches, one after another.

        Without such an order nothing is late or too far ahead.
        """
        self.in_order = in_order
        self.graph = QueryGraph(planned, Builder(catalog))
        plan = planned.node
        self.schema = plan.schema
        self.form = ResultForm(plan.schema, plan.properties.insert_only)
        self.sources = {n.name: n for n in plan.walk() if isinstance(n, Source)}
        self.late_schema = late_schema(*(source.schema for source in self.sources.values()))

    def run(self, arrivals: BucketArrivals) -> Iterator[tuple[str, bytes]]:
        """Take one micro-batch: rows of all streams first, then their progress."""
        side, before = self._begin()
        statistics = counted(self.graph)
        summaries = {stream: self._summary(stream, notes) for stream, notes in arrivals.notes.items()}
        if self.in_order:
            for stream, summary in summaries.items():
                if summary is not None:
                    self.graph.announce(stream, summary)
        for stream, blobs in sorted(arrivals.rows.items()):
            schema = self.sources[stream].schema
            # Parts of a micro-batch come in any order, and so may an insert and its adjusts.
            self.graph.push(stream, in_causal_order(concat(schema, [unpack_batch(schema, b) for b in blobs])))
        greatest = self._greatest()
        read = 0
        for stream, notes in sorted(arrivals.notes.items()):
            self._advance(stream, notes, summaries[stream])
            for note in notes:
                for reason, row in note.dead:
                    side.bury(stream, DeadLetter(reason, row))
                read += note.read
        yield from self._tagged(side, read, before)
        if self.in_order:
            told = {"trackers": self._trackers(arrivals.notes), "promises": self._promises()}
            yield "progress", dump({"greatest": greatest, **told})
            more = added(statistics, counted(self.graph))
            if more:
                yield OPERATORS, dump(more)

    def _trackers(self, streams: Iterable[str]) -> dict[str, Any]:
        """What the entrances of some streams remember of their progress: a tracker's state, a bound from outside."""
        entrances = {stream: self.graph.sources[stream.lower()][0].operator.pages for stream in streams}
        return {stream: (pages.get("progress"), pages.get("outside")) for stream, pages in entrances.items()}

    def _promises(self) -> dict[str, Any]:
        """What streams have promised of some groups lately; every bucket knows the same."""
        entrances = {str(nodes[0].stream): nodes[0].operator for nodes in self.graph.sources.values()}
        kept = {name: e.frontier() for name, e in entrances.items() if isinstance(e, BatchIngest)}
        return {name: RecentPromises(f.newest(MOST)).to_plain() for name, f in kept.items() if f is not None}

    def close(self) -> Iterator[tuple[str, bytes]]:
        """End all streams."""
        side, before = self._begin()
        self.graph.close()
        yield from self._tagged(side, 0, before)

    def _begin(self) -> tuple[SideOutputs, Counts]:
        side = SideOutputs(self.late_schema)
        self.graph.side = side.take
        return side, self._counted()

    def _summary(self, stream: str, notes: list[Note]) -> Any:
        """What all parts of a stream's micro-batch show together."""
        tracker = tracker_of(self.sources[stream], self.graph.builder)
        summary: Any = None
        for note in notes:
            if note.summary is not None:
                summary = note.summary if summary is None else tracker.join(summary, note.summary)
        return summary

    def _advance(self, stream: str, notes: list[Note], summary: Any) -> None:
        source = self.sources[stream]
        if summary is not None:
            said = [Said(0, Punctuation(bounds, constants), at) for n in notes for bounds, constants, at in n.said]
            self.graph.advance(stream, summary, said)
        bounds = [n.bound for n in notes if n.bound is not None]
        if bounds:
            assert source.schema.time is not None
            self.graph.push(stream, linear(source.schema.time, max(bounds)))

    def _greatest(self) -> dict[str, int]:
        """Per stream the greatest time of this micro-batch's rows that were on time."""
        found = {}
        for nodes in self.graph.sources.values():
            entrance = nodes[0].operator
            if isinstance(entrance, BatchIngest) and entrance.greatest is not None:
                found[str(nodes[0].stream)] = entrance.greatest
                entrance.greatest = None
        return found

    def _counted(self) -> Counts:
        """What the entrances have counted since the graph was made; one that the plan reads twice counts once."""
        entrances = [nodes[0] for nodes in self.graph.sources.values()]
        return Counts(
            on_time=sum(node.statistics.rows_out for node in entrances),
            punctuation=sum(node.operator.punctuation for node in entrances),  # type: ignore[attr-defined]
            skipped=sum(node.operator.skipped for node in entrances),  # type: ignore[attr-defined]
        )

    def _tagged(self, side: SideOutputs, read: int, before: Counts) -> Iterator[tuple[str, bytes]]:
        outputs = self.graph.drain()
        batches = [o for o in outputs if isinstance(o, Batch)]
        if batches:
            yield "result", pack(self.form.table(concat(self.schema, batches)))
        told = [o for o in outputs if isinstance(o, Punctuation)]
        bounds = [p.value for p in told if p.is_linear and p.attribute == self.schema.time]
        if bounds:
            yield "punctuation", dump(max(bounds))
        promises = RecentPromises(told)
        if promises:
            yield "promises", dump(promises.to_plain())
        if len(side.late):
            yield "late", pack(side.late.table())
        if len(side.letters):
            yield "dead", pack(side.letters.table())
        now = self._counted()
        counts = Counts(
            read=read,
            on_time=now.on_time - before.on_time,
            late=len(side.late),
            dead=side.dead,
            punctuation=now.punctuation - before.punctuation,
            skipped=now.skipped - before.skipped,
            failed=side.failed,
        )
        if counts != Counts():
            yield "counts", dump(asdict(counts))


class GraphProcessor(StatefulProcessor):
    """Hosts a graph in `transformWithStateInPandas`, one bucket per key."""

    def __init__(self, planned: Physical, catalog: Catalog) -> None:
        """The graph is built on the worker."""
        self.planned, self.catalog = planned, catalog

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state and build the graph."""
        self.state = handle.getMapState("pages", "key string", "page binary")
        self.hosted = HostedGraph(self.planned, self.catalog)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[pd.DataFrame]:
        """One micro-batch of one bucket."""
        arrivals = BucketArrivals()
        for frame in rows:
            for stream, packed, note in zip(frame["stream"], frame["rows"], frame["note"], strict=True):
                arrivals.add(stream, packed, note)
        pages = [StatePages(self.state, node) for node in self.hosted.graph.nodes]
        self.hosted.graph.attach(list(pages))
        tagged = [
            (kind, dump((int(key[0]), load(body))) if kind in ("punctuation", "promises") else body)
            for kind, body in self.hosted.run(arrivals)
        ]
        for own in pages:
            own.flush()
        if tagged:
            yield pd.DataFrame({"kind": [k for k, _ in tagged], "body": [b for _, b in tagged]})

    def close(self) -> None:
        """Nothing is held outside the state."""


@dataclass(frozen=True)
class BatchHost:
    """Runs a graph once over all rows of a bucket, for `applyInArrow`."""

    planned: Physical
    catalog: Catalog

    def __call__(self, table: pa.Table) -> pa.Table:
        """All packed rows of a bucket to tagged outputs."""
        hosted = HostedGraph(self.planned, self.catalog, in_order=False)
        arrivals = BucketArrivals()
        for stream, packed, note in zip(
            table.column("stream").to_pylist(),
            table.column("rows").to_pylist(),
            table.column("note").to_pylist(),
            strict=True,
        ):
            arrivals.add(stream, packed, note)
        tagged = [*hosted.run(arrivals), *hosted.close()]
        return pa.table(
            {
                "kind": pa.array([k for k, _ in tagged], pa.string()),
                "body": pa.array([b for _, b in tagged], pa.binary()),
            }
        )
