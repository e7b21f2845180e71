"""A plan as native Spark operators over bounded DataFrames.

A DataFrame has no order of arrival, so nothing in it is late, unless the stream names an arrival column; then the bound
that precedes each row is a running maximum over that order, and rows can be numbered by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from penstock.engines.spark.columns import column
from penstock.engines.spark.sources import AS_JSON, SparkSource
from penstock.engines.spark.ticks import ticks_of, time_of
from penstock.engines.spark.windows import windowed
from penstock.errors import UnsupportedError
from penstock.model.progress import Bounded, Ordered, Punctuated, span_ticks
from penstock.query.catalog import Catalog
from penstock.query.nodes import (
    ROW_NUMBER,
    Distinct,
    Merge,
    Node,
    NumberRows,
    Project,
    Select,
    SlidingWindow,
    Source,
    Union,
    WindowAggregate,
)
from penstock.query.predicates import punctuation_predicate, silent_columns

ARRIVAL = "__arrival"
BOUND = "__bound"
TIMES = "__times"


def merged(frames: list[DataFrame], node: Merge) -> DataFrame:
    """Replicas as one: each row as often as the replica has it that has it most often; with a key, that is once."""
    schema = node.schema
    names = [f"`{n}`" for n in schema.names]
    if node.algorithm == "R0":
        return reduce(DataFrame.union, frames).dropDuplicates([str(schema.time)])
    if node.key is not None:
        key = dict.fromkeys([str(schema.time), *(schema.names[i] for i in node.key)])
        return reduce(DataFrame.union, frames).dropDuplicates(list(key))
    counted = [f.groupBy(*names).agg(F.count("*").alias(TIMES)) for f in frames]
    most = reduce(DataFrame.union, counted).groupBy(*names).agg(F.max(TIMES).alias(TIMES))
    return most.select(*names, F.explode(F.sequence(F.lit(1), F.col(TIMES).cast("int")))).select(*names)


class BatchLowering:
    """Lowers one plan."""

    def __init__(self, catalog: Catalog, sources: Mapping[str, SparkSource]) -> None:
        """`sources` by lower-case name."""
        self.catalog, self.sources = catalog, sources

    def lower(self, node: Node) -> DataFrame:
        """The DataFrame of a node, with all columns of its schema."""
        match node:
            case Source():
                return self.judged(node).filter(~self.is_late(node)).select(*node.schema.names)
            case NumberRows(input=Source() as source):
                number = (F.row_number().over(Over.orderBy(ARRIVAL)) - 1).cast("bigint")
                return self.judged(source).select(*source.schema.names, number.alias(ROW_NUMBER))
            case Select(input=below, predicate=predicate):
                return self.lower(below).filter(column(predicate, self.catalog.functions))
            case Project(input=below, columns=columns):
                return self.lower(below).select(*[column(e, self.catalog.functions).alias(n) for n, e in columns])
            case Union(branches=branches):
                frames = [self.lower(b) for b in branches]
                result = frames[0]
                for frame in frames[1:]:
                    result = result.union(frame)
                return result
            case Merge(branches=branches):
                return merged([self.lower(b) for b in branches], node)
            case Distinct(input=below):
                names = [f.name for f in node.schema.visible]
                return self.lower(below).dropDuplicates(list(dict.fromkeys([*names, str(node.schema.time)])))
            case WindowAggregate(window=SlidingWindow() as window):
                return windowed(self.lower(node.input), node, window, self.catalog)
            case _:
                raise UnsupportedError("Spark has no native operator for this.", where=node.label)

    # Lateness

    def judged(self, node: Source) -> DataFrame:
        """The rows of a source with the bound that precedes each; punctuation rows are left out."""
        source = self.sources[node.name.lower()]
        rows = source.rows()
        ticks = ticks_of(f"`{node.schema.time}`", node.schema.domain)
        is_punctuation: Column | None = None
        if isinstance(node.progress, Punctuated):
            predicate = punctuation_predicate(node.progress, node.schema, self.catalog, node.name)
            is_punctuation = F.coalesce(column(predicate, self.catalog.functions), F.lit(False))
        bound: Column = F.lit(None).cast("bigint")
        if source.arrival is not None:
            bound = self._bound(node, ticks, self._for_all(node, is_punctuation))
        judged = rows.withColumn(BOUND, bound)
        return judged.filter(~is_punctuation) if is_punctuation is not None else judged

    def _for_all(self, node: Source, is_punctuation: Column | None) -> Column | None:
        """Which punctuation speaks for the whole stream."""
        if is_punctuation is None or not isinstance(node.progress, Punctuated):
            return None
        predicate = punctuation_predicate(node.progress, node.schema, self.catalog, node.name)
        silent = [node.schema.fields[i].name for i in silent_columns(node.progress, predicate, node.schema)]
        return reduce(lambda found, name: found & F.col(f"`{name}`").isNull(), silent, is_punctuation)

    def _bound(self, node: Source, ticks: Column, is_punctuation: Column | None) -> Column:
        order = Over.orderBy(ARRIVAL)
        before = order.rowsBetween(Over.unboundedPreceding, -1)
        match node.progress:
            case Ordered():
                return F.max(ticks).over(before)
            case Bounded(delay=delay, rows=None):
                assert delay is not None
                return F.max(ticks).over(before) - F.lit(span_ticks(delay, node.schema.domain))
            case Bounded(rows=rows):
                assert rows is not None
                return F.max(ticks).over(order.rowsBetween(Over.unboundedPreceding, -rows - 1))
            case Punctuated():
                assert is_punctuation is not None
                return F.max(F.when(is_punctuation, ticks)).over(before)
            case _:
                raise UnsupportedError(
                    "An arrival column cannot be used with per_source() in batch.",
                    where=node.label,
                    hint="leave arrival out, or run as a stream or in-process",
                )

    @staticmethod
    def is_late(node: Source) -> Column:
        """Whether the bound before a row condemns it."""
        ticks = ticks_of(f"`{node.schema.time}`", node.schema.domain)
        return F.coalesce(ticks < F.col(BOUND), F.lit(False))

    def late(self, node: Source) -> DataFrame:
        """The late rows: stream, bound, row as JSON."""
        row = F.to_json(F.struct(*[F.col(f"`{n}`") for n in node.schema.names]), AS_JSON)
        return (
            self.judged(node)
            .filter(self.is_late(node))
            .select(
                F.lit(node.name).alias("stream"),
                time_of(F.col(BOUND), node.schema.domain).alias("bound"),
                row.alias("row"),
            )
        )
