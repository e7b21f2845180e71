"""Bursts, congestion and plan switching (Figs 7 to 9) in virtual time: every step has a given cost, nothing sleeps."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush

from penstock.flow.flow import Flow
from penstock.flow.local import LocalQuery
from penstock.model.batch import Batch
from penstock.model.elements import Element, Insert, Punctuation, linear
from penstock.model.progress import ordered
from penstock.operators.merge.r3 import R3
from penstock.papers.lmerge_streams import Parameters, increasing, replica

RATE = 5000
BUCKET = 0.1
EVENTS = 30_000
"""Six seconds, in buckets of a tenth."""
Delay = Callable[[random.Random, float], float]


def bursts(inputs: int = 4) -> tuple[list[list[int]], list[int]]:
    """Replicas with random delays, after which a backlog comes at once; inserts per bucket, in and out.

    One element in 2500 is delayed, by a fifth of a second on average.
    """

    def delayed(rng: random.Random, clock: float) -> float:
        return max(rng.gauss(0.2, 0.05), 0.0) if rng.random() < 0.0004 else 0.0

    return _rates(inputs, lambda number: delayed)


def congestion(inputs: int = 3) -> tuple[list[list[int]], list[int]]:
    """Replicas that are congested for a while, each at another time, two of them at once for a moment."""
    length = EVENTS / RATE
    slow = [(0.1 * length, 0.3 * length), (0.4 * length, 0.65 * length), (0.6 * length, 0.85 * length)]

    def delayed_of(number: int) -> Delay:
        begin, end = slow[number % len(slow)]
        return lambda rng, clock: abs(rng.gauss(1.8, 0.4)) / RATE if begin < clock < end else 0.0

    return _rates(inputs, delayed_of)


def _rates(inputs: int, delay_of: Callable[[int], Delay]) -> tuple[list[list[int]], list[int]]:
    p = Parameters(events=EVENTS, disorder=0.2, text=16)
    queue: list[tuple[float, int, int, Element]] = []
    counts = [Counter[int]() for _ in range(inputs)]
    order = 0
    for number in range(inputs):
        rng = random.Random(100 + number)
        delay = delay_of(number)
        clock = free = 0.0
        for element in increasing(replica(p, number)):
            clock += 1 / RATE  # when the source has it
            free = max(free, clock) + delay(rng, clock)  # when it gets through
            order += 1
            heappush(queue, (free, order, number, element))
            if isinstance(element, Insert):
                counts[number][int(free / BUCKET)] += 1
    merge = R3([f"in{i}" for i in range(inputs)])
    out: Counter[int] = Counter()
    while queue:
        at, _, number, element = heappop(queue)
        out[int(at / BUCKET)] += sum(isinstance(e, Insert) for e in merge.push(f"in{number}", element))
    buckets = int(EVENTS / RATE / BUCKET)
    return [[c[b] for b in range(buckets)] for c in counts], [out[b] for b in range(buckets)]


# Plan switching


class Plan:
    """A plan with a function that is expensive for some values; it has a clock of its own, which its work moves on."""

    def __init__(self, name: str, expensive_below: bool, rows: list[tuple[int, int]]) -> None:
        self.name, self.clock, self.position = name, 0.0, 0
        self.rows = rows

        def costly(x: int) -> bool:
            self.clock += 1.0 if (x < 500) == expensive_below else 0.02
            return x % 2 == 0

        flow = Flow().stream("s", iter(()), time="ts", schema="ts bigint, x bigint", progress=ordered())
        query = flow.function("costly", costly, "boolean").query("SELECT ts, x FROM s WHERE costly(x)")
        assert isinstance(query, LocalQuery)
        self.execution = query.execution()
        self.push = self.execution.pusher("s")

    def step(self) -> list[Element]:
        """One row through the plan; what comes of it."""
        self.clock += 0.001
        self.push(self.rows[self.position])
        self.position += 1
        outputs: list[Element] = []
        items = self.execution.take()
        if self.position == len(self.rows):
            items += self.execution.close()
        for item in items:
            if isinstance(item, Batch):
                outputs += item.elements()
            elif isinstance(item, Punctuation):
                outputs.append(linear("ts", item.value))
        return outputs

    @property
    def done(self) -> bool:
        """Whether every row has been through."""
        return self.position == len(self.rows)


def plan_switching(events: int) -> tuple[float, float, float]:
    """When two plans merged have said everything, without and with feedback; and the faster of the two alone."""
    rng = random.Random(9)
    rows: list[tuple[int, int]] = []
    low = True
    while len(rows) < events:
        size = rng.randint(events // 20, 3 * events // 20)
        rows += [(len(rows) + i, rng.randrange(0, 500) if low else rng.randrange(500, 1000)) for i in range(size)]
        low = not low
    rows = rows[:events]
    alone = min(_alone(rows, below) for below in (True, False))
    return _merged(rows, feedback=False), _merged(rows, feedback=True), round(alone, 1)


def _alone(rows: list[tuple[int, int]], below: bool) -> float:
    plan = Plan("alone", below, rows)
    while not plan.done:
        plan.step()
    return plan.clock


def _merged(rows: list[tuple[int, int]], *, feedback: bool) -> float:
    plans = [Plan("udf0", True, rows), Plan("udf1", False, rows)]
    merge = R3([p.name for p in plans], attribute="ts")
    while not merge.ended:
        plan = min((p for p in plans if not p.done), key=lambda p: p.clock)  # the one whose machine is free first
        for element in plan.step():
            before = merge.stable
            merge.push(plan.name, element)
            if feedback and merge.stable > before:
                for other in plans:
                    if merge.inputs[other.name].stable < merge.stable:
                        other.execution.feedback(merge.stable)
    return round(max(p.clock for p in plans if p.done), 1)
