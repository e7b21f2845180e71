"""Plans that may take each other's place: the same columns, and every promise kept."""

from __future__ import annotations

import pytest

import penstock as pk
from penstock.plan.kept_promises import are_groups_kept, attributes_apart, most_behind
from penstock.plan.nodes import Node
from penstock.plan.reach import Endless
from penstock.plan.same_columns import differences, fitted


def plan(sql: str) -> Node:
    made = pk.Flow()
    for name in ("s", "u"):
        made.stream(name, [], time="ts", schema="ts bigint, k bigint, v bigint, w double")
    return made.query(sql).plan


@pytest.mark.parametrize(
    ("old", "new", "mapping", "told"),
    [
        ("SELECT k, v FROM s", "SELECT k, v FROM u WHERE v > 1", None, []),
        ("SELECT k, v FROM s", "SELECT v, k FROM s", None, ["the columns are in another order: v, k instead of k, v"]),
        ("SELECT k, v FROM s", "SELECT k FROM s", None, ["v is missing"]),
        ("SELECT k FROM s", "SELECT k, v FROM s", None, ["v is new"]),
        ("SELECT k, v FROM s", "SELECT k, w AS v FROM s", None, ["v is double instead of bigint"]),
        ("SELECT k, v FROM s", "SELECT v AS b, k FROM s", {"b": "v"}, []),
        ("SELECT k, v FROM s", "SELECT k, v AS b FROM s", {"c": "v"},
         ["the mapping names c, which the new query has not"]),
        ("SELECT k, v FROM s", "SELECT k, v FROM s", {"v": "z"}, ["the mapping names z, which the result has not"]),
        ("SELECT k, v FROM s", "SELECT k, v FROM s", {"v": "k"}, ["the mapping gives two columns one name"]),
        ("SELECT ts, v FROM s", "SELECT v AS ts, k AS v FROM s", None,
         ["results progress by a time that they do not show, not by ts"]),
    ],
)  # fmt: skip
def test_differences_are_told(old: str, new: str, mapping: dict[str, str] | None, told: list[str]) -> None:
    found = differences(plan(old), plan(new), mapping)
    assert found[: len(told)] == told
    assert bool(found) == bool(told)


def test_a_plan_that_fits_is_itself_and_others_get_the_columns() -> None:
    old, new = plan("SELECT k, v FROM s"), plan("SELECT v AS b, k FROM s UNION ALL SELECT v, k FROM u")
    assert fitted(old, old) is old
    made = fitted(old, new, {"b": "v"})
    assert [f.name for f in made.schema.visible] == ["k", "v"]
    assert made.schema.time == old.schema.time
    assert made.schema[made.schema.time].hidden


BAND = "SELECT s.ts AS x, u.ts AS y FROM s JOIN u ON s.k = u.k AND u.ts BETWEEN s.ts - {} AND s.ts + {}"


def test_columns_of_joins_progress_and_another_join_keeps_that_after_a_while() -> None:
    old, new = plan(BAND.format(2, 5)), plan(BAND.format(9, 1))
    assert attributes_apart(old, new) == ["x", "y"]
    assert most_behind(old, new) == 9
    other = plan("SELECT s.ts AS x, u.v AS y FROM s JOIN u ON s.k = u.k AND s.ts = u.ts")
    found = most_behind(old, other)
    assert isinstance(found, Endless)
    assert "how far y is" in found.reason


def test_groups_are_kept_by_the_same_columns_alone() -> None:
    made = pk.Flow().stream(
        "s", [], time="ts", schema="ts bigint, k bigint, v bigint, p boolean", progress=pk.punctuated("p", per=["k"])
    )
    old, same, other = (
        made.query(f"SELECT ts, {columns} FROM s WHERE v > {least}").plan
        for columns, least in (("k, v", 1), ("k, v", 2), ("v AS k, k AS v", 2))
    )
    assert are_groups_kept(old, same)
    assert not are_groups_kept(old, other)
