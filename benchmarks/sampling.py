"""What statistics cost that are always on: with them, without the sample, and without any, in turn, in one process.

`python benchmarks/sampling.py [rounds]`. The cases are those of `benchmarks/executor.py`. Every round runs each case as
it is, without the clocks of the host (nothing is timed or traced), and with operators and arcs that count nothing
either; on fresh graphs, the order changing from round to round, with garbage collection off while it is timed. Printed
are the medians of the ratios of the rounds, each of runs side by side, and what asking for the statistics takes. The
function of a lane counts in variables of its own, as it must to know where it is; there, nothing is taken out of that.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

from executor import CASES, COLUMNS

import penstock as pk
from penstock.engines.local.shared import SharedExecution
from penstock.model.batch import Batch
from penstock.model.interleaved import Interleaved
from penstock.runtime.arcs import Arc, Given, Outlet
from penstock.runtime.graph_node import GraphNode
from penstock.runtime.sampling import Clocks

ROUNDS = 7
ALL, COUNTED, NONE = "all", "counted", "none"


def _give(node: GraphNode, element: Given) -> int:
    """As a node does, without counting; the last bound and the last time are kept, since results depend on them."""
    if isinstance(element, Interleaved):
        if node.keeps_last:
            node._keep_last(element.batch)
        node.count_punctuation(element.said)
    elif isinstance(element, Batch):
        if node.keeps_last:
            node._keep_last(element)
    else:
        node.count_punctuation((element,))
    if not node.arcs:
        return 0
    before = len(node.buffer.elements)
    if isinstance(element, Interleaved) and any(isinstance(arc, Outlet) for arc in node.arcs):
        node.buffer.elements.extend(element.elements())
    else:
        node.buffer.elements.append(element)
    return len(node.buffer.elements) - before


def _take(arc: Arc) -> Given:
    """As an arc does, without looking at how much waits or since when."""
    producer = arc.producer
    buffer = producer.buffer
    place = arc.head - buffer.start
    element = buffer.elements[place]
    arc.head += 1
    if not place:
        if len(producer.arcs) == 1:
            buffer.elements.popleft()
            buffer.start = arc.head
        else:
            buffer.forget(min([each.head for each in producer.arcs]))
    if not isinstance(element, Batch):
        arc.hear(element.said if isinstance(element, Interleaved) else (element,))
    return element


def uncounted() -> ExitStack:
    """Inside, the graph counts nothing."""
    stack = ExitStack()
    stack.enter_context(mock.patch.object(GraphNode, "take_in", GraphNode._operated))
    stack.enter_context(mock.patch.object(GraphNode, "give", _give))
    stack.enter_context(mock.patch.object(Arc, "take", _take))
    return stack


def measured(queries: tuple[str, ...], rows: int, size: int, how: str) -> tuple[float, float]:
    """Nanoseconds of processor time a row, and milliseconds that asking takes; a size of 0 pushes rows one by one."""
    with uncounted() if how == NONE else ExitStack():
        return _measured(queries, rows, size, sampled=how == ALL)


def _measured(queries: tuple[str, ...], rows: int, size: int, *, sampled: bool) -> tuple[float, float]:
    flow = pk.Flow()
    for name in "sr":
        flow.stream(name, [], time="ts", schema=COLUMNS, progress=pk.bounded(10))
    run = SharedExecution(flow.catalog, {f"q{i}": flow.query(q).plan for i, q in enumerate(queries)})
    if not sampled:
        run.graph.measure(Clocks())
    given = [(i // 10, i * 7 % 100, i * 7919 % 101) for i in range(rows)]
    schema = run.graph.sources["s"][0].operator.schema
    batches = [Batch(schema, given[at : at + size]) for at in range(0, rows, size)] if size else []
    streams = [run.pusher(name) for name in "sr" if name in run.graph.sources]
    gc.collect()
    gc.disable()
    began = time.process_time_ns()
    if size:
        for batch in batches:
            run.feed("s", batch)
    else:
        _push(run, streams, given)
    took = (time.process_time_ns() - began) / rows
    gc.enable()
    asked = time.perf_counter()
    run.statistics()
    return took, (time.perf_counter() - asked) * 1000


def _push(run: SharedExecution, streams: list[Callable[[Any], None]], given: list[Any]) -> None:
    for at, row in enumerate(given):
        for push in streams:
            push(row)
        if at % 1000 == 999:
            run.take()


def main(rounds: int) -> None:
    """Print the table."""
    print(f"{'processor time, ns per row':36}{'none':>10}{'all':>10}{'of none':>9}{'sample':>8}{'asking, ms':>12}")
    for case, (queries, rows, size) in CASES.items():
        found: dict[str, list[float]] = {ALL: [], COUNTED: [], NONE: []}
        asking = []
        for number in range(rounds):
            for how in list(found)[:: 1 if number % 2 else -1]:
                took, asked = measured(queries, rows // 2, size, how)
                found[how].append(took)
                asking.append(asked)
        of_none, sample = (
            statistics.median(a / b for a, b in zip(found[ALL], found[other], strict=True)) for other in (NONE, COUNTED)
        )
        cells = f"{min(found[NONE]):>10,.0f}{min(found[ALL]):>10,.0f}{of_none:>9.3f}{sample:>8.3f}"
        print(f"{case:36}{cells}{statistics.median(asking):>12.2f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else ROUNDS)
