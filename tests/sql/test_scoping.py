"""What names mean in GROUP BY, HAVING and inside aggregates: every expected row was read off Spark 4.3.

The queries run over one window that holds all rows, so that the groups are those of the plain query in Spark.
"""

from __future__ import annotations

import pytest

import penstock as pk
from penstock.errors import QueryError

ROWS = [
    {"t": 1, "k": "a", "v": 3, "g": 9},
    {"t": 2, "k": "a", "v": 7, "g": 2},
    {"t": 3, "k": "b", "v": 4, "g": 8},
]


def result(sql: str) -> list[tuple[object, ...]]:
    windowed = sql.replace(" FROM s", " [RANGE 10, SLIDE 10, WA t] FROM s")
    table = pk.Flow().stream("s", ROWS, time="t").query(windowed).collect()
    return sorted(tuple(row.values())[3:] for row in table.to_pylist())


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        # inside an aggregate a name is a column of the input, whatever the select list calls so
        ("SELECT g AS v, count(*) AS n FROM s GROUP BY g HAVING max(v) > 5", [(2, 1)]),
        ("SELECT min(v) AS v FROM s GROUP BY k HAVING max(v) > 4", [(3,)]),
        ("SELECT k, max(v) AS g FROM s GROUP BY k HAVING sum(g) > 10 AND g > 3", [("a", 7)]),
        ("SELECT k, count(*) AS v FROM s GROUP BY k HAVING max(v) > 6", [("a", 2)]),
        ("SELECT k, count(v) AS v, max(v) AS z FROM s GROUP BY k HAVING v + max(v) > 5", [("a", 2, 7)]),
        ("SELECT k, count(*) AS v FROM s GROUP BY k HAVING v > 1 AND max(s.v) > 3", [("a", 2)]),
        # outside, a grouped column goes before an alias
        ("SELECT g, -v AS v, count(*) AS n FROM s GROUP BY g, v HAVING v > 5", [(2, -7, 1)]),
        ("SELECT k, sum(v) AS g FROM s GROUP BY k, g HAVING g > 5", [("a", 3), ("b", 4)]),
        ("SELECT 'x' AS k, count(*) AS n FROM s GROUP BY k HAVING k = 'x'", []),
        ("SELECT 'x' AS k, count(*) AS n FROM s GROUP BY s.k HAVING k = 'a'", [("x", 2)]),
        ("SELECT max(v) AS k, count(*) AS n FROM s GROUP BY k HAVING k = 'a'", [(7, 2)]),
        ("SELECT v AS k, k AS v, count(*) AS n FROM s GROUP BY k, v HAVING k = 'a'", [(3, "a", 1), (7, "a", 1)]),
        ("SELECT g AS v, v AS g, count(*) AS n FROM s GROUP BY v, g HAVING v > 5", [(2, 7, 1)]),
        ("SELECT g + v AS v, count(*) AS n FROM s GROUP BY g, v HAVING v + 1 > 10", []),
        ("SELECT v % 2 AS v, count(*) AS n FROM s GROUP BY v HAVING v = 1", []),
        # an alias goes where no grouped column has the name
        ("SELECT k, min(v) AS v FROM s GROUP BY k HAVING v > 3", [("b", 4)]),
        ("SELECT k, sum(v) AS g FROM s GROUP BY k HAVING g > 5", [("a", 10)]),
        ("SELECT k AS x, k AS k2, sum(v) AS n FROM s GROUP BY k HAVING x = 'a' AND n > 3", [("a", "a", 10)]),
        ("SELECT -v AS w, count(*) AS n FROM s GROUP BY v HAVING w > -5", [(-4, 1), (-3, 1)]),
        ("SELECT v % 2 AS v, count(*) AS n FROM s GROUP BY v % 2 HAVING v = 1", [(1, 2)]),
        ("SELECT g + 0 AS v, count(*) AS n FROM s GROUP BY g HAVING v + g > 5", [(8, 1), (9, 1)]),
        ("SELECT k, count(*) AS v FROM s GROUP BY k HAVING abs(v) > 1", [("a", 2)]),
        ("SELECT k, sum(v) AS V2, count(*) AS n FROM s GROUP BY K HAVING v2 > 5", [("a", 10, 2)]),
        # expressions that are grouped
        ("SELECT v + 1 AS x, count(*) AS n FROM s GROUP BY v + 1 HAVING x > 4 AND v + 1 < 8", [(5, 1)]),
        ("SELECT ((s.v) + 1) * 2 AS x FROM s GROUP BY v + 1", [(8,), (10,), (16,)]),
        ("SELECT k, count(*) AS n FROM s GROUP BY 1 HAVING s.k = 'a'", [("a", 2)]),
        # aliases and places in GROUP BY
        ("SELECT -v AS w, count(*) AS n FROM s GROUP BY w", [(-7, 1), (-4, 1), (-3, 1)]),
        ("SELECT v + 1 AS w, count(*) AS n FROM s GROUP BY w", [(4, 1), (5, 1), (8, 1)]),
        ("SELECT k AS name, count(*) AS n FROM s GROUP BY name", [("a", 2), ("b", 1)]),
        ("SELECT 1 AS one, count(*) AS n FROM s GROUP BY one", [(1, 3)]),
        ("SELECT 1 AS one, count(*) AS n FROM s GROUP BY 1", [(1, 3)]),
        ("SELECT k, count(*) AS n FROM s GROUP BY k, 'z'", [("a", 2), ("b", 1)]),
        ("SELECT count(*) AS n FROM s GROUP BY 1 + 1", [(3,)]),
        ("SELECT count(*) AS n FROM s HAVING n > 1", [(3,)]),
    ],
)
def test_names_mean_what_they_mean_in_spark(sql: str, expected: list[tuple[object, ...]]) -> None:
    assert result(sql) == expected


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("SELECT k, sum(v) AS n FROM s GROUP BY k HAVING n + v > 3", "neither grouped nor aggregated"),
        ("SELECT k, count(*) AS v FROM s GROUP BY k HAVING s.v > 1", "neither grouped nor aggregated"),
        ("SELECT -v AS g, count(*) AS n FROM s GROUP BY g", "neither grouped nor aggregated"),
        ("SELECT k AS g, count(*) AS n FROM s GROUP BY g", "neither grouped nor aggregated"),
        ("SELECT v + 1 AS w, count(*) AS n FROM s GROUP BY w + 1", "neither grouped nor aggregated"),
        ("SELECT k, max(v) AS m FROM s GROUP BY k HAVING sum(m) > 3", "Unknown column"),
        ("SELECT k, max(v) AS m FROM s GROUP BY k HAVING max(m) > 3", "Unknown column"),
        ("SELECT sum(v) AS w, count(*) AS n FROM s GROUP BY w", "An aggregate cannot be grouped by"),
        ("SELECT sum(v) AS w, count(*) AS n FROM s GROUP BY 1", "An aggregate cannot be grouped by"),
        ("SELECT k AS a, v AS a, count(*) AS n FROM s GROUP BY k, v HAVING a = 'a'", "given twice"),
        ("SELECT k, count(*) AS n FROM s GROUP BY 1.0", "neither grouped nor aggregated"),
        ("SELECT k, count(*) AS n FROM s GROUP BY -1", "a position that the select list has not"),
        ("SELECT k, count(*) AS n FROM s GROUP BY 0", "a position that the select list has not"),
        ("SELECT k, count(*) AS n FROM s GROUP BY 99999999999999999999999", "a position that the select list has not"),
        ("SELECT k AS j FROM s HAVING j = 'a'", "neither grouped nor aggregated"),
    ],
)
def test_what_spark_refuses_is_refused(sql: str, part: str) -> None:
    with pytest.raises(QueryError, match=part) as caught:
        result(sql)
    assert caught.value.line == 1


def test_names_made_for_inner_columns_do_not_meet_the_users() -> None:
    rows = [{"t": 1, "__agg0": 5, "__key0": 7, "__arg0": 1, "__time": 2}]
    flow = pk.Flow().stream("s", rows, time="t")
    items = "__agg0, __time, __key0 + 1 AS k, sum(__arg0 + 1) AS n"
    sql = f"SELECT {items} [RANGE 10, SLIDE 10, WA t] FROM s GROUP BY 1, 2, 3"
    assert [tuple(r.values())[3:] for r in flow.query(sql).collect().to_pylist()] == [(5, 2, 8, 2)]
    assert flow.query("SELECT __time, __agg0 AS x FROM s").collect().to_pylist() == [{"__time": 2, "x": 5}]
