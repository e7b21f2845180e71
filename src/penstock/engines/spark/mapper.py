"""The map side of a plan that is not cut: rows are conformed, spread over buckets and packed.

Each part of a micro-batch sends to every bucket the rows of that bucket and a summary of the progress that the whole
part shows, so that all buckets know the stream's progress exactly, in the same micro-batch, without a watermark. Dead
letters and punctuation rows go to bucket 0. Buckets go by ids that Spark spreads evenly (`buckets.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from penstock.engines.spark.at_work import before_this
from penstock.engines.spark.buckets import bucket_ids
from penstock.engines.spark.parts import PartReader
from penstock.engines.spark.routing import Router, spread
from penstock.engines.spark.stamps import floor_of, not_before
from penstock.engines.spark.wire import NOTE, ROWS, Note, Packet, dump_note, numbered, pack, packed, with_lives
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.plan.catalog import Catalog
from penstock.plan.distribution import by_keys
from penstock.plan.expressions import Expression
from penstock.plan.nodes import Source
from penstock.runtime.builder import Builder
from penstock.runtime.showing import Showing

FIRST = 1
"""The stage that rows and bounds enter."""
TICKS = '{"tick": true}'
"""The line of the control folder that makes a micro-batch although nothing comes."""


@dataclass(frozen=True)
class Mapper:
    """Packs the rows of one stream."""

    source: Source
    catalog: Catalog
    route: tuple[Expression, ...]
    buckets: int
    reader: PartReader
    home: str | None = None
    """Where the query lives, and with it the records of the run, if it does."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`."""
        builder = Builder(self.catalog)
        showing = Showing(self.source, builder)
        router = Router(by_keys(self.route), self.source.schema, builder.functions, self.buckets, by_text=True)
        ids, name = bucket_ids(self.buckets), self.source.name
        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        floor = MIN_TICK
        if self.source.stamped and self.home is not None:
            floor = floor_of(self.source, before_this(self.home, name))
        for number, part in enumerate(not_before(self.reader(batches), floor)):
            shown = showing(part.batch)
            where = router(part.batch)
            if shown.aside is not None:
                where = np.where(shown.aside, 0, where)
            rows = spread(with_lives(part.batch), where, self.buckets)
            sent = [Packet(ids[bucket], FIRST, name, ROWS, numbered(task, number, pack(own))) for bucket, own in rows]
            # What is promised travels to every bucket, as the summary does.
            said = tuple([(each.promise.bounds, each.promise.constants, each.at) for each in shown.said])
            told = Note(shown.summary, said=said)
            first = replace(told, dead=tuple((d.reason, d.row) for d in part.dead), read=part.read)
            yield packed([*sent, *notes(name, told, self.buckets, first)])


def notes(stream: str, told: Note, buckets: int, first: Note | None = None) -> list[Packet]:
    """A note to every bucket, of which the first bucket may be told more."""
    ids = bucket_ids(buckets)
    bodies = [dump_note(first or told), *[dump_note(told)] * (buckets - 1)]
    return [Packet(id_, FIRST, stream, NOTE, body) for id_, body in zip(ids, bodies, strict=True)]


@dataclass(frozen=True)
class ControlMapper:
    """Bounds given from outside, as files of lines, for all buckets; a line that is none is a dead letter.

    A line may also say that there is to be a micro-batch, and nothing else.
    """

    buckets: int
    streams: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over one column of text."""
        for batch in batches:
            for line in batch.column(0).to_pylist():
                found = self._bound(line)
                if line == TICKS:
                    yield packed(notes(self.streams[0], Note(), self.buckets))
                elif found is not None:
                    stream, bound = found
                    yield packed(notes(stream, Note(bound=bound), self.buckets))
                else:
                    letter = Note(dead=(("not a bound of a stream, in the control folder", line),), read=1)
                    yield packed(notes(self.streams[0], Note(), self.buckets, letter))

    def _bound(self, line: str) -> tuple[str, int] | None:
        """Stream and bound of a line such as `{"stream": "main", "bound": 60}`."""
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict) or set(value) != {"stream", "bound"}:
            return None
        stream, bound = value["stream"], value["bound"]
        fits = type(bound) is int and MIN_TICK <= bound <= END_OF_TIME
        return (stream, bound) if stream in self.streams and fits else None
