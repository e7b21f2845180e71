"""What is known of a graph at work: exact counts, times of a sample by clocks that the test moves, queues, bytes."""

from __future__ import annotations

import random
from itertools import cycle, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.errors import StreamError
from penstock.model.batch import Batch
from penstock.operators.state import MemoryPages
from penstock.runtime.arcs import QueuedArc, size_of
from penstock.runtime.graph_statistics import GraphStatistics
from penstock.runtime.held_bytes import bytes_of, bytes_of_pages
from penstock.runtime.sampling import Clocks, Meter, Waits
from penstock.runtime.strategies import BREADTH_FIRST

COLUMNS = "ts bigint, k bigint, v bigint"


class Bench:
    """A run of queries over `s` whose clock is moved by the functions `cheap` (1 s a row) and `dear` (5 s a row)."""

    def __init__(self, *queries: str, every: int = 1) -> None:
        self.now = 0.0
        self.flow = pk.Flow().stream("s", [], time="ts", schema=COLUMNS, progress=pk.bounded(4))
        self.flow.function("cheap", lambda value: self.work(1.0, value), "bigint")
        self.flow.function("dear", lambda value: self.work(5.0, value), "bigint")
        plans = {f"q{at}": self.flow.query(sql).plan for at, sql in enumerate(queries)}
        self.run = SharedExecution(self.flow.catalog, plans)
        self.run.stopwatch = lambda: self.now
        self.run.graph.measure(Clocks(lambda: self.now, self.run.stopwatch, every))
        self.schema = self.run.graph.sources["s"][0].operator.schema

    def work(self, seconds: float, value: Any) -> Any:
        self.now += seconds
        return value

    def feed(self, rows: list[Any], size: int) -> None:
        for at in range(0, len(rows), size):
            self.run.feed("s", Batch(self.schema, rows[at : at + size]))


CHAIN = "SELECT ts, dear(v) AS w FROM s WHERE cheap(k) = 1"
"""Half of the rows pass the selection; of n rows it takes n seconds, the projection 5 n / 2."""
ROWS = [(t, t % 2, t) for t in range(400)]


@pytest.mark.parametrize("size", [1, 20, 400])
def test_times_are_exact_where_all_is_timed(size: int) -> None:
    bench = Bench(CHAIN)
    bench.feed(ROWS, size)
    found = bench.run.statistics()
    assert [each.state for each in found.operators] == ["σ", "Σ1", "Σ2"]
    entrance, select, project = found.operators
    assert (entrance.processor_seconds, entrance.cost) == (0.0, 0.0)
    assert select.processor_seconds == pytest.approx(400)
    assert project.processor_seconds == pytest.approx(1000)
    assert (select.rows_in, select.rows_out, select.selectivity) == (400, 200, 0.5)
    assert (select.cost, project.cost, project.selectivity) == (pytest.approx(1), pytest.approx(5), 1.0)
    assert select.queries == ("q0",)


def test_rows_in_a_lane_are_timed_step_by_step() -> None:
    bench = Bench(CHAIN, "SELECT k, count(*) AS n [RANGE 50, SLIDE 50, WA ts] FROM s WHERE cheap(v) < 300 GROUP BY k")
    alone = Bench(CHAIN, every=16)
    for each in (bench, alone):
        push = each.run.pusher("s")
        for row in ROWS:
            push(row)
        each.run.take()
    found = {each.label: each for each in bench.run.statistics().operators}
    assert found["Select (cheap(k) = 1)"].processor_seconds == pytest.approx(400)
    assert found["Select (cheap(v) < 300)"].processor_seconds == pytest.approx(400)
    _, select, project = alone.run.statistics().operators
    assert 3 <= select.timed <= 14  # one in 64
    assert (select.rows_in, project.rows_in) == (400, 200)
    assert (select.cost, project.cost) == (pytest.approx(1), pytest.approx(5))


@pytest.mark.parametrize("pattern", [[(1, 1.0), (1, 9.0)], [(1, 0.1)] * 63 + [(1, 50.0)], [(1, 2.0), (157, 300.0)]])
def test_a_sample_is_unbiased_whatever_the_pattern_of_the_elements(pattern: list[tuple[int, float]]) -> None:
    meter, due, took, timed = Meter(Clocks(lambda: 0.0, every=16)), 1, 0.0, 0
    for units, seconds in islice(cycle(pattern), 200_000):
        took += seconds
        due -= units
        hits = 0
        while due <= 0:
            due, hits = due + meter.points.gap(), hits + 1
        if hits:
            timed += 1
            meter.take(hits, units, seconds)
    assert meter.seconds(due) == pytest.approx(took, rel=0.15)
    large = sum(units > 16 for units, _ in pattern) / len(pattern)
    assert timed < 200_000 * (large + 1 / 12)


def test_without_clocks_nothing_is_timed_and_everything_counted() -> None:
    bench = Bench(CHAIN)
    bench.run.graph.measure(Clocks())
    bench.feed(ROWS, 10)
    push = bench.run.pusher("s")
    push((400, 1, 1))
    found = bench.run.statistics()
    assert [(each.timed, each.processor_seconds, each.cost) for each in found.operators] == [(0, None, None)] * 3
    assert [each.rows_in for each in found.operators] == [401, 401, 201]
    assert found.results[0].traced == 0


def test_rates_are_of_a_recent_stretch() -> None:
    bench = Bench("SELECT ts, v FROM s WHERE k = 1")
    bench.run.take()  # somebody looks at 0
    for second in range(30):
        bench.now = float(second)
        bench.feed([(second, 1, 0)] * (100 if second < 15 else 4), 50)
    bench.now = 30.0
    select = bench.run.statistics().operators[1]
    # looks are a second apart; the newest that is ten seconds ago is of 20, when the rows of 20 had been counted
    assert select.rate_in == pytest.approx(9 * 4 / 10)
    assert select.rate_out == select.rate_in
    fresh = Bench("SELECT ts, v FROM s WHERE k = 1").run.statistics()
    assert fresh.operators[0].rate_in is None


def test_what_waits_at_a_break_node_is_counted_and_its_waiting_measured() -> None:
    bench = Bench(CHAIN)
    bench.run.break_after("Σ1")
    steps = bench.run.burst("s", [Batch(bench.schema, [(t, 1, t), (t, 0, t), (t, 1, t)]) for t in range(4)])
    for _ in steps:
        pass
    found = bench.run.statistics()
    entrance, inside, broken, result = found.arcs
    assert (entrance.kind, entrance.peak_elements, entrance.peak_rows) == ("entrance", 4, 12)
    assert (inside.kind, inside.producer, inside.consumer, inside.peak_rows) == ("arc", "σ", "Σ1", 0)
    assert (broken.kind, broken.producer, broken.consumer) == ("break", "Σ1", "Σ2")
    assert (broken.elements, broken.rows) == (0, 0)
    # two rows of each batch pass the selection, and wait until it has taken all four
    # each is followed by a bound
    assert (broken.peak_elements, broken.peak_rows) == (8, 8)
    # the selection takes 3 s for a batch, the projection 10 s for what passed of it: the bound of the first batch,
    # given after 3 s, waits for three more selections and for a projection
    assert (broken.traced, broken.wait) == (1, 9 + 10)
    assert (result.kind, result.consumer) == ("result", "q0")
    assert result.rows == 8


def test_the_latency_of_a_result_is_since_its_cause_came_in() -> None:
    bench = Bench(CHAIN)
    for t in range(10):
        bench.run.feed("s", Batch(bench.schema, [(t, 1, t)]))
    (result,) = bench.run.statistics().results
    assert (result.query, result.elements) == ("q0", 0)
    assert result.traced == 10
    # a second for the selection, five for the projection
    assert (result.latency, result.latency_half, result.latency_p99, result.latency_most) == (6.0, 6.0, 6.0, 6.0)
    burst = Bench(CHAIN)
    for _ in burst.run.burst("s", [Batch(burst.schema, [(t, 1, t)]) for t in range(3)]):
        burst.run.take()
    assert list(burst.run.graph.outlets["q0"].waits.recent) == [6.0, 6.0, 12.0, 12.0, 18.0, 18.0]  # rows, and the bound


def test_the_cause_of_a_window_is_the_bound_that_closes_it() -> None:
    bench = Bench("SELECT k, count(*) AS n [RANGE 10, SLIDE 10, WA ts] FROM s WHERE cheap(k) >= 0 GROUP BY k")
    for t in range(40):
        bench.now = 100.0 * t
        bench.run.feed("s", Batch(bench.schema, [(t, 0, 0)]))
    (result,) = bench.run.statistics().results
    assert result.traced == 5  # bounds at 0, 4, 14, 24 and 34, the last three with rows
    assert (result.latency, result.latency_most) == (1.0, 1.0)  # the row that lets a bound pass takes a second


def test_what_waits_is_counted_right_at_any_time() -> None:
    rng = random.Random(5)
    bench = Bench(CHAIN, "SELECT ts, v FROM s WHERE k = 0", "SELECT ts, k FROM s UNION ALL SELECT ts, v FROM s")
    arcs = [arc for node in bench.run.graph.nodes for arc in node.inputs if not isinstance(arc, QueuedArc)]
    most = dict.fromkeys(arcs, 0)
    for step in range(30):
        for arc in arcs:
            arc.is_break = rng.random() < 0.5
        bench.run.use(BREADTH_FIRST if step % 2 else pk.dfs(batch=3))
        rows = [(step + at // 5, at % 2, at) for at in range(rng.randint(1, 40))]
        for _ in bench.run.burst("s", [Batch(bench.schema, rows[at : at + 4]) for at in range(0, len(rows), 4)]):
            for arc in arcs:
                arc.count()
                held = list(arc.producer.buffer.elements)[arc.head - arc.producer.buffer.start :]
                assert arc.rows == sum(map(size_of, held))
                most[arc] = max(most[arc], arc.rows)
                assert arc.peak_rows >= most[arc]
                assert arc.peak >= len(held)
    assert max(most.values()) > 10
    assert all(arc.rows == arc.unread == 0 for arc in arcs)


def test_statistics_are_tables_as_well() -> None:
    bench = Bench(CHAIN)
    bench.feed(ROWS[:10], 5)
    found = bench.run.statistics()
    assert found.table["state"].to_pylist() == ["σ", "Σ1", "Σ2"]
    assert found.table["queries"].to_pylist() == [["q0"]] * 3
    assert found.table.schema.field("cost").type == pa.float64()
    assert [row["rows_in"] for row in found.rows()] == [10, 10, 5]
    assert found.arc_table["kind"].to_pylist() == ["entrance", "arc", "arc", "result"]
    assert found.result_table["query"].to_pylist() == ["q0"]
    assert found["Σ2"].rows_in == 5
    with pytest.raises(KeyError, match="Σ9"):
        found["Σ9"]


def test_statistics_are_asked_for_by_the_name_of_a_query() -> None:
    bench = Bench(CHAIN, "SELECT ts, v FROM s")
    assert [each.query for each in bench.run.statistics("q1").results] == ["q1"]
    assert bench.run.statistics("gone").operators == ()
    with pytest.raises(StreamError) as told:
        bench.run.statistics(5)  # type: ignore[arg-type]
    assert (told.value.what, told.value.got) == ("The name of a query is a text.", "5")


@pytest.mark.parametrize("kind", ["query", "flow"])
def test_runs_tell_their_statistics(kind: str) -> None:
    rows = [{"t": t, "k": t % 2, "v": t} for t in range(60)]
    flow = pk.Flow().stream("s", rows, time="t")
    odd = flow.query("SELECT t, v FROM s WHERE k = 1", name="odd")
    even = flow.query("SELECT t, v FROM s WHERE k = 0", name="even")
    run: Any = odd.start([]) if kind == "query" else flow.start({odd: [], even: []})
    run.wait()
    found: GraphStatistics = run.statistics()
    assert {each.label: each.rows_out for each in found.operators}["Select (k = 1)"] == 30
    assert [each.query for each in found.results] == (["odd"] if kind == "query" else ["odd", "even"])
    assert found.operators[0].processor_seconds is not None
    if kind == "flow":
        own = run.runs["even"].statistics()
        assert [each.label for each in own.operators] == [
            "Source s (time t, ordered())",
            "Select (k = 0)",
            "Project t, v",
        ]
        assert [each.query for each in own.results] == ["even"]
        assert [each.consumer for each in own.arcs] == ["σ", "Σ2", "Σ4", "even"]


def test_bytes_are_those_of_what_is_held() -> None:
    numbers = np.zeros(1000, np.int64)
    pages = MemoryPages({"a": numbers, "b": numbers, "c": numbers[10:20]})
    assert 8000 <= bytes_of_pages(pages) < 8600  # once, whoever looks at it
    table = pa.table({"x": pa.array(range(500), pa.int64())})
    schema = Bench(CHAIN).schema
    assert 4000 <= bytes_of([Batch(schema, table=table)]) < 4300
    texts = [f"{n:020}" for n in range(100_000)]
    exact = sum(map(len, texts)) + 100_000 * (49 - 0)
    assert bytes_of([texts]) == pytest.approx(exact + 8 * 100_000, rel=0.1)
    keyed = {n + 1000: (n + 1000, f"{n:020}") for n in range(50_000)}
    whole = 50_000 * (28 + 16 + 56 + 69) + keyed.__sizeof__()  # the key, the tuple with its header, the text
    assert bytes_of([keyed]) == pytest.approx(whole, rel=0.1)


def test_state_and_buffers_have_their_bytes_in_the_statistics() -> None:
    bench = Bench("SELECT k, count(*) AS n [RANGE 1000, SLIDE 1000, WA ts] FROM s GROUP BY k", "SELECT ts, v FROM s")
    bench.feed([(1, k, k) for k in range(3000)], 500)
    before = {each.label: each for each in bench.run.statistics().operators}
    assert sum(each.state_bytes for label, each in before.items() if "family" in label) > 3000 * 8
    assert before["Project ts, v"].buffer_bytes == 0
    for _ in bench.run.burst("s", [Batch(bench.schema, [(2, k, k) for k in range(500)])]):
        pass
    after = {each.label: each for each in bench.run.statistics().operators}
    assert after["Project ts, v"].buffer_bytes > 500 * 16


def test_waits_tell_quantiles_of_the_last() -> None:
    waits = Waits()
    assert (waits.mean, waits.quantile(0.5)) == (None, None)
    for each in range(1, 1001):
        waits.take(float(each))
    assert (waits.count, waits.mean, waits.most) == (1000, 500.5, 1000.0)
    assert waits.quantile(0.0) == 745.0
    assert waits.quantile(0.5) == 873.0
    assert waits.quantile(1.0) == 1000.0
