"""Update queues in the graph: whatever the consumer takes and when, the last value of each key comes, in order."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.execution import LocalExecution
from penstock.flow.conflating import QUEUES
from penstock.model.batch import Batch, Row
from penstock.model.elements import Element, Punctuation
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.plan.nodes import Conflate
from penstock.reference import evaluate
from penstock.reference.updates import owed

COLUMNS = "ts BIGINT, symbol STRING, price INT"
ROW = st.tuples(st.integers(0, 30), st.sampled_from(["X", "Y", "Z", None]), st.integers(0, 9))
STEPS = st.lists(
    st.one_of(
        st.lists(ROW, min_size=1, max_size=5),
        st.integers(0, 3),  # so many rows are released
        st.sampled_from(["snapshot", "later"]),
    ),
    max_size=14,
)
LOSSY = [policy for policy in QUEUES if policy != "append"]


def flow(policy: str, *, lives: bool = False) -> pk.Flow:
    made = pk.Flow().stream("a", [], schema=COLUMNS, time="ts", update_key="symbol", progress=pk.bounded(5))
    made.conflate("calm", "a", policy=policy, lives=lives).latest("now", "a")
    made.sql("CREATE VIEW doubled AS SELECT ts, symbol, price * 2 AS price FROM a")
    made.conflate("late_calm", "doubled")
    if not lives:
        made.sql("CREATE VIEW chosen AS SELECT * FROM calm WHERE price <> 3")
        made.conflate("twice", "chosen", policy="linecutting")
    return made


@cache
def asked(sql: str, policy: str = "in_place", *, lives: bool = False) -> Any:
    """A query, made once: every example begins an execution of its own."""
    return flow(policy, lives=lives).query(sql)


class Driven:
    """An execution whose clock, consumer and restarts are given."""

    def __init__(self, query: Any) -> None:
        self.query, self.now = query, 0
        self.run = self._begun()
        self.came: list[Row] = []
        self.out: list[Batch | Punctuation] = []

    def _begun(self) -> LocalExecution:
        run: LocalExecution = self.query.execution()
        run.clock = lambda: self.now
        return run

    def drive(self, steps: list[Any]) -> Driven:
        for step in steps:
            if step == "later":
                self.now += 7
            elif step == "snapshot":
                kept, self.run = self.run.snapshot(), self._begun()
                self.run.restore(kept)
            elif isinstance(step, int):
                self.out += self.run.release(step)
            else:
                self._feed(step)
        self.out += self.run.close()
        return self

    def _feed(self, rows: list[Row]) -> None:
        before = len(self.run.late())
        source = self.run.graph.sources["a"][0]
        self.out += self.run.feed("a", Batch(source.plan.schema, rows))
        late = [tuple(json.loads(text).values()) for text in self.run.late().column("row").to_pylist()[before:]]
        came = []
        for row in reversed(rows):  # of rows that are the same the later ones are late
            if row in late:
                late.remove(row)
            else:
                came.append(row)
        self.came += reversed(came)

    @property
    def rows(self) -> list[Row]:
        return [row for item in self.out if isinstance(item, Batch) for row in item.rows]

    @property
    def elements(self) -> list[Element]:
        return [e for item in self.out for e in (item.elements() if isinstance(item, Batch) else [item])]


def check_promises(out: list[Batch | Punctuation]) -> None:
    """No row comes after a bound that it is below, and the last bound is the end."""
    bound = MIN_TICK
    for item in out:
        if isinstance(item, Punctuation):
            assert item.value > bound
            bound = item.value
        else:
            assert (item.judged_by() >= bound).all()
    assert bound == END_OF_TIME


@given(st.sampled_from(QUEUES), STEPS)
def test_the_last_value_of_each_key_comes_out_and_none_changes_places(policy: str, steps: list[Any]) -> None:
    driven = Driven(asked("SELECT * FROM calm", policy)).drive(steps)
    check_promises(driven.out)
    if policy == "append":
        assert driven.rows == driven.came
    elif policy != "shedding":
        assert owed(driven.came, driven.rows, driven.query.schema, ["symbol"]) is None


@given(st.sampled_from(LOSSY), STEPS)
def test_counts_tell_where_every_row_went(policy: str, steps: list[Any]) -> None:
    driven = Driven(asked("SELECT * FROM calm", policy)).drive(steps)
    (arc,) = driven.run.graph.queued
    counts = arc.operator.queue.counts
    assert counts.enqueued == len(driven.came)
    assert counts.dequeued == len(driven.rows)
    assert counts.enqueued == counts.dequeued + counts.superseded + counts.older + counts.shed


@given(st.sampled_from(["in_place", "fifo", "linecutting"]), STEPS)
def test_what_was_delivered_lives_until_the_next_or_until_one_that_the_filter_rejects(
    policy: str, steps: list[Any]
) -> None:
    """The same steps give the same deliveries, with lives and without; the oracle gives lives to the deliveries."""
    plain = Driven(asked("SELECT * FROM calm", policy)).drive(steps)
    lived = Driven(asked("SELECT * FROM calm WHERE price > 4", policy, lives=True)).drive(steps)
    check_promises(lived.out)
    meant = asked("SELECT * FROM now WHERE price > 4").plan
    assert pk.tdb(lived.elements) == evaluate(meant, [("a", row) for row in plain.rows])


@given(STEPS)
def test_a_queue_on_an_inner_arc_is_the_same_below_and_above_a_projection(steps: list[Any]) -> None:
    one = Driven(asked("SELECT * FROM late_calm")).drive(steps)
    other = Driven(asked("SELECT ts, symbol, price * 2 AS price FROM calm")).drive(steps)
    assert one.rows == other.rows


@given(STEPS)
def test_two_queues_one_after_the_other_owe_what_one_does(steps: list[Any]) -> None:
    driven = Driven(asked("SELECT * FROM twice", "fifo")).drive(steps)
    check_promises(driven.out)
    passed = Driven(asked("SELECT * FROM chosen", "fifo")).drive(steps)
    assert owed(passed.rows, driven.rows, driven.query.schema, ["symbol"]) is None


def test_a_bound_goes_on_as_far_as_nothing_waits_before_it() -> None:
    #  in    X 1   Y 2   X 9 (bound 4)     release: X 9   release: Y 2
    #  out                                 2              4            X's first value was superseded
    driven = Driven(asked("SELECT * FROM calm"))
    for row in [(1, "X", 1), (2, "Y", 1), (9, "X", 2)]:
        driven._feed([row])
    first, second = driven.run.release(1), driven.run.release(1)
    assert [b.rows if isinstance(b, Batch) else b.value for b in first] == [[(9, "X", 2)], 2]
    assert [b.rows if isinstance(b, Batch) else b.value for b in second] == [[(2, "Y", 1)], 4]
    assert driven.run.release() == []
    driven._feed([(20, "X", 3)])  # Y's value has gone, and X's is after the bound
    assert [item.value for item in driven.run.release(0) if isinstance(item, Punctuation)] == [15]


def test_promises_of_groups_wait_until_nothing_does() -> None:
    flow_ = pk.Flow().stream(
        "a", [], schema="ts BIGINT, symbol STRING, price INT, kind STRING", time="ts", update_key="symbol",
        progress=pk.punctuated("kind = 'p'", per=["symbol"]),
    )  # fmt: skip
    flow_.conflate("calm", "a")
    driven = Driven(flow_.query("SELECT * FROM calm"))
    driven._feed([(1, "X", 1, "d"), (2, "Y", 1, "d"), (5, "X", None, "p")])
    assert [type(item) for item in driven.run.release(1)] == [Batch]
    after = driven.run.release(1)
    assert isinstance(after[-1], Punctuation)
    assert dict(after[-1].constants) == {"symbol": "X"}


def test_rows_that_are_pushed_one_by_one_wait_as_well() -> None:
    query = flow("in_place").query("SELECT * FROM calm WHERE price > 0")
    run = query.execution()  # type: ignore[attr-defined]
    push = run.pusher("a")
    for price in range(1, 100):
        push((price, "X", price))
    assert run.take() == []
    assert [item.rows for item in run.release() if isinstance(item, Batch)] == [[(99, "X", 99)]]


def test_what_is_asked_of_a_queue_is_no_part_of_its_state() -> None:
    made = flow("in_place").conflate("fresh", "a", max_staleness="1 second", budget=2)
    kept = Driven(made.query("SELECT * FROM calm"))
    kept._feed([(1, "X", 1)])
    other = made.query("SELECT * FROM fresh").execution()  # type: ignore[attr-defined]
    other.restore(kept.run.snapshot())
    assert [item.rows for item in other.close() if isinstance(item, Batch)] == [[(1, "X", 1)]]


def test_a_snapshot_of_another_policy_is_refused() -> None:
    made = flow("in_place").conflate("other", "a", policy="append")
    run = made.query("SELECT * FROM calm").execution()  # type: ignore[attr-defined]
    with pytest.raises(pk.PenstockError, match="operator"):
        made.query("SELECT * FROM other").execution().restore(run.snapshot())  # type: ignore[attr-defined]


def test_the_node_says_what_is_asked() -> None:
    node = flow("linecutting").query("SELECT * FROM calm").plan
    assert isinstance(node, Conflate)
    assert node.label == "Conflate by symbol (linecutting)"
