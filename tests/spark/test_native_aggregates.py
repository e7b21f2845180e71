"""Every aggregate over every type of argument, in every way that Spark can compute it, against in-process."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as pk
from penstock.engines.spark.types import spark_ddl
from penstock.engines.spark.windows import windowed
from penstock.model.batch import table_of
from penstock.model.schema import BOOLEAN, DOUBLE, DataType, parse_type, schema_of
from penstock.operators.aggregates.catalogue import DISTINCT_RECORDS, RECORDS, Aggregate
from penstock.plan.cost import Volume, choose_spark
from penstock.plan.nodes import WindowAggregate
from penstock.plan.windows import SlidingWindow

pytestmark = pytest.mark.spark
VALUES: dict[str, list[Any]] = {
    "int": [3, -4, 3, None, 2**31 - 1, 2**31 - 1, 0],
    "bigint": [2**62, 2**62, -(2**62), None, 5, -1, 2**53 + 1],
    "double": [0.5, -2.25, 0.5, None, 1e300, 3.0, -0.125],
    "float": [0.5, -2.25, 0.5, None, 8.0, 3.0, -0.125],
    "decimal(10,2)": [None if n is None else Decimal(n) / 100 for n in (125, -310, 125, None, 5, 700, 200)],
    "string": ["b", "", "b", None, "a", "é", "z"],
    "timestamp": [5, -7, 5, None, 10**15, 0, 1],
    "boolean": [True, False, True, None, False, False, True],
}  # fmt: skip
TIMES = [0, 1, 2, 3, 5, 9, 12]


def called(record: Aggregate) -> str:
    inner = "DISTINCT x" if record.distinct else "x"
    second = ", 0.3" if record.with_share is not None else ", x" if record.arguments == 2 else ""
    return f"{record.name}({inner}{second})"


def functions_of(type_: DataType, way: str) -> list[str]:
    """The functions over a type that a way can compute; distinct counts beside others are the way of differences."""
    able = [r for r in (*RECORDS, *DISTINCT_RECORDS) if r.type_of(type_) is not None and r.is_native(type_)]
    if type_ != DOUBLE:  # numbers that go together are cast to it before
        able = [r for r in able if r.arguments == 1 or r.type_of(BOOLEAN) is not None]
    match way:
        case "slide":
            able = [r for r in able if r.has_array_form(type_) and not r.distinct]
        case "slide and differences":
            able = [r for r in able if r.has_array_form(type_)]
            if len(able) < 2:
                return []
        case "copy panes":
            able = [r for r in able if r.joins_natively(type_)]
    return [called(r) for r in able]


CASES = [
    (type_, way)
    for type_ in VALUES
    for way in ("slide", "slide and differences", "copy panes", "copy rows")
    if functions_of(parse_type(type_), way)
]


@pytest.mark.parametrize(("type_", "way"), CASES)
def test_natively_as_in_process(type_: str, way: str, spark: SparkSession) -> None:
    schema = schema_of([("t", "bigint"), ("g", "string"), ("x", type_)], "t")
    arrived = [(t, "ab"[i % 2], v) for i, (t, v) in enumerate(zip(TIMES, VALUES[type_], strict=True))]
    table = table_of(schema, arrived)
    flow = pk.Flow().stream("s", table, time="t")
    select = ", ".join(f"{f} AS r{i}" for i, f in enumerate(functions_of(parse_type(type_), way)))
    query: Any = flow.query(f"SELECT g, {select} [RANGE 6, SLIDE 2, WA t] FROM s GROUP BY g")
    (node,) = [n for n in query.plan.walk() if isinstance(n, WindowAggregate)]
    assert isinstance(node.window, SlidingWindow)
    assert way in choose_spark(node, query.catalog, Volume()).costs
    arguments = {a.argument for a in node.aggregates} - {None}
    assert len(arguments) == 1
    frame = spark.createDataFrame(table).selectExpr("t", "g", f"x AS {arguments.pop()}")
    result = windowed(frame, node, node.window, way, query.catalog)
    assert result.schema.simpleString() == spark.createDataFrame([], spark_ddl(node.schema)).schema.simpleString()
    shown = result.drop("window_start", "window_end").toArrow().to_pylist()
    natively = sorted((tuple(row.values()) for row in shown), key=lambda r: r[:2])
    in_process = sorted(
        (tuple(row[c] for c in ("wid", "g", *(f"r{i}" for i in range(len(node.aggregates))))) for row in _rows(query)),
        key=lambda r: r[:2],
    )
    assert len(natively) == len(in_process)
    for left, right in zip(natively, in_process, strict=True):
        assert all(_alike(a, b) for a, b in zip(left, right, strict=True)), (left, right)


def _rows(query: Any) -> list[dict[str, Any]]:
    found = query.collect()
    assert query.dead_letters.num_rows == 0
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


def _alike(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9) or (math.isnan(left) and math.isnan(right))
    return bool(left == right)
