"""The queries of Nexmark as files, what is said of each in its comment, and how they run.

A file of `benchmarks/nexmark` begins with a comment of three parts: the query's number and name, what it `asks`, and
how it is written `here`. The table of the page `docs/nexmark.md` is made from these. In folders beside them are the
same questions in the words of other engines, under the same names.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.flow.flow import Flow
from penstock.flow.script import Script

_COMMENT = re.compile(r"(?:--.*\n)+")
_PARTS = re.compile(r"(?P<name>q\d+) (?P<title>.*?) asks: (?P<asks>.*?) here: (?P<here>.*)")


SIDE_INPUT = "side_input"
"""What q13 looks up."""


def side_input() -> pa.Table:
    """A row for each of ten thousand keys."""
    keys = range(10_000)
    return pa.table({"key": keys, "value": [str(key) for key in keys]})


def home() -> Path:
    """Where the queries are."""
    return Path(os.environ.get("PENSTOCK_NEXMARK", "benchmarks/nexmark")).absolute()


@dataclass(frozen=True)
class NexmarkQuery:
    """One query."""

    name: str
    title: str
    asks: str
    here: str
    sql: str

    @staticmethod
    def read(path: Path) -> NexmarkQuery:
        """From its file."""
        text = path.read_text()
        comment = _COMMENT.match(text)
        assert comment is not None, path
        words = " ".join(comment.group().replace("--", " ").split())
        parts = _PARTS.fullmatch(words)
        assert parts is not None, path
        return NexmarkQuery(**parts.groupdict(), sql=text[comment.end() :])

    def script(self, events: Any, flow: Flow | None = None) -> Script:
        """The streams and the query, over events; in-process, unless a flow is given."""
        text = (home() / "streams.sql").read_text() + self.sql
        tables = {SIDE_INPUT: side_input()} if f"CREATE TABLE {SIDE_INPUT}" in self.sql else {}
        return (flow or Flow()).sql(text, sources={"events": events, **tables})

    def elsewhere(self, engine: str) -> Path:
        """The same question in the words of another engine."""
        return home() / engine / f"{self.name}.sql"


def queries() -> list[NexmarkQuery]:
    """All that run, by number."""
    return sorted((NexmarkQuery.read(p) for p in home().glob("q*.sql")), key=lambda q: int(q.name[1:]))


def queries_table() -> str:
    """What each asks and how it is written here."""
    lines = ["| query | asks | here |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {q.name} {q.title} | {q.asks} | {q.here} |" for q in queries())])


def by_duckdb(query: NexmarkQuery, events: pa.Table) -> pa.Table:
    """What DuckDB answers, which has all events before it."""
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("events", events)
        connection.register(SIDE_INPUT, side_input())
        connection.execute((home() / "duckdb" / "streams.sql").read_text())
        return connection.sql(query.elsewhere("duckdb").read_text()).to_arrow_table()
