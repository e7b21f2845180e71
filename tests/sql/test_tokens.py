"""The papers' spelling becomes what sqlglot parses: clauses belong to what they follow, unions become sub-queries."""

from __future__ import annotations

import pytest
from sqlglot import exp

from penstock.errors import QueryError
from penstock.sql.clause import CLAUSE, ClauseNode
from penstock.sql.tokens import LONGEST, other_meaning, parse, parse_expression


def from_of(sql: str) -> exp.Expr:
    found = parse(sql).args["from_"].this
    assert isinstance(found, exp.Expr)
    return found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k, count(*) AS n [RANGE 4, SLIDE 2, WA t] FROM s",
        "SELECT k, count(*) [RANGE 4, SLIDE 2, WA t] AS n FROM s",
        "SELECT k, count(*) [RANGE 4, SLIDE 2, WA t] FROM s",
        "SELECT k, count(*) AS n FROM s [RANGE 4, SLIDE 2, WA t]",
        "SELECT k, count(*) AS n FROM s AS z [RANGE 4, SLIDE 2, WA t], WHERE v > 1",
        "SELECT k, count(*) AS n FROM (SELECT k FROM s) [RANGE 4, SLIDE 2, WA t] WHERE v > 1",
        "SELECT k, count(*) AS n FROM s UNION z [RANGE 4, SLIDE 2, WA t] WHERE v > 1",
    ],
)
def test_a_clause_belongs_to_what_it_follows(sql: str) -> None:
    tree = parse(sql)
    ((node, found),) = [(n, n.args[CLAUSE]) for n in tree.walk() if n.args.get(CLAUSE)]
    assert isinstance(found, ClauseNode)
    after_stream = sql.index("FROM") < sql.index("[")
    assert node is (tree.args["from_"].this if after_stream else tree.expressions[1])
    assert found.this.after_stream is after_stream
    assert (found.this.line, found.this.column) == (1, sql.index("[") + 1)


def test_each_of_several_clauses_belongs_to_its_own() -> None:
    inner = "SELECT g, count(*) AS n FROM s [RANGE 2, SLIDE 2, WA t] GROUP BY g"
    tree = parse(f"SELECT max(n) AS m [RANGE 8, SLIDE 4, WA window_end], min(n) FROM ({inner}) i")
    assert [n.args[CLAUSE].this.range.amount for n in tree.walk() if n.args.get(CLAUSE)] == [8, 2]
    assert tree.expressions[1].args.get(CLAUSE) is None
    assert tree.args["from_"].this.args.get(CLAUSE) is None


@pytest.mark.parametrize("spelt", ["GROUP BY", "GROUP-BY", "GROUPBY", "group-by"])
def test_the_papers_spell_group_by_in_their_way(spelt: str) -> None:
    tree = parse(f"SELECT k, count(*) AS n [RANGE 4, SLIDE 2, WA t] FROM s {spelt} k")
    assert [e.name for e in tree.args["group"].expressions] == ["k"]


@pytest.mark.parametrize("sign", ["UNION", "∪", "union"])
def test_a_union_of_streams_is_a_bag_union_of_all_their_columns(sign: str) -> None:
    source = from_of(f"SELECT t FROM a {sign} b {sign} c WHERE t > 1")
    assert isinstance(source, exp.Subquery)
    unions = list(source.find_all(exp.Union))
    assert len(unions) == 2
    assert all(union.args["distinct"] is False for union in unions)
    assert sorted(table.name for table in source.find_all(exp.Table)) == ["a", "b", "c"]


def test_a_union_of_queries_stays_sqls() -> None:
    tree = parse("SELECT t FROM a UNION SELECT t FROM b")
    assert isinstance(tree, exp.Union)
    assert tree.args["distinct"] is True


@pytest.mark.parametrize(
    ("sql", "what", "place"),
    [
        ("", "The query is empty.", (1, 1)),
        ("-- nothing", "The query is empty.", (1, 1)),
        ("SELECT t FROM s;\nSELECT v FROM s", "One SELECT is expected.", (2, 1)),
        ("DROP TABLE s", "One SELECT is expected.", (1, 1)),
        ("SELECT 'x FROM s", "The query cannot be read.", (1, 8)),
    ],
)
def test_what_is_no_query_is_told_where_it_stands(sql: str, what: str, place: tuple[int, int]) -> None:
    with pytest.raises(QueryError) as caught:
        parse(sql)
    assert what in caught.value.what
    assert (caught.value.line, caught.value.column) == place


def test_a_text_without_end_is_refused() -> None:
    with pytest.raises(QueryError):
        parse("SELECT t FROM s WHERE v IN (" + "1, " * LONGEST + "1)")


@pytest.mark.parametrize(
    ("name", "meaning"), [("celsius", None), ("hop", "a window"), ("SELECT", "a word of SQL"), ("upper", "UPPER(x)")]
)
def test_which_names_are_free(name: str, meaning: str | None) -> None:
    assert other_meaning(name) == meaning


def test_an_expression_stands_by_itself() -> None:
    assert isinstance(parse_expression("kind = 'punct'"), exp.EQ)
    with pytest.raises(QueryError, match="The expression is empty"):
        parse_expression(" ")
