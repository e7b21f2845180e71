"""What the parser would pass over is refused at its place; what is taken is a query to DuckDB. `make fuzz`: 20,000."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.errors import PenstockError, QueryError, StreamError
from penstock.sql.binder import bind
from penstock.sql.dialect import PenstockDialect
from penstock.sql.tokens import check_shape, other_meaning
from tests.judge.queries import Maker
from tests.judge.syntax import Parser, spelt
from tests.sql.mutations import corpus, mutated, slipped
from tests.sql.test_mutations import catalog

W = "[RANGE 4, SLIDE 2, WA t]"

# The caret marks where the error must point; a part of the message follows.
REFUSED = [
    # The select list
    ("SELECT ^, v FROM s", "A column, a value or a function is expected here"),
    ("SELECT ^AS, v FROM s", "A column, a value or a function is expected here"),
    ("SELECT ^AS v FROM s", "A column, a value or a function is expected here"),
    ("SELECT v^, FROM s", "Something is missing after the comma"),
    ("SELECT k^, , v FROM s", "Something is missing after the comma"),
    ("SELECT v AS ^, k FROM s", "A name is expected after AS"),
    ("SELECT v AS ^>= FROM s", "A name is expected after AS"),
    ("SELECT v AS ^1. FROM s", "A name is expected after AS"),
    ("SELECT v AS ^'x' FROM s", "A name is expected after AS"),
    ("SELECT v AS ^a\0b FROM s", "control character"),
    ("SELECT v ^a\0b FROM s", "control character"),
    ("SELECT v AS ^`a\0b` FROM s", "control character"),
    ("SELECT v ^END FROM s", "FROM is expected here"),
    ("SELECT v AS ^GROUPBY FROM s", "A name is expected after AS"),
    # FROM
    ("SELECT v FROM s ^AS", "A name is expected after AS"),
    ("SELECT v FROM s ^* WHERE v > 1", "This does not belong here"),
    ("SELECT v FROM ^. s", "A stream's name or a sub-query is expected after FROM"),
    ("SELECT v FROM s^'z'", "This does not belong here"),
    ("SELECT t, count(*) AS n FROM s GROUP BY t ^WHERE v > 1", "This does not belong here"),
    # Functions, operators and constants
    ("SELECT v FROM s WHERE v IN (^, 1)", "A column, a value or a function is expected here"),
    ("SELECT coalesce(^, v) AS c FROM s", "A column, a value or a function is expected here"),
    ("SELECT trim(k ^AS z FROM s", "A closing parenthesis is expected here"),
    ("SELECT CAST(v AS bigint ^AS w FROM s", "A closing parenthesis is expected here"),
    ("SELECT substring(k, 1 ^AS z FROM s", "A closing parenthesis is expected here"),
    ("SELECT greatest(v^, ALL 2) AS c FROM s", "Something is missing after the comma"),
    ("SELECT nullif(^ALL - v, 2) AS c FROM s", "A column, a value or a function is expected here", "in backquotes"),
    ("SELECT date_trunc(RANGE ^'hour', ts) AS x FROM s", "A closing parenthesis is expected here"),
    ("SELECT v BETWEEN 1 ^2 AS b FROM s", "The AND of BETWEEN is expected here"),
    ("SELECT CASE WHEN v > 1 ^'x' ELSE 'y' END AS c FROM s", "The THEN of CASE is expected here"),
    ("SELECT v + ^. 2e1 AS x FROM s", "A number is not written with a space in it"),
    ("SELECT d <= ^AND (d + d) AS x FROM s", "A column, a value or a function is expected here"),
    ("SELECT IF(^v > 5, 2) AS z FROM s", "IF takes a condition and two values"),
    # WITH, GROUP BY, aggregates
    ("WITH a ^(SELECT v FROM s) SELECT v FROM a", "AS is missing", "WITH name AS"),
    ("WITH ^AS a AS (SELECT v FROM s) SELECT v FROM a", "A name is expected after WITH"),
    ("SELECT t, count(*) AS n FROM s GROUP BY ^, t", "A column, a value or a function is expected here"),
    ("SELECT t, count(*) AS n FROM s GROUP BY ^DISTINCT t", "A column, a value or a function is expected here"),
    (f"SELECT sum( ^, v) AS n {W} FROM s", "A column, a value or a function is expected here"),
    (f"SELECT count(DISTINCT^,k) AS n {W} FROM s", "A column, a value or a function is expected here"),
    # Window clauses
    (f"SELECT count(*) AS n {W} ^{W} FROM s", "A window clause does not belong here", "after an aggregate"),
    (f"SELECT count(*) {W} AS n ^{W} FROM s", "A window clause does not belong here"),
    (f"SELECT count(*) AS n FROM s {W} ^{W}", "A window clause does not belong here"),
    (f"SELECT count(*) AS n FROM s WHERE v > 1 ^{W}", "A window clause does not belong here"),
    (f"SELECT count(*) AS n FROM s GROUP BY k ^{W}", "A window clause does not belong here"),
]  # fmt: skip

TAKEN = [
    "SELECT 'y' 'y' AS z, 'it''s' \"z\" AS y FROM s",
    "SELECT .5 AS a, 5. AS b, 5L AS c, v::bigint AS f, - - v AS g, +v AS h, NOT NOT b AS i FROM s",
    "SELECT v xx, k AS `a b`, d AS `select`, b AS from, s.*, s.v AS yy FROM s AS s",
    "SELECT substring(k FROM 1 FOR 2) AS x, substr(k, 2) AS y, like(k, 'a%') AS z, `upper`(k) AS w FROM s",
    "SELECT v NOT IN (1, 2) AS x, v NOT BETWEEN - 1 AND v + 1 AND b AS y, k NOT LIKE 'a' AS z, !b AS w FROM s",
    "SELECT CASE v WHEN 1 THEN 2 END AS x, CAST(v AS decimal(10, 2)) AS y, DATE '2026-01-01' AS z FROM s",
    "SELECT CAST(d AS DOUBLE PRECISION) AS x, v IS NOT DISTINCT FROM 1 AS y, b IS NOT TRUE AS z FROM s",
    "SELECT ts + INTERVAL 5 SECONDS AS x, ts - INTERVAL '5' minute AS y, ts + INTERVAL '2 hours' AS z FROM s",
    "SELECT v FROM (s)",
    "SELECT v FROM ((SELECT v FROM s) UNION ALL (SELECT v FROM s)) z",
    "(SELECT ALL v FROM s) UNION DISTINCT (SELECT v FROM s);",
    "WITH a AS (SELECT v FROM s), b AS (SELECT v FROM a) SELECT v FROM b UNION SELECT v FROM a",
    f"SELECT count(*) {W} AS n, sum(ALL v) {W} FROM (s UNION (s ∪ s)) UNION ALL s WHERE v > 1 GROUP-BY k HAVING n > 1",
    f"SELECT k, count(*) AS n FROM s AS z {W}, WHERE v > 1 GROUPBY k",
    f"SELECT count(*) AS n FROM s {W},",
]  # fmt: skip


@pytest.fixture(scope="module")
def judge() -> Parser:
    return Parser()


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[0])
def test_what_is_passed_over_is_refused_at_its_place(case: tuple[str, ...]) -> None:
    marked, *parts = case
    with pytest.raises(QueryError) as caught:
        bind(marked.replace("^", ""), catalog())
    for part in parts:
        assert part in caught.value.message
    assert (caught.value.line, caught.value.column) == (1, marked.index("^") + 1)


@pytest.mark.parametrize("sql", TAKEN)
def test_what_is_a_query_is_taken(sql: str) -> None:
    bind(sql, catalog())


def test_every_word_that_is_free_for_a_function_can_be_called() -> None:
    words = [w for w in PenstockDialect.Tokenizer.KEYWORDS if w.isidentifier() and other_meaning(w) is None]
    assert len(words) > 100
    for word in words:
        check_shape(f"SELECT {word}(v) AS x, v + {word}(1, 2) AS y FROM s WHERE {word}(v) > 1")


def test_a_place_is_counted_over_lines() -> None:
    with pytest.raises(QueryError) as caught:
        bind("SELECT\n  v,\n  , k\nFROM s", catalog())
    assert (caught.value.line, caught.value.column) == (2, 4)


def test_a_predicate_of_punctuation_has_a_shape_too() -> None:
    flow = pk.Flow()
    with pytest.raises(StreamError, match="A column, a value or a function is expected here"):
        flow.stream("s", [{"t": 1, "v": 1}], time="t", progress=pk.punctuated("v IN (, 1)")).query("SELECT v FROM s")


def test_the_judge_refuses_what_is_no_query(judge: Parser) -> None:
    known = [c[0].replace("^", "") for c in REFUSED]
    assert sum(bool(judge.problem(sql)) for sql in known) >= 30
    assert not [sql for sql in (*TAKEN, *corpus()) if "{" not in sql and is_known(sql) and judge.problem(sql)]


def is_known(sql: str) -> bool:
    """Whether the judge has the words of a query: DuckDB has no patterns."""
    return re.search(r"\bSEQ\s*\(|\bMATCH_RECOGNIZE\b", sql, re.IGNORECASE) is None


@given(seed=st.integers(0, 2**63))
def test_every_query_that_is_made_has_the_shape(seed: int) -> None:
    check_shape(Maker(random.Random(seed)).query().penstock)


@pytest.mark.parametrize("part", range(10))
@given(seed=st.integers(0, 2**63))
def test_what_is_taken_is_a_query_to_duckdb(judge: Parser, part: int, seed: int) -> None:
    chance = random.Random(seed * 10 + part)
    sql = slipped(chance) if part < 8 else mutated(chance)
    try:
        bind(sql, catalog())
    except PenstockError:
        return
    assert not (is_known(sql) and judge.problem(sql)), (sql, spelt(sql))
