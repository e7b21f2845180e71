"""Distinct counts over sliding windows as differences, the same work for any RANGE/SLIDE.

A value that occurs in a pane is in the windows from the first to the last that hold the pane. Cut each of these
stretches where the next pane with the same value begins its own, and every window holds a value at most once: one more
distinct value where a stretch begins, one fewer after it ends. The running sum of these differences is the distinct
count.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from penstock.engines.spark.ticks import floor_div, long
from penstock.plan.expressions import AggregateCall
from penstock.plan.windows import SlidingWindow

_VALUE, _PANE, _WID, _CHANGE = "__value", "__pane", "__wid", "__change"


def distinct_counts(
    rows: DataFrame, keys: Sequence[str], call: AggregateCall, pane: Column, window: SlidingWindow
) -> DataFrame:
    """Per window and group that has a value at all: how many distinct ones, under the call's name."""
    keep = [F.col(f"`{k}`") for k in keys]
    value = F.col(f"`{call.argument}`").alias(_VALUE)
    seen = rows.select(pane.alias(_PANE), *keep, value).filter(F.col(_VALUE).isNotNull()).distinct()
    following = F.lead(_PANE).over(Over.partitionBy(*keep, _VALUE).orderBy(_PANE))
    first = floor_div(F.col(_PANE) * long(window.pane), window.slide)
    last = floor_div(F.col(_PANE) * long(window.pane) + long(window.range), window.slide) - 1
    cut = floor_div(following * long(window.pane), window.slide) - 1
    stretches = seen.select(*keep, first.alias("__from"), F.least(last, F.coalesce(cut, last)).alias("__to"))
    changes = (
        stretches.filter(F.col("__to") >= F.col("__from"))
        .select(*keep, F.explode(F.array(_change("__from", 0, 1), _change("__to", 1, -1))).alias("__at"))
        .groupBy(*keep, F.col("__at.wid").alias(_WID))
        .agg(F.sum("__at.change").alias(_CHANGE))
    )
    by_window = Over.partitionBy(*keep).orderBy(_WID)
    counts = changes.select(
        *keep,
        F.col(_WID).alias("__begin"),
        F.sum(_CHANGE).over(by_window.rowsBetween(Over.unboundedPreceding, 0)).alias(call.name),
        F.lead(_WID).over(by_window).alias("__end"),
    )
    wids = F.explode(F.sequence(F.col("__begin"), F.col("__end") - 1)).alias("wid")
    return counts.filter(F.col(f"`{call.name}`") > 0).select(*keep, F.col(f"`{call.name}`"), wids)


def _change(at: str, later: int, change: int) -> Column:
    return F.struct((F.col(at) + long(later)).alias("wid"), long(change).alias("change"))


def joined(result: DataFrame, counts: DataFrame, keys: Sequence[str], name: str) -> DataFrame:
    """The result with one more column; a group without a value has 0. Null is a group like any other."""
    left, right = result.alias("l"), counts.alias("r")
    same = F.col("l.wid") == F.col("r.wid")
    for key in keys:
        same = same & F.col(f"l.`{key}`").eqNullSafe(F.col(f"r.`{key}`"))
    columns = [F.col(f"l.`{c}`") for c in result.columns]
    return left.join(right, same, "left").select(*columns, F.coalesce(F.col(f"r.`{name}`"), long(0)).alias(name))
