"""Joins of bounded streams as Spark's own: by equal columns, and by times that are near each other; and with tables.

Of a table with versions each row is given the end of its validity, which is the start of the next of its key, or
earlier; the version that is valid at a time is then found by an ordinary condition.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from penstock.engines.spark.attempts import Attempts
from penstock.errors import PlanError
from penstock.model.schema import TIMESTAMP
from penstock.plan.catalog import Catalog
from penstock.plan.expressions import renamed
from penstock.plan.join_nodes import Band, Join, JoinKind, SameWindow
from penstock.plan.lookup_nodes import Lookup, TableInfo

_KINDS: dict[JoinKind, str] = {
    "inner": "inner",
    "left": "left",
    "right": "right",
    "full": "full",
    "semi": "left_semi",
    "anti": "left_anti",
}


_END = "__valid_to"


def joined(left: DataFrame, right: DataFrame, node: Join, catalog: Catalog) -> DataFrame:
    """The rows that come out of a join, with all columns of its schema."""
    half = len(node.left.schema.fields)
    sides = left.toDF(*node.names[:half]), right.toDF(*node.names[half:])
    conditions = [_near(node)]
    for one, other in node.equal:
        names = node.names[node.left.schema.index(one)], node.names[half + node.right.schema.index(other)]
        conditions.append(F.col(f"`{names[0]}`") == F.col(f"`{names[1]}`"))
    if node.condition is not None:
        conditions.append(_condition(node, catalog))
    found = sides[0].join(sides[1], reduce(lambda a, b: a & b, conditions), _KINDS[node.kind])
    if not node.is_of_pairs:
        return found
    times = node.names[node.left.schema.time_index], node.names[half + node.right.schema.time_index]
    latest = F.greatest(*[F.col(f"`{name}`") for name in times])  # of those that are not null
    return found.withColumn(node.time_name, latest)


def looked_up(left: DataFrame, table: DataFrame, node: Lookup, catalog: Catalog) -> DataFrame:
    """The rows that come out of a lookup, with all columns of its schema."""
    half = len(node.input.schema.fields)
    stream, rows = left.toDF(*node.names[:half]), table
    if node.as_of is not None:
        rows = table.withColumn(_END, _end(node.table))
    rows = rows.toDF(*node.names[half:], *([_END] if node.as_of is not None else []))
    conditions = []
    for own, expression in node.equal:
        other = Attempts(catalog.functions).of(renamed(expression, node.called_of_table)).value
        conditions.append(_named(node.called[own]) == other)
    if node.as_of is not None:
        time = _named(node.called[node.as_of])
        start = _named(node.called_of_table[str(node.table.valid_from)])
        conditions.append((start <= time) & (F.col(_END).isNull() | (time < F.col(_END))))
    if node.condition is not None:
        conditions.append(_condition(node, catalog))
    met = reduce(lambda a, b: a & b, conditions) if conditions else F.lit(True)
    found = stream.join(rows, met, _KINDS[node.kind])
    return found.select(*[f"`{name}`" for name in node.schema.names])


def _end(table: TableInfo) -> Column:
    """Until when a version is valid; null if it has no end."""
    versions = Over.partitionBy(*[f"`{name}`" for name in table.key]).orderBy(f"`{table.valid_from}`")
    following = F.lead(f"`{table.valid_from}`").over(versions)
    return following if table.valid_to is None else F.least(following, _named(table.valid_to))


def _named(name: str) -> Column:
    return F.col(f"`{name}`")


def _condition(node: Join | Lookup, catalog: Catalog) -> Column:
    """A condition that always has a value."""
    assert node.condition is not None
    return Attempts(catalog.functions).of(node.condition).value


def _near(node: Join) -> Column:
    left, right = (_ticks(node, name) for name in node.named_on)
    match node.near:
        case Band(low=low, high=high):
            if low == high == 0:
                return left == right
            return right.between(left + F.lit(low), left + F.lit(high))
        case SameWindow(width=width, origin=origin):
            return _start(left, width, origin) == _start(right, width, origin)
        case _:
            raise PlanError("Spark does not say which rows are the latest.", where=node.label)


def _start(ticks: Column, width: int, origin: int) -> Column:
    return ticks - F.pmod(ticks - F.lit(origin), F.lit(width))


def _ticks(node: Join, name: str) -> Column:
    column = F.col(f"`{name}`")
    return F.unix_micros(column) if node.pairs[name].type == TIMESTAMP else column.cast("bigint")
