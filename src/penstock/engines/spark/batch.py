"""A plan as native Spark operators over bounded DataFrames.

Panes first, then windows: one aggregation per pane and group, whose rows are then copied to the windows that hold the
pane and aggregated again. Functions whose partials Spark cannot join (variance, count distinct) are aggregated per
window at once. A DataFrame has no order of arrival, so nothing in it is late, unless the stream names an arrival
column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from penstock.engines.spark.columns import column
from penstock.engines.spark.sources import SparkSource
from penstock.errors import UnsupportedError
from penstock.model.progress import Bounded, Ordered, Punctuated, span_ticks
from penstock.model.time import Domain
from penstock.query.catalog import Catalog
from penstock.query.expressions import AggregateCall
from penstock.query.nodes import Distinct, Node, Project, Select, SlidingWindow, Source, Union, WindowAggregate
from penstock.query.predicates import punctuation_predicate

ARRIVAL = "__arrival"
BOUND = "__bound"


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
            case Distinct(input=below):
                names = [f.name for f in node.schema.visible]
                return self.lower(below).dropDuplicates(list(dict.fromkeys([*names, str(node.schema.time)])))
            case WindowAggregate(window=SlidingWindow() as window):
                return windowed(self.lower(node.input), node, window)
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
            bound = self._bound(node, ticks, is_punctuation)
        judged = rows.withColumn(BOUND, bound)
        return judged.filter(~is_punctuation) if is_punctuation is not None else judged

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
        row = F.to_json(F.struct(*[F.col(f"`{n}`") for n in node.schema.names]), {"ignoreNullFields": "false"})
        return (
            self.judged(node)
            .filter(self.is_late(node))
            .select(
                F.lit(node.name).alias("stream"),
                time_of(F.col(BOUND), node.schema.domain).alias("bound"),
                row.alias("row"),
            )
        )


def ticks_of(name: str, domain: Domain) -> Column:
    """A time column as ticks."""
    return F.unix_micros(F.col(name)) if domain is Domain.TIMESTAMP else F.col(name).cast("bigint")


def time_of(ticks: Column, domain: Domain) -> Column:
    """Ticks as a time column."""
    return F.timestamp_micros(ticks) if domain is Domain.TIMESTAMP else ticks


def floor_div(value: Column, divisor: int) -> Column:
    """The greatest whole number not above the quotient, for negative values too."""
    by = F.lit(divisor).cast("bigint")
    return F.call_function("div", value - F.pmod(value, by), by)


# Aggregation

Parts = list[tuple[str, Column]]
_JOINABLE = frozenset({"count", "sum", "avg", "min", "max"})


def is_paned(node: WindowAggregate) -> bool:
    """Whether every aggregate can be joined from panes by Spark, and panes save anything."""
    window = node.window
    assert isinstance(window, SlidingWindow)
    joinable = all(
        a.function in _JOINABLE
        and not a.distinct
        and not (a.function == "avg" and a.argument_type is not None and a.argument_type.is_decimal)
        for a in node.aggregates
    )
    return joinable and window.range // window.pane > 1


def windowed(rows: DataFrame, node: WindowAggregate, window: SlidingWindow) -> DataFrame:
    """Window aggregation over rows that have time, keys and arguments."""
    ticks = ticks_of(f"`{window.attribute}`", window.domain) - F.lit(window.origin).cast("bigint")
    keys = [f"`{k}`" for k in node.keys]
    if is_paned(node):
        low = [part for a in node.aggregates for part in _pane_parts(a)]
        panes = rows.groupBy(floor_div(ticks, window.pane).alias("__pane"), *keys).agg(*[c.alias(n) for n, c in low])
        spread = _to_windows(panes, F.col("__pane") * F.lit(window.pane).cast("bigint"), window)
        high = [_window_value(a).alias(a.name) for a in node.aggregates]
    else:
        spread = _to_windows(rows, ticks, window)
        high = [_whole(a).alias(a.name) for a in node.aggregates]
    grouped = spread.groupBy("__wid", *keys)
    # A grouping without aggregates is a duplicate elimination over windows.
    result = grouped.agg(*high) if high else grouped.count().drop("count")
    end = (F.col("__wid") + 1) * F.lit(window.slide).cast("bigint") + F.lit(window.origin).cast("bigint")
    return result.select(
        F.col("__wid").alias("wid"),
        time_of(end - F.lit(window.range).cast("bigint"), window.domain).alias("window_start"),
        time_of(end, window.domain).alias("window_end"),
        *keys,
        *[F.col(a.name) for a in node.aggregates],
    )


def _to_windows(rows: DataFrame, ticks: Column, window: SlidingWindow) -> DataFrame:
    """Each row once per window that holds it."""
    if window.is_tumbling:
        return rows.withColumn("__wid", floor_div(ticks, window.slide))
    first = floor_div(ticks, window.slide)
    last = floor_div(ticks + F.lit(window.range).cast("bigint"), window.slide) - 1
    ids = F.when(last >= first, F.sequence(first, last)).otherwise(F.array().cast("array<bigint>"))
    return rows.withColumn("__wid", F.explode(ids))


def _pane_parts(call: AggregateCall) -> Parts:
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
