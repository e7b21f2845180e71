"""Every operator over revisions, for any arrival order and cut, against the oracle.

insert a [2, 9)   |      2-----------------9
adjust a 9 -> 5   |      2---------5
bound 6           |                 |  a is final: it comes out of a settle, and windows may count it
"""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.errors import InternalError, UnsupportedError
from penstock.flow.local import LocalQuery
from penstock.model.batch import Batch
from penstock.model.elements import Adjust, Insert, Punctuation, linear
from penstock.model.lives import UNKNOWN_EVENT
from penstock.model.time import END_OF_TIME
from penstock.plan.nodes import Settle, WindowAggregate
from penstock.plan.planner import in_process
from penstock.reference import evaluate, outcome
from penstock.runtime.graph import QueryGraph
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.revisions import Lived, fed, revised

COLUMNS = "vs bigint, k string, v int"
WINDOWS = "count(*) AS n, sum(v) AS s, max(v) AS m [RANGE 6, SLIDE 2, WA vs]"
QUERIES = [
    "SELECT * FROM s",
    "SELECT k FROM s WHERE v > 0",
    "SELECT v + 1 AS w, upper(k) AS u FROM s",
    "SELECT vs, v FROM s UNION ALL SELECT vs, v FROM s WHERE k = 'a'",
    "SELECT k, vs FROM s UNION ALL SELECT k, vs FROM r",
    "SELECT DISTINCT k FROM s",
    "SELECT DISTINCT vs, k FROM s WHERE v < 2",
    "SELECT k FROM s UNION SELECT k FROM r",
    f"SELECT k, {WINDOWS} FROM s GROUP BY k",
    f"SELECT {WINDOWS} FROM s UNION r WHERE v <> 1",
    "SELECT k, count(DISTINCT v) AS d [RANGE 4, SLIDE 4, WA vs] FROM (SELECT DISTINCT vs, k, v FROM s) i GROUP BY k",
    f"SELECT k, {WINDOWS} FROM m GROUP BY k",
    "SELECT * FROM m",
    "SELECT k, max(ve) AS last, count(ve) AS ended [RANGE 6, SLIDE 2, WA vs] FROM s WHERE ve > 3 GROUP BY k",
    "SELECT s.k, r.v, s.e FROM (SELECT vs, k, v, ve AS e FROM s) s JOIN r ON s.k = r.k AND r.vs - s.vs BETWEEN 0 AND 3",
    "SELECT s.k, r.vs FROM s LEFT JOIN r ON r.vs BETWEEN s.vs AND s.vs + 2 AND s.v < r.v",
    "SELECT s.k, r.k FROM s FULL JOIN r ON s.v = r.v AND r.vs = s.vs",
    "SELECT k, v FROM s WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = s.k AND r.vs BETWEEN s.vs - 1 AND s.vs + 1)",
    "SELECT k, explode(array(v, v + 1, v)) AS x FROM s",
    "SELECT k, p, x FROM s LATERAL VIEW OUTER posexplode(split(k, 'a')) t AS p, x WHERE v > 0",
    f"SELECT x, {WINDOWS} FROM s CROSS JOIN UNNEST(array(k, 'b')) AS t(x) GROUP BY x",
    "SELECT DISTINCT x FROM s LATERAL VIEW explode(array(struct(k, v), struct(k AS k, 1 AS v))) t AS x",
    f"SELECT p, array(v) AS a, {WINDOWS} FROM (SELECT vs, v, struct(k, v) AS p FROM s) s GROUP BY p, array(v)",
    "SELECT sum(r.v) AS w [RANGE 4, SLIDE 2, WA s.vs] FROM s, r [RANGE TUMBLING 5, WA vs]",
]


def lived_streams() -> pk.Flow:
    """Streams with lives, two of them merged."""
    flow = pk.Flow()
    for name in ("s", "r", "a", "b"):
        flow.stream(name, iter(()), time="vs", schema=COLUMNS, progress=pk.bounded(10**6), lives=True)
    return flow.merge("m", ["a", "b"], policy="first seen")


@functools.cache
def query(sql: str) -> LocalQuery:
    """Bound once; every run of it begins anew."""
    made = lived_streams().query(sql)
    assert isinstance(made, LocalQuery)
    return made


def run_in_any_order(
    made: LocalQuery, streams: dict[str, list[Batch | Punctuation]], data: st.DataObject
) -> tuple[LocalExecution, list[Any]]:
    """The streams by turns, with a snapshot now and then."""
    run = made.execution()
    outputs: list[Any] = []
    queues = {name: list(items) for name, items in streams.items() if name in run.graph.sources}
    while any(queues.values()):
        name = data.draw(st.sampled_from([n for n, q in queues.items() if q]))
        outputs += run.feed(name, queues[name].pop(0))
        if data.draw(st.integers(0, 5)) == 0:
            snapshot = run.snapshot()
            run = made.execution()
            run.restore(snapshot)
    return run, outputs + run.close()


@pytest.mark.parametrize("sql", QUERIES)
@given(data=st.data())
def test_every_operator_over_revisions_agrees_with_the_oracle(sql: str, data: st.DataObject) -> None:
    made = query(sql)
    lived = Lived(made.execution().graph.sources[next(iter(made.execution().graph.sources))][0].operator.schema)
    elements = {name: data.draw(revised()) for name in ("s", "r")}
    elements["a"] = elements["s"]
    elements["b"] = elements["s"]
    streams = {name: data.draw(fed(each, lived)) for name, each in elements.items()}
    run, outputs = run_in_any_order(made, streams, data)
    arrivals = [(name, e) for name in run.graph.sources for e in lived.arrived(elements[name])]
    assert_same(evaluate(made.plan, arrivals), tdb_of(outputs))
    assert_sound(outputs)
    assert run.late().num_rows == 0
    assert run.dead_letters().num_rows == 0


@given(elements=revised(), data=st.data())
def test_a_settle_puts_out_ordered_inserts_with_ties_in_one_order(elements: Any, data: st.DataObject) -> None:
    """Whatever the cut, and however ties arrive, the sequence of events is the same."""
    made = query("SELECT * FROM s")
    lived = Lived(made.schema)
    sequences = []
    for _ in range(2):
        run = LocalExecution(Settle(made.plan), made.catalog)
        outputs = [o for item in data.draw(fed(elements, lived)) for o in run.feed("s", item)] + run.close()
        assert_sound(outputs)
        found = [e for o in outputs if isinstance(o, Batch) for e in o.elements()]
        assert all(isinstance(e, Insert) for e in found)
        assert [e.vs for e in found] == sorted(e.vs for e in found)
        sequences.append(found)
    assert sequences[0] == sequences[1]


def test_a_settle_is_prompt() -> None:
    """An event comes out with the bound that makes it final, and the bound with it.

    a [1, 4), b [2, 8): bound 5 -> a, bound 2;  bound 9 -> b, bound 9
    """
    made = query("SELECT * FROM s")
    run = LocalExecution(Settle(made.plan), made.catalog)
    lived = Lived(made.schema)
    run.feed("s", lived.batch([Insert((1, "a", 0), 1, 4), Insert((2, "b", 0), 2, 8)], columnar=False))
    first = run.feed("s", linear("vs", 5))
    assert [o.elements() if isinstance(o, Batch) else o.value for o in first] == [[Insert((1, "a", 0), 1, 4)], 2]
    second = run.feed("s", linear("vs", 9))
    assert [o.elements() if isinstance(o, Batch) else o.value for o in second] == [[Insert((2, "b", 0), 2, 8)], 9]


def test_explain_shows_the_settle_of_collect() -> None:
    shown, whole = query("SELECT k FROM s").explain().split("\n\ncollect() gives what revisions come to:\n")
    assert "Settle" not in shown
    assert [line.strip(" |+-") for line in whole.splitlines()[::3]][:2] == ["Project k", "Settle (Cleanse)"]
    assert "collect()" not in query(f"SELECT k, {WINDOWS} FROM s GROUP BY k").explain()


@given(elements=revised(), data=st.data())
def test_what_contradicts_earlier_elements_is_told_where_events_are_kept(elements: Any, data: st.DataObject) -> None:
    """Some elements are lost: adjusts of events that never came are dead letters of the settle, the oracle's too."""
    made = query(f"SELECT k, {WINDOWS} FROM s WHERE v < 9 GROUP BY k")
    assert "Settle" in made.explain()
    lived = Lived(made.execution().graph.sources["s"][0].operator.schema)
    kept = [e for e in elements if isinstance(e, Punctuation) or data.draw(st.integers(0, 3))]
    run = made.execution()
    outputs = [o for item in data.draw(fed(kept, lived)) for o in run.feed("s", item)] + run.close()
    expected = outcome(made.plan, [("s", e) for e in lived.arrived(kept)])
    assert_same(expected.result, tdb_of(outputs))
    letters = run.dead_letters().to_pylist()
    assert {letter["reason"] for letter in letters} <= {UNKNOWN_EVENT}
    assert sorted((x["operator"], x["row"]) for x in letters) == sorted(
        (d.operator, d.row) for d, n in expected.dead.items() for _ in range(n)
    )


def test_late_is_judged_by_the_lesser_of_the_ends() -> None:
    """After a bound of 6 an event that started before it may still get an end from 6 on."""
    made = query("SELECT * FROM s")
    run = made.execution()
    lived = Lived(made.schema)
    row = (1, "a", 1)
    run.feed("s", lived.batch([Insert(row, 1, END_OF_TIME)], columnar=False))
    run.feed("s", linear("vs", 6))
    adjusts = [Adjust(row, 1, END_OF_TIME, 9), Adjust(row, 1, 9, 5), Adjust(row, 1, 9, 6)]
    out = run.feed("s", lived.batch(adjusts, columnar=True))
    assert [e for o in out if isinstance(o, Batch) for e in o.elements()] == [adjusts[0], adjusts[2]]
    assert run.late().to_pylist() == [
        {"stream": "s", "bound": 6, "row": '{"vs": 1, "k": "a", "v": 1, "ve": 5, "v_old": 9}'}
    ]


def test_an_adjust_moves_no_progress() -> None:
    """Only starts do: the end of an event may lie far ahead of what comes next."""
    flow = pk.Flow().stream("s", iter(()), time="vs", schema=COLUMNS, lives=True)
    made: Any = flow.query("SELECT * FROM s")
    run = made.execution()
    push = run.pusher("s")
    push(Insert((1, "a", 0), 1, 100))
    push(Adjust((1, "a", 0), 1, 100, 50))
    push(Insert((2, "a", 0), 2, 3))
    assert run.counts.late == 0
    push(Insert((1, "b", 0), 1, 9))
    assert run.counts.late == 1


def test_no_operator_is_given_revisions_that_it_would_take_for_rows() -> None:
    made = query(f"SELECT {WINDOWS} FROM s")
    unsettled = made.plan.transform(lambda n: n.input if isinstance(n, Settle) else n)
    assert any(isinstance(n, WindowAggregate) for n in unsettled.walk())
    with pytest.raises(InternalError, match="takes inserts only"):
        QueryGraph(in_process(unsettled, made.catalog), made.execution().builder)


def test_events_that_are_revised_are_not_numbered() -> None:
    with pytest.raises(UnsupportedError, match="cannot be numbered by arrival"):
        query("SELECT count(*) AS n [RANGE 4 rows, SLIDE 2 rows, WA row-num] FROM s")
