"""A plan over streaming DataFrames: packed rows in, one stateful operator that hosts the query graph, rows out.

Progress travels as rows beside the data, so a window comes out in the very micro-batch whose rows allow it, at the
grain of the data's own ticks, and every stream keeps a progress of its own. Late rows, dead letters and results come
out of the one operator, tagged, so that they always add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.engines.spark.buckets import default_buckets
from penstock.engines.spark.files import CORRUPT
from penstock.engines.spark.host import BatchHost, GraphProcessor
from penstock.engines.spark.mapper import ControlMapper, Mapper
from penstock.engines.spark.readers import CONTROL, loaded
from penstock.engines.spark.serving import query_settings
from penstock.engines.spark.sources import SparkSource
from penstock.engines.spark.types import spark_ddl
from penstock.engines.spark.wire import PACKED, TAGGED, load, unpack
from penstock.model.accounts import Counts
from penstock.model.changelog import ResultForm
from penstock.model.letters import DEAD_SCHEMA, late_schema
from penstock.model.schema import Schema
from penstock.plan.catalog import Catalog
from penstock.plan.distribution import SINGLE
from penstock.plan.nodes import Source
from penstock.plan.physical import Physical


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
        control: str | None = None,
        buckets: int | None = None,
    ) -> None:
        """`control` is a folder in which bounds from outside appear as JSON files; `buckets` a number to keep to."""
        self.spark, self.planned, self.catalog, self.sources, self.control = spark, planned, catalog, sources, control
        self.entrances = {p.node.name: p for p in planned.walk() if isinstance(p.node, Source)}
        single = any(p.distribution == SINGLE for p in self.entrances.values())
        self.buckets = 1 if single else buckets or default_buckets(spark)
        self.named = all(sources[name.lower()].named for name in self.entrances)
        self.late_schema = late_schema(*(p.node.schema for p in self.entrances.values()))

    @property
    def settings(self) -> dict[str, str]:
        """What the session must be set to while the query starts, see `serving`."""
        return query_settings(self.spark, self.buckets, named=self.named)

    def tagged(self) -> DataFrame:
        """Results, late rows, dead letters, punctuation and counts, as one streaming DataFrame."""
        packed = self._packed()
        if self.control is not None:
            # As text: Spark's reader of JSON passes over what is valid and no record, such as an empty array.
            reader = self.spark.readStream.option("cleanSource", "delete").format("text").option("path", self.control)
            bounds = loaded(self.spark, reader, CONTROL) if self.named else reader.load()
            mapper = ControlMapper(self.buckets, tuple(self.entrances))
            packed = packed.union(bounds.mapInArrow(_function(mapper), PACKED))
        return packed.groupBy("bucket").transformWithStateInPandas(
            GraphProcessor(self.planned, self.catalog), outputStructType=TAGGED, outputMode="Append", timeMode="None"
        )

    def tagged_batch(self) -> DataFrame:
        """The same over bounded DataFrames, each stream taken as one batch and closed at its end."""
        host = BatchHost(self.planned, self.catalog)

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

    def _packed(self) -> DataFrame:
        frames = []
        for name, entrance in self.entrances.items():
            node, source = entrance.node, self.sources[name.lower()]
            assert isinstance(node, Source)
            keys = entrance.distribution.keys
            corrupt = source.corrupt_reason is not None
            mapper = Mapper(node, self.catalog, keys, self.buckets, corrupt, source.lived)
            read = node.schema if source.lived is None else source.lived[1]
            columns: list[Any] = [f"`{n}`" for n in read.names]
            if source.corrupt_reason is not None:
                columns += [source.corrupt_reason, CORRUPT]
            frames.append(source.frame.select(*columns).mapInArrow(_function(mapper), PACKED))
        return reduce(DataFrame.union, frames)

    def output(self, tagged: DataFrame, kind: str) -> DataFrame:
        """One kind of output as rows."""
        plan = self.planned.node
        form = ResultForm(plan.schema, plan.properties.insert_only)
        schema = {"result": form.schema, "late": self.late_schema, "dead": DEAD_SCHEMA}[kind]
        return rows_of(tagged, kind, schema)


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
        yield from callable_(batches)

    return apply
