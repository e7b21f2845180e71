"""Window aggregation over bounded DataFrames, in three ways.

- slide: Spark brings rows down to panes, then a total slides over the panes of each group, in one pass over them that
  does not depend on RANGE/SLIDE. For counts, sums, averages and extremes of numbers and times.
- copy panes: the partials of each pane are copied to its windows and aggregated again. For other functions that Spark
  can join from partials: sums of decimals, extremes of text.
- copy rows: rows are copied to their windows. For variances, distinct counts and averages of decimals, and for tumbling
  windows, where there is nothing to copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.algorithms.aggregates.columnar import ColumnarAggregate
from penstock.algorithms.aggregates.measures import Measure
from penstock.engines.local.builder import Builder
from penstock.model.batch import Batch
from penstock.model.elements import linear
from penstock.model.time import END_OF_TIME, Domain
from penstock.query.catalog import Catalog
from penstock.query.cost import is_columnar
from penstock.query.expressions import AggregateCall
from penstock.query.nodes import SlidingWindow, WindowAggregate

PANE = "__pane"
_JOINABLE = frozenset({"count", "sum", "avg", "min", "max"})


def ticks_of(name: str, domain: Domain) -> Column:
    """A time column as ticks."""
    return F.unix_micros(F.col(name)) if domain is Domain.TIMESTAMP else F.col(name).cast("bigint")


def time_of(ticks: Column, domain: Domain) -> Column:
    """Ticks as a time column."""
    return F.timestamp_micros(ticks) if domain is Domain.TIMESTAMP else ticks


def floor_div(value: Column, divisor: int) -> Column:
    """The greatest whole number not above the quotient, for negative values too."""
    by = _long(divisor)
    return F.call_function("div", value - F.pmod(value, by), by)


def _long(value: int) -> Column:
    return F.lit(value).cast("bigint")


def strategy(node: WindowAggregate) -> str:
    """`slide`, `copy panes` or `copy rows`."""
    window = node.window
    assert isinstance(window, SlidingWindow)
    if window.range // window.pane == 1 or not node.aggregates:
        return "copy rows"
    if is_columnar(node):
        return "slide"
    joinable = all(
        a.function in _JOINABLE
        and not a.distinct
        and not (a.function == "avg" and a.argument_type is not None and a.argument_type.is_decimal)
        for a in node.aggregates
    )
    return "copy panes" if joinable else "copy rows"


def windowed(rows: DataFrame, node: WindowAggregate, window: SlidingWindow, catalog: Catalog) -> DataFrame:
    """Window aggregation over rows that have time, keys and arguments."""
    ticks = ticks_of(f"`{window.attribute}`", window.domain) - _long(window.origin)
    match strategy(node):
        case "slide":
            return _slide(rows, node, window, ticks, catalog)
        case "copy panes":
            low = [part for a in node.aggregates for part in _pane_parts(a)]
            panes = _panes(rows, node, window, ticks, low)
            spread = _to_windows(panes, F.col(PANE) * _long(window.pane), window)
            return _grouped(spread, node, window, [_window_value(a).alias(a.name) for a in node.aggregates])
        case _:
            spread = _to_windows(rows, ticks, window)
            return _grouped(spread, node, window, [_whole(a).alias(a.name) for a in node.aggregates])


def _panes(
    rows: DataFrame, node: WindowAggregate, window: SlidingWindow, ticks: Column, parts: list[tuple[str, Column]]
) -> DataFrame:
    keys = [f"`{k}`" for k in node.keys]
    return rows.groupBy(floor_div(ticks, window.pane).alias(PANE), *keys).agg(*[c.alias(n) for n, c in parts])


# Sliding over panes


def _slide(rows: DataFrame, node: WindowAggregate, window: SlidingWindow, ticks: Column, catalog: Catalog) -> DataFrame:
    operator = _operator(node, catalog)
    schema = node.input.schema
    parts = []
    for at, measure in enumerate(operator.measures):
        field = schema.fields[measure.column] if measure.column is not None else None
        argument = F.lit(1) if field is None else F.col(f"`{field.name}`")
        if field is not None and field.type.name == "timestamp" and measure.kind in ("min", "max"):
            argument = F.unix_micros(argument)
        parts.append((f"__m{at}", _MEASURES[measure.kind](argument)))
    panes = _panes(rows, node, window, ticks, parts)
    spread = panes.repartition(*[F.col(f"`{k}`") for k in node.keys]) if node.keys else panes.coalesce(1)
    slider = Slider(node, catalog)

    def apply(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from slider(batches)

    return spread.mapInArrow(apply, node.schema.ddl)


_MEASURES: dict[str, Callable[[Column], Column]] = {
    "rows": F.count,
    "count": F.count,
    "sum": F.sum,
    "min": F.min,
    "max": F.max,
}


def _operator(node: WindowAggregate, catalog: Catalog) -> ColumnarAggregate:
    operator = Builder(catalog, aggregate="columnar").operator(node)
    assert isinstance(operator, ColumnarAggregate)
    return operator


@dataclass(frozen=True)
class Slider:
    """Slides over all panes of the groups of one partition."""

    node: WindowAggregate
    catalog: Catalog

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow` over panes: number of the pane, keys, measures."""
        operator = _operator(self.node, self.catalog)
        held = list(batches)
        if not held:
            return
        table = pa.Table.from_batches(held)
        width = 1 + len(self.node.keys)
        numbers = [_numbers(m, table.column(width + at)) for at, m in enumerate(operator.measures)]
        keys = [table.column(i + 1).cast(self.node.input.schema[k].type.arrow) for i, k in enumerate(self.node.keys)]
        operator.take_panes(np.asarray(table.column(0).to_numpy()), keys, numbers)
        for output in operator.punctuate(0, linear("time", END_OF_TIME)):
            if isinstance(output, Batch):
                yield from output.table.to_batches(max_chunksize=1 << 17)


def _numbers(measure: Measure, column: pa.ChunkedArray) -> np.ndarray:
    """A measure as numbers; nothing at all is what changes nothing."""
    target = pa.float64() if measure.dtype is np.float64 else pa.int64()
    cast = pc.cast(column, target)
    if cast.null_count:
        cast = pc.fill_null(cast, pa.scalar(measure.identity, target))
    return np.asarray(cast.to_numpy())


# Copying


def _grouped(spread: DataFrame, node: WindowAggregate, window: SlidingWindow, values: list[Column]) -> DataFrame:
    keys = [f"`{k}`" for k in node.keys]
    grouped = spread.groupBy("__wid", *keys)
    # A grouping without aggregates is a duplicate elimination over windows.
    result = grouped.agg(*values) if values else grouped.count().drop("count")
    end = (F.col("__wid") + 1) * _long(window.slide) + _long(window.origin)
    return result.select(
        F.col("__wid").alias("wid"),
        time_of(end - _long(window.range), window.domain).alias("window_start"),
        time_of(end, window.domain).alias("window_end"),
        *keys,
        *[F.col(a.name) for a in node.aggregates],
    )


def _to_windows(rows: DataFrame, ticks: Column, window: SlidingWindow) -> DataFrame:
    """Each row once per window that holds it."""
    if window.is_tumbling:
        return rows.withColumn("__wid", floor_div(ticks, window.slide))
    first = floor_div(ticks, window.slide)
    last = floor_div(ticks + _long(window.range), window.slide) - 1
    ids = F.when(last >= first, F.sequence(first, last)).otherwise(F.array().cast("array<bigint>"))
    return rows.withColumn("__wid", F.explode(ids))


def _pane_parts(call: AggregateCall) -> list[tuple[str, Column]]:
    """What is computed per pane."""
    argument = F.lit(1) if call.argument is None else F.col(f"`{call.argument}`")
    match call.function:
        case "count":
            return [(f"{call.name}_n", F.count(argument))]
        case "sum":
            return [(f"{call.name}_s", F.sum(argument))]
        case "avg":
            return [(f"{call.name}_s", F.sum(argument.cast("double"))), (f"{call.name}_n", F.count(argument))]
        case "min":
            return [(f"{call.name}_m", F.min(argument))]
        case _:
            return [(f"{call.name}_m", F.max(argument))]


def _window_value(call: AggregateCall) -> Column:
    """The window's value from its panes."""
    match call.function:
        case "count":
            return F.sum(f"{call.name}_n")
        case "sum":
            return F.sum(f"{call.name}_s").cast(str(call.type))
        case "avg":
            total, count = F.sum(f"{call.name}_s"), F.sum(f"{call.name}_n")
            return F.when(count > 0, total / count)
        case "min":
            return F.min(f"{call.name}_m")
        case _:
            return F.max(f"{call.name}_m")


_WHOLE: dict[str, Callable[[Column], Column]] = {
    "count": F.count,
    "sum": F.sum,
    "avg": F.avg,
    "min": F.min,
    "max": F.max,
    "var_samp": F.var_samp,
    "var_pop": F.var_pop,
    "stddev_samp": F.stddev_samp,
    "stddev_pop": F.stddev_pop,
}


def _whole(call: AggregateCall) -> Column:
    """The value of all rows of a window at once."""
    argument = F.lit(1) if call.argument is None else F.col(f"`{call.argument}`")
    if call.distinct:
        return F.count_distinct(argument)
    return _WHOLE[call.function](argument).cast(str(call.type))
