"""`pk.conflate`: freshness under overload, what the run tells of it, and what is refused."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as pk
from penstock.engines.base import Support, check
from penstock.engines.spark.support import BATCH, STREAMING
from penstock.errors import StreamError, UnsupportedError
from penstock.model.batch import Batch
from penstock.model.schema import schema_of
from penstock.plan.nodes import Conflate
from penstock.reference.updates import owed
from tests.flow.played import Played, consumed, no_pause  # noqa: F401 - a fixture

COLUMNS = "ts BIGINT, symbol STRING, price INT"
KEYS, ROWS = 5, 800


def overloaded(rows: int = ROWS) -> Played:
    """A row each millisecond, of five keys in turn: five times what a consumer takes that needs 5 ms for each."""
    return Played((1000 * i, {"ts": i, "symbol": f"S{i % KEYS}", "price": i}) for i in range(rows))


def conflated(source: Any, **options: Any) -> Any:
    return pk.conflate(source, time="ts", key="symbol", schema=COLUMNS, **options)


def delays(policy: str, **options: Any) -> list[int]:
    """How long after it came each row was delivered, in the order of delivery."""
    source = overloaded()
    return [at - 1000 * row["ts"] for at, row in consumed(conflated(source, policy=policy, **options), source, 5000)]


@pytest.mark.parametrize("policy", ["in_place", "fifo", "linecutting"])
def test_under_overload_values_stay_fresh(policy: str) -> None:
    #  keys wait for each other at most: 5 keys x 5 ms, and a row that comes while a round is under way waits for that
    found = delays(policy)
    assert max(found) <= (KEYS + 1) * 5000 + 10_000
    assert len(found) < ROWS / 4


def test_an_append_queue_falls_behind_ever_further() -> None:
    found = delays("append")
    assert len(found) == ROWS
    assert found[-1] > 1.9 * found[ROWS // 2] > 1.9 * (ROWS // 2) * 3500  # each row takes 4 ms longer than it came


def test_every_last_value_is_delivered_and_each_key_is_in_order() -> None:
    source = overloaded()
    came = [tuple(row.values()) for _, row in source.rows]
    out = [tuple(row.values()) for _, row in consumed(conflated(source), source, 5000)]
    assert (
        owed(came, out, schema_of([("ts", "bigint"), ("symbol", "string"), ("price", "int")], "ts"), ["symbol"]) is None
    )


def test_a_budget_is_how_many_rows_go_on_at_a_time() -> None:
    source = overloaded(200)
    query = conflated(source, budget=2)
    execution = query.execution()
    execution.clock = lambda: source.now
    sizes = []
    for item in query.items(execution):
        if not isinstance(item, pk.Punctuation):
            sizes.append(len(item))
            source.now += 20_000
    assert max(sizes) == 2


def test_without_one_a_round_takes_about_ten_milliseconds() -> None:
    source = Played((10 * i, {"ts": i, "symbol": f"S{i}", "price": i}) for i in range(2000))  # 2000 keys: never idle
    query = conflated(source)
    execution = query.execution()
    execution.clock = lambda: source.now
    sizes = []
    for item in query.items(execution):
        if not isinstance(item, pk.Punctuation):
            sizes.append(len(item))
            source.now += 100 * len(item)
    assert sizes[0] == 1  # nothing was measured yet
    assert set(sizes[2:-2]) <= set(range(90, 101))


class Held:
    """A sink that takes its time, until it is let go."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.begun, self.let = threading.Event(), threading.Event()

    def __call__(self, table: Any) -> None:
        self.rows += table.to_pylist()
        self.begun.set()
        assert self.let.wait(60)


class Handed:
    """A source that is polled, and gives what it was handed."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def poll(self) -> Any:
        return self.items.pop(0) if self.items else pk.IDLE


def row(ts: int, symbol: str, price: int) -> dict[str, Any]:
    return {"ts": ts, "symbol": symbol, "price": price}


def test_a_run_tells_what_waits_and_what_was_superseded_and_is_read_by_key() -> None:
    source, sink = Handed(), Held()
    source.items = [row(1, "A", 1)]
    run = conflated(source, max_staleness="1 hour", progress=pk.bounded(10)).start(sink)
    assert sink.begun.wait(60)
    source.items += [row(2, "A", 2), row(3, "B", 3), row(4, "A", 4), row(2, "B", 0), pk.END]
    sink.let.set()
    run.wait()
    (queue,) = run.progress.queues
    assert (queue.enqueued, queue.older, queue.waiting) == (5, 1, 0)
    assert queue.delivered == queue.dequeued == len(sink.rows) == 5 - 1 - queue.superseded
    assert [r for r in sink.rows if r["symbol"] == "A"][-1] == row(4, "A", 4)
    assert queue.is_met
    assert queue.average_application_staleness >= queue.average_queue_staleness > 0
    assert run.progress["queues"][0]["policy"] == "in_place"
    assert run.read("A") == row(4, "A", 4)
    assert run.read("C") is None
    assert run.staleness("A")["application_staleness"] == 0
    assert run.staleness("A")["average_application_staleness"] > 0


def test_what_waits_is_read_before_it_is_delivered() -> None:
    query = conflated([])
    execution = query.execution()
    (arc,) = execution.graph.queued
    push = execution.pusher("stream")
    push((1, "A", 1))
    push((2, "A", 2))
    assert arc.operator.queue.read(("A",)) == (2, "A", 2)


def test_values_that_a_filter_has_rejected_are_not_current() -> None:
    flow = pk.Flow().stream("q", [row(1, "A", 9), row(2, "B", 9), row(3, "A", 1)], time="ts", update_key="symbol")
    run = flow.latest("now", "q").query("SELECT * FROM now WHERE price > 5").start(None)
    run.wait()
    assert run.read("A") is None
    assert run.read("B") == row(2, "B", 9)


def test_a_source_at_rest_waits_for_its_consumer() -> None:
    rows = [row(i, "A", i) for i in range(5)]
    assert conflated(iter(rows)).collect().to_pylist() == rows


def test_a_run_that_cannot_be_fresh_enough_says_so_with_the_least_bound(caplog: pytest.LogCaptureFixture) -> None:
    source = overloaded()
    query = conflated(source, max_staleness="10 milliseconds")
    execution = query.execution()
    execution.clock = lambda: source.now
    with caplog.at_level(logging.WARNING, "penstock.run"):
        for item in query.items(execution):
            source.now += 0 if isinstance(item, pk.Punctuation) else 5000 * len(item)
    (said,) = [record.getMessage() for record in caplog.records]
    assert "max_staleness of 10 milliseconds cannot be met: a row costs 5 ms" in said
    (arc,) = execution.graph.queued
    least = arc.pacing.least_bound
    assert least is not None
    assert KEYS * 5000 <= least <= (KEYS + 1) * 5000 + 10_000  # what delays() shows to be the truth
    assert not arc.pacing.is_met


def test_a_run_that_is_stopped_goes_on_with_what_waited() -> None:
    query = conflated([row(1, "A", 1), row(2, "B", 2), row(3, "C", 3)], budget=1)
    execution = query.execution()
    out: list[Any] = []
    for item in query.items(execution, stopped=lambda: len(out) > 0):
        out.append(item)
    again = query.execution()
    again.restore(execution.snapshot())
    before = [r for item in out if not isinstance(item, pk.Punctuation) for r in item.rows]
    after = [r for item in again.close() if not isinstance(item, pk.Punctuation) for r in item.rows]
    assert len(before) < 3
    assert sorted(before + after) == [(1, "A", 1), (2, "B", 2), (3, "C", 3)]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"policy": "newest"}, "There is no such policy"),
        ({"policy": 7}, "There is no such policy"),
        ({"policy": np.array([1, 2])}, "There is no such policy"),
        ({"memory": np.array([1, 2])}, "There is no such memory manager"),
        ({"budget": np.array([1, 2])}, "A budget is a number of rows"),
        ({"budget": pa.scalar(1)}, "A budget is a number of rows"),
        ({"access": np.array([1, 2])}, "access says of some keys"),
        ({"key": np.array("symbol")}, "key names columns"),
        ({"key": b""}, "key names columns"),
        ({"memory": "naiv"}, "There is no such memory manager"),
        ({"forget_after": "1 day", "policy": "append"}, "Only an update queue of rows forgets keys"),
        ({"forget_after": "0 seconds"}, "forget_after: This is not longer than nothing"),
        ({"budget": 0}, "A budget is a number of rows"),
        ({"max_staleness": 5}, "max_staleness: This is no length of time by the clock"),
        ({"every": "5"}, "every: This is no length of time by the clock"),
        ({"every": "5 rows"}, "every: This is no length of time by the clock"),
        ({"every": "often"}, "every: "),
        ({"access": {"A": 5}}, "access of 'A': This is no length of time by the clock"),
        ({"max_staleness": "0 seconds"}, "max_staleness: This is not longer than nothing"),
        ({"max_staleness": timedelta(seconds=-1)}, "max_staleness: This is not longer than nothing"),
        ({"max_staleness": "1000 years"}, "max_staleness: "),
        ({"adaptive": "yes"}, "adaptive is true or false"),
        ({"lives": ("vs", "ve")}, "lives is true or false"),
        ({"key": "nothing"}, "key names an unknown column"),
        ({"key": "ts"}, "The time tells every update apart"),
        ({"key": None}, "By which columns a row updates the one before is not known"),
        ({"access": {"A": "1 minute"}, "policy": "append"}, "Only an update queue has a pace"),
        ({"access": {("A", "B"): "1 minute"}}, "A key has a value for each of its columns"),
        ({"access": ["A"]}, "access says of some keys"),
        ({"every": "1 minute", "adaptive": True}, "Values come at a pace of their own"),
    ],
)
def test_options_that_are_none_are_refused(options: dict[str, Any], what: str) -> None:
    with pytest.raises(StreamError, match=what):
        pk.conflate([], time="ts", schema=COLUMNS, **{"key": "symbol", **options})


def test_a_bound_of_zero_goes_on_as_any_other() -> None:
    flow = pk.Flow().stream("q", [], schema=COLUMNS, time="ts", progress=pk.bounded(5), update_key="symbol")
    execution = flow.conflate("calm", "q").query("SELECT * FROM calm").execution()
    execution.pusher("q")((5, "A", 1))
    said = [item for item in execution.release(1) if isinstance(item, pk.Punctuation)]
    assert [punctuation.value for punctuation in said] == [0]


def test_choices_are_taken_however_they_are_written() -> None:
    flow = pk.Flow().stream("q", [], schema=COLUMNS, time="ts", update_key="symbol")
    flow.conflate("calm", "q", policy="IN-PLACE", windows="Lazy", memory="On-Demand")
    plan = flow.query("SELECT symbol, max(price) [RANGE 2, SLIDE 2, WA ts] FROM calm GROUP BY symbol").plan
    found = next(node for node in plan.walk() if isinstance(node, Conflate))
    assert (found.policy, found.windows, found.memory) == ("in_place", "lazy", "on_demand")


def test_a_key_that_would_lose_values_is_refused() -> None:
    flow = pk.Flow().stream("q", [], schema=COLUMNS, time="ts", update_key=["symbol", "price"])
    with pytest.raises(StreamError, match="would take each other's place") as refused:
        flow.conflate("calm", "q", key="symbol")
    assert refused.value.hint == "add price"
    assert flow.conflate("calm", "q").query("SELECT * FROM calm").properties.update_key == {"symbol", "price"}


def test_lives_above_a_filter_are_refused() -> None:
    flow = pk.Flow().stream("q", [], schema=COLUMNS, time="ts", update_key="symbol")
    chosen = flow.query("SELECT * FROM q WHERE price > 5")
    with pytest.raises(StreamError, match="ends the life of the one before"):
        pk.conflate(chosen, lives=True)
    flow.sql("CREATE VIEW chosen AS SELECT * FROM q WHERE price > 5")
    with pytest.raises(StreamError, match="ends the life of the one before"):
        flow.latest("now", "chosen")


def test_what_it_is_called_with_is_checked() -> None:
    flow = pk.Flow().stream("q", [], schema=COLUMNS, time="ts")
    with pytest.raises(StreamError, match="told by a time"):
        pk.conflate([], key="symbol")
    with pytest.raises(StreamError, match="A query has its time already"):
        pk.conflate(flow.query("SELECT * FROM q"), key="symbol", time="ts")
    with pytest.raises(StreamError, match="There is no such stream"):
        flow.conflate("calm", "nothing", key="symbol")
    with pytest.raises(StreamError, match="There is a stream of that name already"):
        flow.conflate("q", "q", key="symbol")
    with pytest.raises(StreamError, match="must be an identifier"):
        flow.latest("7", "q", key="symbol")
    plain = flow.query("SELECT * FROM q").start(None)
    plain.wait()
    with pytest.raises(StreamError, match="no update key to read it by"):
        plain.read("A")
    with pytest.raises(StreamError, match="A number of rows is expected"):
        flow.query("SELECT * FROM q").execution().release(-1)  # type: ignore[attr-defined]


@pytest.mark.parametrize("table", [BATCH, STREAMING])
def test_some_of_it_is_refused_on_spark(table: Mapping[str, Support]) -> None:
    flow = pk.Flow().stream("q", [], schema=COLUMNS, time="ts", update_key="symbol").conflate("calm", "q")
    check(flow.query("SELECT * FROM calm").plan, "Spark", table)
    flow.conflate("paced", "q", every="1 minute").conflate("all_rows", "q", policy="append")
    for name, told in (("paced", "some keys are wanted less often"), ("all_rows", "all rows wait")):
        with pytest.raises(UnsupportedError, match=told) as refused:
            check(flow.query(f"SELECT * FROM {name}").plan, "Spark", table)
        assert "in-process" in refused.value.hint
    with pytest.raises(UnsupportedError, match="does not support this: update streams"):
        check(flow.query("SELECT * FROM q UNION q").plan, "Spark", table)
    check(flow.query("SELECT * FROM q WHERE price > 1").plan, "Spark", table)


def test_a_query_without_a_name_for_its_key_is_conflated_by_its_update_key() -> None:
    flow = pk.Flow().stream("q", [row(1, "A", 1)], time="ts", update_key="symbol")
    query = pk.conflate(flow.query("SELECT symbol AS s, price, ts FROM q"))
    assert isinstance(query.plan, Conflate)
    assert query.plan.key == ("s",)
    assert query.collect().to_pylist() == [{"s": "A", "price": 1, "ts": 1}]


def test_keys_that_come_no_more_are_forgotten_in_a_run() -> None:
    """Three thousand orders that come once, a millisecond apart: a thousand or so are known at a time."""
    query: Any = pk.conflate(
        [], time="ts", key="number", schema="ts BIGINT, number BIGINT", forget_after="100 milliseconds"
    )
    execution, now, out = query.execution(), 0, 0
    execution.clock = lambda: now
    push = execution.pusher("stream")
    for number in range(3000):
        now += 1000
        push((number, number))
        out += sum(len(item) for item in execution.release() if isinstance(item, Batch))
    (arc,) = execution.graph.queued
    assert out == 3000
    assert len(arc.operator.queue._keys) <= 1200
