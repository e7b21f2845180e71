"""Rows per second under each kind of progress, beside `bounded`, in one run: as Arrow tables, and row by row.

`python benchmarks/progress.py [rows]`. The query counts and sums per group in windows of 1000 ticks that slide by 100;
ten rows share a tick. Punctuation comes every 10,000 rows, or every 1,000, where each one closes a window.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import penstock as pk
from penstock.flow.local import LocalQuery
from penstock.model.batch import Batch
from penstock.model.progress import Progress

SQL = "SELECT k, count(*) AS n, sum(v) AS s [RANGE 1000, SLIDE 100, WA ts] FROM s GROUP BY k"
NUMBERS = "SELECT k, count(*) AS n, sum(v) AS s [RANGE 10000 rows, SLIDE 1000 rows, WA row-num] FROM s GROUP BY k"
DISORDER = 50


def rows(size: int, sources: int, punctuation: int | None = None) -> pa.Table:
    """Rows up to 50 ticks out of order; with `punctuation`, one in so many says how far the stream is."""
    random = np.random.default_rng(1)
    reached = np.arange(size) // 10
    ts = np.maximum(reached - random.integers(0, DISORDER, size), 0)
    is_punctuation = np.zeros(size, bool)
    if punctuation is not None:
        is_punctuation[punctuation - 1 :: punctuation] = True
        ts = np.where(is_punctuation, reached - DISORDER, ts)
    kinds = pa.array(np.where(is_punctuation, "punct", "data"), pa.string())
    keys = pa.array(random.integers(0, 8, size).astype(str), pa.string(), mask=is_punctuation)
    values = pa.array(random.integers(0, 100, size), pa.int64(), mask=is_punctuation)
    return pa.table({"ts": ts, "k": keys, "v": values, "source": random.integers(0, sources, size), "kind": kinds})


def query(table: pa.Table, progress: Progress, sql: str) -> LocalQuery:
    """The query over a table."""
    made = pk.Flow().stream("s", table, time="ts", progress=progress).query(sql)
    assert isinstance(made, LocalQuery)
    return made


def by_table(table: pa.Table, progress: Progress, sql: str) -> Callable[[], object]:
    """Everything as Arrow tables."""
    return query(table, progress, sql).collect


def by_row(table: pa.Table, progress: Progress, sql: str) -> Callable[[], object]:
    """Every row by itself."""
    run = query(table, progress, sql).execution()
    push = run.pusher("s")
    pushed = Batch(run.graph.sources["s"][0].operator.schema, table=table).rows

    def all_rows() -> None:
        for row in pushed:
            push(row)
        run.take()

    return all_rows


def rate(size: int, work: Callable[[], object]) -> float:
    """Rows per second."""
    start = time.perf_counter()
    work()
    return size / (time.perf_counter() - start)


def main(size: int = 1_000_000) -> None:
    """Print a line per kind of progress."""
    few, many = rows(size, 8), rows(size, 1000)
    whole = {"whole_stream": True}
    cases: list[tuple[str, pa.Table, Progress, str]] = [
        ("bounded(60)", few, pk.bounded(60), SQL),
        ("bounded(rows=600)", few, pk.bounded(rows=600), SQL),
        ("per_source, 8 sources", few, pk.per_source("source", disorder=DISORDER), SQL),
        ("per_source, 8, idle", few, pk.per_source("source", disorder=DISORDER, idle=2000), SQL),
        ("per_source, 1000, idle", many, pk.per_source("source", disorder=DISORDER, idle=2000), SQL),
        ("punctuated, 1 in 10,000", rows(size, 8, 10_000), pk.punctuated("kind = 'punct'", **whole), SQL),
        ("punctuated, 1 in 1,000", rows(size, 8, 1_000), pk.punctuated("kind = 'punct'", **whole), SQL),
        ("row numbers", few, pk.bounded(60), NUMBERS),
    ]
    single = size // 10
    print(f"{'':26}{'by table':>14}{'of bounded':>12}{'by row':>12}{'of bounded':>12}")
    first: tuple[float, float] | None = None
    for name, table, progress, sql in cases:
        tables = max(rate(size, by_table(table, progress, sql)) for _ in range(2))
        singles = rate(single, by_row(table.slice(0, single), progress, sql))
        first = first or (tables, singles)
        print(f"{name:26}{tables:14,.0f}{tables / first[0]:12.2f}{singles:12,.0f}{singles / first[1]:12.2f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
