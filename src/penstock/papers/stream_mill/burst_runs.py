"""Bursts through a path of two operators that cost the same, in a run of the flow, on the wall clock.

A selection and a projection each work for a while on every row. A burst is on hand as a whole before its first row is
looked at: a row before it, which the selection leaves out, keeps the graph at work until the source has given all of
the burst. Latency is from then to when the sink is given a row. The *mean step* is measured in the same burst: the time
to its last result, by two steps a row; what the run spends besides the work is in it.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

import penstock as pk
from penstock.errors import InternalError
from penstock.flow.flow_run import FlowRun
from penstock.runtime.rules import Action, Rule, Running
from penstock.runtime.strategies import Strategy

BEFORE, BURST = 0, 1
SQL = "SELECT t, n, work(k) AS w FROM s WHERE work(k) = 1"
PATIENCE = 60.0
"""So many seconds without a sign of life are a failure."""


@dataclass(frozen=True)
class Burst:
    """What was seen of a burst."""

    mean: float
    """Latency, in steps."""
    step: float
    """In seconds."""
    seconds: float
    """To its last result."""


class Bursts:
    """A source of bursts, the work of the operators, and the sink."""

    def __init__(self, rows: int, number: int, step: float) -> None:
        """So many bursts of so many rows; operators work so many seconds for a row."""
        self.rows, self.number, self.step = rows, number, step
        self.seen: list[Burst] = []
        self.begun = threading.Event()
        """Until then nothing comes."""
        self._busy, self._filled, self._done = threading.Event(), threading.Event(), threading.Event()
        self._filled_at = 0.0
        self._out: list[float] = []

    def items(self) -> Iterator[dict[str, int]]:
        """All bursts, each when the one before it is through."""
        _wait(self.begun)
        for at in range(self.number):
            yield {"t": at, "n": -1, "k": BEFORE}
            _wait(self._busy)
            for number in range(self.rows):
                yield {"t": at, "n": number, "k": BURST}
            self._filled_at = time.perf_counter()
            self._filled.set()
            _wait(self._done)

    def work(self, kind: int) -> int:
        """What an operator does with a row."""
        if kind == BEFORE:
            self._busy.set()
            _wait(self._filled)
        elif self.step:
            until = time.perf_counter() + self.step
            while time.perf_counter() < until:
                pass
        return kind

    def take(self, table: pa.Table) -> None:
        """A sink."""
        self._out += [time.perf_counter() - self._filled_at] * table.num_rows
        if len(self._out) == self.rows:
            last = self._out[-1]
            step = last / (2 * self.rows)
            self.seen.append(Burst(statistics.mean(self._out) / step, step, last))
            self._out = []
            self._done.set()


class CountedRule(Rule):
    """A rule that counts how often it decides."""

    decisions = 0
    """Of all rules together, while they are counted."""

    def select(self, node: Running) -> Action:
        """As the rule that it is."""
        CountedRule.decisions += 1
        return super().select(node)


def seen_of(bursts: Bursts, strategy: str | Strategy) -> list[Burst]:
    """Run bursts by a strategy."""
    run = started(bursts, strategy)
    bursts.begun.set()
    run.wait()
    return bursts.seen


def decisions_a_row(rows: int, strategy: str | Strategy) -> float:
    """How many decisions there are for each row of a burst, by rules that are interpreted, also depth-first."""
    bursts = Bursts(rows, 1, 0.0)
    run = started(bursts, strategy)
    with run.execution.alone():
        graph = run.execution.graph
        graph.tabulate()
        for node in graph.nodes:
            node.rule = CountedRule(node.rule.name, node.rule.clauses, node.rule.batch)
            node.part.is_compiled = node.part.is_clear = False
    CountedRule.decisions = 0
    bursts.begun.set()
    run.wait()
    return CountedRule.decisions / rows


def started(bursts: Bursts, strategy: str | Strategy) -> FlowRun:
    """The run; nothing comes yet."""
    flow = pk.Flow().stream("s", bursts.items(), time="t", schema="t bigint, n bigint, k bigint")
    flow.function("work", bursts.work, "bigint")
    source = flow._sources["s"]
    flow._sources["s"] = replace(source, ahead=bursts.rows + 2)  # a burst is on hand as a whole
    return flow.start({flow.query(SQL, name="bursts"): bursts.take}, strategy=strategy)


def _wait(event: threading.Event) -> None:
    """Until the other side has come so far."""
    if not event.wait(PATIENCE):
        raise InternalError("A burst does not go on.", got=f"nothing in {PATIENCE:g} seconds")
    event.clear()
