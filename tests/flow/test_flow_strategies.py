"""Strategies of a flow's run: what users say, what they see, and how time is shared."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.errors import StreamError
from penstock.model.batch import Batch

COUNT = "SELECT k, count(*) AS n [RANGE 10, SLIDE 10, WA t] FROM s GROUP BY k"
BOTH = "SELECT t, k FROM s WHERE k = 0 UNION ALL SELECT t, v FROM s WHERE k = 1"
ROWS = [{"t": t, "k": t % 2, "v": t} for t in range(40)]
STRATEGIES: list[Any] = ["dfs", "bfs", "round_robin", pk.dfs(batch=3)]


class Tap:
    """A source that gives what it is told to."""

    def __init__(self) -> None:
        self.items: deque[Any] = deque()

    def poll(self) -> Any:
        return self.items.popleft() if self.items else pk.IDLE


def flow(source: Any) -> pk.Flow:
    return pk.Flow().stream("s", source, time="t", schema="t bigint, k bigint, v bigint", progress=pk.bounded(2))


def results(counts: list[Any], both: list[Any]) -> tuple[Any, Any]:
    by_window = {(row["window_end"], row["k"]): row["n"] for row in counts}
    return by_window, sorted((row["t"], row["k"]) for row in both)


DUE = ({(end, k): 5 for end in (10, 20, 30, 40) for k in (0, 1)}, [(t, 0 if t % 2 == 0 else t) for t in range(40)])


@pytest.mark.parametrize("strategy", STRATEGIES, ids=str)
def test_results_are_the_same_by_every_strategy(strategy: Any) -> None:
    made = flow(iter(ROWS))  # live: what has come by the time is a burst
    counts: list[Any] = []
    both: list[Any] = []
    run = made.start({made.query(COUNT, name="n"): counts, made.query(BOTH, name="both"): both}, strategy=strategy)
    assert run.wait(60)
    assert run.strategy == str(strategy)
    assert results(counts, both) == DUE


def test_the_strategy_is_changed_while_it_runs() -> None:
    tap = Tap()
    made = flow(tap)
    counts: list[Any] = []
    both: list[Any] = []
    run = made.start({made.query(COUNT, name="n"): counts, made.query(BOTH, name="both"): both})
    for at, row in enumerate(ROWS):
        tap.items.append(row)
        run.process_available()
        if at % 7 == 3:
            run.strategy = STRATEGIES[at % 4]  # type: ignore[assignment]
        if at % 5 == 2:
            run.use(STRATEGIES[at % 3], "both")
    tap.items.append(pk.END)
    assert run.wait(60)
    assert results(counts, both) == DUE


def test_the_table_is_printed_with_what_its_states_are() -> None:
    made = flow([])
    run = made.start({made.query("SELECT t, v + 1 AS w FROM s WHERE k = 0", name="q"): []})
    assert run.wait(60)
    assert run.table().splitlines() == [
        "state  Pred  Succ  Transition",
        "σ      -     Σ1    DFS-Source",
        "Σ1     σ     Σ2    DFS-NOS",
        "Σ2     Σ1    -     DFS-Sink",
        "",
        "σ = Source s (time t, bounded(2))",
        "Σ1 = Select (k = 0)",
        "Σ2 = Project t, (v + 1) AS w",
    ]


def test_what_is_wrong_is_refused_before_anything_runs() -> None:
    made = flow([])
    query = made.query(COUNT, name="n")
    with pytest.raises(StreamError, match="There is no such execution strategy"):
        made.start({query: []}, strategy="depth")
    run = made.start({query: []})
    with pytest.raises(StreamError, match="There is no such execution strategy"):
        run.strategy = "depth"
    with pytest.raises(StreamError) as told:
        run.use("bfs", "m")
    assert (told.value.what, told.value.got, told.value.hint) == ("There is no such query.", "m", "running: n")
    assert run.strategy == "dfs"


@pytest.mark.parametrize(
    "wrong", [3, {"n": 0}, {"n": -1.0}, {"n": "3"}, {"n": True}, {"n": float("inf")}, {"n": 10**400}]
)
def test_wrong_weights_are_refused(wrong: Any) -> None:
    made = flow([])
    with pytest.raises(StreamError) as told:
        made.start({made.query(COUNT, name="n"): []}, weights=wrong, name="r")
    error = told.value
    assert error.what == "Weights are numbers above zero, by query."
    assert (error.where, error.got, error.hint) == ("r", repr(wrong)[:200], "{'alarms': 3, 'report': 1}")


def test_a_run_that_is_over_takes_no_more_orders() -> None:
    made = flow([])
    run = made.start({made.query(COUNT, name="n"): []}, name="r")
    run.wait()
    for order in (
        lambda: run.share({"n": 2}),
        lambda: run.punctuate("s", 5),
        lambda: run.add(made.query(COUNT, name="m"), []),
    ):
        with pytest.raises(StreamError) as told:
            order()
        assert (told.value.what, told.value.where) == ("The flow's run is over.", "r")


def test_a_break_node_is_there_or_not() -> None:
    made = flow([])
    run = made.start({made.query(COUNT, name="n"): []}, name="r")
    with pytest.raises(StreamError, match="A break node is there or not"):
        run.break_after("Source s", broken="no")  # type: ignore[arg-type]
    run.wait()


class Clock:
    """Seconds that pass when somebody works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def shared(weights: dict[str, float], costs: dict[str, float], seconds: float) -> dict[str, float]:
    """The share of the time that each query has, where a row of each costs so many seconds."""
    clock = Clock()
    made = pk.Flow()
    for name, cost in costs.items():

        def work(value: int, cost: float = cost) -> int:
            clock.now += cost
            return value

        made.stream(name, [], time="t", schema="t bigint, v bigint")
        made.function(f"work_{name}", work, "bigint")
    plans = {name: made.query(f"SELECT t, work_{name}(v) AS w FROM {name}").plan for name in costs}
    run = SharedExecution(made.catalog, plans)
    run.stopwatch = clock
    run.weigh(weights)

    def endless(name: str) -> Iterator[Any]:
        schema = run.graph.sources[name][0].operator.schema
        return (Batch(schema, [(t, t)]) for t in range(1_000_000))

    openers = {name: lambda name=name: endless(name) for name in costs}
    for _ in run.run(openers, stopped=lambda: clock.now >= seconds):
        pass
    assert run.shares is not None
    spent = {query: run.shares.spent[at] for at, (_, queries) in enumerate(run.components()) for query in queries}
    return {query: own / sum(spent.values()) for query, own in spent.items()}


@pytest.mark.parametrize("costs", [{"a": 0.001, "b": 0.001}, {"a": 0.001, "b": 0.007}, {"a": 0.03, "b": 0.002}])
def test_time_is_shared_by_weight_whatever_a_row_costs(costs: dict[str, float]) -> None:
    found = shared({"a": 3.0, "b": 1.0}, costs, 5.0)
    assert found["a"] == pytest.approx(0.75, rel=0.1)
    assert found["b"] == pytest.approx(0.25, rel=0.1)


def test_a_component_that_has_nothing_to_do_leaves_its_time_to_others() -> None:
    made = pk.Flow()
    for name in "ab":
        made.stream(name, [], time="t", schema="t bigint, v bigint")
    run = SharedExecution(made.catalog, {name: made.query(f"SELECT t, v FROM {name}").plan for name in "ab"})
    run.weigh({"a": 1000.0})
    schema = run.graph.sources["b"][0].operator.schema
    openers: dict[str, Any] = {"a": lambda: iter(()), "b": lambda: (Batch(schema, [(t, t)]) for t in range(500))}
    rows = [row for _, item in run.run(openers) if isinstance(item, Batch) for row in item.rows]
    assert len(rows) == 500


def test_a_sink_that_does_not_take_is_named_with_what_it_holds() -> None:
    tap, entered, go_on = Tap(), threading.Event(), threading.Event()

    def slow(table: Any) -> None:
        entered.set()
        assert go_on.wait(60)

    made = flow(tap)
    taken: list[Any] = []
    run = made.start({made.query(BOTH, name="quick"): taken, made.query("SELECT * FROM s", name="slow"): slow})
    tap.items.extend([ROWS[0], pk.END])
    assert entered.wait(60)
    held = run.held()
    assert list(held) == ["slow", "quick"]
    assert held["slow"] >= 1
    go_on.set()
    assert run.wait(60)
    assert run.held() == {"quick": 0, "slow": 0}
    assert len(taken) == 1


def test_strategies_and_queries_that_change_from_another_thread_change_no_result() -> None:
    rng = random.Random(11)
    rows = [{"t": t // 4, "k": rng.randrange(40), "v": rng.randrange(9)} for t in range(1200)]
    found = []
    for is_disturbed in (False, True):
        made = flow(iter(rows))
        counts: list[Any] = []
        both: list[Any] = []
        run = made.start({made.query(COUNT, name="n"): counts, made.query(BOTH, name="both"): both})
        while is_disturbed and run.status == "running":
            run.use(rng.choice(STRATEGIES), rng.choice([None, "n", "both"]))
            if rng.random() < 0.5:
                run.break_after("σ", broken=rng.random() < 0.5)
        assert run.wait(60)
        assert run.exception is None
        found.append(results(counts, both))
    assert found[0] == found[1]
    assert len(found[0][1]) > 50


def test_a_consumer_that_has_stopped_is_bounded_and_can_be_cut_off() -> None:
    tap, entered, go_on = Tap(), threading.Event(), threading.Event()

    def stuck(table: Any) -> None:
        entered.set()
        assert go_on.wait(60)

    made = flow(tap)
    taken: list[Any] = []
    slow = made.query("SELECT t, v + 1 AS w FROM s", name="slow")
    run = made.start({made.query("SELECT * FROM s", name="quick"): taken, slow: stuck}, max_held=3)
    tap.items.extend(ROWS[:3])
    assert entered.wait(60)
    while len(taken) < 3:  # others go on, as long as there is room
        run.runs["quick"]._results.sink.flush()  # type: ignore[attr-defined]
    tap.items.extend([*ROWS[3:], pk.END])
    while run.held()["slow"] < 5:  # one in its hands, three that wait, one for which there is no room
        assert run.status == "running"
    assert next(iter(run.held())) == "slow"
    run.cut_off("slow")
    assert run.wait(60)
    assert [row["t"] for row in taken] == list(range(40))
    error = run.runs["slow"].exception
    assert error is not None
    assert error.what == "The query was cut off: its sink did not take its results."
    assert (error.where, error.hint) == ("query slow", "the others go on; start it again with another sink")
    assert int(error.got.removesuffix(" results waited")) >= 5
    go_on.set()


def test_sinks_beside_the_run_take_everything_and_fail_for_themselves() -> None:
    made = flow(ROWS)
    counts: list[Any] = []
    both: list[Any] = []

    def broken(table: Any) -> None:
        raise ValueError("no")

    queries = {made.query(COUNT, name="n"): counts, made.query(BOTH, name="both"): both}
    run = made.start({**queries, made.query("SELECT * FROM s", name="broken"): broken}, max_held=1)
    assert run.wait(60)
    assert results(counts, both) == DUE
    assert run.exception is None
    error = run.runs["broken"].exception
    assert error is not None
    assert "no" in str(error)


def test_what_is_wrong_with_held_results_is_told() -> None:
    made = flow([])
    query = made.query(COUNT, name="n")
    with pytest.raises(StreamError) as told:
        made.start({query: []}, max_held=0, name="r")
    error = told.value
    assert error.what == "So many results may wait for a sink, at least one."
    assert (error.where, error.got) == ("r", "max_held=0")
    assert error.hint == "max_held=1000, or None to write within the run"
    run = made.start({query: []})
    with pytest.raises(StreamError) as told:
        run.cut_off("n")
    error = told.value
    assert error.what == "The run itself writes to this sink, and cannot leave it."
    assert (error.where, error.hint) == ("query n", "flow.start(…, max_held=1000) writes to sinks beside the run")


def test_break_nodes_are_placed_while_a_flow_runs() -> None:
    taps = {"s": Tap(), "r": Tap()}
    flow = pk.Flow()
    for name, tap in taps.items():
        flow.stream(name, tap, time="t", schema="t bigint, k bigint")
    flow.function("slowly", lambda value: sum(range(2000)) * 0 + value, "bigint")
    found: dict[str, list[Any]] = {"s": [], "r": []}
    queries = {flow.query(f"SELECT t, slowly(k) AS w FROM {n} WHERE k % 3 = 0", name=n): found[n] for n in taps}
    run = flow.start(queries)
    for round_ in range(4):
        for tap in taps.values():
            tap.items += [{"t": 100 * round_ + at, "k": at} for at in range(60)]
        run.process_available()
        if round_ == 0:
            placed = run.place_breaks()
            assert [each.slope for each in placed] == sorted([each.slope for each in placed], reverse=True)
            # Which segments there are was measured; whatever they are, they are both paths, cut into pieces.
            assert sorted(name for each in placed for name in each.operators) == ["Σ1", "Σ2", "Σ3", "Σ4", "σ1", "σ2"]
            cuts = len(placed) - len(taps)
            assert [arc.kind for arc in run.statistics().arcs].count("break") == cuts
            assert ("DFS-Source-Sink" in run.table()) == (cuts > 0)
        elif round_ == 2:
            assert run.place_breaks(None) == []
            assert "DFS-Source-Sink" not in run.table()
    for tap in taps.values():
        tap.items.append(pk.END)
    run.wait()
    for rows in found.values():
        assert [row["t"] for row in rows] == [100 * round_ + at for round_ in range(4) for at in range(0, 60, 3)]
    assert run.progress.counts.unaccounted == 0


def test_a_rule_for_break_nodes_that_there_is_not() -> None:
    flow = pk.Flow().stream("s", [{"t": 1}], time="t")
    run = flow.start({flow.query("SELECT t FROM s"): []})
    with pytest.raises(StreamError) as told:
        run.place_breaks("greedy")
    assert (told.value.what, told.value.where) == ("There is no such rule for break nodes.", "flow")
    assert (told.value.got, told.value.hint) == ("'greedy'", "'chain', or None")
    run.wait()


def test_a_hundred_queries_that_come_and_go_lose_and_repeat_nothing_for_the_others() -> None:
    tap = Tap()
    flow = pk.Flow().stream("s", tap, time="t", schema="t bigint, k bigint, v bigint")
    stays: dict[str, list[Any]] = {"rows": [], "windows": []}
    rows = flow.query("SELECT t, v + 1 AS w FROM s WHERE k <> 3", name="rows")
    windows = flow.query("SELECT k, sum(v) AS n [RANGE 50, SLIDE 50, WA t] FROM s GROUP BY k", name="windows")
    run = flow.start({rows: stays["rows"], windows: stays["windows"]})
    texts = (
        "SELECT t, v FROM s WHERE k = {0}",
        "SELECT t, v + 1 AS w FROM s WHERE k <> 3",
        "SELECT k, sum(v) AS n, max(v) AS m [RANGE 50, SLIDE 50, WA t] FROM s WHERE v > {0} GROUP BY k",
    )
    given = [{"t": t, "k": t % 5, "v": t * 7 % 11} for t in range(2000)]
    fed = 0

    def feed() -> None:
        nonlocal fed
        tap.items.extend(given[fed : fed + 10])
        fed += 10

    for number in range(100):
        feed()
        run.add(flow.query(texts[number % 3].format(number), name=f"guest{number}"), [])
        if number % 7 == 0:
            run.use(STRATEGIES[number % 4])
        feed()
        if number % 2:
            run.process_available()
        run.remove(f"guest{number}")
    tap.items.append(pk.END)
    run.wait()
    assert [row["t"] for row in stays["rows"]] == [row["t"] for row in given if row["k"] != 3]
    due: dict[tuple[int, int], int] = {}
    for row in given:
        due[row["t"] // 50, row["k"]] = due.get((row["t"] // 50, row["k"]), 0) + row["v"]
    assert len(stays["windows"]) == len(due)
    assert {(row["window_start"] // 50, row["k"]): row["n"] for row in stays["windows"]} == due
    assert len(run.execution.graph.nodes) <= 6, "what only guests needed has left"
