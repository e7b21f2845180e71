"""What a row costs where it is read on Spark, if Python evaluates an expression row by row, or if Spark has before.

`python benchmarks/native_columns.py [rows]`, without Spark: the map side of a stage is given rows, and in the second
column the values of the expression beside them, as Spark would. What Spark itself takes for that is not in it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as pk
from penstock.engines.spark.judging import JudgingMapper
from penstock.engines.spark.parts import PartReader
from penstock.model.letters import late_schema
from penstock.plan.expressions import Call
from penstock.plan.native import with_native
from penstock.plan.nodes import Source
from penstock.plan.planner import spark_streaming

QUERY = "SELECT k, count(*) AS n, max({}) AS m [RANGE 10, SLIDE 10, WA ts] FROM s GROUP BY k"
EXPRESSIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "pmod(v, 1000)": lambda v: v % 1000,
    "CASE WHEN v > 500000 THEN v - 500000 ELSE v END": lambda v: np.where(v > 500_000, v - 500_000, v),
}


def mapper(expression: str, *, is_native: bool) -> JudgingMapper:
    """The map side of a query."""
    flow = pk.Flow().stream("s", [], time="ts", schema="ts bigint, k bigint, v int", progress=pk.bounded(5))
    query: Any = flow.query(QUERY.format(expression))
    staged = spark_streaming(query.plan, query.catalog, staged=True)
    planned = with_native(staged, lambda found, schema: is_native and isinstance(found, Call))
    (source,) = (p.node for p in planned.walk() if isinstance(p.node, Source))
    reader = PartReader(source.schema, made=planned.made_of("s"))
    return JudgingMapper(planned, source, query.catalog, 2, reader, late_schema(source.schema), "")


def nanoseconds(taking: JudgingMapper, table: pa.Table) -> float:
    """Of a row, the best of a few times."""
    took = []
    for _ in range(3):
        begun = time.perf_counter()
        for _ in taking.judged(table.to_batches(), {}, 0):
            pass
        took.append(time.perf_counter() - begun)
    return 1e9 * min(took) / len(table)


def main(size: int) -> None:
    """Print a line per expression."""
    random = np.random.default_rng(1)
    times, values = np.sort(random.integers(0, 600, size)), random.integers(0, 1_000_000, size).astype(np.int32)
    rows = pa.table({"ts": times, "k": random.integers(0, 1000, size), "v": values})
    for expression, compute in EXPRESSIONS.items():
        made = pa.array(compute(values).astype(np.int32))
        beside = rows.append_column("value", made).append_column("failed", pa.array(np.zeros(size, np.bool_)))
        by_row = nanoseconds(mapper(expression, is_native=False), rows)
        native = nanoseconds(mapper(expression, is_native=True), beside)
        print(f"{expression:50} by row {by_row:6.0f} ns, computed before {native:6.0f} ns, {by_row / native:.0f} times")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500_000)
