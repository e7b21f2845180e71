"""`penstock papers window-queries --figure 9`: the adaptive join beside its fixed forms (thesis, chapter 9).

Two streams of 4000 rows a second, up to a second out of order, are joined by key within a band of time: in step with
few keys and with many, in large batches, with one input twenty seconds late, and with skew of several kinds: a thousand
keys have half of the rows of both, the right has a thousand keys only, keys have shares as in Zipf's law. The same join
runs with all rows indexed as they come, with all rows scanned, and adaptively.

*Time* is processor time inside the query, the making of pairs included; the forms run in turn, and the least of the
rounds is told. *Memory* is the greatest number of bytes held, in a run of its own. Each measure is compared with that
of the fixed form which is better in it. Pairs must be as many. What is common to all forms: a row of which all partners
have come is not kept, and rows are looked up some thousands at a time.
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
from penstock.operators.joins.finding import Finding, Form
from penstock.operators.joins.oa_join import OAJoin
from penstock.papers.window_joins import Weighed, held_bytes

Say = Callable[[str], None]
SCHEMA = schema_of([("ts", "timestamp"), ("k", "bigint"), ("a", "bigint"), ("b", "bigint"), ("v", "bigint")], "ts")
RATE = 4000
DISORDER = SECOND
FORMS: tuple[Form, ...] = ("indexed", "scanned", "adaptive")
ROUNDS = 5
LEAST = 6.0
"""The rounds of a case take together at least so many seconds: of short ones there are more."""
ROWS = 200_000


@dataclass(frozen=True)
class Case:
    """How the rows of both streams come."""

    name: str
    keys: int
    band: int
    """In milliseconds, to either side."""
    hot: int = 0
    """So many keys have half of the rows."""
    batch: int = 1000
    late: int = 0
    """How many seconds the right is behind."""
    right: int = 0
    """The right has so many keys only."""
    zipf: float = 0.0
    """The share of the n-th key goes with n to the power of this, negative."""

    def sides(self, size: int) -> tuple[pa.Table, pa.Table]:
        """The rows of the left and of the right, as they come."""
        return self._rows(size, 1, self.keys), self._rows(size, 2, self.right or self.keys)

    def _rows(self, size: int, seed: int, number: int) -> pa.Table:
        random = np.random.default_rng(seed)
        ticks = np.arange(size, dtype=np.int64) * SECOND // RATE + random.integers(0, DISORDER, size)
        keys = random.integers(0, number, size)
        if self.hot:
            keys = np.where(random.random(size) < 0.5, keys % self.hot, keys)
        if self.zipf:
            keys = (number * random.random(size) ** (1 / (1 - self.zipf))).astype(np.int64)
        columns = [ticks, keys * 2654435761 % 2**40, keys, keys + 1, random.integers(0, 1000, size)]
        arrays = [pa.array(column).cast(kind) for column, kind in zip(columns, SCHEMA.arrow.types, strict=True)]
        return pa.Table.from_arrays(arrays, schema=SCHEMA.arrow)

    def arrivals(self, tables: tuple[pa.Table, pa.Table]) -> Iterator[tuple[str, Batch | Punctuation]]:
        """Batches of both in turn, with memory of their own, each with what it promises."""
        size, lag = tables[0].num_rows, self.late * RATE
        for at in range(0, size + lag, self.batch):
            for name, table, behind in (("l", tables[0], 0), ("r", tables[1], lag)):
                start, end = max(at - behind, 0), min(at + self.batch - behind, size)
                if end > start:
                    yield name, Batch(SCHEMA, table=table.take(pa.array(np.arange(start, end))))
                    yield name, linear("ts", end * SECOND // RATE)


CASES = (
    Case("in step, few keys", 1000, 2000),
    Case("in step, many keys", 10**8, 5000),
    Case("in step, large batches", 10**5, 1000, batch=40_000),
    Case("skewed keys", 10**8, 10_000, hot=1000),
    Case("skewed, few keys on the right", 10**6, 10_000, right=1000),
    Case("skewed, as in Zipf's law", 10**6, 10_000, zipf=0.5),
    Case("one input late", 10**8, 1000, late=20),
)


def execution(case: Case, form: Form) -> tuple[Any, Any]:
    """The query in one of the forms, and the node that joins."""
    flow = Flow()
    for name in "lr":
        flow.stream(name, SCHEMA.arrow.empty_table(), time="ts", progress=punctuated("v < 0", whole_stream=True))
    query: Any = flow.query(
        "SELECT l.v AS lv, r.v AS rv FROM l JOIN r ON l.k = r.k AND r.ts BETWEEN "
        f"l.ts - INTERVAL {case.band} MILLISECONDS AND l.ts + INTERVAL {case.band} MILLISECONDS"
    )
    made = query.execution()
    (node,) = [node for node in made.graph.nodes if isinstance(node.operator, OAJoin)]
    join = node.operator
    join.finding = Finding(join.sides, join.near, join.notes, form)
    return made, node


def timed(case: Case, form: Form, tables: tuple[pa.Table, pa.Table]) -> tuple[float, int]:
    """Processor time, and how many pairs came out."""
    running, _ = execution(case, form)
    seconds, pairs = 0.0, 0
    for name, item in case.arrivals(tables):
        began = time.process_time()
        out = running.feed(name, item)
        seconds += time.process_time() - began
        pairs += sum(len(each) for each in out if isinstance(each, Batch))
    return seconds, pairs


def most_bytes(case: Case, form: Form, tables: tuple[pa.Table, pa.Table]) -> int:
    """The greatest number of bytes held."""
    gc.collect()
    tracemalloc.start()
    try:
        before = held_bytes()
        running, node = execution(case, form)
        node.operator = weighed = Weighed(node.operator)
        for name, item in case.arrivals(tables):
            running.feed(name, item)
        return weighed.most - before
    finally:
        tracemalloc.stop()


@dataclass
class AdaptiveExperiment:
    """All cases in all forms."""

    size: int = ROWS
    say: Say = print
    cases: tuple[Case, ...] = CASES
    least: float = LEAST
    rows: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> Report:
        """Case by case, the forms in turn."""
        for case in self.cases:
            tables = case.sides(self.size)
            rounds: list[dict[Form, tuple[float, int]]] = []
            while len(rounds) < ROUNDS or sum(took for each in rounds for took, _ in each.values()) < self.least:
                order = FORMS[:: -1 if len(rounds) % 2 else 1]
                rounds.append({form: timed(case, form, tables) for form in order})
            if len({pairs for outcome in rounds for _, pairs in outcome.values()}) > 1:
                raise InternalError("Forms of a join find different pairs.", where=case.name, got=str(rounds))
            for form in FORMS:
                seconds = min(outcome[form][0] for outcome in rounds)
                held = most_bytes(case, form, tables)
                self.rows.append({"case": case.name, "form": form, "memory, bytes": held, "time, s": round(seconds, 4)})
                self.say(f"9: {self.rows[-1]}")
        return Report("window-queries-9", self.rows, list(self._claims()))

    def _claims(self) -> Iterator[Claim]:
        measures = ("time, s", "memory, bytes")
        by = {(row["case"], row["form"]): row for row in self.rows}
        ratios = {
            (case.name, measure): min(by[case.name, form][measure] for form in FORMS[:2])
            / by[case.name, "adaptive"][measure]
            for case in self.cases
            for measure in measures
        }
        for measure in measures:
            worst = max(1 / ratios[case.name, measure] for case in self.cases)
            what = measure.partition(",")[0]
            yield Claim(f"{what}: adaptive against the better fixed form, at the worst case", worst, 1.1, "lower")
        for case in self.cases:
            if case.name.startswith("skewed") or case.late:
                gain, measure = max((ratios[case.name, measure], measure) for measure in measures)
                what = measure.partition(",")[0]
                yield Claim(
                    f"{case.name}: adaptive, times better in {what} than the better fixed form", gain, 1.5, "higher"
                )
