"""`penstock papers window-queries --figure many`: joins of three streams as one operator, beside a tree of joins.

Three streams of 4000 rows a second, up to a second out of order, are joined by key, each within a band of the one
before. Where there are *many pairs*, rows of the first two meet often, and the third seldom meets any of them; where
there are *few*, rows seldom meet at all. In the third case the first two have no column in common, but both have one
with the third. Both plans run in-process, in batches of 1000 rows. *Time* is processor time inside the query, the least
of the rounds; *rows kept* is the greatest number of rows, and of pairs, that the joins kept at once; *memory* the
greatest number of bytes held after a batch, in a run of its own. Results must be as many.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.bench.claims import Claim, Report
from penstock.errors import InternalError
from penstock.flow.flow import Flow
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, linear
from penstock.model.progress import punctuated
from penstock.model.schema import schema_of
from penstock.model.time import SECOND
from penstock.operators.joins.multi_join import MultiJoinOperator
from penstock.operators.joins.oa_join import OAJoin
from penstock.papers.window_joins import held_bytes

Say = Callable[[str], None]
SCHEMA = schema_of([("ts", "timestamp"), ("k", "bigint"), ("j", "bigint"), ("v", "bigint")], "ts")
RATE, DISORDER, BATCH = 4000, SECOND, 1000
PLANS = {"tree": "/*+ BINARY_JOINS */", "one operator": "/*+ MULTIWAY_JOIN */"}
ROUNDS = 3
ROWS = 100_000
CHAIN = (
    "FROM a JOIN b ON b.k = a.k AND b.ts BETWEEN a.ts - {band} AND a.ts + {band} "
    "JOIN c ON c.k = b.k AND c.ts BETWEEN b.ts - {band} AND b.ts + {band}"
)
STAR = (
    "FROM a JOIN b ON b.ts BETWEEN a.ts - {band} AND a.ts + {band} "
    "JOIN c ON c.k = a.k AND c.j = b.j AND c.ts BETWEEN b.ts - {band} AND b.ts + {band}"
)


@dataclass(frozen=True)
class Case:
    """How many keys the streams have, and how near rows must be, in milliseconds."""

    name: str
    joins: str
    keys: tuple[int, int, int]
    band: int

    def sql(self, plan: str) -> str:
        """The query, to be run in one way."""
        band = f"INTERVAL {self.band} MILLISECONDS"
        return f"SELECT {PLANS[plan]} a.v AS x, b.v AS y, c.v AS z {self.joins.format(band=band)}"

    def rows(self, size: int, at: int) -> pa.Table:
        """The rows of one stream, as they come."""
        random = np.random.default_rng(at)
        ticks = np.arange(size, dtype=np.int64) * SECOND // RATE + random.integers(0, DISORDER, size)
        keys = [random.integers(0, self.keys[at], size) for _ in range(2)]
        columns = [ticks, *keys, random.integers(0, 1000, size)]
        arrays = [pa.array(column).cast(kind) for column, kind in zip(columns, SCHEMA.arrow.types, strict=True)]
        return pa.Table.from_arrays(arrays, schema=SCHEMA.arrow)

    def arrivals(self, size: int) -> Iterator[tuple[str, Batch | Punctuation]]:
        """Batches of all streams in turn, each with what it promises."""
        tables = [self.rows(size, at) for at in range(3)]
        for at in range(0, size, BATCH):
            for name, table in zip("abc", tables, strict=True):
                yield name, Batch(SCHEMA, table=table.slice(at, BATCH))
                yield name, linear("ts", (at + BATCH) * SECOND // RATE)


CASES = (
    Case("many pairs", CHAIN, (100, 100, 20_000), 500),
    Case("few pairs", CHAIN, (10_000, 10_000, 10_000), 500),
    Case("no column in common", STAR, (1000, 1000, 1000), 50),
)


def execution(case: Case, plan: str) -> Any:
    """The query by one of the plans."""
    flow = Flow()
    for name in "abc":
        flow.stream(name, SCHEMA.arrow.empty_table(), time="ts", progress=punctuated("v < 0", whole_stream=True))
    query: Any = flow.query(case.sql(plan))
    return query.execution()


def rows_kept(running: Any) -> int:
    """How many rows, and pairs, the joins of a query keep."""
    joins = [node.operator for node in running.graph.nodes]
    return sum(join.rows_held() for join in joins if isinstance(join, MultiJoinOperator | OAJoin))


def timed(case: Case, plan: str, size: int) -> tuple[float, int, int]:
    """Processor time, how many results came out, and how many rows were kept at most."""
    running = execution(case, plan)
    seconds, results, most = 0.0, 0, 0
    for name, item in case.arrivals(size):
        began = time.process_time()
        out = running.feed(name, item)
        seconds += time.process_time() - began
        results += sum(len(each) for each in out if isinstance(each, Batch))
        most = max(most, rows_kept(running))
    return seconds, results, most


def most_bytes(case: Case, plan: str, size: int) -> int:
    """The greatest number of bytes held after a batch, besides what the streams are read from."""
    arrivals = list(case.arrivals(size))
    gc.collect()
    tracemalloc.start()
    try:
        before, most = held_bytes(), 0
        running = execution(case, plan)
        for name, item in arrivals:
            running.feed(name, item)
            most = max(most, held_bytes() - before)
        return most
    finally:
        tracemalloc.stop()


@dataclass
class ManyExperiment:
    """All cases by both plans."""

    size: int = ROWS
    say: Say = print
    cases: tuple[Case, ...] = CASES
    rows: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> Report:
        """Case by case, the plans in turn."""
        for case in self.cases:
            rounds = [{plan: timed(case, plan, self.size) for plan in PLANS} for _ in range(ROUNDS)]
            found = {results for outcome in rounds for _, results, _ in outcome.values()}
            if len(found) > 1:
                raise InternalError("Plans of a join find different results.", where=case.name, got=str(found))
            for plan in PLANS:
                self.rows.append({
                    "case": case.name, "plan": plan, "results": found.copy().pop(),
                    "rows kept": rounds[0][plan][2], "memory, bytes": most_bytes(case, plan, self.size),
                    "time, s": round(min(outcome[plan][0] for outcome in rounds), 3),
                })  # fmt: skip
                self.say(f"many: {self.rows[-1]}")
        return Report("window-queries-many", self.rows, list(self._claims()))

    def _claims(self) -> Iterator[Claim]:
        by = {(row["case"], row["plan"]): row for row in self.rows}
        bars = {"few pairs": 1.5}
        for case in self.cases:
            one, tree = by[case.name, "one operator"], by[case.name, "tree"]
            bar = bars.get(case.name, 0.5)
            for measure in ("rows kept", "memory, bytes", "time, s"):
                what = measure.partition(",")[0]
                ratio = one[measure] / tree[measure]
                yield Claim(f"{case.name}, {what}: one operator against the tree", ratio, bar, "lower")
