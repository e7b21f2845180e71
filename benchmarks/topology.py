"""What changing a graph at work costs the others, and what strategies, shares and forks do: claims with their bars.

`python benchmarks/topology.py [claim …]` prints a line for each; without names all of them, in about a minute:

- `pause`: how long nobody can process anything while a query joins, leaves, or the table is swapped, at 1,000 nodes;
- `latency`: the 99th percentile of what a single row takes while that goes on, by the same without it, in turn;
- `memory`: what a burst that waits takes with 100 consumers of a stream, by what it takes with one;
- `shares`: how far the time that components take is from their weights;
- `batches`: latency and decisions per row of `dfs(batch=k)`;
- `chain`: the most rows that wait in bursts, by strategy.

All but `latency` and `shares` count processor time, so that whatever else the machine does is not in them.
"""

from __future__ import annotations

import gc
import statistics
import sys
import threading
import time
import tracemalloc
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count, cycle
from typing import Any

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.model.batch import Batch
from penstock.runtime.rules import Action, Rule
from penstock.runtime.strategies import BREADTH_FIRST, DEPTH_FIRST, NAMED, ROUND_ROBIN, dfs

COLUMNS = "ts bigint, k bigint, v bigint"
NODES = 1000


def claim(name: str, value: float, bar: float, unit: str = "", *, below: bool = True) -> None:
    """A line."""
    holds = value <= bar if below else value >= bar
    sign = "<=" if below else ">="
    print(f"{name:66}{value:>10.4g} {unit:3} {sign} {bar:g}  {'holds' if holds else 'MISSED'}", flush=True)


def wide(flow: pk.Flow, nodes: int) -> SharedExecution:
    """A graph of so many operators over one stream: selections with a projection each."""
    sql = "SELECT ts, v + {0} AS w FROM s WHERE k = {0}"
    return SharedExecution(flow.catalog, {f"q{i}": flow.query(sql.format(i)).plan for i in range(nodes // 2)})


def stream() -> pk.Flow:
    """One stream of rows that are in order."""
    return pk.Flow().stream("s", [], time="ts", schema=COLUMNS)


@contextmanager
def gate_watched(run: SharedExecution, held: list[float]) -> Iterator[None]:
    """How long the gate is held by this thread, each time."""
    alone, me = run._gate.alone, threading.get_ident()

    @contextmanager
    def watched() -> Iterator[None]:
        with alone():
            began, outermost = time.thread_time(), run._gate._depth == 1 and threading.get_ident() == me
            yield
            if outermost:
                held.append(time.thread_time() - began)

    run._gate.alone = watched  # type: ignore[method-assign]
    try:
        yield
    finally:
        run._gate.alone = alone  # type: ignore[method-assign]


def pause() -> None:
    """Joining, leaving and swapping at 1,000 nodes."""
    flow = stream()
    run = wide(flow, NODES)
    run.pusher("s")((0, 0, 0))
    plans = [flow.query(f"SELECT ts, v * {i} AS w FROM s WHERE k = {i}").plan for i in range(20)]
    joining = [partial(run.add, {f"new{i}": plan}) for i, plan in enumerate(plans)]
    leaving = [partial(run.remove, f"new{i}") for i in range(len(plans))]
    swapping = [partial(run.use, strategy) for strategy in [BREADTH_FIRST, ROUND_ROBIN, dfs(8), DEPTH_FIRST] * 5]
    changes = {"a query joins": joining, "a query leaves": leaving, "the table is swapped": swapping}
    for name, steps in changes.items():
        held: list[float] = []
        gc.collect()
        gc.disable()  # a full collection can come at any time, and is nobody's pause
        with gate_watched(run, held):
            for step in steps:
                step()
        gc.enable()
        claim(f"pause while {name}, {len(run.graph.nodes):,} nodes, median", statistics.median(held) * 1000, 5, "ms")
        claim("  the longest", max(held) * 1000, 5, "ms")


def latency() -> None:
    """What a row takes while queries come and go."""
    flow = stream()
    run = wide(flow, 40)
    push = run.pusher("s")
    plans = [flow.query(f"SELECT ts, v * {i} AS w FROM s WHERE k = {i}").plan for i in range(10)]
    now = iter(range(1 << 40))

    def pushed(seconds: float) -> float:
        took, end = [], time.perf_counter() + seconds
        while (began := time.perf_counter()) < end:
            push((next(now), 1, 1))
            took.append(time.perf_counter() - began)
            if len(took) % 500 == 0:
                run.take()
        return statistics.quantiles(took, n=100)[98]

    def changing(stop: threading.Event) -> None:
        for plan in cycle(plans):
            for change in (partial(run.add, {"new": plan}), partial(run.remove, "new"), partial(run.use, DEPTH_FIRST)):
                if stop.wait(0.1):
                    return
                change()

    pushed(0.5)
    ratios = []
    for _ in range(9):
        alone = pushed(0.5)
        stop = threading.Event()
        other = threading.Thread(target=changing, args=(stop,))
        other.start()
        during = pushed(0.5)
        stop.set()
        other.join()
        if "new" in run.plans:
            run.remove("new")
        ratios.append(during / alone)
    claim("p99 of a row while queries come and go ten times a second, ratio", statistics.median(ratios), 1.1)


def memory() -> None:
    """A burst of 2,000 batches that wait, for one consumer and for 100."""
    found = []
    for consumers in (1, 100):
        flow = stream()
        sql = "SELECT ts, k, v FROM s WHERE v > {}"
        run = SharedExecution(flow.catalog, {f"q{i}": flow.query(sql.format(i)).plan for i in range(consumers)})
        run.use(BREADTH_FIRST)
        schema = run.graph.sources["s"][0].operator.schema
        gc.collect()
        tracemalloc.start()
        batches = [Batch(schema, [(t, at, 1000 + t * at) for at in range(20)]) for t in range(2000)]
        steps = run.burst("s", batches)
        del batches
        next(steps)  # the entrance has taken all of it, and the first consumer something
        found.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    claim("memory of a burst that waits for 100 consumers, by one", found[1] / found[0], 1.2)


def shares() -> None:
    """Three components whose weights are 1, 2 and 4, all of which always have something to do."""
    weights = {"a": 1.0, "b": 2.0, "c": 4.0}
    flow = pk.Flow()
    for name in weights:
        flow.stream(name, [], time="ts", schema=COLUMNS)
    sql = "SELECT k, count(*) AS n [RANGE 1000, SLIDE 1000, WA ts] FROM {} GROUP BY k"
    run = SharedExecution(flow.catalog, {name: flow.query(sql.format(name)).plan for name in weights})
    run.weigh(weights)

    def endless(name: str, size: int) -> Iterator[Batch]:
        schema = run.graph.sources[name][0].operator.schema
        for at in count(step=size):
            yield Batch(schema, [(at + i, i % 5, i) for i in range(size)])

    end = time.perf_counter() + 4.0
    openers = {name: partial(endless, name, size) for name, size in zip(weights, (500, 200, 50), strict=True)}
    for _ in run.run(openers, stopped=lambda: time.perf_counter() > end):
        pass
    assert run.shares is not None
    total, heavy = sum(run.shares.spent.values()), sum(weights.values())
    off = [abs(run.shares.spent[at] / total / (weight / heavy) - 1) for at, weight in enumerate(weights.values())]
    claim("shares of three components, furthest from their weights", max(off), 0.1)


def batches() -> None:
    """A burst of 1,000 rows through two operators that take 20 µs each."""

    def work(value: int) -> int:
        end = time.thread_time() + 20e-6
        while time.thread_time() < end:
            pass
        return value

    decisions = 0
    select = Rule.select

    def counted(rule: Rule, node: Any) -> Action:
        nonlocal decisions
        decisions += 1
        return select(rule, node)

    Rule.select = counted  # type: ignore[method-assign]
    rows = 1000
    for k in (1, 10, 100, 1000):
        flow = pk.Flow().stream("s", [], time="ts", schema=COLUMNS, progress=pk.punctuated("k < 0"))
        flow.function("work", work, "bigint")
        run = SharedExecution(flow.catalog, {"q": flow.query("SELECT ts, work(v) AS w FROM s WHERE work(k) = 1").plan})
        run.graph.executor.compiles = False
        run.use(dfs(k))
        schema = run.graph.sources["s"][0].operator.schema
        decisions = 0
        began = time.thread_time()
        waited = [time.thread_time() - began for _ in run.burst("s", [Batch(schema, [(t, 1, t)]) for t in range(rows)])]
        mean = statistics.fmean(waited) * 1000
        print(f"dfs(batch={k}): {mean:.1f} ms latency of a burst of {rows}, {decisions / rows:.2f} decisions a row")
    Rule.select = select  # type: ignore[method-assign]


def chain() -> None:
    """Bursts of 60 rows: an operator of 0.3 ms that keeps all, one that keeps a tenth, and one of 2.4 ms."""

    def lasting(seconds: float) -> Callable[[int], int]:
        def work(value: int) -> int:
            end = time.thread_time() + seconds
            while time.thread_time() < end:
                note()
            return value

        return work

    def note() -> None:
        nonlocal most
        outside = bisect_right(arrivals, time.thread_time() - origin) - begun
        nodes = run.graph.nodes
        for arc in (arc for node in nodes for arc in node.inputs):
            arc.count()
        inside = sum(len(node.inbox) + sum(arc.rows for arc in node.inputs) for node in nodes)
        most = max(most, outside + inside + 1)

    def due() -> list[Batch]:
        nonlocal begun
        come = bisect_right(arrivals, time.thread_time() - origin)
        first, begun = begun, come
        return [Batch(schema, [(at, 1, at)]) for at in range(first, come)]

    unit = 300e-6
    bursts = [burst * 78 * unit for burst in range(3) for _ in range(60)]
    found = {}
    for name in (*NAMED, "chain"):
        flow = pk.Flow().stream("s", [], time="ts", schema=COLUMNS, progress=pk.punctuated("k < 0"))
        for function, units in (("glance", 1), ("sift", 1), ("dear", 8)):
            flow.function(function, lasting(units * unit), "bigint")
        inner = "SELECT ts, k, glance(v) AS v FROM s"
        sql = f"SELECT ts, dear(v) AS w FROM (SELECT ts, k, v FROM ({inner}) a WHERE sift(v) % 10 = 0) b"
        run = SharedExecution(flow.catalog, {"q": flow.query(sql).plan})
        schema = run.graph.sources["s"][0].operator.schema
        peaks = []
        for attempt in range(6):
            arrivals, begun, most, origin = bursts, 0, 0, time.thread_time()
            while begun < len(arrivals):
                for _ in run.burst("s", due()):
                    more = due()
                    if more:
                        run.graph.admit("s", more)
            run.take()
            if attempt == 0 and name == "chain":
                run.place_breaks("chain")
            elif attempt == 0:
                run.use(NAMED[name])
            else:
                peaks.append(most)
        found[name] = statistics.median(peaks)
        print(f"most rows that wait in three bursts of 60, {name:12} {found[name]:.0f}")
    least = min(held for name, held in found.items() if name != "chain")
    claim("most rows that wait by chain, by the least of the others", found["chain"] / least, 1.0)


CLAIMS = {each.__name__: each for each in (pause, latency, memory, shares, batches, chain)}


if __name__ == "__main__":
    for wanted in sys.argv[1:] or CLAIMS:
        CLAIMS[wanted]()
