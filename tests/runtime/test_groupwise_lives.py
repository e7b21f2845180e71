"""Group-wise promises over streams with lives: every operator, any arrival order and cut, against the oracle.

```
a [2, 9)        |  2-----------------9
b [1, end)      |1------------------------------…    open: it holds back whatever starts after it
final a         |                         |          a is final all the same, and so is all that is made of it
```
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.model.batch import Batch
from penstock.model.elements import Adjust, Element, Insert, Punctuation, groupwise, linear
from penstock.model.frontier import Frontier
from penstock.model.lives import Lives
from penstock.model.tdb import tdb
from penstock.model.time import END_OF_TIME
from penstock.plan.nodes import Settle
from penstock.reference import evaluate
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from penstock.testing.revisions import revised
from tests.operators.merge.test_group_promises import with_promises
from tests.profiles import examples

COLUMNS = "vs bigint, k string, p boolean"
QUERIES = [
    "SELECT * FROM s",
    "SELECT vs, k AS c, k AS d FROM s WHERE vs > 3",
    "SELECT k, vs FROM s UNION ALL SELECT k, vs FROM r",
    "SELECT DISTINCT k FROM s",
    "SELECT k, ve, vs FROM s WHERE ve > 3 OR ve IS NULL",
    "SELECT k, count(*) AS n, max(vs) AS m [RANGE 6, SLIDE 2, WA vs] FROM s GROUP BY k",
    "SELECT k, count(DISTINCT vs) AS n [RANGE 5, SLIDE 5, WA vs] FROM s UNION r GROUP BY k",
    "SELECT k, count(*) AS n, max(vs) AS m FROM s GROUP BY k",
    "SELECT k, sum(vs) AS n FROM s UNION r GROUP BY k HAVING n > 2",
    "SELECT k, count(*) AS n, max(ve) AS last FROM s GROUP BY k",
    "SELECT k, count(*) AS n FROM m GROUP BY k",
    "SELECT k, count(*) AS n [RANGE 6, SLIDE 2, WA vs] FROM m GROUP BY k",
    "SELECT s.k, count(*) AS n FROM s JOIN r ON s.k = r.k AND r.vs BETWEEN s.vs - 2 AND s.vs + 4 GROUP BY s.k",
    "SELECT s.k, s.vs, r.vs AS w FROM s LEFT JOIN r ON s.k = r.k AND r.vs BETWEEN s.vs - 2 AND s.vs + 4",
    "SELECT s.k, s.vs FROM s LEFT ANTI JOIN r ON s.k = r.k AND r.vs BETWEEN s.vs AND s.vs + 3",
]


@functools.cache
def query(sql: str) -> Any:
    flow = pk.Flow()
    for name in ("s", "r", "one", "two"):
        progress = pk.punctuated("p", per=["k"], final=True)
        flow.stream(name, iter(()), time="vs", schema=COLUMNS, progress=progress, lives=True)
    flow.merge("m", ["one", "two"], policy="first seen")
    return flow.query(sql)


def lived(element: Insert | Adjust) -> Insert | Adjust:
    return replace(element, payload=(element.vs, *element.payload, None))


@st.composite
def fed(draw: st.DrawFn, elements: list[Element], schema: Any) -> list[Batch | Punctuation]:
    """The elements as batches, cut anywhere, with the punctuation between them."""
    items: list[Batch | Punctuation] = []
    held: list[Insert | Adjust] = []
    for element in elements:
        if not isinstance(element, Punctuation):
            held.append(lived(element))
        if held and (isinstance(element, Punctuation) or draw(st.integers(0, 2)) == 0):
            batch = Batch(schema, [e.payload for e in held], lives=Lives.of(held))
            items.append(Batch(schema, table=batch.table, lives=batch.lives) if draw(st.booleans()) else batch)
            held = []
        if isinstance(element, Punctuation):
            items.append(element)
    return items


@pytest.mark.parametrize("sql", QUERIES)
@examples(30)
@given(data=st.data())
def test_every_operator_agrees_with_the_oracle(sql: str, data: st.DataObject) -> None:
    made = query(sql)
    execution: LocalExecution = made.execution()
    schema = next(iter(execution.graph.sources.values()))[0].operator.schema
    told = {name: data.draw(revised()) for name in ("s", "r")}
    told["one"] = told["two"] = told["s"]
    read = {name: told[name] for name in execution.graph.sources}
    queues = {name: data.draw(fed(data.draw(with_promises(each)), schema)) for name, each in read.items()}
    outputs: list[Any] = []
    while any(queues.values()):
        name = data.draw(st.sampled_from([n for n, q in queues.items() if q]))
        outputs += execution.feed(name, queues[name].pop(0))
        if data.draw(st.integers(0, 7)) == 0:
            snapshot = execution.snapshot()
            execution = made.execution()
            execution.restore(snapshot)
    outputs += execution.close()
    arrivals = [(n, lived(e)) for n, each in read.items() for e in each if not isinstance(e, Punctuation)]
    assert_same(evaluate(made.plan, arrivals), tdb_of(outputs))
    assert_sound(outputs)
    assert execution.late().num_rows == execution.dead_letters().num_rows == 0


@given(data=st.data())
def test_a_settle_puts_out_at_once_what_a_promise_makes_final(data: st.DataObject) -> None:
    """And says of a group what is promised of it, up to its oldest event that is left."""
    made = query("SELECT * FROM s")
    execution = LocalExecution(Settle(made.plan), made.catalog)
    elements = data.draw(with_promises(data.draw(revised())))
    outputs: list[Any] = []
    before: list[Element] = []
    for item in data.draw(fed(elements, made.schema)):
        known = Frontier([p for p in before if isinstance(p, Punctuation)])
        outputs += execution.feed("s", item)
        before += item.elements(hidden=True) if isinstance(item, Batch) else [item]
        if not isinstance(item, Punctuation) or item.is_linear or known.implies(item):
            continue
        ((_, letter),), bound = item.constants, item.value
        events = tdb(e for e in before if not isinstance(e, Punctuation))
        own = {e: n for e, n in events.items() if e[0][1] == letter}
        final = {e: n for e, n in own.items() if e[2] < bound or bound == END_OF_TIME}
        out = tdb_of(outputs)
        assert all(e in out and out[e] >= n for e, n in final.items())
        said = Frontier([p for p in outputs if isinstance(p, Punctuation)])
        left = [e[1] for e in own if e not in final]
        assert said.bound("vs", {"k": letter}) >= min([bound, *left])


def test_what_one_group_held_back_follows() -> None:
    """b at 1 is open and holds a, final by the bound, back; once b is final by itself, a and the bound follow."""
    made = query("SELECT * FROM s")
    execution = LocalExecution(Settle(made.plan), made.catalog)
    open_b, a = Insert((1, "b", None), 1, 50), Insert((2, "a", None), 2, 4)
    execution.feed("s", Batch(made.schema, [open_b.payload, a.payload], lives=Lives.of([open_b, a])))
    assert execution.feed("s", linear("vs", 9)) == [linear("vs", 1)]
    found = execution.feed("s", groupwise("vs", END_OF_TIME, k="b"))
    said = [o.elements() if isinstance(o, Batch) else o for o in found]
    assert said == [[open_b], groupwise("vs", END_OF_TIME, k="b"), [a], linear("vs", 9)]


def test_groups_that_are_settled_ahead_are_in_no_order() -> None:
    settle = next(n for n in query(QUERIES[5]).plan.walk() if isinstance(n, Settle))
    assert not settle.properties.ordered
    assert settle.properties.max_disorder is None
    assert not query(QUERIES[5]).properties.ordered
