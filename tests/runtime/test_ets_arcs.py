"""Promises that go by ETS arcs leave what they leave as elements, at every operator and in every result.

Queries are drawn at random: selections, projections, moved and computed times, unions, windows and joins, over two
streams, with sub-plans in common. One script (rows, promises from outside, queries that come and go, snapshots that are
taken up) is played with ETS arcs and without. What each result was promised in the end is computed by hand too.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.flow.conflating import QUEUES
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, linear
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.runtime.arcs import QueuedArc
from penstock.runtime.ets_arcs import EtsArcs, carries, ets_arcs
from penstock.runtime.graph_node import GraphNode
from penstock.runtime.strategies import BREADTH_FIRST, DEPTH_FIRST, ROUND_ROBIN, dfs
from penstock.testing.asserts import assert_same, assert_sound, tdb_of
from tests.profiles import examples

COLUMNS = "ts bigint, k bigint, v bigint"
Promised = Callable[[dict[str, int]], int]
"""What a result has been promised, by what its streams have."""
STRATEGIES = (DEPTH_FIRST, BREADTH_FIRST, ROUND_ROBIN, dfs(batch=2))
SEEDS = st.integers(0, 2**32)


def a_flow(policy: str = "in_place") -> pk.Flow:
    flow = pk.Flow()
    for name in "sr":
        flow.stream(name, [], time="ts", schema=COLUMNS, progress=pk.bounded(6))
    flow.alter("moved", "s", shift=4)
    flow.stream("u", [], time="ts", schema=COLUMNS, update_key="k", progress=pk.bounded(6))
    return flow.conflate("calm", "u", policy=policy)


def _moved(bound: int, by: int) -> int:
    return bound if bound in (MIN_TICK, END_OF_TIME) else bound + by


def a_query(rng: random.Random, depth: int) -> tuple[str, Promised]:
    """A query with columns ts, k and v, and what it promises."""
    kind = rng.choice(["select", "project", "select", "project", "union", "stream"]) if depth else "stream"
    if kind == "stream":
        name = rng.choice(["s", "s", "r", "moved"])
        sql = f"SELECT ts, k, v FROM {name}"
        return sql, (lambda of: _moved(of["s"], 4)) if name == "moved" else (lambda of: of[name])
    below, promised = a_query(rng, depth - 1)
    if kind == "select":
        return f"SELECT ts, k, v FROM ({below}) d WHERE v <> {rng.randint(0, 3)}", promised
    if kind == "project":
        return f"SELECT ts, k, v + {rng.randint(0, 2)} AS v FROM ({below}) d", promised
    other, promised_too = a_query(rng, depth - 1)
    return f"{below} UNION ALL {other}", lambda of: min(promised(of), promised_too(of))


def a_result(rng: random.Random) -> tuple[str, Promised]:
    """A query as it is, or what windows or a computed time make of it."""
    below, promised = a_query(rng, rng.randint(1, 6))
    kind = rng.choice(["as it is", "window", "computed"])
    if kind == "window":
        sql = f"SELECT k, count(*) AS n [RANGE 10, SLIDE 5, WA ts] FROM ({below}) w GROUP BY k"
        return sql, lambda of: _next_end(promised(of), 5)
    if kind == "computed":
        sql = f"SELECT count(*) AS n FROM ({below}) w GROUP BY ts div 3"
        return sql, lambda of: _next_end(_computed(promised(of)), 1)
    return below, promised


def _next_end(bound: int, slide: int) -> int:
    """The least end of a window that holds times from a bound on, and begins at a multiple of the slide."""
    return bound if bound in (MIN_TICK, END_OF_TIME) else (bound // slide + 1) * slide


def _computed(bound: int) -> int:
    return bound if bound in (MIN_TICK, END_OF_TIME) else int(bound / 3)


JOINS = (
    "SELECT a.ts, a.k, b.v FROM s a JOIN r b ON a.k = b.k AND a.ts = b.ts",
    "SELECT a.ts, a.k, b.v FROM (SELECT ts, k, v + 1 AS v FROM s WHERE v > 0) a LEFT JOIN "
    "(SELECT ts, k, v FROM r WHERE v <> 1) b ON a.k = b.k AND b.ts BETWEEN a.ts - 3 AND a.ts",
    "SELECT ts, k, v FROM (SELECT ts, k, v + 1 AS v FROM calm WHERE v > 0) d WHERE v <> 4",
)


class Played:
    """A graph at work, by ETS arcs or without."""

    def __init__(self, queries: dict[str, str], policy: str, *, skips: bool) -> None:
        self.flow = a_flow(policy)
        first = {"s": "SELECT ts FROM s", "r": "SELECT ts FROM r", "u": "SELECT ts, k FROM u"} | queries
        self.run = SharedExecution(self.flow.catalog, {name: self.flow.query(sql).plan for name, sql in first.items()})
        self.run.clock = lambda: 0
        self.run.graph.executor.skips = skips
        executor = self.run.graph.executor
        executor.carried = partial(self.carried, executor.carried)  # type: ignore[method-assign]
        self.went = 0
        """How many promises have gone by ETS arcs."""
        self.taken: dict[str, list[Any]] = defaultdict(list)
        self.last: dict[str, int] = {}

    def carried(self, carried: Any, node: GraphNode, promise: Punctuation) -> EtsArcs | None:
        """Where a part says that nothing waits behind an operator, nothing does."""
        ways = ets_arcs(node)
        is_clear = ways is None or ways.is_clear
        assert is_clear or not node.part.is_clear
        ets: EtsArcs | None = carried(node, promise)
        assert ets is None or is_clear
        self.went += ets is not None
        return ets

    def keep(self, found: list[Any]) -> None:
        for name, element in found:
            self.taken[name].append(element)

    def step(self, kind: str, stream: str, rows: list[Any], argument: Any, rng: random.Random | None) -> None:
        run = self.run
        schema = run.graph.sources[stream][0].operator.schema
        match kind:
            case "batch":
                self.keep(run.feed(stream, Batch(schema, rows)))
            case "single":
                push = run.pusher(stream)
                for row in rows:
                    push(row)
                self.keep(run.take())
            case "burst":
                for _ in run.burst(stream, [Batch(schema, [row]) for row in rows]):
                    self.disturb(rng)
                self.keep(run.take())
            case "say":
                self.keep(run.feed(stream, linear("ts", argument)))
            case "add" if argument[0] not in run.plans:
                run.add({argument[0]: self.flow.query(argument[1]).plan})
            case "remove" if len(run.plans) > 3:
                name = list(run.plans)[3:][argument % (len(run.plans) - 3)]
                self.taken[name] += run.remove(name)
            case "release":
                self.keep(run.release(argument))
            case "restore":
                self.restore()
        for name in run.plans:
            self.last[name] = run.graph.outlets[name].register
        self.disturb(rng)

    def restore(self) -> None:
        """Go on from a snapshot."""
        plans = dict(self.run.plans)
        fresh = SharedExecution(self.flow.catalog, plans)
        fresh.clock = self.run.clock
        fresh.graph.executor.skips = self.run.graph.executor.skips
        fresh.restore(self.run.snapshot())
        self.run = fresh

    def disturb(self, rng: random.Random | None) -> None:
        """Another strategy and other break nodes, perhaps in the middle of an element."""
        if rng is None or rng.random() < 0.5:
            return
        arcs = [arc for node in self.run.graph.nodes for arc in node.inputs if not isinstance(arc, QueuedArc)]
        for arc in rng.sample(arcs, min(2, len(arcs))):
            arc.is_break = rng.random() < 0.5
        self.run.use(rng.choice(STRATEGIES), rng.choice([None, *self.run.plans]))

    def state(self) -> dict[str, Any]:
        """What every operator has promised, was promised, and has counted."""
        found = {}
        for node in self.run.graph.nodes:
            counts = node.statistics
            registers = [arc.register for arc in [*node.inputs, *node.arcs]]
            found[node.identity] = [node.promised, registers, vars(counts), [arc.unread for arc in node.arcs]]
        return found


def a_script(rng: random.Random, queries: dict[str, str]) -> list[tuple[str, str, list[Any], Any]]:
    """Steps; promises are ahead of the rows by a little, so that few rows are late."""
    now, script = 0, []
    for number in range(rng.randint(4, 14)):
        kinds = ["batch", "single", "burst", "say", "say", "say", "add", "remove", "release", "restore"]
        kind, stream = rng.choice(kinds), rng.choice("ssru")
        now += rng.randint(0, 8)
        rows = [(now + rng.randint(-4, 8), rng.randint(0, 2), rng.randint(0, 4)) for _ in range(rng.randint(1, 9))]
        argument: Any = {"say": now + rng.randint(-9, 9), "remove": rng.randint(0, 9), "release": rng.choice([None, 2])}
        if kind == "add":
            name, sql = rng.choice(sorted(queries.items()))
            if any(word in sql for word in ("JOIN", "div", "moved")):  # these cannot join streams at work
                continue
            argument = {"add": (f"{name}, again {number}", sql)}
        script.append((kind, stream, rows, argument.get(kind)))
    return script


def drawn(rng: random.Random) -> tuple[dict[str, str], dict[str, Promised]]:
    """Queries by name, and what those promise of which it is computed."""
    queries, promised = {}, {}
    for number in range(rng.randint(1, 4)):
        name = f"q{number}"
        queries[name], promised[name] = a_result(rng)
    for at, sql in enumerate(JOINS):
        if rng.random() < 0.3:
            queries[f"j{at}"] = sql
    return queries, promised


def reached(run: SharedExecution) -> dict[str, int]:
    return {name: node.promised for name, (node, *_) in run.graph.sources.items()}


@examples(60)
@given(SEEDS)
def test_depth_first_everything_is_as_with_elements(seed: int) -> None:
    rng = random.Random(seed)
    queries, promised = drawn(rng)
    policy = rng.choice(QUEUES)
    by_arcs, as_elements = Played(queries, policy, skips=True), Played(queries, policy, skips=False)
    for step in a_script(rng, queries):
        for each in (by_arcs, as_elements):
            each.step(*step, None)
        assert by_arcs.state() == as_elements.state()
        assert by_arcs.run.snapshot() == as_elements.run.snapshot()
        assert by_arcs.last == as_elements.last
        for name, of in promised.items():
            if name in by_arcs.run.plans:
                assert by_arcs.last[name] == of(reached(by_arcs.run))
    for each in (by_arcs, as_elements):
        each.keep(each.run.close())
    assert {name: list(map(str, found)) for name, found in by_arcs.taken.items()} == {
        name: list(map(str, found)) for name, found in as_elements.taken.items()
    }


@examples(60)
@given(SEEDS)
def test_by_any_strategy_results_and_final_promises_are_the_same(seed: int) -> None:
    rng = random.Random(seed)
    queries, _ = drawn(rng)
    policy = rng.choice(QUEUES)
    by_arcs, as_elements = Played(queries, policy, skips=True), Played(queries, policy, skips=False)
    script = [step for step in a_script(rng, queries) if step[0] != "restore"]
    for step in script:
        by_arcs.step(*step, rng)
        as_elements.step(*step, None)
        assert by_arcs.last == as_elements.last
        assert [n.promised for n in by_arcs.run.graph.nodes] == [n.promised for n in as_elements.run.graph.nodes]
    for each in (by_arcs, as_elements):
        each.keep(each.run.close())
    assert as_elements.went == 0
    for name in {*by_arcs.taken, *as_elements.taken}:
        assert_same(tdb_of(as_elements.taken[name]), tdb_of(by_arcs.taken[name]))
        assert_sound(by_arcs.taken[name])
    assert all(not arc.unread for node in by_arcs.run.graph.nodes for arc in node.arcs if arc.consumer is not None)


def a_run(sql: dict[str, str], flow: pk.Flow | None = None) -> SharedExecution:
    flow = a_flow() if flow is None else flow
    return SharedExecution(flow.catalog, {name: flow.query(text).plan for name, text in sql.items()})


CARRIERS = (
    "SELECT ts, k, v + 1 AS v FROM (SELECT ts, k, v FROM s WHERE v > 1) d",
    "SELECT ts AS t, k FROM (SELECT ts, k FROM moved) d",
    "SELECT count(*) AS n FROM s GROUP BY ts div 3",
    "SELECT count(*) AS n FROM s GROUP BY ts div 3 * 9223372036854775807",
    "SELECT k, count(*) AS n [RANGE 10, SLIDE 5, WA ts] FROM s GROUP BY k",
    "SELECT a.ts, names.name FROM s a JOIN names ON a.k = names.k",
    "SELECT ts, e FROM lists CROSS JOIN UNNEST(list) AS x(e)",
    "SELECT a, k FROM (SELECT ts AS a, ts AS b, k FROM s) d WHERE a > 3",
)


def test_what_carries_gives_what_it_says_and_nothing_else() -> None:
    flow = a_flow().table("names", [{"k": 1, "name": "one"}])
    flow.stream("lists", [], time="ts", schema="ts bigint, list array<bigint>")
    seen = set()
    for sql in CARRIERS:
        for node in a_run({"q": sql}, flow).graph.nodes:
            for arc in node.inputs:
                carry, time = carries(arc), str(arc.producer.operator.schema.time)
                for bound in (MIN_TICK, -7, 0, 5, 6, 2**62, END_OF_TIME) if carry is not None else ():
                    due = carry(bound)
                    got = list(node.operator.punctuate(0, linear(time, bound)))
                    assert got == ([] if due is None else [linear(str(node.operator.schema.time), due)]), node.label
                    seen.add(type(node.operator).__name__)
    assert seen == {
        "SelectOperator", "ProjectOperator", "AlterOperator", "LookupOperator", "UnnestOperator", "FaceOperator",
    }  # fmt: skip


WINDOW = "[RANGE 10, SLIDE 5, WA ts]"
GRAPH = {
    "count": f"SELECT count(*) AS n {WINDOW} FROM (SELECT ts, v + 1 AS v FROM s WHERE v > 1) d",
    "rows": "SELECT ts, v + 2 AS v FROM s WHERE v > 1",
    "both": "SELECT ts, k FROM s WHERE k = 7 UNION ALL SELECT ts, k FROM r",
}
COUNT = f"Aggregate family count(*) {WINDOW}"
TO_COUNT = f"s -> {COUNT}, past Select (v > 1), Project ts, (v + 1) AS v"
TO_ROWS = "s -> rows, past Select (v > 1), Project ts, (v + 2) AS v"
TO_BOTH = {
    "s -> Union of 2 (Meld), past Select (k = 7), Project ts, k",
    "r -> Union of 2 (Meld), past Project ts, k",
}
FROM_COUNT = f"{COUNT} -> count, past Aggregate count(*) {WINDOW}, Project wid, window_start, window_end, count(*) AS n"


def test_arcs_lead_past_those_that_carry_to_those_that_care_and_change_with_the_graph() -> None:
    run = a_run(GRAPH)
    graph = run.graph

    def arcs() -> set[str]:
        run.feed("s", linear("ts", 10 * (1 + graph.sources["s"][0].promised // 10)))
        return set(run.ets_arcs().splitlines())

    assert arcs() == {TO_COUNT, TO_ROWS, FROM_COUNT} | TO_BOTH
    run.remove("rows")
    assert arcs() == {TO_COUNT, FROM_COUNT} | TO_BOTH
    run.add({"rows": a_flow().query(GRAPH["rows"]).plan})
    assert arcs() == {TO_COUNT, TO_ROWS, FROM_COUNT} | TO_BOTH
    names = {node: name for node, name in graph.table.names().items() if isinstance(node, GraphNode)}
    broken = next(name for node, name in names.items() if node.label == "Select (v > 1)")
    run.break_after(broken)
    assert arcs() == {
        "s -> Project ts, (v + 1) AS v, past Select (v > 1)",
        "s -> Project ts, (v + 2) AS v, past Select (v > 1)",
        FROM_COUNT,
    } | TO_BOTH  # fmt: skip
    run.break_after(broken, broken=False)
    assert arcs() == {TO_COUNT, TO_ROWS, FROM_COUNT} | TO_BOTH
    run.use(ROUND_ROBIN)  # breaks the graph where paths part and meet
    assert arcs() == {FROM_COUNT, "r -> Union of 2 (Meld), past Project ts, k"}


def passed_by(run: SharedExecution, *, used: bool) -> list[str]:
    """Who is run when a promise is made."""
    run.use_ets_arcs(used=used)
    taken: list[str] = []
    for node in run.graph.nodes:
        before = node.take_in

        def taking(port: int, element: Any, node: GraphNode = node, before: Any = before) -> Any:
            taken.append(type(node.plan).__name__)
            return before(port, element)

        node.take_in = taking  # type: ignore[method-assign]
    run.feed("s", linear("ts", 50))
    return taken


def test_nobody_is_run_who_does_not_care() -> None:
    assert passed_by(a_run(GRAPH), used=True) == ["Source", "WindowAggregate", "Union"]
    assert sorted(passed_by(a_run(GRAPH), used=False)) == sorted(
        [
            "Source",
            *["Select", "Project", "WindowAggregate", "WindowAggregate", "Project"],  # the family, and its face
            "Project",
            *["Select", "Project", "Union"],
        ]
    )


def test_behind_what_waits_at_a_break_node_a_promise_waits_too() -> None:
    run = a_run({"q": "SELECT ts, v + 2 AS v FROM (SELECT ts, v FROM s WHERE v > 1) d WHERE v < 9"})
    graph = run.graph
    last = next(arc for node in graph.nodes for arc in node.inputs if type(node.plan).__name__ == "Project")
    last.is_break = True
    run.use(BREADTH_FIRST)
    schema = graph.sources["s"][0].operator.schema
    entrance, (outlet,) = graph.sources["s"][0], [arc for node in graph.nodes for arc in node.arcs if not arc.consumer]
    steps = graph.burst("s", [Batch(schema, [(5, 1, 5)]), Batch(schema, [(6, 1, 6)]), linear("ts", 7)])
    next(steps)  # the first row has come out, and the promise is behind the second
    assert entrance.promised == 7
    assert [str(element) for _, element in run.take() if not isinstance(element, Batch)] == []
    for _ in steps:
        pass
    run.take()
    assert outlet.register == 7
