"""A plan as native Spark operators over bounded DataFrames.

A DataFrame has no order of arrival, so nothing in it is late, unless the stream names an arrival column; then the bound
that precedes each row is a running maximum over that order, and rows can be numbered by it.

A row for which an expression has no value is left out of the result and is a dead letter, which is a query of its own:
Spark finds the rows, and why they failed is said by the code that evaluates rows in-process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from penstock.engines.spark.attempts import Attempt, Attempts
from penstock.engines.spark.letters import LetterWriter
from penstock.engines.spark.sources import AS_JSON, SparkSource
from penstock.engines.spark.ticks import ticks_of, time_of
from penstock.engines.spark.types import spark_ddl
from penstock.engines.spark.windows import can_fail, failed_windows, windowed
from penstock.errors import UnsupportedError
from penstock.model.letters import DEAD_SCHEMA
from penstock.model.progress import Bounded, Ordered, Punctuated, span_ticks
from penstock.query.catalog import Catalog
from penstock.query.expressions import Expression
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
            case Select():
                rows, failed, (made,) = self._attempted(node, [node.predicate])
                kept = rows.filter(made.value if failed is None else made.value & ~failed)
                return kept.select(*[f"`{n}`" for n in node.schema.names])
            case Project():
                rows, failed, values = self._attempted(node, [e for _, e in node.columns])
                sound = rows if failed is None else rows.filter(~failed)
                names = [name for name, _ in node.columns]
                return sound.select(*[v.value.alias(n) for v, n in zip(values, names, strict=True)])
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

    # Rows without a value

    def _attempted(
        self, node: Select | Project, expressions: Sequence[Expression]
    ) -> tuple[DataFrame, Column | None, list[Attempt]]:
        """The input with what only Python can compute, which of its rows fail, and the expressions."""
        rows = self.lower(node.input)
        attempts = Attempts(self.catalog.functions)
        made = [attempts.of(e) for e in expressions]
        for name, prepared in attempts.prepared:
            rows = rows.withColumn(name, prepared)
        flags = [a.failed for a in made if a.failed is not None]
        return rows, reduce(lambda a, b: a | b, flags) if flags else None, made

    def failures(self, plan: Node) -> list[DataFrame]:
        """The dead letters of the operators of a plan; none of an operator that cannot fail."""
        return [frame for node in plan.walk() if (frame := self._failures(node)) is not None]

    def _failures(self, node: Node) -> DataFrame | None:
        match node:
            case Select() | Project():
                expressions = [node.predicate] if isinstance(node, Select) else [e for _, e in node.columns]
                rows, failed, _ = self._attempted(node, expressions)
                if failed is None:
                    return None
                bad = rows.filter(failed).select(*[f"`{n}`" for n in node.input.schema.names])
            case Source():
                rows, failed, _ = self._marked(node)
                if failed is None:
                    return None
                bad = rows.filter(failed).select(*[f"`{n}`" for n in node.schema.names])
            case WindowAggregate(window=SlidingWindow() as window) if can_fail(node):
                bad = failed_windows(self.lower(node.input), node, window, self.catalog)
            case _:
                return None
        writer = LetterWriter(node, self.catalog)

        def apply(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from writer(batches)

        return bad.mapInArrow(apply, spark_ddl(DEAD_SCHEMA))

    # Lateness

    def judged(self, node: Source) -> DataFrame:
        """The rows of a source with the bound that precedes each; punctuation rows are left out."""
        source = self.sources[node.name.lower()]
        rows, failed, is_punctuation = self._marked(node)
        rows = rows if failed is None else rows.filter(~failed)
        ticks = ticks_of(f"`{node.schema.time}`", node.schema.domain)
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

    def _marked(self, node: Source) -> tuple[DataFrame, Column | None, Column | None]:
        """The rows of a source, of which it cannot be told whether they are punctuation, and which are."""
        rows = self.sources[node.name.lower()].rows()
        if not isinstance(node.progress, Punctuated):
            return rows, None, None
        attempts = Attempts(self.catalog.functions)
        made = attempts.of(punctuation_predicate(node.progress, node.schema, self.catalog, node.name))
        for name, prepared in attempts.prepared:
            rows = rows.withColumn(name, prepared)
        return rows, made.failed, F.coalesce(made.value, F.lit(False))

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
