"""What a plan reads of a stream: no more than it needs, and all that may be told of a row or kept of it."""

from __future__ import annotations

import pytest

import penstock as pk
from penstock.plan.read_columns import read_of

SCHEMA = "ts bigint, a bigint, b string, c bigint, d string"


def read(sql: str, progress: pk.Progress | None = None) -> str:
    flow = pk.Flow().stream("s", [], time="ts", schema=SCHEMA, progress=progress or pk.ordered())
    return "".join(sorted(read_of(flow.query(sql).plan, "S") - {"ts"}))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a FROM s", "a"),
        ("SELECT a FROM s WHERE b = 'x'", "ab"),
        ("SELECT * FROM s", "abcd"),
        ("SELECT a FROM (SELECT ts, a, b, d FROM s) WHERE b = 'x'", "ab"),
        ("SELECT a, count(*) AS n [RANGE 4, SLIDE 2, WA ts] FROM s GROUP BY a", "a"),
        ("SELECT count(*) AS n [RANGE 4, SLIDE 2, WA ts] FROM (SELECT ts, a, upper(b) AS u FROM s)", "b"),
        ("SELECT max(c) AS m FROM s [RANGE TUMBLING 4, WA ts] WHERE d IS NOT NULL GROUP BY a", "acd"),
        ("SELECT DISTINCT a FROM s", "a"),
        ("SELECT x.a FROM s x JOIN (SELECT ts, c FROM s) y ON x.a = y.c AND x.ts BETWEEN y.ts AND y.ts + 1", "abcd"),
        ("SELECT x.a FROM (SELECT ts, a FROM s) x JOIN (SELECT ts, c, d FROM s) y "
         "ON x.a = y.c AND x.ts BETWEEN y.ts AND y.ts + 1", "acd"),
    ],
)  # fmt: skip
def test_columns_that_a_plan_reads(sql: str, expected: str) -> None:
    assert read(sql) == expected


def test_how_far_a_stream_has_come_is_read_too() -> None:
    assert read("SELECT a FROM s", pk.per_source("d")) == "ad"
    assert read("SELECT a FROM s", pk.punctuated("b = 'p'")) == "abcd"


def test_columns_that_nobody_reads_are_not_copied_and_are_there_where_a_row_fails() -> None:
    rows = [{"ts": 1, "a": 1, "b": "x", "c": 0, "d": "y"}, {"ts": 2, "a": 2, "b": "x", "c": 5, "d": "z"}]
    import pyarrow as pa

    flow = pk.Flow().stream("s", pa.Table.from_pylist(rows), time="ts", progress=pk.ordered())
    query = flow.query("SELECT ts, 10 div c AS q FROM s WHERE a > 0")
    (select,) = [p for p in query.physical.walk() if type(p.node).__name__ == "Select"]
    assert select.unread == {"a", "b", "d"}
    assert query.collect()["q"].to_pylist() == [2]
    assert '"b": "x", "c": 0, "d": "y"' in query.dead_letters["row"].to_pylist()[0]
