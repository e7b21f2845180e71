"""Aggregates that Spark computes from all rows of a window or a group at once, and not from partials.

Each gives our result to the last tie: `min_by` is the least pair of both arguments, since Spark's own leaves open which
row it takes; the mode is that of floats with one zero; distinct sums of bigint are added as decimals, since a sum on
the way may need more than 64 bits though the result does not.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.engines.spark.types import spark_type
from penstock.operators.aggregates.catalogue import Aggregate
from penstock.plan.expressions import AggregateCall

Value = tuple[Column, Column | None]
"""An aggregate's value, and whether there is none though there should be; None where that cannot be."""


def at_once(call: AggregateCall, record: Aggregate) -> Value:
    """The value of an aggregate that has no partials on Spark."""
    columns = [F.col(f"`{name}`") for name in call.columns]
    match call.function:
        case "count":
            return F.count_distinct(*columns), None
        case "min_by" | "max_by":
            return _beside(call.function, *columns), None
        case "mode":
            (values,) = columns
            if call.type.is_fractional:
                values = values + F.lit(0.0).cast(str(call.type))  # -0.0 becomes 0.0
            return F.mode(values, True), None
        case "sum" | "avg" if record.distinct and call.argument_type is not None and call.argument_type.is_integer:
            return _distinct_integers(call)
        case _:
            share = [] if call.share is None else [f"{call.share!r}D"]
            distinct = "DISTINCT " if call.distinct else ""
            said = ", ".join([*(f"`{name}`" for name in call.columns), *share])
            return F.expr(f"{record.native}({distinct}{said})").cast(spark_type(call.type)), None


def _beside(function: str, value: Column, by: Column) -> Column:
    pair = F.when(by.isNotNull(), F.struct(by.alias("by"), value.alias("value")))
    return (F.min(pair) if function == "min_by" else F.max(pair)).getField("value")


def _distinct_integers(call: AggregateCall) -> Value:
    argument = f"`{call.argument}`"
    total = F.expr(f"sum(DISTINCT CAST({argument} AS DECIMAL(20, 0)))")
    if call.function == "avg":
        return total.cast("double") / F.count_distinct(F.col(argument)), None
    value = total.try_cast("bigint")
    return value, value.isNull() & total.isNotNull()
