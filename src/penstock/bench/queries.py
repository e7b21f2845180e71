"""`penstock bench queries`: fifty window queries over one stream, which differ in their aggregates, beside one of them.

All run as one (`flow.start` does that): rows are read, judged and brought down to panes once, and what grows with the
queries is their results. One query is the mean of ten of them, each run alone as a query is. What the queries give
together is compared with what each gives alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from random import Random
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.bench.claims import Claim, Report
from penstock.bench.data import DISORDER, SLIDE, make_rows
from penstock.engines.local.shared import SharedExecution
from penstock.errors import InternalError
from penstock.flow.flow import Flow
from penstock.model.batch import Batch
from penstock.model.progress import bounded

MANY = 50
ALONE = 10
ROUNDS = 3
RATIO = 60
Say = Callable[[str], None]


def texts(count: int = MANY) -> list[str]:
    """So many queries over the same windows and groups, no two with the same aggregates."""
    functions = ("count", "sum", "avg", "min", "max", "stddev", "stddev_pop", "variance", "var_pop")
    calls = ["count(*)", *[f"{function}({column})" for column in ("v", "x") for function in functions]]
    pairs = list(combinations(calls, 2))
    Random(1).shuffle(pairs)
    window = f"[RANGE {RATIO * SLIDE} seconds, SLIDE {SLIDE} seconds, WA ts]"
    return [f"SELECT k, {a} AS a, {b} AS b {window} FROM main GROUP BY k" for a, b in pairs[:count]]


def flow_over(table: pa.Table) -> Flow:
    """The rows with a second number, as a stream."""
    halves = pc.divide(pc.cast(table.column("v"), pa.float64()), 2.0)
    return Flow().stream("main", table.append_column("x", halves), time="ts", progress=bounded(f"{DISORDER} seconds"))


def together(flow: Flow, queries: Sequence[str]) -> tuple[float, dict[str, list[Batch]]]:
    """How long the queries take as one, and what they give."""
    plans = {str(at): flow.query(sql).plan for at, sql in enumerate(queries)}
    sources = {key: source.open for key, source in flow._sources.items()}
    execution = SharedExecution(flow.catalog, plans)
    found: dict[str, list[Batch]] = {name: [] for name in plans}
    begun = time.perf_counter()
    for name, item in execution.run(sources):
        if isinstance(item, Batch):
            found[name].append(item)
    return time.perf_counter() - begun, found


def alone(flow: Flow, sql: str) -> float:
    """How long one query takes by itself."""
    query: Any = flow.query(sql)
    begun = time.perf_counter()
    for _ in query.items():
        pass
    return time.perf_counter() - begun


def check(flow: Flow, queries: Sequence[str]) -> None:
    """Every query gives the same together with the others as alone."""
    _, found = together(flow, queries)
    for name, sql in zip(found, queries, strict=True):
        columns = [(c, "ascending") for c in ("wid", "k")]
        tables = [pa.concat_tables([b.table for b in found[name]]), flow.query(sql).collect()]
        given, expected = [t.combine_chunks().sort_by(columns) for t in tables]
        if not given.equals(expected.cast(given.schema)):
            raise InternalError("A query gives something else together with others than alone.", where=sql)


@dataclass
class QueriesBench:
    """One run of the benchmark."""

    rows: int
    say: Say = print
    times: dict[int, list[float]] = field(default_factory=dict)

    def run(self) -> Report:
        """In turn, so that whatever else the machine does strikes all."""
        with TemporaryDirectory(prefix="penstock-bench-") as home:
            table = make_rows(home, self.rows).table
        flow, queries = flow_over(table), texts()
        check(flow_over(table.slice(0, max(self.rows // 20, 1000))), queries)
        alone(flow, queries[0])
        for _ in range(ROUNDS):
            self.times.setdefault(1, []).append(mean(alone(flow, sql) for sql in queries[:ALONE]))
            for count in (ALONE, MANY):
                self.times.setdefault(count, []).append(together(flow, queries[:count])[0])
        took = {count: median(times) for count, times in self.times.items()}
        for count, seconds in took.items():
            self.say(f"{count:3} queries  {seconds / took[1]:.2f} times one")
        rows = [{"queries": count, "times_one": round(seconds / took[1], 2)} for count, seconds in took.items()]
        claim = Claim("in-process: 50 queries over one stream, times one", took[MANY] / took[1], 5.0, "lower")
        return Report("queries", rows, [claim])
