"""One random query asked of Penstock in-process and of DuckDB."""

from __future__ import annotations

import datetime as dt
import random
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa

import penstock as pk
from tests.judge.combined import CombinedQuery, Grid
from tests.judge.duck import in_utc, naive
from tests.judge.odd_rows import ARROW, EPOCH, TABLE, VERSIONS, Data, arrow
from tests.judge.twins import MACROS

Found = list[tuple[Any, ...]]


def ours(query: CombinedQuery, data: Data, chance: random.Random) -> Found:
    """In-process, from columns or row by row."""
    flow = pk.Flow()
    declare(flow, data, chance)
    asked = flow.sql(query.ours).query
    found = asked.collect()
    assert len(asked.dead_letters) == 0, asked.dead_letters.to_pylist()
    return [tuple(row.values()) for row in found.to_pylist()]


def declare(flow: pk.Flow, data: Data, chance: random.Random) -> None:
    """The streams and tables of the data."""
    for name, stream in data.streams.items():
        progress = pk.bounded(f"{stream.slack} seconds" if data.timed else stream.slack)
        if chance.random() < 0.5:
            flow.stream(name, arrow(stream.rows, data.schema), time="t", progress=progress)
        else:
            ddl = ", ".join(f"{column} {type_}" for column, type_ in data.schema.items())
            flow.stream(name, stream.rows, time="t", progress=progress, schema=ddl)
    flow.table("dim", arrow(data.table, TABLE))
    flow.table("rates", arrow(data.versions, {**VERSIONS, "since": data.time_type}), key=["vk"], valid_from="since")


def duck(query: CombinedQuery, data: Data) -> Found:
    """What DuckDB says of the rows that were on time."""
    database = connection()
    for name, table in judged(query.grids, data).items():
        database.register(name, naive(table))
    found = database.execute(query.duck).fetchall()
    return [tuple(map(in_utc, row)) for row in found]


@lru_cache(maxsize=1)
def connection() -> duckdb.DuckDBPyConnection:
    """One, which is slow to make; what is registered later takes the place of what was."""
    database = duckdb.connect()
    database.execute(MACROS)
    return database


def judged(grids: dict[str, Grid], data: Data) -> dict[str, pa.Table]:
    """The tables that a judge is given: rows on time, versions with their ends, windows."""
    tables = {name: arrow(stream.on_time, data.schema) for name, stream in data.streams.items()}
    for name, stream in data.streams.items():
        numbers = pa.array(range(len(stream.rows)), pa.int64())
        tables[f"{name}_rows"] = arrow(stream.rows, data.schema).append_column("number", numbers)
    tables["dim"] = arrow(data.table, TABLE)
    versions = []
    for row in data.versions:
        later = [r["since"] for r in data.versions if r["vk"] == row["vk"] and r["since"] > row["since"]]  # type: ignore[operator]
        versions.append({**row, "until": min(later, default=None)})  # type: ignore[type-var]
    tables["rates"] = arrow(versions, {**VERSIONS, "since": data.time_type, "until": data.time_type})
    for name, grid in grids.items():
        bound = ARROW["bigint" if grid.of_rows else data.time_type]
        numbers, *ends = (list(column) for column in zip(*grid.windows(data), strict=True))
        if data.timed and not grid.of_rows:
            ends = [[EPOCH + dt.timedelta(seconds=end) for end in column] for column in ends]
        columns = {"wid": pa.array(numbers, pa.int64())}
        columns |= {n: pa.array(c, bound) for n, c in zip(("window_start", "window_end"), ends, strict=True)}
        tables[name] = pa.table(columns)
    return tables
