"""Aggregates of whole groups over bounded DataFrames: all rows are there, so every group is complete.

One aggregation by the keys; the greatest time is one more aggregate, since it is where the result starts.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.engines.spark.windows import REASON, aggregated, whole
from penstock.plan.nodes import GroupAggregate


def grouped(rows: DataFrame, node: GroupAggregate) -> DataFrame:
    """The results: time, keys, aggregates."""
    result = _groups(rows, node)
    return result.filter(F.col(REASON).isNull()).drop(REASON) if REASON in result.columns else result


def failed_groups(rows: DataFrame, node: GroupAggregate) -> DataFrame:
    """The groups that have no result: time, keys and the reason."""
    names = [f"`{n}`" for n in node.schema.names[: 1 + len(node.keys)]]
    return _groups(rows, node).filter(F.col(REASON).isNotNull()).select(*names, REASON)


def _groups(rows: DataFrame, node: GroupAggregate) -> DataFrame:
    values, reasons = aggregated(node.aggregates, whole)
    greatest = F.max(f"`{node.schema.time}`").alias(str(node.schema.time))
    made = rows.groupBy(*[f"`{k}`" for k in node.keys]).agg(greatest, *values, *reasons)
    return made.select(*[f"`{n}`" for n in node.schema.names], *([REASON] if reasons else []))
