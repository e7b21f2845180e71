"""A plan as native Spark operators over bounded DataFrames.

Where streams enter (`entrance`), rows are judged; in an order of arrival they can be numbered too.

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
from penstock.engines.spark.columns import any_of
from penstock.engines.spark.entrance import ARRIVAL, BatchEntrance
from penstock.engines.spark.groups import failed_groups, grouped
from penstock.engines.spark.joins import joined, looked_up
from penstock.engines.spark.letters import LetterWriter
from penstock.engines.spark.sources import SparkSource
from penstock.engines.spark.tables import SparkTable
from penstock.engines.spark.types import spark_ddl
from penstock.engines.spark.windows import can_fail, failed_windows, windowed
from penstock.errors import UnsupportedError
from penstock.model.letters import DEAD_SCHEMA
from penstock.plan.catalog import Catalog
from penstock.plan.expressions import Expression
from penstock.plan.nodes import (
    ROW_NUMBER,
    Distinct,
    GroupAggregate,
    Join,
    Lookup,
    Merge,
    NumberRows,
    Project,
    Select,
    Source,
    Union,
    Unnest,
    WindowAggregate,
)
from penstock.plan.physical import Physical
from penstock.plan.windows import SlidingWindow

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

    def __init__(
        self, catalog: Catalog, sources: Mapping[str, SparkSource], tables: Mapping[str, SparkTable] | None = None
    ) -> None:
        """`sources` and `tables` by lower-case name."""
        self.tables = tables or {}
        self.catalog, self.entrance = catalog, BatchEntrance(catalog, sources)

    def lower(self, planned: Physical) -> DataFrame:
        """The DataFrame of a node, with all columns of its schema."""
        node = planned.node
        match node:
            case Source():
                return self.entrance.on_time(node).select(*[f"`{n}`" for n in node.schema.names])
            case NumberRows(input=Source() as source):
                number = (F.row_number().over(Over.orderBy(ARRIVAL)) - 1).cast("bigint")
                names = [f"`{n}`" for n in source.schema.names]
                return self.entrance.judged(source).select(*names, number.alias(ROW_NUMBER))
            case Select():
                rows, failed, (made,) = self._attempted(planned, [node.predicate])
                kept = rows.filter(made.value if failed is None else made.value & ~failed)
                return kept.select(*[f"`{n}`" for n in node.schema.names])
            case Project():
                rows, failed, values = self._attempted(planned, [e for _, e in node.columns])
                sound = rows if failed is None else rows.filter(~failed)
                names = [name for name, _ in node.columns]
                return sound.select(*[v.value.alias(n) for v, n in zip(values, names, strict=True)])
            case Unnest():
                return self._unnested(planned, node)
            case Union():
                return reduce(DataFrame.union, map(self.lower, planned.inputs))
            case Merge():
                return merged([self.lower(b) for b in planned.inputs], node)
            case Join():
                left, right = map(self.lower, planned.inputs)
                return joined(left, right, node, self.catalog)
            case Lookup():
                return looked_up(self._below(planned), self.tables[node.table.name.lower()].rows(), node, self.catalog)
            case Distinct():
                names = [f.name for f in node.schema.visible]
                return self._below(planned).dropDuplicates(list(dict.fromkeys([*names, str(node.schema.time)])))
            case WindowAggregate(window=SlidingWindow() as window):
                return windowed(self._below(planned), node, window, planned.algorithm, self.catalog)
            case GroupAggregate():
                return grouped(self._below(planned), node)
            case _:
                raise UnsupportedError("Spark has no native operator for this.", where=node.label)

    def _unnested(self, planned: Physical, node: Unnest) -> DataFrame:
        """One row for each element; Spark numbers them from 0 as well."""
        names = [node.input.schema.names[i] for i in node.kept]
        called = f"{'pos' if node.place else ''}explode{'_outer' if node.outer else ''}"
        made = getattr(F, called)(F.col(f"`{node.column}`")).alias(*node.names)
        return self._below(planned).select(*[f"`{name}`" for name in names], made)

    def _below(self, planned: Physical) -> DataFrame:
        (below,) = planned.inputs
        return self.lower(below)

    # Rows without a value

    def _attempted(
        self, planned: Physical, expressions: Sequence[Expression]
    ) -> tuple[DataFrame, Column | None, list[Attempt]]:
        """The input with what only Python can compute, which of its rows fail, and the expressions."""
        rows = self._below(planned)
        attempts = Attempts(self.catalog.functions)
        made = [attempts.of(e) for e in expressions]
        for name, prepared in attempts.prepared:
            rows = rows.withColumn(name, prepared)
        flags = [a.failed for a in made if a.failed is not None]
        return rows, any_of(flags) if flags else None, made

    def failures(self, plan: Physical) -> list[DataFrame]:
        """The dead letters of the operators of a plan, none of one that cannot fail; of a stream read twice, once."""
        entrances = {p.node.name.lower(): p for p in plan.walk() if isinstance(p.node, Source)}
        nodes = [*entrances.values(), *(p for p in plan.walk() if not isinstance(p.node, Source))]
        return [frame for node in nodes if (frame := self._failures(node)) is not None]

    def _failures(self, planned: Physical) -> DataFrame | None:
        node = planned.node
        match node:
            case Select() | Project():
                expressions = [node.predicate] if isinstance(node, Select) else [e for _, e in node.columns]
                rows, failed, _ = self._attempted(planned, expressions)
                if failed is None:
                    return None
                bad = rows.filter(failed).select(*[f"`{n}`" for n in node.input.schema.names])
            case Source():
                dead = self.entrance.dead(node)
                if dead is None:
                    return None
                bad = dead
            case WindowAggregate(window=SlidingWindow() as window) if can_fail(node):
                bad = failed_windows(self._below(planned), node, window, planned.algorithm, self.catalog)
            case GroupAggregate() if can_fail(node):
                bad = failed_groups(self._below(planned), node)
            case _:
                return None
        writer = LetterWriter(planned, self.catalog)

        def apply(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from writer(batches)

        return bad.mapInArrow(apply, spark_ddl(DEAD_SCHEMA))
