"""Whatever the strategy, and whenever it is changed, the results are the same and no arc changes the order.

One script of steps (rows in batches, in bursts and one by one, queries that come and go) is played twice: depth-first
throughout, and by strategies that change at random, also in the middle of an element, over arcs that are broken and
mended at random. Each query must have the same TDB, its promises must be sound, and what each operator took of an
input must be what was given on it, in order.
"""

from __future__ import annotations

import random
from collections import defaultdict
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.errors import StreamError
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.plan.useful import EVERY, Useful, useful_below, useful_to_any
from penstock.runtime.arcs import Arc, Given, QueuedArc
from penstock.runtime.ets_arcs import EtsArcs
from penstock.runtime.graph_node import GraphNode
from penstock.runtime.installed_table import table_of
from penstock.runtime.sampling import Clocks
from penstock.runtime.shared_graph import SharedGraph
from penstock.runtime.state_table import Fork
from penstock.runtime.strategies import BREADTH_FIRST, DEPTH_FIRST, ROUND_ROBIN, dfs
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from tests.profiles import examples

COLUMNS = "ts bigint, k bigint, v bigint"
QUERIES = (
    "SELECT ts, k, v + 1 AS w FROM s WHERE v > 1",
    "SELECT k, count(*) AS n, max(v) AS m [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k",
    "SELECT k, sum(w) AS n [RANGE 6, SLIDE 6, WA ts] FROM (SELECT ts, k, v * 2 AS w FROM s WHERE v <> 2) d GROUP BY k",
    "SELECT ts, k FROM s WHERE k = 1 UNION ALL SELECT ts, v FROM s UNION ALL SELECT ts, k FROM r WHERE v > 0",
    "SELECT count(*) AS n [RANGE 8, SLIDE 4, WA ts] FROM (SELECT ts, k FROM s UNION ALL SELECT ts, k FROM r) u",
    "SELECT a.ts, a.k, b.v FROM s a JOIN r b ON a.k = b.k AND a.ts = b.ts",
    "SELECT a.ts, a.k, b.v FROM s a LEFT JOIN r b ON a.k = b.k AND b.ts BETWEEN a.ts - 3 AND a.ts WHERE a.v > 0",
    "SELECT max(n) AS m [RANGE 10, SLIDE 10, WA window_end] FROM "
    "(SELECT k, count(*) AS n [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k) x",
    "SELECT DISTINCT ts, k FROM r",
)
LATER = tuple(sql for sql in QUERIES if "JOIN" not in sql)
"""Those that can join streams at work."""
STRATEGIES = (DEPTH_FIRST, BREADTH_FIRST, ROUND_ROBIN, dfs(batch=2), dfs(batch=7))
ROW = st.tuples(st.integers(0, 50), st.integers(0, 2), st.integers(0, 4))
STEPS = st.lists(
    st.tuples(st.sampled_from(["burst", "burst", "single", "batch", "add", "remove"]), st.integers(0, 99)),
    min_size=5,
    max_size=14,
)


class Played:
    """A graph at work, whose strategy changes when `rng` says so."""

    def __init__(self, queries: list[int], rng: random.Random | None) -> None:
        self.flow = pk.Flow()
        for name in "sr":
            self.flow.stream(name, [], time="ts", schema=COLUMNS, progress=pk.bounded(6))
        self.rng = rng
        self.names = 0
        self.given: dict[GraphNode, dict[int, int]] = defaultdict(dict)
        """The place of each element that an operator has given."""
        self.kept: list[Given] = []
        self.next: dict[tuple[GraphNode, int], int] = {}
        self.taken: dict[str, list[Batch | Punctuation]] = defaultdict(list)
        self.run = SharedExecution(self.flow.catalog)
        executor = self.run.graph.executor
        executor.carried = partial(self.carrying, executor.carried)  # type: ignore[method-assign]
        if rng is not None:  # every element is timed and traced, and what one run takes is not what another does
            self.run.graph.measure(Clocks(rng.random, rng.random, every=1))
        for name in "sr":
            self.add(f"SELECT ts, v FROM {name}")
        for number in queries:
            self.add(QUERIES[number % len(QUERIES)])
        self.disturb()

    def add(self, sql: str) -> None:
        self.run.add({f"q{self.names}": self.flow.query(sql).plan})
        self.watch()
        self.names += 1

    def remove(self, number: int) -> None:
        running = list(self.run.plans)[2:]
        if running:
            name = running[number % len(running)]
            self.taken[name] += self.run.remove(name)

    def disturb(self) -> None:
        """Another strategy, for all or for one query, and perhaps another break node."""
        if self.rng is None or self.rng.random() < 0.4:
            return
        graph = self.run.graph
        arcs = [arc for node in graph.nodes for arc in node.inputs if not isinstance(arc, QueuedArc)]
        for arc in self.rng.sample(arcs, min(2, len(arcs))):
            arc.is_break = self.rng.random() < 0.5
        if self.rng.random() < 0.5 and any(node.meter.timed for node in graph.nodes):
            graph.place_breaks(self.rng.choice(["chain", None]))
        query = self.rng.choice([None, *self.run.plans])
        self.run.use(self.rng.choice(STRATEGIES), query)

    def burst(self, stream: str, rows: list[Any]) -> None:
        schema = self.run.graph.sources[stream][0].operator.schema
        cut = self.rng.randint(1, 5) if self.rng else 3
        batches = [Batch(schema, rows[at : at + cut]) for at in range(0, len(rows), cut)]
        for _ in self.run.burst(stream, batches):
            self.disturb()  # in the middle of an element
        self.keep(self.run.take())

    def watch(self) -> None:
        """What is taken of every input must be what was given on it, in order."""
        for node in self.run.graph.nodes:
            if "take_in" not in vars(node):
                node.hold = partial(self.holding, node, node.hold)  # type: ignore[method-assign]
                node.take_in = partial(self.taking, node, node.take_in)  # type: ignore[method-assign]

    def holding(self, node: GraphNode, hold: Any, element: Given) -> int:
        self.kept.append(element)  # so that no other has its id
        self.given[node].setdefault(id(element), len(self.given[node]))
        return int(hold(element))

    def taking(self, node: GraphNode, take_in: Any, port: int, element: Given) -> Any:
        producer = next((arc.producer for arc in node.inputs if arc.port == port), None)
        place = None if producer is None else self.given[producer].get(id(element))
        if place is not None:  # else it is new here, or a bound of before it joined
            assert place == self.next.get((node, port), place), "an element was passed over"
            self.next[node, port] = place + 1
        return take_in(port, element)

    def carrying(self, carried: Any, node: GraphNode, promise: Punctuation) -> EtsArcs | None:
        """What goes by ETS arcs passes operators of which nothing waits."""
        ets: EtsArcs | None = carried(node, promise)
        for landing in () if ets is None else ets.landings:
            last = len(self.given[landing.node]) - 1
            for arc in landing.passed_by:
                assert arc.consumer is not None
                key = arc.consumer, arc.port
                assert self.next.get(key, last) == last, "a promise overtook an element"
                self.next[key] = last + 1
        return ets

    def check_rows(self) -> None:
        """Every operator runs by its row of the whole table, however few rows were made anew."""
        graph = self.run.graph
        graph.tabulate()
        found = {node: [node.rule, list(node.forward)] for node in graph.nodes}
        due: dict[GraphNode, list[Any]] = {}
        for row in table_of(graph.nodes, graph._strategies()).rows:
            if isinstance(row.state, Fork):
                due[row.state.of][1].append(row.by)
            else:
                due[row.state] = [row.rule, [] if row.by is None else [row.by]]
        assert found == due
        check_useful(graph)
        for node in graph.nodes:
            assert node in node.part.nodes
            assert set(node.arcs) == {*node.forward, *node.outlets, *node.broken}
            assert all(arc.consumer is None or arc.consumer.part is node.part for arc in node.forward)

    def keep(self, given: list[Any]) -> None:
        for name, element in given:
            self.taken[name].append(element)

    def play(self, rows: list[Any], steps: list[tuple[str, int]]) -> dict[str, list[Batch | Punctuation]]:
        at = 0
        for step, number in steps:
            stream = "sr"[number % 2]
            part = rows[at : at + 2 + number % 9]
            schema = self.run.graph.sources[stream][0].operator.schema
            if step == "add":
                self.add(LATER[number % len(LATER)])
            elif step == "remove":
                self.remove(number)
            elif step == "single":
                push = self.run.pusher(stream)
                for row in part:
                    push(row)
                self.keep(self.run.take())
            elif step == "batch":
                self.keep(self.run.feed(stream, Batch(schema, part)))
            else:
                self.burst(stream, part)
            at += len(part) if step not in ("add", "remove") else 0
            self.disturb()
            self.check_rows()
        self.keep(self.run.close())
        return self.taken


def check_useful(graph: SharedGraph) -> None:
    """Every operator knows which bounds are of use to those who take from it now, whoever came and left."""

    def wanted(node: GraphNode) -> Useful:
        return useful_to_any([of(arc) for arc in node.arcs])

    def of(arc: Arc) -> Useful:
        return EVERY if arc.consumer is None else useful_below(arc.consumer.plan, wanted(arc.consumer))

    assert graph._useful == {node: wanted(node) for node in graph.nodes}
    assert all(arc.useful == of(arc) for node in graph.nodes for arc in node.arcs)


@examples(25)
@given(
    st.lists(st.integers(0, len(QUERIES) - 1), max_size=4),
    st.lists(ROW, max_size=60),
    STEPS,
    st.randoms(use_true_random=False),
)
def test_strategies_that_change_at_any_moment_change_no_result(
    queries: list[int], rows: list[Any], steps: list[tuple[str, int]], rng: random.Random
) -> None:
    rows = sorted(rows, key=lambda row: row[0] + rng.randint(0, 8))
    wanted = Played(queries, None).play(rows, steps)
    played = Played(queries, rng)
    got = played.play(rows, steps)
    for name in {*wanted, *got}:
        assert_same(tdb_of(wanted[name]), tdb_of(got[name]))
        assert_sound(got[name])
    assert played.run.counts.unaccounted == 0
    held = sum(len(node.buffer.elements) + len(node.inbox) for node in played.run.graph.nodes)
    assert held == 0, "something waits on an arc"


def test_the_compiled_loop_takes_the_steps_of_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[str, int, int]] = []
    before = GraphNode.take_in

    def taking(node: GraphNode, port: int, element: Given) -> Any:
        taken.append((node.identity, port, len(element) if isinstance(element, Batch) else -1))
        return before(node, port, element)

    monkeypatch.setattr(GraphNode, "take_in", taking)
    rng = random.Random(7)
    rows = sorted((rng.randint(0, 80), rng.randint(0, 2), rng.randint(0, 4)) for _ in range(120))
    steps = [("batch", at) for at in range(20)] + [("burst", 1)]
    found = []
    for compiles in (True, False):
        taken.clear()
        played = Played(list(range(len(QUERIES))), None)
        played.run.graph.executor.compiles = compiles
        played.run.use(DEPTH_FIRST)
        assert all(part.is_compiled is compiles for part in played.run.graph.executor._parts)
        played.play(rows, steps)
        found.append(list(taken))
    assert len(found[0]) > 500
    assert found[0] == found[1]


def test_strategies_differ_in_when_a_result_comes_out() -> None:
    flow = pk.Flow().stream("s", [], time="ts", schema=COLUMNS, progress=pk.punctuated("k < 0"))
    orders = {}
    for strategy in (DEPTH_FIRST, dfs(batch=2), BREADTH_FIRST):
        run = SharedExecution(flow.catalog, {"q": flow.query("SELECT ts, v + 1 AS w FROM s WHERE v > 0").plan})
        run.use(strategy)
        orders[str(strategy)] = _order(run, [(1, 1, 1), (2, 1, 2), (3, 1, 3), (4, 1, 4)])
    # σ, then Σ1 (select), then Σ2 (project); each digit is the row
    assert orders == {
        "dfs": "σ1 s1 p1 σ2 s2 p2 σ3 s3 p3 σ4 s4 p4",
        "dfs(batch=2)": "σ1 σ2 s1 s2 p1 p2 σ3 σ4 s3 s4 p3 p4",
        "bfs": "σ1 σ2 σ3 σ4 s1 s2 s3 s4 p1 p2 p3 p4",
    }


def _order(run: SharedExecution, rows: list[Any]) -> str:
    """Which operator takes which row, in the order in which they do."""
    taken: list[str] = []
    names = {"Source": "σ", "Select": "s", "Project": "p"}
    for node in run.graph.nodes:
        operator, name = node.operator, names[type(node.plan).__name__]
        process = operator.process

        def processing(port: int, batch: Batch, process: Any = process, name: str = name) -> Any:
            taken.append(f"{name}{batch.rows[0][0]}")
            return process(port, batch)

        operator.process = processing  # type: ignore[method-assign]
    schema = run.graph.sources["s"][0].operator.schema
    for _ in run.graph.burst("s", [Batch(schema, [row]) for row in rows]):
        pass
    return " ".join(taken)


def test_a_break_node_holds_elements_back_until_its_part_has_its_turn() -> None:
    flow = pk.Flow().stream("s", [], time="ts", schema=COLUMNS)
    run = SharedExecution(flow.catalog, {"q": flow.query("SELECT ts, v + 1 AS w FROM s WHERE v > 0").plan})
    (project,) = [node for node in run.graph.nodes if type(node.plan).__name__ == "Project"]
    project.inputs[0].is_break = True
    run.use(DEPTH_FIRST)
    assert _order(run, [(1, 1, 1), (2, 1, 2), (3, 1, 3)]) == "σ1 s1 σ2 s2 σ3 s3 p1 p2 p3"
    assert [row[0] for _, batch in run.take() if isinstance(batch, Batch) for row in batch.rows] == [1, 2, 3]


def test_a_lane_ends_at_a_break_node() -> None:
    flow = pk.Flow().stream("s", [], time="ts", schema=COLUMNS, progress=pk.bounded(2))
    sql = "SELECT k, count(*) AS n [RANGE 5, SLIDE 5, WA ts] FROM (SELECT ts, k, v FROM s WHERE v > 0) d GROUP BY k"
    found = []
    for state in ("", "σ", "Σ1", "Σ2"):
        run = SharedExecution(flow.catalog, {"q": flow.query(sql).plan})
        push = run.pusher("s")
        for t in range(40):
            if t == 13 and state:
                run.break_after(state)
            if t == 31 and state:
                run.break_after(state, broken=False)
            push((t, t % 2, t % 3))
        found.append(sorted(row for _, item in run.close() if isinstance(item, Batch) for row in item.rows))
        assert [node.statistics.rows_in for node in run.graph.nodes if node.stream] == [40]
    assert found == [found[0]] * 4
    assert len(found[0]) == 16


def test_a_break_node_needs_an_operator_that_somebody_takes_from() -> None:
    flow = pk.Flow().stream("s", [], time="ts", schema=COLUMNS)
    run = SharedExecution(flow.catalog, {"q": flow.query("SELECT ts, v + 1 AS w FROM s WHERE v > 0").plan})
    for wrong in ("Σ2", "Σ9", ""):
        with pytest.raises(StreamError) as told:
            run.break_after(wrong)
        error = told.value
        assert error.what == "A break node stands between an operator and those that take what it gives."
        assert (error.where, error.got) == ("break_after", repr(wrong))
        assert error.hint == "one of σ, Σ1, see table()"
    run.break_after("Σ1")
    assert [row.rule.name for row in run.graph.table.rows] == ["DFS-Source", "DFS-Sink", "DFS-Source-Sink"]


def test_a_query_may_have_a_strategy_of_its_own() -> None:
    flow = pk.Flow().stream("s", [], time="ts", schema=COLUMNS)
    texts = {"a": "SELECT ts, v + 1 AS w FROM s WHERE v > 0", "b": "SELECT ts, k FROM s WHERE k > 0"}
    run = SharedExecution(flow.catalog, {name: flow.query(sql).plan for name, sql in texts.items()})
    run.use(BREADTH_FIRST, "a")
    rules = [row.rule.name for row in run.graph.table.rows]
    assert sorted(rules) == sorted(["DFS-Source", "DFS-Fork", "DFS-Fork", "BFS-NOS", "BFS-Sink", "DFS-NOS", "DFS-Sink"])
    run.use(ROUND_ROBIN)
    assert {rule.split("-")[0] for rule in (row.rule.name for row in run.graph.table.rows)} == {"RR"}
    run.use(DEPTH_FIRST, "b")
    run.remove("b")
    assert run.graph.own_strategies == {}


def latencies(strategy: Any, rows: int) -> list[int]:
    """When each row of a burst comes out of a path of two operators, each of which takes one unit of time for a row."""
    now = 0

    def work(value: int) -> int:
        nonlocal now
        now += 1
        return value

    flow = pk.Flow().stream("s", [], time="ts", schema=COLUMNS, progress=pk.punctuated("k < 0"))
    flow.function("work", work, "bigint")
    sql = "SELECT ts, work(v) AS w FROM s WHERE work(k) = 1"
    run = SharedExecution(flow.catalog, {"q": flow.query(sql).plan})
    run.use(strategy)
    schema = run.graph.sources["s"][0].operator.schema
    return [now for _ in run.burst("s", [Batch(schema, [(t, 1, t)]) for t in range(rows)])]


@pytest.mark.parametrize("rows", [1, 2, 10, 25])
def test_the_latency_of_bursts_is_the_papers(rows: int) -> None:
    # Section 6: with steps of c, bursts of n wait (n + 1) c on average depth-first and (1.5 n + 0.5) c breadth-first
    assert sum(latencies(DEPTH_FIRST, rows)) / rows == rows + 1
    for strategy in (BREADTH_FIRST, ROUND_ROBIN, dfs(batch=rows)):
        assert sum(latencies(strategy, rows)) / rows == 1.5 * rows + 0.5
    assert latencies(dfs(batch=2), 4) == [3, 4, 7, 8]


def test_of_inputs_that_wait_the_one_that_was_promised_least_is_taken_first() -> None:
    played = Played([], None)
    played.add("SELECT ts, k FROM s UNION ALL SELECT ts, k FROM r")
    (node,) = [node for node in played.run.graph.nodes if len(node.inputs) == 2]
    for least in (0, 1):
        for at, arc in enumerate(node.inputs):
            arc.register = 3 if at == least else 5
            arc.producer.hold(Batch(arc.producer.operator.schema, [(9, 1)]))
        heads = [arc.head for arc in node.inputs]
        assert node.draw()
        assert [arc.head - head for arc, head in zip(node.inputs, heads, strict=True)] == [1 - least, least]
        assert node.draw()
