"""Window aggregation over bounded DataFrames, in four ways.

- slide: Spark brings rows down to panes, then a total slides over the panes of each group, in one pass over them that
  does not depend on RANGE/SLIDE. For counts, sums, averages, extremes and variances of numbers and times.
- slide and differences: as above, and distinct counts as differences (`distinct.py`), which do not depend on
  RANGE/SLIDE either.
- copy panes: the partials of each pane are copied to its windows and aggregated again. For other functions that Spark
  can join from partials: sums of decimals, extremes of text.
- copy rows: rows are copied to their windows. For averages of decimals, for distinct counts beside functions of the
  kind above, for what Spark computes of all rows at once (`native_aggregates`), and for tumbling windows, where there
  is nothing to copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.engines.spark.distinct import distinct_counts, joined
from penstock.engines.spark.native_aggregates import Value, at_once
from penstock.engines.spark.ticks import floor_div, long, ticks_of, time_of
from penstock.engines.spark.types import spark_ddl, spark_type
from penstock.errors import reason_of
from penstock.model.batch import Batch
from penstock.model.elements import linear
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.operators.aggregates.catalogue import Aggregate
from penstock.operators.aggregates.columnar import ColumnarAggregate
from penstock.operators.aggregates.functions import sum_overflow
from penstock.operators.aggregates.measures import Measure
from penstock.operators.operator import Rejected
from penstock.plan.aggregates import known
from penstock.plan.catalog import Catalog
from penstock.plan.cost import COLUMNAR, counts_distinct, without_distinct
from penstock.plan.expressions import AggregateCall
from penstock.plan.nodes import GroupAggregate, WindowAggregate
from penstock.plan.windows import SlidingWindow
from penstock.runtime.aggregate_building import window_aggregate

PANE = "__pane"
_LOW = (1 << 32) - 1
_HALF = 1 << 31


REASON = "__reason"
"""Why a group has no result in a window; null if it has."""


def windowed(rows: DataFrame, node: WindowAggregate, window: SlidingWindow, way: str, catalog: Catalog) -> DataFrame:
    """Window aggregation over rows that have time, keys and arguments, in the way that was planned."""
    result = _windows(rows, node, window, way, catalog)
    return result.filter(F.col(REASON).isNull()).drop(REASON) if REASON in result.columns else result


def can_fail(node: WindowAggregate | GroupAggregate) -> bool:
    """Whether an aggregate may have no value: a sum of bigint. Sums of wide decimals do not run here."""
    return any(_record(a).overflows(a.argument_type) for a in node.aggregates)


def failed_windows(
    rows: DataFrame, node: WindowAggregate, window: SlidingWindow, way: str, catalog: Catalog
) -> DataFrame:
    """The windows and groups that have no result: wid, window_start, window_end, keys and the reason.

    No distinct count fails, so they are found without those.
    """
    plain = "slide" if way == "slide and differences" else way
    result = _windows(rows, without_distinct(node), window, plain, catalog, failing=True)
    names = [f"`{n}`" for n in node.schema.names[: 3 + len(node.keys)]]
    return result.filter(F.col(REASON).isNotNull()).select(*names, REASON)


def _windows(
    rows: DataFrame, node: WindowAggregate, window: SlidingWindow, way: str, catalog: Catalog, *, failing: bool = False
) -> DataFrame:
    ticks = ticks_of(f"`{window.attribute}`", window.domain) - long(window.origin)
    match way:
        case "slide":
            return _slide(rows, node, window, ticks, catalog, failing=failing)
        case "slide and differences":
            plain = without_distinct(node)
            result = _slide(rows, plain, window, ticks, catalog)
            for call in node.aggregates:
                if counts_distinct(call):
                    counts = distinct_counts(rows, node.keys, call, floor_div(ticks, window.pane), window)
                    result = joined(result, counts, node.keys, call.name)
            return result.select(*[f"`{n}`" for n in node.schema.names])
        case "copy panes":
            low = [part for a in node.aggregates for part in _pane_parts(a)]
            panes = _panes(rows, node, window, ticks, low)
            spread = _to_windows(panes, F.col(PANE) * long(window.pane), window)
            return _grouped(spread, node, window, _window_value)
        case _:
            spread = _to_windows(rows, ticks, window)
            return _grouped(spread, node, window, whole)


def _panes(
    rows: DataFrame, node: WindowAggregate, window: SlidingWindow, ticks: Column, parts: list[tuple[str, Column]]
) -> DataFrame:
    keys = [f"`{k}`" for k in node.keys]
    return rows.groupBy(floor_div(ticks, window.pane).alias(PANE), *keys).agg(*[c.alias(n) for n, c in parts])


# Sliding over panes


def _slide(
    rows: DataFrame,
    node: WindowAggregate,
    window: SlidingWindow,
    ticks: Column,
    catalog: Catalog,
    *,
    failing: bool = False,
) -> DataFrame:
    operator = _operator(node, catalog)
    schema = node.input.schema
    parts = [part for at, measure in enumerate(operator.measures) for part in _measure_parts(at, measure, schema)]
    panes = _panes(rows, node, window, ticks, parts)
    spread = panes.repartition(*[F.col(f"`{k}`") for k in node.keys]) if node.keys else panes.coalesce(1)
    slider = Slider(node, catalog, failing)

    def apply(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from slider(batches)

    if failing:
        shown = Schema(node.schema.fields[: 3 + len(node.keys)])
        return spread.mapInArrow(apply, f"{spark_ddl(shown)}, {REASON} string")
    return spread.mapInArrow(apply, spark_ddl(node.schema))


_MEASURES: dict[str, Callable[[Column], Column]] = {
    "rows": F.count,
    "count": F.count,
    "sum": F.sum,
    "min": F.min,
    "max": F.max,
    "bit_and": F.bit_and,
    "bit_or": F.bit_or,
    "bit_xor": F.bit_xor,
}


def _measure_parts(at: int, measure: Measure, schema: Schema) -> list[tuple[str, Column]]:
    """What Spark computes per pane for a measure; for moments their number, mean and variance."""
    field = schema.fields[measure.column] if measure.column is not None else None
    argument = F.lit(1) if field is None else F.col(f"`{field.name}`")
    if measure.kind == "moments":
        value = argument.cast("double")
        return [(f"__m{at}n", F.count(value)), (f"__m{at}a", F.avg(value)), (f"__m{at}v", F.var_pop(value))]
    if field is not None and field.type.name == "timestamp" and measure.kind in ("min", "max"):
        argument = F.unix_micros(argument)
    if _is_split(measure, schema):
        high, low = _halves(argument)
        return [(f"__m{at}h", F.sum(high)), (f"__m{at}l", F.sum(low))]
    return [(f"__m{at}", _MEASURES[measure.kind](argument))]


def _halves(argument: Column) -> tuple[Column, Column]:
    """A bigint in two parts whose sums do not overflow where that of the whole could."""
    return F.shiftright(argument, 32), argument.bitwiseAND(_LOW)


def _joined_sum(high: Column, low: Column) -> Column:
    """The sum of both halves: null if, and only if, the sum itself does not fit."""
    carried = high + F.shiftright(low, 32)
    return F.try_add(F.try_multiply(carried, long(_LOW + 1)), low.bitwiseAND(_LOW))


def _joined_mean(high: Column, low: Column, count: Column) -> Column:
    return F.when(count > 0, (high.cast("double") * float(_LOW + 1) + low.cast("double")) / count)


def _is_split(measure: Measure, schema: Schema) -> bool:
    """Whether the sum over a pane might need more than 64 bits."""
    return measure.kind == "sum" and measure.column is not None and schema.fields[measure.column].type.name == "bigint"


def _operator(node: WindowAggregate, catalog: Catalog) -> ColumnarAggregate:
    operator = window_aggregate(node, COLUMNAR, catalog)
    assert isinstance(operator, ColumnarAggregate)
    return operator


@dataclass(frozen=True)
class Slider:
    """Slides over all panes of the groups of one partition."""

    node: WindowAggregate
    catalog: Catalog
    failing: bool = False
    """Whether the groups without a result are wanted, with the reason, instead of the results."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over panes: number of the pane, keys, measures."""
        operator = _operator(self.node, self.catalog)
        held = list(batches)
        if not held:
            return
        table = pa.Table.from_batches(held)
        width = 1 + len(self.node.keys)
        columns = iter(table.columns[width:])
        numbers = [_numbers(m, columns, self.node.input.schema) for m in operator.measures]
        keys = [table.column(i + 1).cast(self.node.input.schema[k].type.arrow) for i, k in enumerate(self.node.keys)]
        operator.take_panes(np.asarray(table.column(0).to_numpy()), keys, numbers)
        for output in operator.punctuate(0, linear(operator.attribute, END_OF_TIME)):
            if isinstance(output, Batch) and not self.failing:
                yield from output.table.to_batches(max_chunksize=1 << 17)
            elif isinstance(output, Rejected) and self.failing:
                reasons = pa.array(output.reasons, pa.string())
                yield from output.batch.table.append_column(REASON, reasons).to_batches()


def _numbers(measure: Measure, columns: Iterator[pa.ChunkedArray], schema: Schema) -> np.ndarray:
    """A measure as numbers, from its columns; nothing at all is what changes nothing."""
    if measure.kind == "moments":
        count, mean, variance = (pc.fill_null(pc.cast(next(columns), pa.float64()), 0.0).to_numpy() for _ in range(3))
        return np.stack([count, mean, variance * count], axis=1)
    if _is_split(measure, schema):
        high, low = (pc.fill_null(next(columns), 0).to_numpy() for _ in range(2))
        high, low = high + (low >> 32), low & _LOW
        if len(high) and high.min() >= -_HALF and high.max() < _HALF:
            return np.asarray((high << 32) + low)
        return np.asarray(high.astype(object) * (_LOW + 1) + low)
    target = pa.float64() if measure.dtype is np.float64 else pa.int64()
    cast = pc.cast(next(columns), target)
    if cast.null_count:
        cast = pc.fill_null(cast, pa.scalar(measure.identity, target))
    return np.asarray(cast.to_numpy())


# Copying


def _grouped(
    spread: DataFrame, node: WindowAggregate, window: SlidingWindow, value_of: Callable[[AggregateCall], Value]
) -> DataFrame:
    keys = [f"`{k}`" for k in node.keys]
    grouped = spread.groupBy("__wid", *keys)
    values, reasons = aggregated(node.aggregates, value_of)
    # A grouping without aggregates is a duplicate elimination over windows.
    result = grouped.agg(*values, *reasons) if values else grouped.count().drop("count")
    end = (F.col("__wid") + 1) * long(window.slide) + long(window.origin)
    return result.select(
        F.col("__wid").alias("wid"),
        time_of(end - long(window.range), window.domain).alias("window_start"),
        time_of(end, window.domain).alias("window_end"),
        *keys,
        *[F.col(f"`{a.name}`") for a in node.aggregates],
        *([REASON] if reasons else []),
    )


def aggregated(
    calls: Sequence[AggregateCall], value_of: Callable[[AggregateCall], Value]
) -> tuple[list[Column], list[Column]]:
    """The values of aggregates under their names; and, if some can have none, why a group has none (`can_fail`)."""
    made = [value_of(a) for a in calls]
    values = [value.alias(a.name) for (value, _), a in zip(made, calls, strict=True)]
    reasons = [F.when(failed, F.lit(reason_of(sum_overflow()))) for _, failed in made if failed is not None]
    return values, [F.coalesce(*reasons).alias(REASON)] if reasons else []


def _to_windows(rows: DataFrame, ticks: Column, window: SlidingWindow) -> DataFrame:
    """Each row once per window that holds it."""
    if window.is_tumbling:
        return rows.withColumn("__wid", floor_div(ticks, window.slide))
    first = floor_div(ticks, window.slide)
    last = floor_div(ticks + long(window.range), window.slide) - 1
    ids = F.when(last >= first, F.sequence(first, last)).otherwise(F.array().cast("array<bigint>"))
    return rows.withColumn("__wid", F.explode(ids))


def _record(call: AggregateCall) -> Aggregate:
    """What is known of a function; Spark's own operators run only those of the catalogue."""
    found = known(call)
    assert found is not None
    return found


def _is_split_call(call: AggregateCall) -> bool:
    return _record(call).adds_bigints(call.argument_type)


def _pane_parts(call: AggregateCall) -> list[tuple[str, Column]]:
    """What is computed per pane."""
    record, name = _record(call), call.name
    argument = F.lit(1) if call.argument is None else F.col(f"`{call.argument}`")
    counted = (f"{name}_n", F.count(argument))
    if _is_split_call(call):
        high, low = _halves(argument)
        return [(f"{name}_h", F.sum(high)), (f"{name}_l", F.sum(low)), counted]
    assert record.measure is not None
    gathered = _MEASURES[record.measure]
    if record.lowering == "mean":
        return [(f"{name}_v", gathered(argument.cast("double"))), counted]
    return [(f"{name}_v", gathered(argument))]


_JOINED: dict[str, Callable[[str], Column]] = {
    "count": F.sum, "sum": F.sum, "min": F.min, "max": F.max, "bit_and": F.bit_and, "bit_or": F.bit_or,
    "bit_xor": F.bit_xor,
}  # fmt: skip


def _window_value(call: AggregateCall) -> Value:
    """The window's value from its panes."""
    record, name = _record(call), call.name
    if _is_split_call(call):
        return _from_halves(record, F.sum(f"{name}_h"), F.sum(f"{name}_l"), F.sum(f"{name}_n"))
    assert record.measure is not None
    value = _JOINED[record.measure](f"{name}_v")
    if record.lowering == "mean":
        count = F.sum(f"{name}_n")
        return F.when(count > 0, value / count), None
    return _typed(value, call), None


def _typed(value: Column, call: AggregateCall) -> Column:
    """The value in its type; one that has the argument's stays as it is, since a cast of times goes by the session."""
    return value if call.type == call.argument_type else value.cast(spark_type(call.type))


def _from_halves(record: Aggregate, high: Column, low: Column, count: Column) -> Value:
    if record.lowering == "mean":
        return _joined_mean(high, low, count), None
    total = _joined_sum(high, low)
    return total, total.isNull() & (count > 0)


def whole(call: AggregateCall) -> Value:
    """The value of all rows of a window at once."""
    record = _record(call)
    if record.measure is None:
        return at_once(call, record)
    argument = F.lit(1) if call.argument is None else F.col(f"`{call.argument}`")
    if _is_split_call(call):
        high, low = _halves(argument)
        return _from_halves(record, F.sum(high), F.sum(low), F.count(argument))
    assert record.native is not None
    function: Callable[[Column], Column] = getattr(F, record.native)
    return _typed(function(argument), call), None
