"""DuckDB as judge, for queries that keep to what it means alike. Its times have no zone, so they are UTC here."""

from __future__ import annotations

import datetime as dt
from typing import Any

import duckdb
import pyarrow as pa

from tests.judge.ours import Answer, table_of
from tests.judge.queries import Query
from tests.judge.windows import LEAD, in_windows


def answer(query: Query, rows: list[dict[str, Any]]) -> Answer:
    """What DuckDB says."""
    lead: tuple[str, ...] = () if query.window is None else LEAD
    table = table_of(rows) if query.window is None else in_windows(rows, query.window)
    with duckdb.connect() as database:
        database.register("judged", naive(table))
        sql = query.text(clause="", source="judged AS s", lead=lead)
        found = database.execute(sql).fetchall()
    return Answer("rows", [tuple(map(in_utc, row)) for row in found])


def naive(table: pa.Table) -> pa.Table:
    """A table with times as DuckDB has them."""
    fields = [pa.field(f.name, pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))


def in_utc(value: Any) -> Any:
    """A value of DuckDB's as it is meant."""
    return value.replace(tzinfo=dt.UTC) if isinstance(value, dt.datetime) else value
