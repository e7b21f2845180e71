"""Rows with nested values through queries, for any order, cut and form of the batches, against the oracle.

a at 2: [x, y]    |  2: x, y
b at 4: []        |  4: nothing, or one row without an element
c at 5: null      |  5: the same
"""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.flow.local import LocalQuery
from penstock.model.batch import Batch
from penstock.model.elements import linear
from penstock.model.interleaved import Interleaved
from penstock.model.schema import schema_of
from penstock.operators.relational.unnest import UnnestOperator
from penstock.reference import evaluate
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.strategies import cuts
from tests.profiles import examples

COLUMNS = {
    "ts": "bigint", "k": "string", "a": "array<string>", "x": "array<double>", "m": "map<string,int>",
    "s": "struct<p:int,q:array<struct<u:int,w:string>>>",
}  # fmt: skip
SCHEMA = schema_of(list(COLUMNS.items()), "ts")
WINDOW = "[RANGE 6, SLIDE 2, WA ts]"
QUERIES = [
    "SELECT * FROM s",
    "SELECT k, explode(a) AS e FROM s WHERE k <> 'c'",
    "SELECT k, explode_outer(a) FROM s",
    "SELECT posexplode(x) AS (p, e), k FROM s",
    "SELECT posexplode_outer(m), k, a FROM s",
    "SELECT e.u, e.w, k FROM s LATERAL VIEW explode(s.q) t AS e WHERE e.u > 0",
    "SELECT k, e, f FROM s LATERAL VIEW OUTER explode(a) t AS e LATERAL VIEW OUTER explode(map_keys(m)) u AS f",
    "SELECT k, e FROM s CROSS JOIN UNNEST(slice(a, 1, 2)) AS t(e)",
    "SELECT k, e FROM s, LATERAL explode(array(s.p, size(a))) AS t(e)",
    f"SELECT e, count(*) AS n, min(k) AS k0 {WINDOW} FROM s CROSS JOIN UNNEST(a) AS t(e) GROUP BY e",
    f"SELECT a, count(*) AS n, max(s.p) AS p {WINDOW} FROM s GROUP BY a",
    f"SELECT s, x, count(*) AS n {WINDOW} FROM s GROUP BY s, x",
    f"SELECT k, count(DISTINCT a) AS d, count(DISTINCT s.p) AS p, min(x) AS x0, max(s) AS s1, max(a) AS a1 {WINDOW} "
    "FROM s GROUP BY k",
    f"SELECT k, first(m) AS m0, last(a) AS a1, max_by(s, x) AS b, mode(a) AS mo {WINDOW} FROM s GROUP BY k",
    f"SELECT k, collect_list(s.p) AS l, collect_set(x) AS c, array_agg(k) AS g, collect_list(m) AS ms {WINDOW} "
    "FROM s GROUP BY k",
    f"SELECT collect_set(e) AS c {WINDOW} FROM s CROSS JOIN UNNEST(a) AS t(e)",
    "SELECT DISTINCT k, a, s FROM s",
    "SELECT k, a FROM s UNION SELECT k, array(k) FROM s",
    "SELECT k, a FROM s UNION ALL SELECT k, map_keys(m) FROM s",
    "SELECT l.k, r.a FROM s l JOIN s r ON l.a = r.a AND r.ts BETWEEN l.ts AND l.ts + 3",
    "SELECT l.k, r.s FROM s l LEFT JOIN s r ON l.s.p = r.s.p AND r.ts = l.ts",
]

TEXTS = st.sampled_from(["a", "b", ""]) | st.none()
DOUBLES = st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")]) | st.none()
SMALL = st.integers(-1, 2) | st.none()
VALUES = st.tuples(
    TEXTS,
    st.none() | st.lists(TEXTS, max_size=3).map(tuple),
    st.none() | st.lists(DOUBLES, max_size=2).map(tuple),
    st.none() | st.dictionaries(st.sampled_from(["a", "b", ""]), SMALL, max_size=3).map(lambda m: tuple(m.items())),
    st.none() | st.tuples(SMALL, st.none() | st.lists(st.none() | st.tuples(SMALL, TEXTS), max_size=2).map(tuple)),
)
ROWS = st.lists(st.tuples(st.integers(0, 12), VALUES), max_size=12).map(lambda rows: [(t, *v) for t, v in rows])


@functools.cache
def query(sql: str) -> LocalQuery:
    schema = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
    flow = pk.Flow().stream("s", iter(()), time="ts", schema=schema, progress=pk.bounded(100))
    made = flow.query(sql)
    assert isinstance(made, LocalQuery)
    return made


@pytest.mark.parametrize("sql", QUERIES)
@examples(40)
@given(rows=ROWS, data=st.data())
def test_queries_over_nested_values_agree_with_the_oracle(sql: str, rows: list[Any], data: st.DataObject) -> None:
    made = query(sql)
    run = made.execution()
    outputs: list[Any] = []
    for cut in data.draw(cuts(len(rows))):
        batch = Batch(SCHEMA, rows[cut])
        outputs += run.feed("s", Batch(SCHEMA, table=batch.table) if data.draw(st.booleans()) else batch)
        if data.draw(st.integers(0, 3)) == 0:
            snapshot = run.snapshot()
            run = made.execution()
            run.restore(snapshot)
    outputs += run.close()
    assert_same(evaluate(made.plan, [("s", row) for row in rows]), tdb_of(outputs))
    assert_sound(outputs)
    assert run.dead_letters().num_rows == 0


@given(rows=ROWS, data=st.data())
def test_punctuation_stays_behind_what_comes_of_the_rows_before_it(rows: list[Any], data: st.DataObject) -> None:
    schema = query("SELECT *, explode_outer(a) AS e FROM s").plan.schema
    places = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    said = [linear("ts", n) for n in range(len(places))]
    for outer in (True, False):
        operator = UnnestOperator(schema, 2, range(len(SCHEMA)), outer=outer, place=False)
        for batch in (Batch(SCHEMA, rows), Batch(SCHEMA, table=Batch(SCHEMA, rows).table)):
            (out,) = operator.interleave(0, Interleaved(batch, places, said))
            assert isinstance(out, Interleaved)
            for place, kept in zip(places, out.places, strict=True):
                assert kept == sum(max(len(row[2] or ()), int(outer)) for row in rows[:place])
            assert len(out.batch) == sum(max(len(row[2] or ()), int(outer)) for row in rows)
