"""The entrance of a bounded DataFrame: which rows go on, which are late, and which are dead.

A DataFrame has no order of arrival, so that nothing in it is late or too far ahead, unless the stream names an arrival
column. Then the bound that precedes each row is a running maximum over that order, and rows that are too far ahead are
put aside before it, which is one pass over the rows in that order by the code that does it in-process: what a row is
compared with depends on which rows before it were refused, and no window function of Spark can say that. So it is with
a bound that is estimated. Each takes all rows of the stream through one task.

Dead are rows of which it cannot be told whether they are punctuation, punctuation that is ambiguous, and, in an order
of arrival, punctuation that goes backwards and rows that are too far ahead. The words are those of the entrance
in-process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F
from pyspark.sql import types as t

from penstock.engines.spark.attempts import Attempts
from penstock.engines.spark.columns import any_of
from penstock.engines.spark.sources import AS_JSON, SparkSource
from penstock.engines.spark.ticks import ticks_of, time_of
from penstock.errors import UnsupportedError
from penstock.model.batch import Batch
from penstock.model.estimated import Estimated
from penstock.model.progress import Bounded, Ordered, Punctuated, Several, span_ticks
from penstock.model.time import MIN_TICK
from penstock.operators.progress.ahead import GuardedTracker
from penstock.operators.progress.trackers import tracker_for
from penstock.plan.catalog import Catalog
from penstock.plan.nodes import Source
from penstock.runtime.builder import Builder

ARRIVAL = "__arrival"
BOUND = "__bound"
REACHED = "__reached"
"""What the stream had reached before a row that is too far ahead; null of others."""
UNJUDGED, AMBIGUOUS, BACKWARDS, AHEAD = "unjudged", "ambiguous", "backwards", "ahead"


@dataclass(frozen=True)
class Guard:
    """Tells rows that are too far ahead, for `mapInArrow` over all rows of a stream in the order of arrival."""

    source: Source
    catalog: Catalog

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Every row, with what had been reached before it if it is too far ahead."""
        schema = self.source.schema
        assert not isinstance(self.source.progress, Several)
        guard = tracker_for(self.source.progress, schema.domain, self.source.max_ahead)
        marks_of = Builder(self.catalog).marks_of(self.source)
        assert isinstance(guard, GuardedTracker)
        state: Any = None
        for each in batches:
            table = pa.Table.from_batches([each])
            batch = Batch(schema, table=table.select(list(schema.names)).cast(schema.arrow))
            taken = guard.judges(marks_of(batch)) if guard.punctuated and marks_of is not None else None
            judged = np.flatnonzero(taken) if taken is not None else np.arange(len(batch))
            admitted, state, refused = guard.admit(state, batch.times()[judged])
            reached: list[int | None] = [None] * len(batch)
            for place, before in zip(judged[~admitted].tolist(), refused, strict=True):
                reached[place] = before
            yield from table.append_column(REACHED, pa.array(reached, pa.int64())).to_batches()


@dataclass(frozen=True)
class EstimatedBounds:
    """Says of each row, in an order of arrival, which bound the rows before it have brought about."""

    source: Source

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over one partition."""
        schema = self.source.schema
        assert isinstance(self.source.progress, Estimated)
        tracker, state = tracker_for(self.source.progress, schema.domain), None
        for each in batches:
            table = pa.Table.from_batches([each])
            times = Batch(schema, table=table.select(list(schema.names)).cast(schema.arrow)).times()
            before, state = tracker.by_row(state, times, None)
            known = pa.array(before, pa.int64(), mask=before == MIN_TICK)
            yield from table.append_column(BOUND, known).to_batches()


def _in_turn(rows: DataFrame, mapper: Guard | EstimatedBounds, added: str) -> DataFrame:
    """The rows in an order of arrival, with one more number that a mapper says of each."""

    def apply(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from mapper(batches)

    known = t.StructType([*rows.schema.fields, t.StructField(added, t.LongType())])
    return rows.repartition(1).sortWithinPartitions(ARRIVAL).mapInArrow(apply, known)


class BatchEntrance:
    """The streams of a batch."""

    def __init__(self, catalog: Catalog, sources: Mapping[str, SparkSource]) -> None:
        """`sources` by lower-case name."""
        self.catalog, self.sources = catalog, sources

    def on_time(self, node: Source) -> DataFrame:
        """The rows that go on."""
        judged = self.judged(node)
        return judged.filter(~self._is_late(node)) if self._in_order(node) else judged

    def judged(self, node: Source) -> DataFrame:
        """The rows of data, late ones too, in an order of arrival with the bound that precedes each."""
        rows, is_punctuation = self._sound(node)
        return rows if is_punctuation is None else rows.filter(~is_punctuation)

    def punctuation(self, node: Source) -> int:
        """How many rows are punctuation that says something in order."""
        rows, is_punctuation = self._sound(node)
        if is_punctuation is None:
            return 0
        said = rows.filter(is_punctuation)
        return (said.filter(~self._is_late(node)) if self._in_order(node) else said).count()

    def late(self, node: Source) -> DataFrame:
        """The late rows: stream, bound, row as JSON."""
        row = F.to_json(F.struct(*[F.col(f"`{n}`") for n in node.schema.names]), AS_JSON)
        return (
            self.judged(node)
            .filter(self._is_late(node))
            .select(
                F.lit(node.name).alias("stream"),
                time_of(F.col(BOUND), node.schema.domain).alias("bound"),
                row.alias("row"),
            )
        )

    def dead(self, node: Source) -> DataFrame | None:
        """The rows that die here, each with why and the tick that condemned it; None if none can."""
        names = [f"`{n}`" for n in node.schema.names]
        rows, why, is_punctuation = self._refused(node)
        found = []
        if why is not None:
            reached = F.col(REACHED) if self._is_guarded(node) else F.lit(None).cast("bigint")
            bad = rows.filter(why.isNotNull())
            found.append(bad.select(*names, why.alias("__why"), reached.alias("__at")))
        if is_punctuation is not None and self._in_order(node):
            sound, _ = self._sound(node)
            backwards = sound.filter(is_punctuation & self._is_late(node))
            found.append(backwards.select(*names, F.lit(BACKWARDS).alias("__why"), F.col(BOUND).alias("__at")))
        return reduce(DataFrame.union, found) if found else None

    def _in_order(self, node: Source) -> bool:
        return self.sources[node.name.lower()].arrival is not None

    def _is_guarded(self, node: Source) -> bool:
        return self._in_order(node) and node.max_ahead is not None

    def _refused(self, node: Source) -> tuple[DataFrame, Column | None, Column | None]:
        """All rows, why some take no part, and which are punctuation; None where that cannot be."""
        rows = self.sources[node.name.lower()].rows()
        reasons: list[Column] = []
        is_punctuation: Column | None = None
        if self._is_guarded(node):
            rows = _in_turn(rows, Guard(node, self.catalog), REACHED)
        if node.punctuation is not None:
            attempts = Attempts(self.catalog.functions)
            made = attempts.of(node.punctuation)
            for name, prepared in attempts.prepared:
                rows = rows.withColumn(name, prepared)
            is_punctuation = F.coalesce(made.value, F.lit(False))
            if made.failed is not None:
                reasons.append(F.when(made.failed, F.lit(UNJUDGED)))
            silent = [node.schema.fields[i].name for i in node.silent]
            if silent:
                speaks = any_of([F.col(f"`{name}`").isNotNull() for name in silent])
                reasons.append(F.when(is_punctuation & speaks, F.lit(AMBIGUOUS)))
        if self._is_guarded(node):
            reasons.append(F.when(F.col(REACHED).isNotNull(), F.lit(AHEAD)))
        return rows, F.coalesce(*reasons) if reasons else None, is_punctuation

    def _sound(self, node: Source) -> tuple[DataFrame, Column | None]:
        """The rows that take part, in an order of arrival with their bounds, and which of them are punctuation."""
        rows, why, is_punctuation = self._refused(node)
        if why is not None:
            rows = rows.filter(why.isNull())
        if self._in_order(node) and isinstance(node.progress, Estimated):
            rows = _in_turn(rows, EstimatedBounds(node), BOUND)
        elif self._in_order(node):
            ticks = ticks_of(f"`{node.schema.time}`", node.schema.domain)
            rows = rows.withColumn(BOUND, self._bound(node, ticks, is_punctuation))
        return rows, is_punctuation

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
            case Punctuated(per=()):
                assert is_punctuation is not None
                return F.max(F.when(is_punctuation, ticks)).over(before)
            case _:
                raise UnsupportedError(
                    "An arrival column cannot be used with per_source(), timer(), or punctuated(per=…), in batch.",
                    where=node.label,
                    hint="leave arrival out, or run as a stream or in-process",
                )

    @staticmethod
    def _is_late(node: Source) -> Column:
        """Whether the bound before a row condemns it."""
        ticks = ticks_of(f"`{node.schema.time}`", node.schema.domain)
        return F.coalesce(ticks < F.col(BOUND), F.lit(False))
