"""A plan over streaming DataFrames: packed rows in, stateful operators that host the query graph, rows out.

Progress travels as rows beside the data, so a window comes out in the very micro-batch whose rows allow it, at the
grain of the data's own ticks, and every stream keeps a progress of its own. A plan that is cut has a stateful operator
per stage, one behind the other in one streaming query: a row passes all of them in its micro-batch. Late rows, dead
letters and results come out of the last one, tagged, so that they always add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.engines.spark.buckets import default_buckets
from penstock.engines.spark.clock import CLOCK, ClockMapper, clock_frame, silences
from penstock.engines.spark.host import BatchHost
from penstock.engines.spark.judging import JudgingMapper
from penstock.engines.spark.mapper import ControlMapper, Mapper
from penstock.engines.spark.native_columns import read_with_made
from penstock.engines.spark.parts import PartReader
from penstock.engines.spark.processor import GraphProcessor
from penstock.engines.spark.readers import CONTROL, loaded
from penstock.engines.spark.serving import query_settings
from penstock.engines.spark.sources import SparkSource
from penstock.engines.spark.tables import SparkTable, with_rows
from penstock.engines.spark.types import spark_ddl
from penstock.engines.spark.wire import PACKED, TAGGED, load, unpack
from penstock.engines.spark.worker import begin_task
from penstock.model.accounts import Counts
from penstock.model.changelog import ResultForm
from penstock.model.letters import DEAD_SCHEMA, late_schema
from penstock.model.schema import Schema
from penstock.plan.catalog import Catalog
from penstock.plan.distribution import SINGLE
from penstock.plan.nodes import Conflate, Source
from penstock.plan.physical import Physical
from penstock.storage.files import Place
from penstock.storage.folders import Staging

CONTROL_FOLDER = "control"


@dataclass(frozen=True)
class Unpacker:
    """Turns tagged outputs back into rows."""

    arrow: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over one kind of output."""
        for batch in batches:
            for body in batch.column("body").to_pylist():
                yield from unpack(body).cast(self.arrow).to_batches()


class Hosted:
    """The hosted form of one plan."""

    def __init__(
        self,
        spark: SparkSession,
        planned: Physical,
        catalog: Catalog,
        sources: Mapping[str, SparkSource],
        home: Place | None = None,
        buckets: int | None = None,
        tables: Mapping[str, SparkTable] | None = None,
        *,
        clock: bool | None = None,
    ) -> None:
        """`buckets` is a number to keep to; `tables` are what lookups look into.

        `clock` says whether the clock is one of the sources of a query that is started; it is where it has a use.

        `home` is where the query lives that is started: there is a folder in which bounds from outside appear as JSON
        files, and there are the records by which rows of a plan that is cut are judged.
        """
        self.spark, self.planned, self.catalog, self.sources, self.home = spark, planned, catalog, sources, home
        self.tables = tables or {}
        self.entrances = {p.node.name: p for p in planned.walk() if isinstance(p.node, Source)}
        self.buckets = 1 if is_single(planned) else buckets or default_buckets(spark)
        self.named = all(sources[name.lower()].named for name in self.entrances)
        self.silences = silences(planned.node, catalog)
        self.has_queues = any(isinstance(node, Conflate) for node in planned.node.walk())
        self.clock = bool(self.silences) or self.has_queues if clock is None else clock
        self.late_schema = late_schema(*(p.node.schema for p in self.entrances.values()))

    @cached_property
    def _whole(self) -> Physical:
        """The plan with the rows of its tables, as workers are given it."""
        return with_rows(self.planned, self.tables)

    def settings(self) -> dict[str, str]:
        """What the session must be set to while the query starts, see `serving`."""
        on_disk = self.home is not None and self.home.is_local
        return query_settings(self.spark, self.buckets, named=self.named, on_disk=on_disk)

    def tagged(self, folders: Mapping[str, Staging] | None = None) -> DataFrame:
        """Results, late rows, dead letters, punctuation and counts, as one streaming DataFrame.

        Outputs are staged in `folders`, by their kind, by whoever makes them.
        """
        packed = self._packed(folders)
        if self.home is not None:
            # As text: Spark's reader of JSON passes over what is valid and no record, such as an empty array.
            reader = self.spark.readStream.option("cleanSource", "delete").format("text")
            reader = reader.option("path", (self.home / CONTROL_FOLDER).uri)
            bounds = loaded(self.spark, reader, CONTROL) if self.named else reader.load()
            mapper = ControlMapper(self.buckets, tuple(self.entrances))
            packed = packed.union(bounds.mapInArrow(_function(mapper), PACKED))
            if self.clock:
                clock = clock_frame(self.spark, self.home.uri, self._load_clock, has_queues=self.has_queues)
                told = ClockMapper(self.buckets, tuple(self.silences), next(iter(self.entrances)))
                packed = packed.union(clock.mapInArrow(_function(told), PACKED))
        last = self.planned.stages
        for stage in range(1, last) if last else ():
            packed = self._stage(packed, stage, PACKED, folders)
        return self._stage(packed, last, TAGGED, folders)

    def _load_clock(self, reader: Any) -> DataFrame:
        frame: DataFrame = loaded(self.spark, reader, CLOCK) if self.named else reader.load()
        return frame

    def _stage(
        self, packed: DataFrame, stage: int, given: str, folders: Mapping[str, Staging] | None = None
    ) -> DataFrame:
        home = None if self.home is None else self.home.uri
        return packed.groupBy("bucket").transformWithStateInPandas(
            GraphProcessor(self._whole, self.catalog, self.buckets, stage, folders, home),
            outputStructType=given,
            outputMode="Append",
            timeMode="None",
        )

    def tagged_batch(self) -> DataFrame:
        """The same over bounded DataFrames, each stream taken as one batch and closed at its end."""
        host = BatchHost(self._whole, self.catalog)

        def apply(table: pa.Table) -> pa.Table:
            return host(table)

        # As many partitions as buckets, which adaptive execution leaves alone: it would put small ones together.
        return self._packed().repartition(self.buckets, "bucket").groupBy("bucket").applyInArrow(apply, TAGGED)

    def batch_counts(self) -> Counts:
        """Where the rows of bounded DataFrames go."""
        notes = self.tagged_batch().filter(F.col("kind") == "counts").select("body").collect()
        found = reduce(Counts.__add__, [Counts(**load(bytes(note.body))) for note in notes], Counts())
        unread = sum(len(source.unread) for source in self.sources.values())
        return found + Counts(read=unread, dead=unread)

    def _packed(self, folders: Mapping[str, Staging] | None = None) -> DataFrame:
        frames = []
        for name, entrance in self.entrances.items():
            node, source = entrance.node, self.sources[name.lower()]
            assert isinstance(node, Source)
            made = self.planned.made_of(name)
            reader = PartReader(node.schema, source.corrupt_reason is not None, source.lived, made)
            mapper: Mapper | JudgingMapper
            if self.planned.stages:
                assert self.home is not None
                home, late = self.home.uri, self.late_schema
                mapper = JudgingMapper(self._whole, node, self.catalog, self.buckets, reader, late, home, folders or {})
            else:
                keys, at = entrance.distribution.keys, None if self.home is None else self.home.uri
                mapper = Mapper(node, self.catalog, keys, self.buckets, reader, at)
            frames.append(read_with_made(source, made, self.catalog).mapInArrow(_function(mapper), PACKED))
        return reduce(DataFrame.union, frames)

    def output(self, tagged: DataFrame, kind: str) -> DataFrame:
        """One kind of output as rows."""
        plan = self.planned.node
        form = ResultForm(plan.schema, plan.properties.insert_only)
        schema = {"result": form.schema, "late": self.late_schema, "dead": DEAD_SCHEMA}[kind]
        return rows_of(tagged, kind, schema)


def is_single(planned: Physical) -> bool:
    """Whether all rows come to one place."""
    if planned.stages:
        return all(p.exchange is None or p.exchange.distribution == SINGLE for p in planned.walk())
    return any(p.distribution == SINGLE for p in planned.walk() if isinstance(p.node, Source))


def rows_of(tagged: DataFrame, kind: str, schema: Schema) -> DataFrame:
    """The rows of one kind of tagged output."""
    return (
        tagged.filter(F.col("kind") == kind)
        .select("body")
        .mapInArrow(_function(Unpacker(schema.visible_arrow)), spark_ddl(schema))
    )


def _function(callable_: Any) -> Any:
    """A plain function, which is what Spark asks for."""

    def apply(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin_task()
        yield from callable_(batches)

    return apply
