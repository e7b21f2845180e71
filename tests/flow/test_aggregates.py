"""The aggregates that people write, and the sets of a GROUP BY: what they mean, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as pk
from tests.flow.test_misuse import Total

ROWS: list[dict[str, Any]] = [
    {"t": 3, "g": "a", "h": 1, "v": 30, "b": True},
    {"t": 1, "g": "a", "h": 2, "v": None, "b": False},
    {"t": 2, "g": "b", "h": 1, "v": 20, "b": None},
    {"t": 3, "g": "a", "h": 1, "v": 10, "b": None},
    {"t": 2, "g": "a", "h": 2, "v": 10, "b": True},
]
W = "[RANGE 10, SLIDE 10, WA t]"


def collected(sql: str, rows: list[dict[str, Any]] = ROWS, **options: Any) -> list[tuple[Any, ...]]:
    """The results without the window, in any order."""
    flow = pk.Flow().stream("s", rows, time="t", progress=pk.bounded(9), **options).aggregate("total", Total, "bigint")
    query: Any = flow.query(sql)
    return sorted([tuple(row.values())[3:] for row in query.collect().to_pylist()], key=repr)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("count(*) FILTER (WHERE v > 10)", 2),
        ("count(*) FILTER (WHERE v IS NULL)", 1),
        ("sum(v) FILTER (WHERE g = 'zz')", None),
        ("count(*) FILTER (WHERE g = 'zz')", 0),
        ("max(v) FILTER (WHERE v < 30) + 1", 21),
        ("total(v) FILTER (WHERE h = 1)", 60),
        ("total(DISTINCT v)", 60),
        ("sum(DISTINCT v)", 60),
        ("avg(DISTINCT v) FILTER (WHERE v < 30)", 15.0),
        ("count(DISTINCT g, v)", 3),
        ("count(g, v)", 4),
        ("count_if(v > 10)", 2),
        ("bool_and(b)", False),
        ("every(v > 0)", True),
        ("any(b)", True),
        ("some(v > 30)", False),
        ("any_value(v)", 10),
        ("median(v)", 15.0),
        ("percentile(v, 0.25)", 10.0),
        ("percentile(v, 1)", 30.0),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY v)", 15.0),
        ("mode(v)", 10),
        ("mode(h)", 1),
        ("mode() WITHIN GROUP (ORDER BY g)", "a"),
        ("bit_and(v)", 0),
        ("bit_or(v)", 30),
        ("bit_xor(v)", 10),
        ("covar_pop(h, h)", 0.24),
        ("corr(h, -h)", -1.0),
        ("corr(h, 1)", None),
    ],
)
def test_a_call_gives(call: str, expected: Any) -> None:
    ((got,),) = collected(f"SELECT {call} AS x {W} FROM s")
    assert got == pytest.approx(expected) if isinstance(expected, float) else got == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("first(v)", None),  # at 1
        ("first(v) IGNORE NULLS", 10),  # at 2 there are 20 and 10: the least
        ("first(v, true)", 10),
        ("last(v)", 30),  # at 3 there are 30 and 10: the greatest
        ("last(g) FILTER (WHERE t < 3)", "b"),
        ("first_value(v) FILTER (WHERE g = 'b')", 20),
        ("min_by(v, t)", None),
        ("min_by(g, v)", "a"),
        ("max_by(h, g)", 1),
        ("max_by(v, h)", 10),  # of null and 10, null is the least
        ("min_by(v, h)", 10),
        ("min_by(g, v) FILTER (WHERE v > 10)", "b"),
    ],
)
def test_what_is_first_goes_by_time_and_then_by_value_and_never_by_arrival(call: str, expected: Any) -> None:
    sql = f"SELECT {call} AS x {W} FROM s"
    assert collected(sql) == [(expected,)]
    assert collected(sql, ROWS[::-1]) == [(expected,)]


def test_rollup_is_of_fewer_and_fewer_keys() -> None:
    sql = f"SELECT g, h, count(*) AS n, grouping(h) AS gh, grouping_id() AS id {W} FROM s GROUP BY ROLLUP (g, h)"
    expected = [
        ("a", 1, 2, 0, 0), ("a", 2, 2, 0, 0), ("b", 1, 1, 0, 0), ("a", None, 4, 1, 1), ("b", None, 1, 1, 1),
        (None, None, 5, 1, 3),
    ]  # fmt: skip
    assert collected(sql) == sorted(expected, key=repr)
    assert collected(sql.replace("ROLLUP (g, h)", "g, h WITH ROLLUP")) == sorted(expected, key=repr)


def test_cube_is_of_every_choice_of_keys_and_sets_are_those_that_are_named() -> None:
    cube = collected(f"SELECT g, h, sum(v) AS s {W} FROM s GROUP BY CUBE (g, h)")
    per_g, per_h, each = [("a", None, 50), ("b", None, 20)], [(None, 1, 60), (None, 2, 10)], [(None, None, 70)]
    pairs = [("a", 1, 40), ("a", 2, 10), ("b", 1, 20)]
    assert cube == sorted([*pairs, *per_g, *per_h, *each], key=repr)
    twice = f"SELECT g, h, sum(v) AS s {W} FROM s GROUP BY GROUPING SETS (g, (h), (g), ())"
    assert collected(twice) == sorted([*per_g, *per_g, *per_h, *each], key=repr)


def test_an_aggregate_of_a_key_is_of_all_its_values_and_conditions_see_the_null() -> None:
    sql = f"SELECT coalesce(g, 'all') AS g, max(g) AS m, count(*) AS n {W} FROM s GROUP BY ROLLUP (g) HAVING g IS NULL"
    assert collected(sql) == [("all", "b", 5)]


def test_windows_of_rows_count_rows_once_whatever_the_sets() -> None:
    sql = "SELECT h, count(*) AS n [RANGE 2 rows, SLIDE 2 rows, WA row-num] FROM s GROUP BY ROLLUP (h)"
    assert collected(sql) == sorted([(1, 1), (2, 1), (None, 2), (1, 2), (None, 2), (2, 1), (None, 1)], key=repr)


def test_group_by_all_and_an_alias_of_a_plain_column() -> None:
    expected = [("a", 2, 2), ("a", 3, 2), ("b", 2, 1)]
    assert collected(f"SELECT g AS z, h + 1 AS k, window_end, count(*) AS n {W} FROM s GROUP BY ALL") == expected
    assert collected(f"SELECT g AS z, h + 1 AS k, count(*) AS n {W} FROM s GROUP BY z, k") == expected
    assert collected(f"SELECT count(*) AS n {W} FROM s GROUP BY ALL") == [(5,)]


def test_what_is_late_for_grouping_sets_is_late_once() -> None:
    flow = pk.Flow().stream("s", [{"t": t, "g": "a"} for t in (5, 50, 1)], time="t", progress=pk.bounded(3))
    query: Any = flow.query(f"SELECT g, count(*) AS n {W} FROM s GROUP BY ROLLUP (g)")
    query.collect()
    assert query.late.num_rows == 1


def test_explain_says_which_aggregates_keep_their_values() -> None:
    query: Any = pk.Flow().stream("s", ROWS, time="t").query(f"SELECT median(v) AS m, last(v) AS l {W} FROM s")
    said = str(query.explain())
    assert "percentile(v, 0.5) may take more room the more values there are" in said
    assert "max_by(v, t)" in said
