"""Rows per second under each kind of progress, beside `bounded`, in one run: as Arrow tables, and row by row.

`python benchmarks/progress.py [rows]`. Seconds are the processor's, so that others on the machine count less.

One query counts and sums per group in windows of 1000 ticks that slide by 100; ten rows share a tick. Punctuation comes
every 10,000 rows, or every 1,000, where each one closes a window. Another selects rows. `elements` is how many batches
and bounds `items()` gives, which has every bound where it stood.
"""

from __future__ import annotations

import gc
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
PLAIN = "SELECT k, v, ts FROM s WHERE v > 50"
NUMBERS = "SELECT k, count(*) AS n, sum(v) AS s [RANGE 10000 rows, SLIDE 1000 rows, WA row-num] FROM s GROUP BY k"
DISORDER = 50
ROUNDS = 5


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
    """Rows per second of the processor's time."""
    gc.collect()
    start = time.process_time()
    work()
    return size / (time.process_time() - start)


def compare(size: int, cases: list[tuple[str, pa.Table, Progress, str]]) -> None:
    """Print a line per kind of progress, beside the first; they take turns, and the best of each counts."""
    single = size // 40
    tables, singles = [0.0] * len(cases), [0.0] * len(cases)
    for _ in range(ROUNDS):
        for at, (_, table, progress, sql) in enumerate(cases):
            tables[at] = max(tables[at], rate(size, by_table(table, progress, sql)))
            singles[at] = max(singles[at], rate(single, by_row(table.slice(0, single), progress, sql)))
    print(f"{'':26}{'by table':>14}{'of bounded':>12}{'elements':>10}{'by row':>12}{'of bounded':>12}")
    for at, (name, table, progress, sql) in enumerate(cases):
        elements = sum(1 for _ in query(table, progress, sql).items())
        shares = tables[at] / tables[0], singles[at] / singles[0]
        print(f"{name:26}{tables[at]:14,.0f}{shares[0]:12.2f}{elements:10,}{singles[at]:12,.0f}{shares[1]:12.2f}")


def main(size: int = 4_000_000) -> None:
    """Print a table per query."""
    few, many = rows(size, 8), rows(size, 1000)
    said = {every: rows(size, 8, every) for every in (10_000, 1_000, 100, 10)}
    punctuated = pk.punctuated("kind = 'punct'", whole_stream=True)
    sources = pk.per_source("source", disorder=DISORDER)
    idle = pk.per_source("source", disorder=DISORDER, idle=2000)
    for sql in (SQL, PLAIN):
        cases: list[tuple[str, pa.Table, Progress, str]] = [
            ("bounded(60)", few, pk.bounded(60), sql),
            ("bounded(rows=600)", few, pk.bounded(rows=600), sql),
            ("per_source, 8 sources", few, sources, sql),
            ("per_source, 8, idle", few, idle, sql),
            ("per_source, 1000, idle", many, idle, sql),
        ]
        for every in (10_000, 1_000) if sql == SQL else (10_000, 1_000, 100, 10):
            cases.append((f"punctuated, 1 in {every:,}", said[every], punctuated, sql))
        if sql == SQL:
            cases.append(("row numbers", few, pk.bounded(60), NUMBERS))
        print(sql)
        compare(size, cases)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
