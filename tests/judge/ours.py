"""What Penstock makes of a query: rows and types, a failure of evaluation, or a refusal."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import penstock as pk
from penstock.errors import PenstockError, QueryError
from tests.judge.expressions import COLUMNS
from tests.judge.queries import Query

_ARROW = {
    "bigint": pa.int64(), "int": pa.int32(), "double": pa.float64(), "string": pa.string(), "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"), "decimal(8,2)": pa.decimal128(8, 2),
}  # fmt: skip
DDL = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
ARROW_SCHEMA = pa.schema([(name, _ARROW[type_]) for name, type_ in COLUMNS.items()])


@dataclass
class Answer:
    """What a system says to a query."""

    kind: str
    """'rows', 'failed' (no value under ANSI rules) or 'refused' (the SQL)."""
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    message: str = ""


def table_of(rows: list[dict[str, object]]) -> pa.Table:
    """The rows as Arrow."""
    return pa.Table.from_pylist(rows, schema=ARROW_SCHEMA)


def answer(query: Query, rows: list[dict[str, object]], random_: random.Random) -> Answer:
    """Penstock's answer, from columns or from rows, all of which are on time."""
    source: object = table_of(rows)
    if random_.random() < 0.5:
        source = rows
    return ask(pk.Flow(), query, source)


def ask(flow: Any, query: Query, source: object) -> Answer:
    """The answer of a flow's query over a source."""
    time = query.window.on if query.window is not None else "t"
    slack = "1 hour" if time == "clock" else 1000
    try:
        flow.stream(
            "s", source, time=time, progress=pk.bounded(slack), schema=DDL if isinstance(source, list) else None
        )
        asked = flow.query(query.penstock)
    except QueryError as error:
        return Answer("refused", message=error.message)
    try:
        table = asked.collect()
    except PenstockError as error:
        return Answer("failed", message=error.message)
    dead = asked.dead_letters
    count = dead.count() if hasattr(dead, "count") and not isinstance(dead, pa.Table) else len(dead)
    if count:
        return Answer("failed", message=str(dead))
    types = [str(f.type) for f in asked.schema.visible]
    return Answer("rows", [tuple(row.values()) for row in table.to_pylist()], types)
