"""Lives on the wire: what mappers pack, a hosted graph takes up with its ends, whatever order the parts come in."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import penstock as pk
from penstock.model.lived_rows import LivedRows
from tests.engines.hosted import HostedPlan, tables

COLUMNS = "vs bigint, ve bigint, v_old bigint, k string"
PARTS = [
    {"vs": [1, 2, 3], "ve": [9, 5, 9], "v_old": [None, None, None], "k": ["a", "b", "a"]},
    {"vs": [1, 3, 30], "ve": [6, 3, 31], "v_old": [9, 9, None], "k": ["a", "a", "b"]},
]


def run(sql: str, buckets: int, order: list[int]) -> tuple[list[dict[str, Any]], list[str]]:
    """The parts as one micro-batch, in some order, then the end of the stream."""
    flow = pk.Flow().stream("s", [], time="vs", schema=COLUMNS, progress=pk.bounded(0), lives=("vs", "ve", "v_old"))
    flow.alter("later", "s", shift=3, at_most=4)
    query: Any = flow.query(sql)
    lives = LivedRows("ve", "v_old")
    read = lives.read_as(pk.Flow().stream("s", [], time="vs", schema=COLUMNS).catalog.streams["s"].schema)
    hosted = HostedPlan(query.plan, flow.catalog, buckets, lived=(lives, read))
    said = [*hosted.run(*(pa.table(PARTS[part], schema=read.arrow) for part in order)), *hosted.close()]
    rows = [row for table in tables(said, "result") for row in table.to_pylist()]
    return rows, [kind for _, kind, _ in said]


@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_a_window_counts_what_revisions_come_to(buckets: int, order: list[int]) -> None:
    """An adjust that comes before its insert in one micro-batch finds it."""
    sql = "SELECT k, count(*) AS n, max(ve) AS e [RANGE 10, SLIDE 10, WA vs] FROM s GROUP BY k"
    rows, kinds = run(sql, buckets, order)
    found = sorted((r["k"], r["window_end"], r["n"], r["e"]) for r in rows)
    assert found == [("a", 10, 1, 6), ("b", 10, 1, 5), ("b", 40, 1, 31)]
    assert not {"dead", "late"} & set(kinds)


@pytest.mark.parametrize("buckets", [1, 3])
def test_what_passes_through_is_a_changelog(buckets: int) -> None:
    rows, _ = run("SELECT k, vs FROM s WHERE k = 'a'", buckets, [0, 1])
    assert sorted((r["vs"], r["op"], r["ve"], r["v_old"]) for r in rows) == [
        (1, "insert", 9, None),
        (1, "update", 6, 9),
        (3, "delete", 3, 9),
        (3, "insert", 9, None),
    ]


@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_altered_lives_are_settled_and_counted(buckets: int, order: list[int]) -> None:
    """a [1, 6), b [2, 5) and b [30, 31) are [4, 8), [5, 8) and [33, 34)."""
    rows, kinds = run(
        "SELECT k, count(*) AS n, max(ve) AS e [RANGE 10, SLIDE 10, WA vs] FROM later GROUP BY k", buckets, order
    )
    found = sorted((r["k"], r["window_end"], r["n"], r["e"]) for r in rows)
    assert found == [("a", 10, 1, 8), ("b", 10, 1, 8), ("b", 40, 1, 34)]
    assert not {"dead", "late"} & set(kinds)


@pytest.mark.parametrize("buckets", [1, 3])
def test_a_changelog_of_altered_lives(buckets: int) -> None:
    """[1, 9) that becomes [1, 6) is [4, 8) all the time: nothing is said of it a second time."""
    rows, _ = run("SELECT k, vs FROM later WHERE k = 'a'", buckets, [0, 1])
    assert sorted((r["vs"], r["op"], r["ve"], r["v_old"]) for r in rows) == [
        (4, "insert", 8, None),
        (6, "delete", 6, 10),
        (6, "insert", 10, None),
    ]
