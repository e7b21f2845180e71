"""The query graph hosted in Spark: one graph per bucket and stage, its pages in Spark's state store.

In streaming it is in a stateful processor (`processor`): for each micro-batch it takes the bucket's packets, rows of
all streams first, then their progress, and puts out what follows. A micro-batch costs what it touches. A plan that is
cut has one such processor per stage, one behind the other; what an earlier one sends goes on as packets. In batch the
graph of the whole plan runs once per bucket and is closed at the end.

Where streams are conflated, every bucket of every stage takes part in every micro-batch, since what waits in it goes on
whether or not something comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa

from penstock.engines.spark import wire
from penstock.engines.spark.bucket_queues import BucketQueues
from penstock.engines.spark.buckets import bucket_ids
from penstock.engines.spark.clock import SILENT_SINCE, bound_by_clock, silences
from penstock.engines.spark.rounds import EVERYTHING, Round, round_at_work
from penstock.engines.spark.sending import Sending
from penstock.engines.spark.staging import staged
from penstock.engines.spark.state_pages import StatePages
from penstock.engines.spark.statistics import OPERATORS, added, counted
from penstock.engines.spark.wire import (
    CALL,
    OUT,
    PACKED_TYPES,
    Note,
    Packet,
    dump,
    load,
    load_note,
    output,
    pack,
    unnumbered,
    unpack,
    unpack_batch,
)
from penstock.errors import InternalError
from penstock.model.accounts import Counts
from penstock.model.batch import Batch, concat
from penstock.model.causal_order import in_causal_order
from penstock.model.changelog import ResultForm
from penstock.model.conform import DeadLetter
from penstock.model.elements import Punctuation, linear
from penstock.model.letters import late_schema
from penstock.model.recent_promises import MOST, RecentPromises
from penstock.model.timer import Timer
from penstock.model.timestamps import Silence
from penstock.operators.aggregates.partial_forms import partial_form
from penstock.operators.progress.ingest import BatchIngest
from penstock.operators.progress.promises import Said
from penstock.plan.catalog import Catalog
from penstock.plan.nodes import Conflate, Source
from penstock.plan.physical import Physical
from penstock.runtime.builder import Builder
from penstock.runtime.showing import tracker_of
from penstock.runtime.side_outputs import SideOutputs
from penstock.runtime.stage_graph import StageGraph
from penstock.storage.folders import Staging


@dataclass
class BucketArrivals:
    """What reached a bucket of a stage in one micro-batch, by port."""

    rows: dict[str, list[bytes]] = field(default_factory=dict)
    partials: dict[str, list[bytes]] = field(default_factory=dict)
    updates: dict[str, list[bytes]] = field(default_factory=dict)
    notes: dict[str, list[Note]] = field(default_factory=dict)
    bounds: dict[str, list[tuple[int, Punctuation]]] = field(default_factory=dict)
    """Of an exchange, by its sender: the number of the bucket that promises, and what."""

    def add(self, port: str, kind: str, body: bytes) -> None:
        """Take one packet."""
        match kind:
            case wire.ROWS:
                self.rows.setdefault(port, []).append(body)
            case wire.PARTIALS:
                self.partials.setdefault(port, []).append(body)
            case wire.UPDATES:
                self.updates.setdefault(port, []).append(body)
            case wire.CALL:
                pass
            case wire.NOTE:
                self.notes.setdefault(port, []).append(load_note(body))
            case wire.BOUNDS:
                bucket, said = load(body)
                promised = [(bucket, Punctuation(bounds, constants)) for bounds, constants in said]
                self.bounds.setdefault(port, []).extend(promised)
            case _:
                raise InternalError("A packet is of no kind that a stage takes.", where=port, got=kind)


class HostedGraph:
    """The graph of a stage in one bucket, that is fed packets and gives packets."""

    def __init__(
        self,
        planned: Physical,
        catalog: Catalog,
        *,
        buckets: int = 1,
        stage: int = 0,
        in_order: bool = True,
        keeps_superseded: bool = False,
    ) -> None:
        """Build the graph of a stage, or of a plan that is not cut; it judges lateness by micro-batch.

        `in_order`: there are micro-batches, one after another. Without such an order nothing is late or too far ahead.
        `keeps_superseded`: somebody wants the rows that update queues pass over.
        """
        self.in_order, self.buckets = in_order, buckets
        builder = Builder(catalog)
        self.graph = StageGraph(planned, builder, stage, buckets)
        self.queues = BucketQueues(self.graph, keeps_superseded=keeps_superseded)
        self.sendings = [
            Sending(planned, sender.planned, builder, buckets, keeps_superseded=keeps_superseded)
            for sender in self.graph.sent
        ]
        plan = planned.node
        self.schema = plan.schema
        self.form = ResultForm(plan.schema, plan.properties.insert_only)
        sources = {n.name: n for n in plan.walk() if isinstance(n, Source)}
        self.sources = {name: n for name, n in sources.items() if name.lower() in self.graph.sources}
        self.silences = silences(plan, catalog)
        self.late_schema = late_schema(*(source.schema for source in sources.values()))
        self.forms = {port: partial_form(n.consumer[0].operator) for port, n in self.graph.edges.items() if n.consumer}

    def run(self, arrivals: BucketArrivals, bucket: int = 0, round_: Round = EVERYTHING) -> Iterator[Packet]:
        """Take one micro-batch of a bucket, by its number: rows of all streams first, then their progress.

        Then as many rows of update queues go on as the round says.
        """
        side, before = self._begin()
        self.queues.begin(round_)
        statistics = self._counted_by_operator()
        summaries = {stream: self._summary(stream, notes) for stream, notes in arrivals.notes.items()}
        if self.in_order:
            for stream, summary in summaries.items():
                if summary is not None:
                    self.graph.announce(stream, summary)
        self._take_rows(arrivals)
        greatest = self._greatest()
        read = 0
        for stream, notes in sorted(arrivals.notes.items()):
            self._advance(stream, notes, summaries[stream])
            for note in notes:
                for reason, row in note.dead:
                    side.bury(stream, DeadLetter(reason, row))
                read += note.read
        for port, promises in sorted(arrivals.bounds.items()):
            self.graph.promise(port, sorted(promises, key=lambda each: each[0]))
        if self.in_order:
            yield from self.queues.release(round_, bucket)
        yield from self._given(side, read, before, bucket)
        if self.in_order:
            if self.sources:
                told = {"trackers": self._trackers(arrivals.notes), "promises": self._promises()}
                yield output("progress", dump({"greatest": greatest, **told}))
            more = added(statistics, self._counted_by_operator())
            if more:
                yield output(OPERATORS, dump(more))

    def _take_rows(self, arrivals: BucketArrivals) -> None:
        """Rows that enter a stream, or that come through an exchange."""
        for port, blobs in sorted(arrivals.rows.items()):
            if port in self.graph.edges:
                node = self.graph.edges[port]
                schema = node.plan.schema
                self.graph.hand_on(node, concat(schema, [unpack_batch(schema, b) for b in blobs]))
            else:
                schema = self.sources[port].schema
                # Parts of a micro-batch come in any order, and so may an insert and its adjusts.
                self.graph.push(
                    port, in_causal_order(concat(schema, [unpack_batch(schema, unnumbered(b)) for b in blobs]))
                )
        for port, blobs in sorted(arrivals.partials.items()):
            form, consumer = self.forms.get(port), self.graph.edges[port].consumer
            if form is None or consumer is None:
                raise InternalError("Partials have come to an operator that takes rows.", where=port)
            consumer[0].statistics.rows_in += sum([form.take(unpack(blob)) for blob in blobs])
        for port, blobs in sorted(arrivals.updates.items()):
            self.queues.take(port, blobs)

    def _trackers(self, streams: Iterable[str]) -> dict[str, Any]:
        """What the entrances of some streams remember of their progress: a tracker's state, a bound from outside."""
        entrances = {stream: self.graph.sources[stream.lower()][0].operator.pages for stream in streams}
        return {stream: (pages.get("progress"), pages.get("outside")) for stream, pages in entrances.items()}

    def _promises(self) -> dict[str, Any]:
        """What streams have promised of some groups lately; every bucket knows the same."""
        entrances = {str(nodes[0].stream): nodes[0].operator for nodes in self.graph.sources.values()}
        kept = {name: e.frontier() for name, e in entrances.items() if isinstance(e, BatchIngest)}
        return {name: RecentPromises(f.newest(MOST)).to_plain() for name, f in kept.items() if f is not None}

    def close(self) -> Iterator[Packet]:
        """End all streams."""
        side, before = self._begin()
        self.graph.close()
        self.queues.release_all()
        yield from self._given(side, 0, before, 0)

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
        clocks = [n.clock for n in notes if n.clock is not None]
        silence = self.silences.get(stream)
        if silence is not None:
            entrance = self.graph.sources[stream.lower()][0].operator
            assert isinstance(entrance, BatchIngest)
            if summary is not None:
                entrance.pages.delete(SILENT_SINCE)
            elif clocks and silence != Silence():
                bounds.append(bound_by_clock(silence, entrance.pages, entrance.by_rows(), max(clocks)))
        if bounds:
            assert source.schema.time is not None
            self.graph.push(stream, linear(source.schema.time, max(bounds)))
        if clocks and isinstance(source.progress, Timer):
            for node in self.graph.sources[stream.lower()]:
                self.graph.emit(node, node.operator.tick(max(clocks)))

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

    def _counted_by_operator(self) -> Any:
        """What every operator of the plan has counted; what stands for one of another stage is none."""
        return counted(n for n in self.graph.nodes if n not in self.graph.received)

    def _given(self, side: SideOutputs, read: int, before: Counts, bucket: int) -> Iterator[Packet]:
        """What has come out: to other stages, as results, and aside."""
        for sender, send in zip(self.graph.sent, self.sendings, strict=True):
            elements = sender.outlet.drain()
            batches = [o for o in elements if isinstance(o, Batch)]
            if batches:
                yield from send(concat(sender.planned.node.schema, batches), bucket)
            yield from send.promise([o for o in elements if isinstance(o, Punctuation)], bucket)
        if self.graph.result is not None:
            yield from self._results(self.graph.result.drain(), bucket)
        if len(side.late):
            yield output("late", pack(side.late.table()))
        if len(side.letters):
            yield output("dead", pack(side.letters.table()))
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
            yield output("counts", dump(asdict(counts)))

    def _results(self, outputs: list[Any], bucket: int) -> Iterator[Packet]:
        batches = [o for o in outputs if isinstance(o, Batch)]
        if batches:
            yield output("result", pack(self.form.table(concat(self.schema, batches))))
        told = [o for o in outputs if isinstance(o, Punctuation)]
        bounds = [p.value for p in told if p.is_linear and p.attribute == self.schema.time]
        own = bucket_ids(self.buckets)[bucket]
        if bounds:
            yield output("punctuation", dump((own, max(bounds))))
        promises = RecentPromises(told)
        if promises:
            yield output("promises", dump((own, promises.to_plain())))


class HostedBuckets:
    """The buckets of a stage that one worker has, one after another, with their pages in Spark's state."""

    def __init__(
        self,
        state: Any,
        planned: Physical,
        catalog: Catalog,
        buckets: int,
        stage: int,
        folders: Mapping[str, Staging],
        home: str | None = None,
    ) -> None:
        """Build the graph; outputs of the last stage are staged in `folders`, by their kind.

        `home` is where the query lives, if it does: there are the rounds by which update queues go.
        """
        self.state, self.stage, self.folders = state, stage, folders
        self.is_last = stage == planned.stages
        self.numbers = {id_: number for number, id_ in enumerate(bucket_ids(buckets))}
        keeps = "superseded" in folders
        self.hosted = HostedGraph(planned, catalog, buckets=buckets, stage=stage, keeps_superseded=keeps)
        self.calls_on = not self.is_last and any(isinstance(n, Conflate) for n in planned.node.walk())
        """Whether buckets of the next stage are called although nothing is sent to them."""
        self.home = home

    def take(self, id_: int, frames: Iterable[pd.DataFrame]) -> pd.DataFrame | None:
        """One micro-batch of one bucket."""
        arrivals, passing = sorted_packets(_packets(frames), self.stage)
        pages = [StatePages(self.state, node) for node in self.hosted.graph.nodes]
        self.hosted.graph.attach(list(pages))
        round_ = round_at_work(self.home) if self.hosted.queues.arcs and self.home is not None else EVERYTHING
        given = [*passing, *self.hosted.run(arrivals, self.numbers[id_], round_)]
        for own in pages:
            own.flush()
        if not given and not self.calls_on:
            return None
        if self.is_last:
            return pd.DataFrame([(p.kind, p.body) for p in staged(given, self.folders)], columns=["kind", "body"])
        # What is on its way out leaves the next stage through the bucket that it left this one by.
        given = [p._replace(bucket=id_) if p.stage == OUT else p for p in given]
        if self.calls_on:
            given.append(Packet(id_, self.stage + 1, "", CALL, b""))
        return pd.DataFrame(given, columns=list(PACKED_TYPES))


def _packets(frames: Iterable[pd.DataFrame]) -> Iterator[Packet]:
    for frame in frames:
        for packet in zip(*(frame[name] for name in PACKED_TYPES), strict=True):
            yield Packet(*packet)


def sorted_packets(packets: Iterable[Packet], stage: int) -> tuple[BucketArrivals, list[Packet]]:
    """What is for a stage, and what goes on as it is; a plan that is not cut takes everything.

    In an order that does not depend on who came first. A task may be done again, or twice at a time, and Spark may keep
    the state of one attempt and go on from that of the other: both must be the same to the last bit. Also a sum of
    floats may differ by the order, and results must go where they went before.
    """
    arrivals, passing = BucketArrivals(), []
    for packet in sorted(packets):
        if stage and packet.stage != stage:
            passing.append(packet)
        else:
            arrivals.add(packet.port, packet.kind, packet.body)
    return arrivals, passing


@dataclass(frozen=True)
class BatchHost:
    """Runs a graph once over all rows of a bucket, for `applyInArrow`."""

    planned: Physical
    catalog: Catalog

    def __call__(self, table: pa.Table) -> pa.Table:
        """All packets of a bucket to tagged outputs."""
        hosted = HostedGraph(self.planned, self.catalog, in_order=False)
        columns = [table.column(name).to_pylist() for name in PACKED_TYPES]
        arrivals, _ = sorted_packets((Packet(*packet) for packet in zip(*columns, strict=True)), 0)
        given = [*hosted.run(arrivals), *hosted.close()]
        return pa.table(
            {
                "kind": pa.array([p.kind for p in given], pa.string()),
                "body": pa.array([p.body for p in given], pa.binary()),
            }
        )
