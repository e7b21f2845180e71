"""Groups that end, through joins: whole groups and windows of pairs, against the oracle and as early as can be."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.errors import QueryError
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation, groupwise, linear
from penstock.model.frontier import Frontier
from penstock.model.progress import punctuated
from penstock.model.time import END_OF_TIME
from penstock.operators.joins import oa_join
from penstock.reference import evaluate
from penstock.sql.binder import bind
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from tests.runtime.test_groupwise import ROWS, SCHEMA, catalog, judged_by_row
from tests.runtime.test_whole_groups import FINAL, without_b

NEAR = "y.ts BETWEEN x.ts - 3 AND x.ts + 5"
ON = f"FROM s x {{}} z y ON x.a = y.a AND {NEAR}"
BOTH = f"FROM s x {{}} z y ON x.a = y.a AND x.b = y.b AND {NEAR}"
Output = Batch | Punctuation

WHOLE = [
    f"SELECT x.a, count(*) AS n, sum(y.v) AS w {ON.format('JOIN')} GROUP BY x.a",
    f"SELECT y.a, x.b, max(x.v) AS w {ON.format('JOIN')} GROUP BY y.a, x.b",
    f"SELECT x.a, count(y.v) AS n {ON.format('LEFT JOIN')} GROUP BY x.a",
    f"SELECT y.a, count(x.v) AS n {ON.format('RIGHT JOIN')} GROUP BY y.a",
    f"SELECT x.a, y.b, count(*) AS n {ON.format('FULL JOIN')} GROUP BY x.a, y.b",
    f"SELECT a, count(*) AS n FROM (SELECT x.a, x.v {ON.format('LEFT SEMI JOIN')}) i GROUP BY a",
    f"SELECT a, count(*) AS n FROM (SELECT x.a, x.v {ON.format('LEFT ANTI JOIN')}) i GROUP BY a",
    f"SELECT a, count(*) AS n FROM (SELECT x.a AS a, y.b AS b {BOTH.format('JOIN')}) i GROUP BY a",
    "SELECT x.a, count(*) AS n FROM s x JOIN z y ON x.a = y.a AND y.ts BETWEEN x.ts - 3 AND x.ts + 5 "
    "JOIN s w ON w.a = x.a AND w.ts BETWEEN y.ts AND y.ts + 4 GROUP BY x.a",
]
WINDOWED = [
    f"SELECT x.a, count(*) AS n [RANGE 6, SLIDE 2, WA x.ts] {ON.format('JOIN')} GROUP BY x.a",
    f"SELECT y.a, sum(x.v) AS n [RANGE TUMBLING 5, WA y.ts] {BOTH.format('JOIN')} GROUP BY y.a",
    f"SELECT x.a, count(*) AS n [RANGE TUMBLING 5, WA x.ts] {ON.format('LEFT JOIN')} GROUP BY x.a",
    f"SELECT x.a, count(*) AS n {ON.format('JOIN')} GROUP BY x.a, x.ts, y.ts",
    f"SELECT x.*, y.b AS c {ON.format('FULL JOIN')}",
    f"SELECT x.a, x.b, x.v {BOTH.format('LEFT ANTI JOIN')}",
    "SELECT x.b, y.v FROM s x, z y [RANGE TUMBLING 4, WA ts] WHERE x.b = y.b",
]


@pytest.mark.parametrize("sql", WHOLE + WINDOWED)
@given(left=ROWS, right=ROWS, data=st.data())
def test_joined_groups_are_the_oracles(sql: str, left: list[Row], right: list[Row], data: st.DataObject) -> None:
    progress = FINAL[1] if sql in WHOLE else data.draw(st.sampled_from([punctuated("p", per=["a"]), FINAL[1]]))
    rows = {"s": without_b(left), "z": without_b(right)}
    own = catalog(progress, "s", "z")
    plan = bind(sql, own)
    executions = [LocalExecution(plan, own) for _ in range(2)]
    at = data.draw(st.integers(0, 12))
    queues = {name: list(each) for name, each in rows.items()}
    outputs: list[Output] = []
    fed = 0
    with mock.patch.object(oa_join, "FEW_ROWS", data.draw(st.sampled_from([0, 3, 100]))):
        while any(queues.values()):
            if fed == at:
                executions[1].restore(executions[0].snapshot())
                executions.reverse()
            name = data.draw(st.sampled_from([n for n, q in queues.items() if q]))
            size = data.draw(st.integers(1, 6))
            batch = Batch(SCHEMA, queues[name][:size])
            outputs += executions[0].feed(name, Batch(SCHEMA, table=batch.table) if data.draw(st.booleans()) else batch)
            del queues[name][:size]
            fed += 1
        outputs += executions[0].close()
    whole = [(n, row) for n, each in rows.items() for row in judged_by_row(progress, [each]).on_time]
    assert_same(evaluate(plan, whole), tdb_of(outputs))
    assert_sound(outputs)


def fed(execution: LocalExecution, *steps: tuple[str, Row | Punctuation]) -> list[set[Row]]:
    """What comes out at each step."""
    told: list[set[Row]] = []
    for name, item in steps:
        given = execution.feed(name, item if isinstance(item, Punctuation) else Batch(SCHEMA, [item]))
        told.append({row for out in given if isinstance(out, Batch) for row in out.rows})
    return told


def row(ts: int, a: int, v: int = 1) -> Row:
    return (ts, a, "x", v, None)


def test_a_group_is_out_once_neither_side_has_anything_left_of_it() -> None:
    """Left says that group 0 has ended; its row of 4 may meet one of the right up to 9."""
    own = catalog(FINAL[1], "s", "z")
    execution = LocalExecution(bind(WHOLE[0], own), own)
    told = fed(
        execution,
        ("s", row(4, 0)), ("z", row(5, 0, 7)), ("s", row(4, 1)), ("z", row(4, 1)),
        ("s", groupwise("ts", END_OF_TIME, a=0)), ("z", linear("ts", 9)), ("z", linear("ts", 10)),
        ("z", groupwise("ts", END_OF_TIME, a=1)), ("s", groupwise("ts", END_OF_TIME, a=1)),
    )  # fmt: skip
    assert told[:6] == [set()] * 6
    assert told[6] == {(0, 1, 7, 5)}
    assert told[7:] == [set(), {(1, 1, 1, 4)}]


def test_rows_without_a_partner_come_with_the_end_of_their_group() -> None:
    own = catalog(FINAL[1], "s", "z")
    sql = f"SELECT x.a AS k, x.v AS v, y.v AS w {ON.format('LEFT JOIN')}"
    execution = LocalExecution(bind(sql, own), own)
    told = fed(
        execution,
        ("s", row(4, 0, 3)), ("s", row(4, 1, 5)), ("z", groupwise("ts", 9, a=0)), ("z", groupwise("ts", 10, a=0)),
        ("z", groupwise("ts", END_OF_TIME, a=1)), ("s", row(20, 1, 6)),
    )  # fmt: skip
    assert [{r[:3] for r in out} for out in told] == [
        set(),
        set(),
        set(),
        {(0, 3, None)},
        {(1, 5, None)},
        {(1, 6, None)},
    ]


def test_windows_of_a_group_close_before_those_of_others() -> None:
    own = catalog(punctuated("p", per=["a"]), "s", "z")
    execution = LocalExecution(bind(WINDOWED[0], own), own)
    steps = [("s", row(1, 0)), ("z", row(2, 0)), ("s", row(1, 1)), ("z", row(2, 1)),
             ("s", groupwise("ts", 9, a=0)), ("z", groupwise("ts", 14, a=0))]  # fmt: skip
    told = fed(execution, *steps)
    assert told[:5] == [set()] * 5
    assert {r[3] for r in told[5]} == {0}
    assert {r[2] for r in told[5]} == {2, 4, 6}


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT y.a, count(*) AS n {ON.format('RIGHT JOIN')} GROUP BY y.a",
        f"SELECT y.a, count(*) AS n {ON.format('FULL JOIN')} GROUP BY y.a",
        f"SELECT a, count(*) AS n FROM (SELECT y.a AS a FROM z y LEFT ANTI JOIN s x ON x.a = y.a AND {NEAR}) AS i "
        "GROUP BY a",
        f"SELECT x.b, count(*) AS n {BOTH.format('JOIN')} GROUP BY x.b",
        "SELECT x.a, count(*) AS n FROM s x ASOF JOIN z y ON x.a = y.a AND x.ts >= y.ts GROUP BY x.a",
    ],
)
def test_groups_that_only_the_other_side_ends_are_refused(sql: str) -> None:
    own = catalog(FINAL[1], "s")
    own.add_stream(next(iter(catalog(punctuated("p"), "z").streams.values())))
    with pytest.raises(QueryError, match="needs a window"):
        bind(sql, own)


def test_one_side_is_enough() -> None:
    own = catalog(FINAL[1], "s")
    own.add_stream(next(iter(catalog(punctuated("p"), "z").streams.values())))
    execution = LocalExecution(bind(f"SELECT y.a, count(*) AS n {ON.format('JOIN')} GROUP BY y.a", own), own)
    told = fed(execution, ("z", row(5, 0)), ("s", row(4, 0)), ("s", groupwise("ts", END_OF_TIME, a=0)),
               ("z", linear("ts", 10)))  # fmt: skip
    assert told == [set(), set(), set(), {(0, 1, 5)}]


def test_what_is_promised_of_pairs_of_a_group() -> None:
    own = catalog(FINAL[1], "s", "z")
    execution = LocalExecution(bind(f"SELECT x.a, y.a AS c, x.ts AS t, y.ts AS u {ON.format('JOIN')}", own), own)
    promised = Frontier()
    for name, item in (("s", row(4, 0)), ("s", groupwise("ts", 8, a=0)), ("z", groupwise("ts", 6, a=0))):
        given = execution.feed(name, item if isinstance(item, Punctuation) else Batch(SCHEMA, [item]))
        for each in given:
            if isinstance(each, Punctuation):
                assert promised.add(each)
    for column in ("a", "c"):
        assert promised.bound("t", {column: 0}) == 4  # the row that is kept may meet one of 6 to 9
        assert promised.bound("u", {column: 0}) == 6
        assert promised.bound("t", {column: 1}) < 0
    assert promised.implies(Punctuation((("t", 8), ("u", 6)), (("a", 0),)))


def test_explain_says_how_groups_complete() -> None:
    flow = pk.Flow()
    for name in "sz":
        flow.stream(name, SCHEMA.arrow.empty_table(), time="ts", progress=FINAL[1])
    assert "whole groups by" in flow.query(WHOLE[0]).explain()
