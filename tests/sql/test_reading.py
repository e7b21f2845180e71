"""What nobody reads is refused: by examples, and by setting every argument of every kind of node that is read."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.errors import PenstockError, QueryError, UnsupportedError
from penstock.model.progress import ordered
from penstock.model.properties import StreamProperties
from penstock.model.schema import DOUBLE, schema_of
from penstock.plan.catalog import Catalog, StreamInfo, UserFunction
from penstock.sql.aggregate_names import AGGREGATES, WRAPPERS
from penstock.sql.bind_expression import BINDERS
from penstock.sql.binder import bind, bind_tree
from penstock.sql.tokens import parse

SCHEMA = schema_of(
    [("t", "timestamp"), ("k", "string"), ("v", "int"), ("d", "double"), ("b", "boolean"), ("n", "bigint")], "t"
)


def catalog() -> Catalog:
    result = Catalog()
    result.add_stream(StreamInfo("s", SCHEMA, ordered(), StreamProperties()))
    result.functions["half"] = UserFunction("half", lambda x: x / 2, DOUBLE)
    return result


W = "[RANGE 10 s, SLIDE 5 s, WA t]"


@pytest.mark.parametrize(
    "marked",
    [
        f"SELECT k, count(*) {W} FROM s GROUP BY k WITH TOTALS",
        "SELECT k FROM s TABLESAMPLE (^10 PERCENT)",
        "SELECT k FROM (SELECT k FROM s) TABLESAMPLE (^10 PERCENT)",
        "SELECT k FROM s PIVOT (^sum(v) FOR k IN ('a'))",
        "SELECT DISTINCT ON (^k) k FROM s",
        "SELECT k FROM s VERSION AS OF ^1",
        "SELECT k FROM s TIMESTAMP AS OF ^'2026-01-01'",
        "SELECT * EXCEPT (^k) FROM s",
        "SELECT k FROM ^other.s",
        "SELECT k FROM a.^other.s",
        "SELECT k FROM s AS z(^a, b)",
        "SELECT ^ltrim('a', k) AS x FROM s",
        "SELECT trim('a'^, k) AS x FROM s",
        "SELECT position('a'^) AS x FROM s",
        "SELECT extract(month^, t) AS x FROM s",
        "SELECT ^round(v, 1, 2) AS x FROM s",
        "SELECT ^k LIKE 'a/%' ESCAPE '/' AS x FROM s",
        "SELECT k LIKE ANY (^'a', 'b') AS x FROM s",
        "SELECT k^, FROM s",
        f"SELECT k, count(*) {W} FROM s GROUP BY k^,",
        "SELECT k FROM s WHERE v IN (1^, )",
        "SELECT coalesce(k^, ) FROM s",
        "SELECT /*+ ^BROADCAST(s) */ k FROM s",
        "SELECT ^zz.* FROM s",
        "SELECT ^zz.k FROM s",
        "SELECT count(*) [RANGE 10 s, SLIDE 5 s, ^WA x.t] FROM s",
        "SELECT count(*) [RANGE 10 s, SLIDE 5 s, ^WA s.t] FROM s AS z",
        "SELECT count(*) [RANGE ALL, SLIDE 5 s, WA t, ^TUMBLING 5 s] FROM s",
        "SELECT count(*) [RANGE 9 rows, SLIDE 1 row, WA row-num, PA k, ^ORIGIN 5] FROM s",
        "SELECT count(*) [RANGE 9 rows, SLIDE 1 row, WA row-num, ^PA x.k] FROM s",
        "SELECT count(*) [RANGE 9 s, RATTR t, SLIDE 1 row, SATTR row-num, ^WA t] FROM s",
        "SELECT count(*) [RANGE 9 s, RATTR t, SLIDE 1 row, SATTR row-num, ^PA k] FROM s",
        "WITH RECURSIVE ^x AS (SELECT k FROM s) SELECT k FROM x",
        "WITH x(^a) AS (SELECT k FROM s) SELECT k FROM x",
        "SELECT ^t + INTERVAL '1' YEAR AS x FROM s",
        "SELECT ^t + INTERVAL v DAY AS x FROM s",
        "SELECT ^count(*) OVER (PARTITION BY k) FROM s",
        "SELECT count(*) FROM s GROUP BY ^window(t)",
        "SELECT ^count() [RANGE 10 s, SLIDE 5 s, WA t] FROM s",
        "SELECT length(^) FROM s",
        "SELECT k FROM s FOR ^UPDATE",
    ],
)
def test_what_is_not_read_is_refused_with_its_place(marked: str) -> None:
    sql = marked.replace("^", "")
    with pytest.raises(QueryError) as caught:
        bind(sql, catalog())
    assert caught.value.line == 1
    if "^" in marked:
        assert caught.value.column == marked.index("^") + 1, caught.value.message


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("SELECT count(*) OVER (PARTITION BY k) FROM s", ["OVER is not supported", "in brackets"]),
        ("SELECT k FROM other.s", ["not supported", "a database"]),
        ("SELECT modal(v) [RANGE 9 s, SLIDE 1 s, WA t] FROM s", ["Unknown function", "flow.aggregate"]),
    ],
)
def test_refusals_say_what_is_meant(sql: str, parts: list[str]) -> None:
    with pytest.raises(QueryError) as caught:
        bind(sql, catalog())
    for part in parts:
        assert part in caught.value.message


# Every kind of node that is read at all, in queries that are valid.
VALID = [
    f"WITH x AS (SELECT t, k, v FROM s) SELECT x.k AS y, count(*) AS c, sum(v), avg(v), min(v), max(v), var_pop(v), "
    f"variance(v), stddev(v), stddev_pop(v), stddev_samp(v), count(DISTINCT v) {W} FROM x AS x WHERE v > 1 "
    f"GROUP BY k HAVING c > 1",
    f"SELECT k, v, any(b), median(v) FILTER (WHERE v > 1), first(v) IGNORE NULLS, last(v) RESPECT NULLS, "
    f"mode() WITHIN GROUP (ORDER BY v), grouping(k) {W} FROM s GROUP BY ROLLUP (k, (v, b)), CUBE (d)",
    f"SELECT k, count(*) {W} FROM s GROUP BY GROUPING SETS ((k, v), k, ())",
    "SELECT split(k, ',')[0] AS a, struct(k AS x).x FROM s",
    "SELECT DISTINCT k FROM (SELECT k FROM s) AS z UNION SELECT k FROM s",
    "SELECT *, s.k, -v, NULL, TRUE, 'a', (v + 1) * v - v / 2 % v, v div 2, v <=> 1, v = 1, v <> 1, v < 1, v <= 1, "
    "v >= 1, v > 1, v IS DISTINCT FROM 1 FROM s",
    "SELECT v BETWEEN 1 AND 2, v IN (1, 2), k LIKE 'a', k IS NULL, b IS TRUE, b AND b OR NOT b, "
    "CASE WHEN b THEN 1 ELSE 2 END, CASE v WHEN 1 THEN 2 END, if(b, 1, 2), nullif(v, 1), coalesce(v, 1), "
    "greatest(v, 1), least(v, 1) FROM s",
    "SELECT lower(k), upper(k), length(k), trim(k), concat(k, 'a'), k || 'a', substring(k, 1, 2), year(t), month(t), "
    "day(t), dayofmonth(t), hour(t), minute(t), second(t), date_trunc('hour', t), t + INTERVAL 1 DAY, abs(v), "
    "floor(d), ceil(d), sqrt(d), half(d), CAST(v AS string), v::string, TIMESTAMP '2026-01-01' FROM s",
    "SELECT k RLIKE r'\\d', k ILIKE 'A%', position('a' IN k), extract(month FROM t), left(k, 2), v & 1 | 2 ^ ~v FROM s",
]

MEANS_SOMETHING = {
    # Set where it was not, these change the meaning as documented, or say how the same was spelt.
    ("Select", "distinct"), ("Select", "where"), ("Select", "having"), ("Select", "group"), ("Select", "with_"),
    ("Union", "distinct"), ("Union", "with_"), ("Subquery", "alias"), ("Subquery", "with_"), ("Table", "alias"),
    ("Column", "table"), ("Like", "negate"), ("ILike", "negate"), ("Case", "this"), ("Case", "default"),
    ("If", "false"), ("Substring", "length"), ("Coalesce", "is_nvl"), ("Coalesce", "is_null"),
    ("Coalesce", "ignore_nulls"),
    ("Greatest", "ignore_nulls"), ("Least", "ignore_nulls"), ("Concat", "safe"), ("Concat", "coalesce"),
    ("DPipe", "safe"), ("Div", "typed"), ("Div", "safe"), ("Identifier", "quoted"), ("Count", "big_int"),
    ("Coalesce", "expressions"), ("Greatest", "expressions"), ("Least", "expressions"), ("In", "expressions"),
    ("Interval", "unit"), ("Distinct", "expressions"), ("Literal", "is_string"),
}  # fmt: skip


def settings() -> list[tuple[str, int, str]]:
    """Query, number of a node in it, and an argument of that kind of node that is not set."""
    result, seen = [], set()
    for sql in VALID:
        tree = parse(sql)
        for at, node in enumerate(tree.walk()):
            kind = type(node).__name__
            for arg in node.arg_types:
                if not node.args.get(arg) and (kind, arg) not in MEANS_SOMETHING | seen:
                    seen.add((kind, arg))
                    result.append((sql, at, arg))
    return result


SETTINGS = settings()


def test_the_valid_queries_hold_every_kind_of_node_that_is_read() -> None:
    kinds = {type(node) for sql in VALID for node in parse(sql).walk()}
    assert not {*BINDERS, *AGGREGATES, *WRAPPERS, exp.Any, exp.Rollup, exp.Cube, exp.GroupingSets} - kinds


@pytest.mark.parametrize("value", ["node", "flag", "list"])
@pytest.mark.parametrize(("sql", "at", "arg"), SETTINGS, ids=[f"{n}-{arg}" for n, (_, _, arg) in enumerate(SETTINGS)])
def test_every_other_argument_is_refused(sql: str, at: int, arg: str, value: str) -> None:
    bind(sql, catalog())
    tree = parse(sql)
    node = list(tree.walk())[at]
    mark = exp.to_identifier("zz")
    node.set(arg, {"node": mark, "flag": True, "list": [mark]}[value])
    with pytest.raises((QueryError, UnsupportedError)) as caught:
        bind_tree(tree, sql, catalog())
    assert isinstance(caught.value, PenstockError)
    assert "line 1, column" in caught.value.message
