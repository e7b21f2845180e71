"""Several queries with different needs on one stream: what they have in common waits and runs once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.model.batch import Batch
from penstock.model.schema import schema_of
from penstock.reference.updates import owed
from tests.flow.played import Played, no_pause  # noqa: F401 - a fixture

COLUMNS = "ts BIGINT, symbol STRING, price INT"
SCHEMA = schema_of([("ts", "bigint"), ("symbol", "string"), ("price", "int")], "ts")
KEYS, ROWS, COST = 4, 600, 3000


def played() -> Played:
    """A row each millisecond of four keys; the function that the queries call takes three milliseconds."""
    return Played((1000 * i, {"ts": i, "symbol": f"S{i % KEYS}", "price": i}) for i in range(ROWS))


class Together:
    """Queries over one conflated stream, run as one, by a clock that an expensive function moves on."""

    def __init__(self, *sqls: str, **needs: dict[str, Any]) -> None:
        self.source = played()
        self.flow = pk.Flow().stream("quotes", self.source, schema=COLUMNS, time="ts", update_key="symbol")
        for name, options in needs.items():
            self.flow.conflate(name, "quotes", **options)
        self.calls = 0
        self.flow.function("model", self.model, returns="int")
        self.queries: dict[str, Any] = {f"q{i}": self.flow.query(sql, name=f"q{i}") for i, sql in enumerate(sqls)}
        self.execution = SharedExecution(self.flow.catalog, {name: q.plan for name, q in self.queries.items()})
        self.execution.clock = lambda: self.source.now
        self.rows: dict[str, list[tuple[int, dict[str, Any]]]] = {name: [] for name in self.queries}

    def model(self, price: int) -> int:
        self.calls += 1
        self.source.now += COST
        return price + 1

    def run(self) -> Together:
        openers = {"quotes": self.flow._sources["quotes"].open}
        for name, item in self.execution.run(openers):
            if isinstance(item, Batch):
                self.rows[name] += [(self.source.now, row) for row in item.visible().to_pylist()]
        return self

    def ages(self, name: str) -> list[int]:
        return [at - 1000 * row["ts"] for at, row in self.rows[name]]


MODEL = "SELECT ts, symbol, model(price) AS price FROM {}"


def test_what_two_queries_have_in_common_waits_and_runs_once() -> None:
    """Sharing the queue and the function costs what one query does; apart, each waits for the other."""
    calm = {"max_staleness": "1 second"}
    shared = Together(
        MODEL.format("calm"), f"SELECT * FROM ({MODEL.format('calm')}) AS m WHERE price > 9", calm=calm
    ).run()
    apart = Together(MODEL.format("one"), MODEL.format("two"), one=calm, two={"max_staleness": "2 seconds"}).run()
    assert len(shared.execution.graph.queued) == 1
    assert len(apart.execution.graph.queued) == 2
    assert shared.calls == len(shared.rows["q0"])
    assert max(shared.ages("q0")) < max(apart.ages("q0"))
    for each in (shared, apart):
        came = [(i, f"S{i % KEYS}", i + 1) for i in range(ROWS)]
        out = [tuple(row.values()) for _, row in each.rows["q0"]]
        assert owed(came, out, SCHEMA, ["symbol"]) is None


def test_a_query_that_needs_all_rows_gets_them_beside_one_that_does_not() -> None:
    made = Together(MODEL.format("calm"), "SELECT ts, symbol, price FROM quotes", calm={}).run()
    assert [row["ts"] for _, row in made.rows["q1"]] == list(range(ROWS))
    assert len(made.rows["q0"]) < ROWS / 2
    assert max(made.ages("q0")) <= (KEYS + 1) * COST + 10_000


def test_each_query_has_the_rate_that_it_asks_for() -> None:
    """S0 every 50 ms for one, every 200 ms for the other: as many rows as that takes, and no more."""
    made = Together(
        "SELECT * FROM often", "SELECT * FROM rarely",
        often={"access": {"S0": "50 milliseconds"}}, rarely={"every": "200 milliseconds"},
    ).run()  # fmt: skip
    often = [at for at, row in made.rows["q0"] if row["symbol"] == "S0"]
    assert min(later - at for at, later in pairwise(often[:-1])) >= 50_000  # the last one comes with the end
    assert 600 / 50 - 1 <= len(often) <= 600 / 50 + 2
    for key in range(KEYS):
        found = [row["ts"] for _, row in made.rows["q1"] if row["symbol"] == f"S{key}"]
        assert 600 / 200 <= len(found) <= 600 / 200 + 2
        assert found[-1] == max(ts for ts in range(ROWS) if ts % KEYS == key)


def test_nothing_is_passed_over_until_load_rises_and_again_when_it_falls() -> None:
    """Load 1/3, then 3, then 1/3: every row, then the newest, then every row; in order, and none is lost."""
    gaps = [9000] * 100 + [1000] * 900 + [9000] * 100
    times = [sum(gaps[:i]) for i in range(len(gaps))]
    source = Played((at, {"ts": i, "symbol": f"S{i % KEYS}", "price": i}) for i, at in enumerate(times))
    query: Any = pk.conflate(
        source, time="ts", key="symbol", schema=COLUMNS, adaptive=True, max_staleness="100 milliseconds"
    )
    execution = query.execution()
    execution.clock = lambda: source.now
    out: list[tuple[int, ...]] = []
    ages = []
    for item in query.items(execution):
        if isinstance(item, Batch):
            source.now += COST * len(item)
            out += item.rows  # type: ignore[arg-type]
            ages += [source.now - times[row[0]] for row in item.rows]  # type: ignore[index]
    delivered = {row[0] for row in out}
    assert set(range(100)) <= delivered
    assert len(delivered & set(range(100, 1000))) < 500
    assert set(range(1010, 1100)) <= delivered
    came = [(i, f"S{i % KEYS}", i) for i in range(len(gaps))]
    assert owed(came, out, SCHEMA, ["symbol"]) is None
    assert max(ages) <= 100_000
    (arc,) = execution.graph.queued
    assert arc.operator.queue.counts.superseded == len(gaps) - len(out)


def test_a_flow_run_tells_of_the_queues_of_each_query_and_is_read_by_key() -> None:
    rows = [{"ts": i, "symbol": f"S{i % KEYS}", "price": i} for i in range(40)]
    flow = pk.Flow().stream("quotes", rows, time="ts", update_key="symbol").conflate("calm", "quotes")
    calm, all_ = (
        flow.query("SELECT * FROM calm", name="calm"),
        flow.query("SELECT symbol, price FROM quotes", name="all"),
    )
    out: list[Any] = []
    run = flow.start({calm: out, all_: None})
    run.wait()
    assert len(run.progress.queues) == 1
    assert run.runs["calm"].progress.queues[0].superseded == 36
    assert run.runs["all"].progress.queues == ()
    assert run.runs["calm"].read("S1") == {"ts": 37, "symbol": "S1", "price": 37}
    assert run.runs["all"].read("S1") == {"symbol": "S1", "price": 37}
    with pytest.raises(pk.PenstockError, match="Nothing waits on the way"):
        run.runs["all"].staleness("S1")
    with pytest.raises(pk.PenstockError, match="cannot be read by key"):
        run.read("S1")


def test_a_snapshot_of_a_flow_has_what_waits() -> None:
    flow = pk.Flow().stream("quotes", [], schema=COLUMNS, time="ts", update_key="symbol").conflate("calm", "quotes")
    plans = {"calm": flow.query("SELECT * FROM calm").plan}
    one = SharedExecution(flow.catalog, plans)
    one.feed("quotes", Batch(SCHEMA, [(1, "A", 1), (2, "B", 2), (3, "A", 3)]))
    other = SharedExecution(flow.catalog, plans)
    other.restore(one.snapshot())
    found = [item.rows for _, item in other.close() if isinstance(item, Batch)]
    assert found == [[(3, "A", 3), (2, "B", 2)]]


def test_a_query_that_leaves_takes_its_queue_along() -> None:
    flow = pk.Flow().stream("quotes", [], schema=COLUMNS, time="ts", update_key="symbol").conflate("calm", "quotes")
    both = {"calm": flow.query("SELECT * FROM calm").plan, "all": flow.query("SELECT * FROM quotes").plan}
    execution = SharedExecution(flow.catalog, both)
    execution.remove("calm")
    assert execution.graph.queued == []
    execution.feed("quotes", Batch(SCHEMA, [(1, "A", 1)]))
    assert execution.release() == []
