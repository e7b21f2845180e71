"""A real DNS log with natural disorder, for tests; it is not part of the project and tests that use it skip without
it."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.model.batch import Row
from penstock.model.progress import bounded
from penstock.model.schema import Schema, schema_of
from penstock.model.tdb import TDB
from penstock.model.time import SECOND
from penstock.plan.nodes import Node
from penstock.reference import evaluate
from penstock.reference.lateness import judge

LOG = Path(__file__).resolve().parents[2] / "shared" / "data" / "zeek_dns.log.gz"
SQL = "SELECT query, count(*) AS n [RANGE 5 minutes, SLIDE 1 minute, WA ts] FROM dns GROUP BY query"
SCHEMA: Schema = schema_of([("n", "bigint"), ("ts", "timestamp"), ("query", "string")], "ts")


def dns_rows() -> list[Row]:
    """Number of the line, time in ticks and name asked for, in the order of the log; `-` is null."""
    if not LOG.exists():
        pytest.skip(f"{LOG} is not here")
    rows: list[Row] = []
    with gzip.open(LOG, "rt") as file:
        for line in file:
            if line.startswith("#fields"):
                names = line.rstrip("\n").split("\t")[1:]
                ts, query = names.index("ts"), names.index("query")
            elif not line.startswith("#"):
                values = line.rstrip("\n").split("\t")
                whole, _, fraction = values[ts].partition(".")
                rows.append(
                    (
                        len(rows),
                        int(whole) * SECOND + int(fraction.ljust(6, "0")),
                        None if values[query] == "-" else values[query],
                    )
                )
    return rows


def dns_table(rows: list[Row]) -> pa.Table:
    """The rows as Arrow."""
    numbers, times, queries = zip(*rows, strict=True)
    return pa.table(
        {
            "n": pa.array(numbers),
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "query": pa.array(queries, pa.string()),
        }
    )


def late_numbers(late: pa.Table) -> Counter[int]:
    """The numbers of the lines that a late output holds."""
    return Counter(json.loads(row)["n"] for row in late["row"].to_pylist())


def without(rows: list[Row], late: Counter[int]) -> list[tuple[str, Row]]:
    """The arrivals that are left."""
    assert set(late.values()) <= {1}, "a row is late once"
    return [("dns", row) for row in rows if row[0] not in late]


def expected(plan: Node, rows: list[Row], late: Counter[int]) -> TDB:
    """The oracle's answer without the late rows."""
    return evaluate(plan, without(rows, late))


def behind(rows: list[Row], seconds: int) -> Counter[int]:
    """The rows that are more than so much behind the greatest time before them."""
    found: Counter[int] = Counter()
    greatest = None
    for number, time, _ in rows:
        if greatest is not None and time < greatest - seconds * SECOND:
            found[number] += 1
        greatest = time if greatest is None else max(greatest, time)
    return found


def behind_by_batch(batches: list[list[Row]], seconds: int) -> Counter[int]:
    """The rows that are late by the batches before their own, as the oracle judges."""
    progress = bounded(f"{seconds} seconds")
    judged = judge(progress, SCHEMA.time_index, batches, granularity="batch", domain=SCHEMA.domain)
    return Counter(int(str(row[0])) for row, _ in judged.late)
