"""Rows that are spread as a plan allows give, part by part, what all of them give together; the oracle is the judge."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.batch import Row
from penstock.model.progress import Bounded
from penstock.model.properties import StreamProperties
from penstock.model.schema import schema_of
from penstock.model.tdb import TDB
from penstock.plan.catalog import Catalog, StreamInfo
from penstock.plan.distribution import ANY, SINGLE, by_keys, needed, routes
from penstock.plan.nodes import Distinct, WindowAggregate
from penstock.reference import evaluate
from penstock.reference.scalars import value_of
from penstock.sql.binder import bind

SCHEMA = schema_of([("t", "bigint"), ("g", "string"), ("h", "string"), ("v", "bigint")], "t")
W, OUTER = "[RANGE 6, SLIDE 2, WA t]", "[RANGE 6, SLIDE 2, WA window_end]"
INNER = f"SELECT g, h, count(*) AS n {W} FROM s GROUP BY g, h"
NEAR = "z.t BETWEEN s.t - 2 AND s.t + 2"
LEFT = f"FROM s LEFT JOIN z ON s.g = z.g AND {NEAR}"
SPREAD = {
    "no state": "SELECT t, v + 1 AS w FROM s WHERE v > 0",
    "a group": f"SELECT g, sum(v) AS v {W} FROM s GROUP BY g",
    "a computed group": f"SELECT upper(g) AS g, count(*) AS n {W} FROM s GROUP BY upper(g)",
    "groups of groups": f"SELECT h, max(n) AS n {OUTER} FROM ({INNER}) i GROUP BY h",
    "a union": f"SELECT g, count(*) AS n {W} FROM s UNION z GROUP BY g",
    "a join": f"SELECT s.h, z.v FROM s JOIN z ON s.g = z.g AND {NEAR}",
    "an outer join": f"SELECT s.h, z.v FROM s FULL JOIN z ON s.g = z.g AND {NEAR}",
    "groups of an outer join": f"SELECT s.g, count(*) AS n [RANGE 6, SLIDE 2, WA s.t] {LEFT} GROUP BY s.g",
    "distinct": "SELECT DISTINCT g, h FROM s",
    "distinct below": f"SELECT g, count(*) AS n {W} FROM (SELECT DISTINCT t, g, v FROM s) d GROUP BY g",
}
ONE_PLACE = {
    "one group": f"SELECT count(*) AS n {W} FROM s",
    "row numbers": "SELECT g, count(*) AS n [RANGE 6 rows, SLIDE 2 rows, WA row-num] FROM s GROUP BY g",
    "a key that is a result": f"SELECT n, count(*) AS m {OUTER} FROM ({INNER}) i GROUP BY n",
    "groups that may be missing": f"SELECT z.g, count(*) AS n [RANGE 6, SLIDE 2, WA s.t] {LEFT} GROUP BY z.g",
    "keys that do not meet": f"SELECT g, count(*) AS n {OUTER} FROM (SELECT h, max(g) AS g {W} FROM s GROUP BY h) i "
    "GROUP BY g",
}
rows = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from(["a", "A", None]), st.sampled_from("xy"), st.integers(-2, 3)),
    max_size=10,
)


def catalog() -> Catalog:
    made = Catalog()
    for name in ("s", "z"):
        made.add_stream(StreamInfo(name, SCHEMA, Bounded(5), StreamProperties()))
    return made


@pytest.mark.parametrize("sql", SPREAD.values(), ids=SPREAD.keys())
@given(of_s=rows, of_z=rows)
def test_parts_give_what_the_whole_gives(sql: str, of_s: list[Row], of_z: list[Row]) -> None:
    plan = bind(sql, catalog())
    route = routes(plan)
    assert route is not None
    parts: dict[tuple[object, ...], list[tuple[str, Row]]] = {}
    whole = [("s", row) for row in of_s] + [("z", row) for row in of_z if "z" in route]
    for name, row in whole:
        place = tuple(value_of(key, row, SCHEMA, {}) for key in route[name])
        parts.setdefault(place, []).append((name, row))
    together: Counter[object] = Counter()
    for part in parts.values():
        together.update(dict(evaluate(plan, part).items()))
    assert TDB(together) == evaluate(plan, whole)  # type: ignore[arg-type]


@pytest.mark.parametrize("sql", ONE_PLACE.values(), ids=ONE_PLACE.keys())
def test_what_cannot_be_spread_stays_in_one_place(sql: str) -> None:
    assert routes(bind(sql, catalog())) is None


def test_what_operators_need() -> None:
    plan = bind(f"SELECT DISTINCT * FROM ({SPREAD['a group']}) i", catalog())
    kinds = {type(node): str(needed(node)) for node in plan.walk()}
    assert kinds[WindowAggregate] == "by g"
    assert kinds[Distinct] == "by wid, window_start, window_end, g, v"
    assert {str(needed(n)) for n in plan.walk() if not isinstance(n, WindowAggregate | Distinct)} == {"any"}
    assert (by_keys(()), str(ANY), str(SINGLE)) == (SINGLE, "any", "single")
