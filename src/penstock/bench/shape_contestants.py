"""Who takes part in the benchmark of shapes, the rows of a shape, and how results are compared.

DuckDB answers in batch by whichever way suits the shape. Tumbling windows are one aggregation. Otherwise rows are
brought down to panes, and then either a frame slides over a calendar of every key and pane, where there are not many
more of these than rows, or each pane is copied to its windows and aggregated again. Distinct values are always copied.

A result is compared by a fingerprint: how many rows, a sum over windows and keys, and for each aggregate its nulls and
a weighted sum. Numbers are equal to nine digits, since floating point sums depend on their order.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.bench.data import DISORDER, SLIDE, SPAN, START
from penstock.flow.flow import Flow
from penstock.model.batch import Batch
from penstock.model.progress import bounded
from penstock.model.time import SECOND

Aggregates = Literal["count, max", "avg, stddev", "count distinct"]
AGGREGATES: dict[Aggregates, str] = {
    "count, max": "count(*) AS a, max(v) AS b",
    "avg, stddev": "avg(v) AS a, stddev(v) AS b",
    "count distinct": "count(DISTINCT d) AS a",
}
NUMBERS: dict[Aggregates, int] = {"count, max": 3, "avg, stddev": 6, "count distinct": 2}
"""How many numbers a group has in a pane: rows, maximum and of how many values; rows, sum, of how many, three moments;
rows and distinct values."""
VALUES = 1000
"""So many values are told apart."""
DIGITS = 1e-9
_TEXT = "key-{:07d}"
_PANE = f"epoch_us(ts) // {SECOND * SLIDE}"


@dataclass(frozen=True)
class Shape:
    """How many keys of which type, what is computed, and RANGE/SLIDE."""

    keys: int
    type: Literal["integer", "text"]
    aggregates: Aggregates
    ratio: int

    def __str__(self) -> str:
        """For a line."""
        return f"{self.keys} {self.type} keys, {self.aggregates}, RANGE/SLIDE {self.ratio}"

    @property
    def query(self) -> str:
        """In our SQL."""
        window = f"[RANGE {self.ratio * SLIDE} seconds, SLIDE {SLIDE} seconds, WA ts]"
        return f"SELECT k, {AGGREGATES[self.aggregates]} {window} FROM main GROUP BY k"


@dataclass(frozen=True)
class Outcome:
    """How long a contestant took over how many rows, and the fingerprint of its result."""

    seconds: float
    rows: int
    fingerprint: tuple[float, ...]

    def agrees(self, other: Outcome) -> bool:
        """Whether the results are equal."""
        return bool(np.allclose(self.fingerprint, other.fingerprint, rtol=DIGITS, atol=0))


def shape_rows(rows: int, keys: int, type_: str, part: int = 1, seed: int = 1) -> pa.Table:
    """A part of so many rows over two hours, in order of arrival: as many a second, for as much less time."""
    rng = np.random.default_rng(seed)
    count = max(rows // part, 1)
    sent = np.sort(rng.integers(0, SPAN * SECOND // part, count))
    order = np.argsort(sent + rng.integers(0, DISORDER * SECOND, count), kind="stable")
    key = pa.array(rng.integers(0, keys, count))
    texts = pa.array([_TEXT.format(n) for n in range(keys)]) if type_ == "text" else None
    return pa.table(
        {
            "ts": pa.array(sent[order] + START, pa.timestamp("us", tz="UTC")),
            "k": key if texts is None else texts.take(key),
            "v": pa.array(rng.integers(0, 1_000_000, count).astype(np.int32)),
            "d": pa.array(rng.integers(0, VALUES, count).astype(np.int32)),
        }
    )


def in_process(table: pa.Table, shape: Shape) -> Outcome:
    """Penstock in-process."""
    flow = Flow().stream("main", table, time="ts", progress=bounded(f"{DISORDER} seconds"))
    query: Any = flow.query(shape.query)
    gc.collect()  # what was made before is nobody's here
    begun = time.perf_counter()
    found = [item.visible() for item in query.items() if isinstance(item, Batch)]
    seconds = time.perf_counter() - begun
    return Outcome(seconds, table.num_rows, fingerprint(found))


def duckdb_batch(table: pa.Table, shape: Shape) -> Outcome:
    """DuckDB over the same Arrow table."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    connection.register("main", table)
    sql = duckdb_sql(shape, is_dense=shape.keys * SPAN // SLIDE <= 4 * table.num_rows)
    gc.collect()
    begun = time.perf_counter()
    found = connection.sql(sql).to_arrow_table()
    seconds = time.perf_counter() - begun
    connection.close()
    return Outcome(seconds, table.num_rows, fingerprint([found]))


def duckdb_sql(shape: Shape, *, is_dense: bool) -> str:
    """The shape's query by panes, unless windows tumble; by a frame over all of them where they are dense."""
    if shape.ratio == 1:
        return f"SELECT k, {_PANE} AS wid, {AGGREGATES[shape.aggregates]} FROM main GROUP BY k, wid"
    if shape.aggregates == "count distinct":
        panes = f"SELECT DISTINCT k, {_PANE} AS p, d FROM main"
        return _copied(panes, shape.ratio, AGGREGATES[shape.aggregates])
    if shape.aggregates == "count, max":
        panes = f"SELECT k, {_PANE} AS p, count(*) AS n, max(v) AS m FROM main GROUP BY k, p"
        parts, results = {"n": "sum(n)", "m": "max(m)"}, "CAST(n AS BIGINT) AS a, m AS b"
    else:
        sums = "count(*) AS n, sum(v) AS s, sum(v::BIGINT * v) AS q"
        panes = f"SELECT k, {_PANE} AS p, {sums} FROM main GROUP BY k, p"
        parts = {name: f"sum({name})" for name in ("n", "s", "q")}
        results = "s / n AS a, CASE WHEN n > 1 THEN sqrt(greatest(q - s * (s / n), 0) / (n - 1)) END AS b"
    if is_dense:
        return _framed(panes, shape.ratio, parts, results)
    inner = _copied(panes, shape.ratio, ", ".join(f"{part} AS {name}" for name, part in parts.items()))
    return f"SELECT k, wid, {results} FROM ({inner})"


def _copied(panes: str, ratio: int, aggregates: str) -> str:
    copies = f"SELECT * EXCLUDE (p), p + unnest(range({ratio})) AS wid FROM ({panes})"
    return f"SELECT k, wid, {aggregates} FROM ({copies}) GROUP BY k, wid"


def _framed(panes: str, ratio: int, parts: dict[str, str], results: str) -> str:
    framed = ", ".join(f"{part} OVER w AS {name}" for name, part in parts.items())
    return f"""
        WITH panes AS MATERIALIZED ({panes}),
        ends AS (SELECT min(p) AS first, max(p) AS last FROM panes),
        calendar AS (
            SELECT k, p FROM (SELECT DISTINCT k FROM panes),
            (SELECT unnest(range(first, last + {ratio})) AS p FROM ends)),
        windows AS (
            SELECT k, p AS wid, {framed} FROM calendar LEFT JOIN panes USING (k, p)
            WINDOW w AS (PARTITION BY k ORDER BY p ROWS BETWEEN {ratio - 1} PRECEDING AND CURRENT ROW))
        SELECT k, wid, {results} FROM windows WHERE n > 0"""


def fingerprint(tables: Sequence[pa.Table]) -> tuple[float, ...]:
    """What tells results apart, whatever order they are in."""
    total = np.zeros(6)
    for table in tables:
        for batch in table.to_batches():
            total += _of_batch(batch)
    return tuple(total.tolist())


def _of_batch(batch: pa.RecordBatch) -> Any:
    key = batch.column("k")
    if not pa.types.is_integer(key.type):
        key = pc.utf8_slice_codeunits(key, _TEXT.index("{")).cast(pa.int64())
    mixed = (batch.column("wid").to_numpy() * 1_000_003 + key.to_numpy() * 7_919) % 1_000_007
    found = [float(batch.num_rows), float(mixed.sum())]
    for name in ("a", "b"):
        column = batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows, pa.float64())
        numbers = column.cast(pa.float64()).fill_null(0.0).to_numpy()
        found += [float(column.null_count), float((numbers * mixed).sum())]
    return np.array(found)
