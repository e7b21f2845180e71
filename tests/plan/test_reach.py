"""A row that is further back than the reach of a plan changes no result, by brute force.

```
row          t
window       [------)            the last that holds it ends at t + RANGE
window of windows   [------)     and the last that holds that result, at t + RANGE + RANGE
results      ok  ok  ok     | from here on the row is as good as never come
```
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.model.tdb import TDB
from penstock.plan.nodes import AlterLifetime, MultiJoin
from penstock.plan.planner import in_process
from penstock.plan.reach import Endless, plan_reach
from penstock.reference.evaluation import evaluate
from penstock.sql.binder import bind
from tests.profiles import examples

COLUMNS = "ts bigint, k bigint, v bigint"


def flow() -> pk.Flow:
    made = pk.Flow()
    for name in ("a", "b", "c"):
        made.stream(name, [], time="ts", schema=COLUMNS, progress=pk.bounded(10**6))
    return made.merge("m", ["a", "b"], key=["k"])


@st.composite
def windows(draw: st.DrawFn, attribute: str = "ts") -> str:
    slide, origin = draw(st.integers(1, 9)), draw(st.integers(-5, 5))
    return f"[RANGE {draw(st.integers(1, 15))}, SLIDE {slide}, WA {attribute}, ORIGIN {origin}]"


@st.composite
def joined(draw: st.DrawFn) -> str:
    low = draw(st.integers(-9, 9))
    high = low + draw(st.integers(0, 6))
    band = f"b.ts BETWEEN a.ts + {low} AND a.ts + {high}"
    near = draw(st.sampled_from([band, "floor(b.ts / 7) = floor(a.ts / 7)"]))
    kind = draw(st.sampled_from(["", "LEFT ", "RIGHT ", "FULL "]))
    has = draw(st.sampled_from(["EXISTS", "NOT EXISTS"]))
    return draw(
        st.sampled_from(
            [
                f"SELECT a.v, b.v AS w FROM a {kind}JOIN b ON a.k = b.k AND {near}",
                f"SELECT ts, k FROM a WHERE {has} (SELECT 1 FROM b WHERE a.k = b.k AND {near})",
                f"SELECT a.v FROM a JOIN b ON a.k = b.k AND {band} "
                "JOIN c ON c.k = a.k AND c.ts BETWEEN b.ts AND b.ts + 4",
                "SELECT a.v, b.v AS w FROM a ASOF JOIN b ON a.k = b.k AND b.ts <= a.ts AND b.ts >= a.ts - 6",
            ]
        )
    )


@st.composite
def followed(draw: st.DrawFn) -> str:
    steps = draw(st.sampled_from(["a x, b y", "a x, NOT c n, b y", "a x, b z, b y", "a x, b y, NOT c n"]))
    mode = draw(st.sampled_from(["RECENT", "CONTINUOUS"]))
    over = "x" if steps.endswith("n") else "y"
    which = "FOLLOWING x" if over == "x" else "PRECEDING y"
    return f"SELECT x.v, y.v AS w FROM SEQ({steps}) PARTITION BY k OVER [{draw(st.integers(1, 9))} {which}] MODE {mode}"


@st.composite
def queries(draw: st.DrawFn) -> str:
    source = draw(st.sampled_from(["a", "a UNION b", "m"]))
    where = draw(st.sampled_from(["", " WHERE v > 1"]))
    counted = f"SELECT k, count(*) AS n, max(v) AS m {draw(windows())} FROM {source}{where} GROUP BY k"
    kind = draw(st.integers(0, 7))
    if kind == 0:
        return f"SELECT DISTINCT ts, k FROM {source}{where}"
    if kind == 1:
        return counted
    if kind == 2:
        return f"SELECT max(n) AS x {draw(windows('window_end'))} FROM ({counted}) i"
    if kind == 3:
        return draw(joined())
    if kind == 4:
        return draw(followed())
    if kind == 5:
        return (
            f"SELECT count(*) AS n {draw(windows('time'))} FROM (SELECT ts AS time, k FROM ({draw(joined_rows())}) i) j"
        )
    if kind == 6:
        over = "PARTITION BY window_start, window_end ORDER BY v DESC, k"
        numbered = f"SELECT *, ROW_NUMBER() OVER ({over}) AS rn FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), 7))"
        return f"SELECT k, v FROM ({numbered}) WHERE rn <= 2"
    return f"SELECT window_end, n FROM ({counted}) i WHERE n > 1"


@st.composite
def joined_rows(draw: st.DrawFn) -> str:
    low = draw(st.integers(-9, 9))
    return (
        f"SELECT a.ts, a.k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND b.ts BETWEEN a.ts + {low} "
        f"AND a.ts + {low + draw(st.integers(0, 6))})"
    )


ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(-10, 40), st.integers(0, 1), st.integers(0, 3)),
    min_size=1,
    max_size=14,
    unique_by=lambda row: (row[0], row[1], row[2], row[3]),
)


@examples(300)
@given(queries(), ROWS, st.data())
def test_a_row_further_back_than_the_reach_changes_nothing(sql: str, rows: list[Any], data: st.DataObject) -> None:
    plan = flow().query(sql).plan
    reaches = plan_reach(plan)
    arrivals = [(stream, row) for stream, *row in rows if stream in reaches]
    arrivals = [(stream, tuple(row)) for stream, row in arrivals]
    if not arrivals:
        return
    at = data.draw(st.integers(0, len(arrivals) - 1))
    stream, (time, *_) = arrivals[at]
    reach = reaches[stream]
    assert isinstance(reach, int)
    without = [arrival for place, arrival in enumerate(arrivals) if place != at]
    whole, less = evaluate(plan, arrivals), evaluate(plan, without)
    assert after(whole, time + reach) == after(less, time + reach), sql


def after(result: TDB, time: int) -> TDB:
    return TDB([event for event, times in result.items() if event[1] > time for _ in range(times)])


@pytest.mark.parametrize(
    ("sql", "reach"),
    [
        ("SELECT ts, k FROM a WHERE v > 1", {"a": 0}),
        ("SELECT count(*) AS n [RANGE 10, SLIDE 3, WA ts] FROM a", {"a": 10}),
        ("SELECT max(n) AS m [RANGE 20, SLIDE 10, WA window_end] FROM "
         "(SELECT k, count(*) AS n [RANGE 10, SLIDE 5, WA ts] FROM a GROUP BY k) x", {"a": 30}),
        ("SELECT a.v FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - 2 AND a.ts + 9", {"a": 9, "b": 2}),
        ("SELECT a.v FROM a JOIN b ON a.k = b.k AND floor(a.ts / 7) = floor(b.ts / 7)", {"a": 6, "b": 6}),
        ("SELECT count(*) AS n [RANGE 4, SLIDE 4, WA ts] FROM a UNION ALL "
         "SELECT count(*) AS n [RANGE 8, SLIDE 4, WA ts] FROM a", {"a": 8}),
        ("SELECT x.v FROM SEQ(a x, b y) OVER [9 PRECEDING y] MODE CONTINUOUS", {"a": 9, "b": 9}),
    ],
)  # fmt: skip
def test_reaches(sql: str, reach: dict[str, int]) -> None:
    assert plan_reach(flow().query(sql).plan) == reach


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT count(*) AS n [RANGE ALL, SLIDE 10, WA ts] FROM a", "landmark"),
        ("SELECT k, max(v) AS m [RANGE 3 ROWS, SLIDE 1 ROWS, WA row-num, PA k] FROM a GROUP BY k", "counted|each key"),
        ("SELECT count(*) AS n [RANGE 4 ROWS, SLIDE 2 ROWS, WA row-num] FROM a", "counted from the first"),
        ("SELECT count(*) AS n [RANGE 9, RATTR ts, SLIDE 2 ROWS, SATTR row-num] FROM a", "counted from the first"),
        ("SELECT x.v FROM SEQ(a x, b y) OVER [UNLIMITED PRECEDING y] MODE CHRONICLE", "no bound on the time"),
        ("SELECT x.v FROM SEQ(a x, b y) OVER [9 PRECEDING y] MODE CHRONICLE", "uses rows up"),
        ("SELECT a.v FROM a ASOF JOIN b ON a.k = b.k AND b.ts <= a.ts", "latest of any age"),
        ("SELECT ts, k FROM a [RANGE 9]", "lives of their own"),
    ],
)
def test_rows_that_matter_for_ever(sql: str, reason: str) -> None:
    found = plan_reach(bind(sql, flow().catalog))["a"]
    assert isinstance(found, Endless)
    assert re.search(reason, str(found)), str(found)
    assert found.instead


def test_groups_without_windows_have_no_reach() -> None:
    made = pk.Flow().stream(
        "s", [], time="ts", schema="ts bigint, k bigint, p boolean", progress=pk.punctuated("p", per=["k"], final=True)
    )
    found = plan_reach(made.query("SELECT k, count(*) AS n FROM s GROUP BY k").plan)["s"]
    assert isinstance(found, Endless)
    assert "without a window" in found.reason


def test_updates_have_no_reach_once_they_are_merged() -> None:
    made = pk.Flow()
    for name in ("a", "b"):
        made.stream(name, [], time="ts", schema=COLUMNS, update_key="k")
    found = plan_reach(made.query("SELECT ts, k, v FROM a UNION b").plan)["a"]
    assert isinstance(found, Endless)
    assert "update each other" in found.reason


def test_elements_with_ends_of_their_own_have_no_reach() -> None:
    made = pk.Flow().stream("e", [], time="vs", schema="vs bigint, ve bigint, k bigint", lives=("vs", "ve"))
    assert isinstance(plan_reach(made.query("SELECT vs, k FROM e").plan)["e"], Endless)


def test_rows_that_are_moved_reach_as_far_as_they_are_moved() -> None:
    plan = flow().query("SELECT ts, k FROM a").plan
    assert plan_reach(AlterLifetime(plan, shift=5)) == {"a": 5}
    assert plan_reach(AlterLifetime(plan, shift=-5)) == {"a": -5}


def test_joins_of_many_reach_through_each_other() -> None:
    sql = (
        "SELECT /*+ MULTIWAY_JOIN */ a.v FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + 5 "
        "JOIN c ON c.k = b.k AND c.ts BETWEEN b.ts - 2 AND b.ts + 7"
    )
    made = flow()
    planned = in_process(made.query(sql).plan, made.catalog).node
    if any(isinstance(node, MultiJoin) for node in planned.walk()):
        assert plan_reach(planned) == {"a": 12, "b": 7, "c": 2}
    assert plan_reach(made.query(sql).plan)["a"] == 12
