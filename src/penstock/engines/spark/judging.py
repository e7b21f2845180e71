"""The map side of a plan that is cut: rows are judged where they are read, and go on as far as no state is needed.

A row is late by what was known before its micro-batch, and that is in the record of the micro-batch before: the task
knows the number of its own, Spark tells it, and a micro-batch only starts once the record of the one before is kept. So
every task judges as every bucket would, also when a micro-batch is replayed. What follows the entrance without state,
selections and projections, runs here too; then rows go to the buckets of the next stage (`sending`). Of a plan without
state they are results already, and are written here.

Late rows and dead letters, counts and statistics leave as packets that pass all stages by, those of each task through a
bucket of its own, so that no bucket has to carry those of all. As in a plan that is not cut, every bucket of the first
stage hears what the part shows of its stream's progress.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from penstock.engines.spark.at_work import before_this
from penstock.engines.spark.buckets import bucket_ids
from penstock.engines.spark.mapper import notes
from penstock.engines.spark.parts import Part, PartReader
from penstock.engines.spark.sending import Sending
from penstock.engines.spark.staging import staged_rows
from penstock.engines.spark.stamps import floor_of, not_before
from penstock.engines.spark.statistics import OPERATORS, added, counted
from penstock.engines.spark.wire import OUT, Note, Packet, dump, output, pack, packed
from penstock.errors import InternalError
from penstock.model.accounts import Counts
from penstock.model.batch import Batch
from penstock.model.changelog import ResultForm
from penstock.model.made import with_made, without_made
from penstock.model.schema import Schema
from penstock.operators.operator import Rejected
from penstock.operators.progress.ingest import BatchIngest
from penstock.operators.state import MemoryPages
from penstock.plan.catalog import Catalog
from penstock.plan.native import beside_made
from penstock.plan.nodes import Source
from penstock.plan.physical import Physical
from penstock.runtime.builder import Builder
from penstock.runtime.graph import QueryGraph
from penstock.runtime.showing import Showing
from penstock.runtime.side_outputs import SideOutputs
from penstock.storage.folders import Staging


@dataclass(frozen=True)
class JudgingMapper:
    """Judges and sends the rows of one stream."""

    plan: Physical
    source: Source
    catalog: Catalog
    buckets: int
    reader: PartReader
    late: Schema
    """The columns of late rows."""
    home: str
    """Where the query lives, and with it the records of the run."""
    folders: Mapping[str, Staging] = field(default_factory=dict)
    """Where outputs are staged: results that are made here, by a plan without state."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`."""
        task = TaskContext.get()
        assert task is not None
        yield from self.judged(batches, before_this(self.home, self.source.name), task.partitionId())

    def judged(self, batches: Iterable[pa.RecordBatch], before: dict[str, Any], task: int) -> Iterator[pa.RecordBatch]:
        """Packets of what a task reads, if `before` is what was known of the stream."""
        builder = Builder(self.catalog)
        showing = Showing(self.source, builder)
        ways = [Way(self.plan, sender, self.catalog, self.buckets, task, self.folders) for sender in self._senders()]
        for way in ways:
            way.begin(before)
        floor = floor_of(self.source, before)
        for part in not_before(self.reader(batches), floor):
            told = Note(showing(part.batch).summary)
            out = bucket_ids(self.buckets)[task % self.buckets]
            sent = [p._replace(bucket=out) if p.stage == OUT else p for p in self._sent(part, ways)]
            yield packed([*sent, *notes(self.source.name, told, self.buckets)])

    def _senders(self) -> list[Physical]:
        """The nodes behind which the stream's rows change places."""
        ends = [p for p in self.plan.walk() if p.stage == 0 and p.exchange is not None]
        return [
            p for p in ends if any(isinstance(b.node, Source) and b.node.name == self.source.name for b in p.walk())
        ]

    def _sent(self, part: Part, ways: list[Way]) -> Iterator[Packet]:
        side = SideOutputs(self.late)
        for letter in part.dead:
            side.bury(self.source.name, letter)
        counts = Counts(read=part.read)
        for at, way in enumerate(ways):
            # Each way has an entrance, and all judge alike: the first one speaks for the stream.
            yield from way.take(part.batch, side, counts if at == 0 else None)
        counts.late, counts.dead, counts.failed = len(side.late), side.dead, side.failed
        if len(side.late):
            yield output("late", pack(side.late.table()))
        if len(side.letters):
            yield output("dead", pack(side.letters.table()))
        yield output("counts", dump(asdict(counts)))


class Way:
    """The way of a stream's rows from the entrance to one exchange."""

    def __init__(
        self,
        plan: Physical,
        sender: Physical,
        catalog: Catalog,
        buckets: int,
        task: int,
        folders: Mapping[str, Staging],
    ) -> None:
        """`task` is the number of the task that reads; results of a plan without state are staged in `folders`."""
        (source,) = (below.node for below in sender.walk() if isinstance(below.node, Source))
        made = plan.made_of(source.name)
        read = with_made(source.schema, [expression.type for expression in made])
        self.graph = QueryGraph(beside_made(sender, source.name, read), Builder(catalog, made))
        ((self.stream, (self.entrance,)),) = self.graph.sources.items()
        keeps = "superseded" in folders
        self.sending = Sending(plan, sender, Builder(catalog), buckets, keeps_superseded=keeps)
        self.task, self.folders = task, folders
        self.form = ResultForm(plan.node.schema) if sender is plan else None
        """Of what comes out as a result here: rows that need not meet any others go nowhere else."""

    def begin(self, before: dict[str, Any]) -> None:
        """Judge by what was known before the micro-batch."""
        self.graph.attach([MemoryPages(dict(before) if n is self.entrance else {}) for n in self.graph.nodes])

    def take(self, batch: Batch, side: SideOutputs, counts: Counts | None) -> Iterator[Packet]:
        """Send what comes of a batch; with `counts`, say also what the entrance made of it."""
        entrance = self.entrance.operator
        assert isinstance(entrance, BatchIngest)

        def reject(stream: str, operator: str | None, rejected: Rejected) -> None:
            if counts is not None or operator is not None:
                side.take(stream, operator, replace(rejected, batch=without_made(rejected.batch)))

        self.graph.side = reject
        statistics = counted(self.graph.nodes)
        before = (self.entrance.statistics.rows_out, entrance.punctuation)
        self.graph.push(self.stream, batch)
        for given in self.graph.drain():
            if not isinstance(given, Batch):
                raise InternalError("A promise was made where rows are read.", where=self.stream)
            rows = without_made(given)
            if self.form is None:
                yield from self.sending(rows, self.task)
            elif len(rows):
                yield staged_rows("result", [self.form.table(rows)], self.folders)
        if counts is not None:
            counts.on_time = self.entrance.statistics.rows_out - before[0]
            counts.punctuation = entrance.punctuation - before[1]
            if entrance.greatest is not None:
                yield output("greatest", dump({self.entrance.stream: entrance.greatest}))
        more = added(statistics, counted(self.graph.nodes))
        if more:
            yield output(OPERATORS, dump(more))
