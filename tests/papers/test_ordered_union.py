"""Idle-waiting: what an ordered union waits for, and that ours, which keep no order, wait for nobody.

Which rows have passed when A has given 1, 1, 2 and B has given 1:

    A   1 1 2      strict:  1 1 of A, 1 of B while A's 2 waits behind it; with no 2, B's 1 waits
    B   1          relaxed: all of time 1; A's 2 waits, since B may give another 1
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.errors import StreamError
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, linear
from penstock.model.time import END_OF_TIME, MIN_TICK, SECOND
from penstock.operators.operator import Operator
from penstock.operators.relational.meld import MeldOperator
from penstock.papers.ordered_union import OrderedUnion
from penstock.testing.asserts import assert_sound

FLOW = pk.Flow()
for _name in "ab":
    FLOW.stream(_name, [], time="t", schema="t bigint, v string")
SCHEMA: Any = FLOW.query("SELECT t, v FROM a").schema


class Fed:
    """A union, and what came out of it."""

    def __init__(self, union: Operator) -> None:
        self.union, self.out = union, list[Any]()

    def rows(self, port: int, *times: int) -> list[int]:
        """The times of the rows that pass when these come."""
        return self._kept(self.union.process(port, Batch(SCHEMA, [(t, f"{port}") for t in times])))

    def promise(self, port: int, bound: int) -> list[int]:
        return self._kept(self.union.punctuate(port, linear("t", bound)))

    def _kept(self, outputs: Any) -> list[int]:
        found = list(outputs)
        self.out += found
        return [row[0] for each in found if isinstance(each, Batch) for row in each.rows]


def test_simultaneous_rows_pass_without_a_row_behind_them() -> None:
    relaxed, strict = Fed(OrderedUnion(SCHEMA, 2)), Fed(OrderedUnion(SCHEMA, 2, relaxed=False))
    assert relaxed.rows(0, 1, 1, 2) == []
    assert relaxed.rows(1, 1) == [1, 1, 1]
    assert relaxed.promise(1, 2) == [2], "nothing below 2 comes of B, and 2 is not below 2"
    assert strict.rows(0, 1, 1) == []
    assert strict.rows(1, 1) == [1, 1], "A is empty, and B's 1 waits although nothing earlier can come"
    assert strict.promise(0, 1) == []
    assert strict.promise(0, 2) == [1]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.booleans()), max_size=40),
    st.booleans(),
)
def test_what_passes_is_what_nothing_can_precede(steps: list[tuple[int, int, bool]], relaxed: bool) -> None:
    fed = Fed(OrderedUnion(SCHEMA, 3, relaxed=relaxed))
    came: list[list[int]] = [[], [], []]
    reached, passed = [MIN_TICK] * 3, list[int]()
    for port, ahead, says in [*steps, *[(port, END_OF_TIME, True) for port in range(3)]]:
        time = ahead if ahead == END_OF_TIME else max(reached[port], 0) + ahead
        reached[port] = time
        if says:
            passed += fed.promise(port, time)
        else:
            came[port].append(time)
            passed += fed.rows(port, time)
        due = sorted(t for times in came for t in times if t <= min(reached))
        assert passed == due if relaxed else passed == due[: len(passed)]
    assert passed == sorted(t for times in came for t in times)
    assert_sound(fed.out)


def test_inputs_must_be_ordered() -> None:
    fed = Fed(OrderedUnion(SCHEMA, 2))
    fed.rows(0, 5)
    with pytest.raises(StreamError) as told:
        fed.rows(0, 4)
    assert told.value.what == "A row comes after one with a later time, or after a promise."
    assert (told.value.where, told.value.got) == ("ordered union, input 0", "4 after 5")
    assert told.value.hint == "an ordered union takes ordered inputs"


def latency(union: Operator, *, on_demand: bool) -> float:
    """Mean time that rows wait, in seconds: Figure 14's rates, 1000 and 0.5 rows a second, by Poisson.

    On demand, an input that is empty and that rows wait for promises the time that it is: its rows have the time at
    which they come.
    """
    rng, arrivals = random.Random(14), list[tuple[int, int]]()
    for port, rate in enumerate((1000, 0.5)):
        time = 0.0
        while (time := time + rng.expovariate(rate)) < 20:
            arrivals.append((int(time * SECOND), port))
    fed, waited, rows = Fed(union), 0, 0
    for now, port in sorted(arrivals):
        passed = fed.rows(port, now)
        if on_demand:
            passed += fed.promise(1 - port, now)
        waited += sum(now - time for time in passed)
        rows += len(passed)
    return waited / rows / SECOND


def test_on_demand_promises_end_idle_waiting() -> None:
    # Fig. 14 (a): orders of magnitude; by the rates, a row of the first input waits for the next of the second.
    waiting = latency(OrderedUnion(SCHEMA, 2), on_demand=False)
    assert waiting > 0.5
    assert latency(OrderedUnion(SCHEMA, 2), on_demand=True) < waiting / 1000
    assert latency(MeldOperator(SCHEMA, 2), on_demand=False) == 0, "which keeps no order, and waits for nobody"


@pytest.mark.parametrize(
    ("sql", "waits"),
    [
        ("SELECT t, v FROM a UNION ALL SELECT t, v FROM b", False),
        ("SELECT a.t, a.v FROM a JOIN b ON a.v = b.v AND a.t = b.t", False),
        ("SELECT a.t, a.v FROM a JOIN b ON a.v = b.v AND b.t BETWEEN a.t - 2 AND a.t + 2", False),
        ("SELECT a.t, a.v, b.t AS u FROM a ASOF JOIN b ON a.v = b.v AND b.t <= a.t", True),
        (
            "SELECT count(*) AS n [RANGE 4, SLIDE 4, WA t] FROM (SELECT t, v FROM a UNION ALL SELECT t, v FROM b) u",
            True,
        ),
    ],
)
def test_who_waits_for_a_promise_and_until_when(sql: str, waits: bool) -> None:
    run = SharedExecution(FLOW.catalog, {"q": FLOW.query(sql).plan})

    def rows(found: list[Any]) -> int:
        return sum(len(item) for _, item in found if isinstance(item, Batch))

    schema = run.graph.sources["a"][0].operator.schema
    came = rows(run.feed("b", Batch(schema, [(3, "x")]))) + rows(run.feed("a", Batch(schema, [(3, "x")])))
    assert (came == 0) is waits
    if waits:
        # b may give another row at 3, which a's may follow, and which falls into the window until 4
        assert rows(run.feed("b", linear("t", 3))) == 0
        run.feed("a", linear("t", 4))
        assert rows(run.feed("b", linear("t", 4))) == 1


def test_a_join_gives_rows_with_the_same_time_at_once_whoever_comes_last() -> None:
    sql = "SELECT a.t FROM a JOIN b ON a.v = b.v AND a.t = b.t"
    for first, second in ("ab", "ba"):
        run = SharedExecution(FLOW.catalog, {"q": FLOW.query(sql).plan})
        schema = run.graph.sources["a"][0].operator.schema
        run.feed(first, Batch(schema, [(3, "x"), (3, "x")]))
        found = [item for _, item in run.feed(second, Batch(schema, [(3, "x")])) if not isinstance(item, Punctuation)]
        assert [len(batch) for batch in found] == [2]
