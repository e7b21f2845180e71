"""Tables on Spark: DataFrames that are no streams, joined natively in batch, and collected where a query is hosted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.engines.spark.sources import SparkSource, is_spark_readable, open_spark_source
from penstock.engines.spark.types import frame_of
from penstock.errors import StreamError
from penstock.model.batch import Batch
from penstock.model.schema import Schema
from penstock.plan.lookup_nodes import Lookup, TableInfo
from penstock.plan.physical import Physical


@dataclass(frozen=True)
class SparkTable:
    """A table with the schema that its rows are brought into."""

    source: SparkSource
    content: pa.Table | None = None
    """Its rows, where they were in memory already."""

    @property
    def schema(self) -> Schema:
        """Its columns."""
        return self.source.schema

    def rows(self) -> DataFrame:
        """Its rows, in the schema's types."""
        return self.source.rows()

    def collected(self) -> pa.Table:
        """Its rows in memory, as they are now."""
        return self.rows().toArrow().cast(self.schema.arrow) if self.content is None else self.content

    def check(self, info: TableInfo) -> None:
        """Refuse rows that cannot be read, keys that are null, and two versions of one key that start together."""
        for letter in self.source.dead_letters(info.name).limit(1).collect():
            raise StreamError("A row of the table cannot be read.", got=f"{letter.reason}: {letter.row}"[:300])
        if info.valid_from is None:
            return
        rows = self.rows()
        for column in info.key:
            if rows.filter(F.col(f"`{column}`").isNull()).limit(1).count():
                raise StreamError("A key of the table is null.", got=column, hint="leave such rows out")
        names = [*info.key, info.valid_from]
        twice = rows.groupBy(*[f"`{name}`" for name in names]).count().filter("count > 1").limit(1).collect()
        for row in twice:
            shown = ", ".join(f"{name} {row[name]}" for name in names)
            raise StreamError("Two versions of a key start together.", got=shown, hint="leave one of them out")


def open_spark_table(
    spark: SparkSession,
    source: object,
    valid_from: str | None,
    typed: Schema | None,
    time_format: str | None,
    delimiter: str | None,
) -> SparkTable | None:
    """The table for a DataFrame, a table's name, or paths; None for what is in memory."""
    if not is_spark_readable(source):
        return None
    found = open_spark_source(spark, source, valid_from, typed, None, time_format, delimiter)
    if found.is_streaming:
        raise StreamError(
            "A table is no stream.", got="a streaming DataFrame", hint="flow.stream, or read it with spark.read"
        )
    return SparkTable(found)


def table_in_memory(spark: SparkSession, content: Batch) -> SparkTable:
    """The table for rows that are in memory."""
    schema = replace(content.schema, time_format=None)
    return SparkTable(SparkSource(schema, frame_of(spark, content.table, schema)), content.table)


def with_rows(planned: Physical, tables: Mapping[str, SparkTable]) -> Physical:
    """A plan whose lookups have the rows of their tables, as these are now; each is collected once."""
    return _with_contents(planned, lambda table: tables[table.name.lower()].collected())


def with_no_rows(planned: Physical) -> Physical:
    """A plan whose lookups find nothing, for whoever asks of its operators what they are."""
    return _with_contents(planned, lambda table: table.schema.arrow.empty_table())


def _with_contents(planned: Physical, content: Callable[[TableInfo], pa.Table]) -> Physical:
    found: dict[str, pa.Table] = {}

    def visit(at: Physical) -> Physical:
        inputs = tuple(visit(below) for below in at.inputs)
        node = at.node.with_inputs(*(below.node for below in inputs))
        if isinstance(node, Lookup):
            name = node.table.name.lower()
            if name not in found:
                found[name] = content(node.table)
            node = replace(node, table=replace(node.table, content=found[name]))
        return at if node is at.node else replace(at, node=node, inputs=inputs)

    return visit(planned)
