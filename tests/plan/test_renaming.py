"""A query whose relations are called otherwise goes on from its snapshot, and gives what it would have given."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

import penstock as pk
from penstock.errors import CheckpointError
from penstock.operators.state import open_snapshot, seal_snapshot
from penstock.plan.identity import identities
from penstock.plan.meaning import wordless
from penstock.plan.renaming import called, naming
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from tests.golden.cases import CASES, Golden, feed

JOINS = [case for case in CASES if re.search(r"\b[abc]\.", case.sql)]
ALIAS = r"(?<!\.)\b[abc]\b(?=\.)|(?<=\bs )[abc]\b|(?<=ING )[abc]\b"
WORDINGS = [{"a": "first", "b": "second", "c": "third"}, {"a": "b", "b": "a"}]


def worded(case: Golden, aliases: dict[str, str]) -> Golden:
    """The query of a case with other aliases; columns of the result keep their names."""
    names = ", ".join(f"{item.strip()} AS c{at}" for at, item in enumerate(_items(case.sql)))
    sql = re.sub(r"(SELECT (?:/\*.*?\*/ )?).*?( FROM )", rf"\g<1>{names}\2", case.sql, count=1)
    return replace(case, sql=re.sub(ALIAS, lambda found: aliases.get(found[0], found[0]), sql))


def _items(sql: str) -> list[str]:
    listed = re.search(r"SELECT (?:/\*.*?\*/ )?(.*?) FROM ", sql)
    assert listed is not None
    return [re.sub(r" AS \w+$", "", item.strip()) for item in re.split(r",(?![^(]*\))", listed[1])]


@pytest.mark.parametrize("aliases", WORDINGS, ids=["others", "swapped"])
@pytest.mark.parametrize("case", JOINS, ids=lambda case: case.name)
def test_aliases_of_relations_may_change(case: Golden, aliases: dict[str, str]) -> None:
    case, other = worded(case, {}), worded(case, aliases)
    assert case.sql != other.sql
    whole, first, second = case.execution(), case.execution(), other.execution()
    before, after = case.half(whole)
    outputs = feed(first, before)
    second.restore(first.snapshot())
    outputs += feed(second, after) + second.close()
    assert_same(tdb_of(feed(whole, [*before, *after]) + whole.close()), tdb_of(outputs))
    assert_sound(outputs)


def flow(a: str = "ts bigint, k string, v int", b: str = "ts bigint, k string, w int") -> pk.Flow:
    made = pk.Flow()
    for name, columns in (("a", a), ("b", b)):
        made.stream(name, [], time="ts", schema=columns, progress=pk.bounded(5))
    return made.table("t", [{"k": "x", "r": 1}])


NEAR = "y.ts BETWEEN x.ts AND x.ts + 10"
SAME = [
    f"SELECT x.ts, y.w FROM a x JOIN b y ON x.k = y.k AND {NEAR} AND x.v < y.w",
    f"SELECT x.ts, x.k FROM a x LEFT ANTI JOIN b y ON x.k = y.k AND {NEAR} AND x.v < y.w",
    f"SELECT DISTINCT x.k AS p, y.k AS q FROM a x FULL JOIN b y ON x.k = y.k AND {NEAR}",
    f"SELECT z.r, count(*) AS n [RANGE 9, SLIDE 3, WA x.ts] FROM a x JOIN b y ON {NEAR} JOIN t z ON z.k = y.k "
    "GROUP BY z.r",
    f"SELECT p, n FROM (SELECT x.k AS p, y.w AS q, x.ts AS ts, ROW_NUMBER() OVER (PARTITION BY x.ts ORDER BY y.w) AS n "
    f"FROM a x JOIN b y ON x.k = y.k AND {NEAR}) WHERE n <= 2",
    f"SELECT o.k AS p, e FROM (SELECT x.k, array(x.v, y.w) AS l FROM a x JOIN b y ON {NEAR}) o "
    "CROSS JOIN UNNEST(l) AS u(e)",
]


@pytest.mark.parametrize("sql", SAME)
def test_plans_of_other_words_mean_the_same_and_can_be_called_alike(sql: str) -> None:
    made: Any = flow()
    plan, other = (made.query(text).plan for text in (sql, re.sub(r"\b([xyzpqeul])\b(?=\.)", r"\1\1", _renamed(sql))))
    assert [k.identity for k in identities(plan)] != [k.identity for k in identities(other)]
    assert wordless(identities(plan)) == wordless(identities(other))
    again = called(other, [naming(node) for node in plan.walk()])
    assert [k.identity for k in identities(again)] == [k.identity for k in identities(plan)]
    assert again.schema == plan.schema


def _renamed(sql: str) -> str:
    return re.sub(r"\b(FROM a|JOIN b|JOIN t) ([xyz])\b", r"\1 \2\2", sql)


@pytest.mark.parametrize(
    "other",
    [
        SAME[0].replace("x.v < y.w", "x.v <= y.w"),
        SAME[0].replace("x.k = y.k", "y.k = x.k AND y.w = x.v"),
        SAME[0].replace("+ 10", "+ 11"),
        SAME[0].replace("JOIN", "LEFT JOIN"),
        SAME[0].replace("SELECT x.ts", "SELECT y.ts"),
        SAME[0]
        .replace("a x JOIN b y", "b x JOIN a y")
        .replace("x.v < y.w", "x.w < y.v")
        .replace("y.w F", "y.v AS w F"),
    ],
)
def test_plans_that_mean_otherwise_are_told_apart(other: str) -> None:
    made: Any = flow()
    plans = [made.query(text).plan for text in (SAME[0], other)]
    one, two = (wordless(identities(plan)) for plan in plans)
    assert one[0] != two[0]


def test_names_that_were_never_kept_are_told_as_before() -> None:
    """A snapshot of a release that did not keep them: the query may not be reworded."""
    made: Any = flow()
    execution = made.query(SAME[0]).execution()
    content = open_snapshot(execution.snapshot())
    del content["query"]["names"]
    old = seal_snapshot(content, "")
    made.query(SAME[0]).execution().restore(old)
    with pytest.raises(CheckpointError, match="made by another query"):
        made.query(_renamed(SAME[0]).replace("x.", "xx.").replace("y.", "yy.")).execution().restore(old)
