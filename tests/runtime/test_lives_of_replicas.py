"""What the other tests of revisions leave out: replicas that differ, policies, ends, settles and windows on windows.

| operator | over revisions, against the oracle |
|---|---|
| Select, Project, Union, Distinct, window aggregates behind a settle | `test_lives` |
| AlterLifetime | `test_altered_lives` |
| Settle | `tests/operators/relational/test_settle.py`, and here |
| Merge of replicas that differ, Ends, nested windows | here |
"""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.flow.local import LocalQuery
from penstock.flow.replicas import LOCAL
from penstock.operators.merge.policies import NAMES
from penstock.plan.nodes import Ends, Settle
from penstock.reference import evaluate
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.replicas import histories, replicas
from penstock.testing.revisions import Lived, fed, revised
from tests.runtime.test_lives import COLUMNS, WINDOWS, run_in_any_order

POLICIES = sorted(set(NAMES.values()) - set(LOCAL))
MERGED = [
    "SELECT * FROM m",
    "SELECT k FROM m WHERE v <> 1",
    "SELECT vs, k FROM m UNION ALL SELECT vs, k FROM s",
    "SELECT DISTINCT k FROM m",
    "SELECT k, vs, ve FROM m",
    f"SELECT k, {WINDOWS} FROM m GROUP BY k",
]
OTHERS = [
    "SELECT k, ve FROM s WHERE ve > 5",
    "SELECT ve - vs AS lived, k FROM s",
    "SELECT max(n) AS n [RANGE 4, SLIDE 4, WA window_end] FROM "
    "(SELECT k, count(*) AS n [RANGE 6, SLIDE 2, WA vs] FROM s GROUP BY k) i",
    "SELECT DISTINCT k FROM (SELECT k, vs, ve FROM s) i",
]


def flow(policy: str = "first seen") -> pk.Flow:
    made = pk.Flow()
    for name in ("s", "a", "b"):
        made.stream(name, iter(()), time="vs", schema=COLUMNS, progress=pk.bounded(10**6), lives=True)
    return made.merge("m", ["a", "b"], policy=policy)


@functools.cache
def query(sql: str, policy: str = "first seen") -> LocalQuery:
    made = flow(policy).query(sql)
    assert isinstance(made, LocalQuery)
    return made


def lived_of(made: LocalQuery) -> Lived:
    sources = made.execution().graph.sources
    return Lived(sources[next(iter(sources))][0].operator.schema)


@pytest.mark.parametrize("policy", POLICIES)
@given(sql=st.sampled_from(MERGED), data=st.data())
def test_replicas_that_tell_one_history_differently_are_that_history(
    policy: str, sql: str, data: st.DataObject
) -> None:
    """Each tells other ends first and takes other events back; the oracle is given what both say."""
    made = query(sql, policy)
    lived = lived_of(made)
    history = data.draw(histories(bag=True, max_size=6))
    elements = {name: data.draw(replicas(history, bag=True)) for name in ("a", "b")}
    elements["s"] = data.draw(revised(max_size=4))
    streams = {name: data.draw(fed(each, lived)) for name, each in elements.items()}
    run, outputs = run_in_any_order(made, streams, data)
    arrivals = [(name, e) for name in run.graph.sources for e in lived.arrived(elements[name])]
    assert_same(evaluate(made.plan, arrivals), tdb_of(outputs))
    assert_sound(outputs)
    assert run.dead_letters().num_rows == 0


@pytest.mark.parametrize("sql", OTHERS)
@given(data=st.data())
def test_ends_and_windows_on_windows(sql: str, data: st.DataObject) -> None:
    made = query(sql)
    lived = lived_of(made)
    elements = data.draw(revised())
    run, outputs = run_in_any_order(made, {"s": data.draw(fed(elements, lived))}, data)
    assert_same(evaluate(made.plan, [("s", e) for e in lived.arrived(elements)]), tdb_of(outputs))
    assert_sound(outputs)
    assert run.dead_letters().num_rows == 0


@given(data=st.data())
def test_a_settle_comes_to_what_its_input_comes_to(data: st.DataObject) -> None:
    made: Any = query("SELECT * FROM s")
    for plan in (Settle(made.plan), Ends(Settle(made.plan), "ve")):
        lived = Lived(made.schema)
        elements = data.draw(revised())
        run = LocalExecution(plan, made.catalog)
        outputs = [o for item in data.draw(fed(elements, lived)) for o in run.feed("s", item)] + run.close()
        assert_same(evaluate(plan, [("s", e) for e in lived.arrived(elements)]), tdb_of(outputs))
        assert_sound(outputs)
