"""`penstock papers window-queries`: OA-Join beside joins that keep an order (thesis 7.3, Figs 7-6 and 7-7).

Q7-2 counts, per minute, pairs of packets of one flow in opposite directions that are no more than n seconds apart. It
is run as it is written; only the operator that joins is another one. Everything is measured while the query runs over
all packets: *time* is the processor time of the process inside the query; *latency* the time by the clock from handing
the query a punctuation to holding the count that it completes; *memory* the greatest number of bytes that Python's and
Arrow's allocators held for the query at once, in a run of its own, since counting them takes time. The least time of
the rounds and the median latency of all of them are told. The counts must be the same.
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from penstock.bench.claims import Claim, Report
from penstock.errors import InternalError
from penstock.flow.flow import Flow
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.progress import punctuated
from penstock.model.time import SECOND
from penstock.operators.joins.baselines import OPIBJoin, OPOBJoin
from penstock.operators.joins.oa_join import OAJoin
from penstock.operators.operator import Operator, Outputs
from penstock.papers.packets import LINKS, RATE, SCHEMA, Arrivals

Say = Callable[[str], None]
Q7_2 = """
    SELECT count(*) AS pairs [RANGE 1 minute, SLIDE 1 minute, WA M1.ts]
    FROM M1 [RANGE {n} seconds, WA ts], M2 [RANGE {n} seconds, WA ts]
    WHERE M1.srcIP = M2.destIP and M1.destIP = M2.srcIP and M1.srcPort = M2.destPort and M1.destPort = M2.srcPort
"""
SIZES = tuple(range(1, 10))
JOINS: dict[str, Callable[[OAJoin], Operator]] = {"OA-Join": lambda join: join, "OPOB": OPOBJoin, "OPIB": OPIBJoin}
FIGURES = {"7-6": ("OA-Join", "OPOB"), "7-7": ("OA-Join", "OPIB")}
ROUNDS = 3
"""Joins run in turn, first the one and then the other first, so that what else a machine does befalls both."""
TUPLES = 140 * RATE * len(LINKS)
START = 1_700_000_030 * SECOND
"""Ten seconds before a minute, so that three of them end in as many packets."""


def execution(n: int, join: str) -> Any:
    """Q7-2 with bands of n seconds, by one of the joins."""
    flow = Flow()
    for link in LINKS:
        flow.stream(link, SCHEMA.arrow.empty_table(), time="ts", progress=punctuated("len < 0", whole_stream=True))
    query: Any = flow.query(Q7_2.format(n=n))
    made = query.execution()
    for node in made.graph.nodes:
        if isinstance(node.operator, OAJoin):
            node.operator = JOINS[join](node.operator)
    return made


@dataclass
class Outcome:
    """What one run came to."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    counts: list[Row] = field(default_factory=list)


def timed(n: int, join: str, arrivals: Arrivals) -> Outcome:
    """Run it, and measure processor time and latencies."""
    running, outcome = execution(n, join), Outcome()
    for link, item in arrivals:
        began, handed = time.process_time(), time.perf_counter()
        found = [row for out in running.feed(link, item) if isinstance(out, Batch) for row in out.rows]
        waited = time.perf_counter() - handed
        outcome.seconds += time.process_time() - began
        outcome.counts += found
        if found:
            outcome.latencies.append(waited)
    began = time.process_time()
    rest = running.close()
    outcome.seconds += time.process_time() - began
    outcome.counts += [row for out in rest if isinstance(out, Batch) for row in out.rows]
    return outcome


class Weighed(Operator):
    """A join, with the greatest number of bytes that were held whenever it had taken or given something."""

    ports = 2

    def __init__(self, join: Operator) -> None:
        """`join` does the work."""
        super().__init__(join.schema)
        self.join, self.most = join, 0

    def process(self, port: int, batch: Batch) -> Outputs:
        """As the join does."""
        return self._weighed(self.join.process(port, batch))

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """As the join does."""
        return self._weighed(self.join.punctuate(port, punctuation))

    def _weighed(self, outputs: Outputs) -> Outputs:
        for output in outputs:
            self.weigh()
            yield output
        self.weigh()

    def weigh(self) -> None:
        """Look at the allocators."""
        self.most = max(self.most, held_bytes())


def held_bytes() -> int:
    """What Python's allocator, as far as it is traced, and Arrow's hold now."""
    return tracemalloc.get_traced_memory()[0] + int(pa.total_allocated_bytes())


def most_bytes(n: int, join: str, arrivals: Arrivals) -> int:
    """Run it, and measure the greatest number of bytes held for it, the rows that it was just given among them."""
    gc.collect()
    tracemalloc.start()
    try:
        before = held_bytes()
        running = execution(n, join)
        (node,) = [node for node in running.graph.nodes if node.operator.ports == 2]
        node.operator = weighed = Weighed(node.operator)
        for link, item in arrivals:
            running.feed(link, item)
        return weighed.most - before
    finally:
        tracemalloc.stop()


@dataclass
class JoinExperiment:
    """Fig. 7-6 or 7-7."""

    figure: str
    tuples: int = TUPLES
    say: Say = print
    sizes: tuple[int, ...] = SIZES
    rounds: int = ROUNDS
    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def joins(self) -> tuple[str, str]:
        """OA-Join, and what it is compared with."""
        return FIGURES[self.figure]

    def run(self) -> Report:
        """All sizes of the band."""
        arrivals = Arrivals.of(max(self.tuples // (RATE * len(LINKS)), 1), START)
        for n in self.sizes:
            outcomes: dict[str, list[Outcome]] = {join: [] for join in self.joins}
            for number in range(self.rounds):
                for join in self.joins[:: -1 if number % 2 else 1]:
                    outcomes[join].append(timed(n, join, arrivals))
            self._compare(n, outcomes)
            for join, own in outcomes.items():
                self._tell(n, join, own, most_bytes(n, join, arrivals))
        return Report(f"window-queries-{self.figure}", self.rows, list(self._claims()))

    def _compare(self, n: int, outcomes: dict[str, list[Outcome]]) -> None:
        one, *others = [outcome.counts for own in outcomes.values() for outcome in own]
        for other in others:
            if other != one:
                raise InternalError("Joins count differently.", where=f"Q7-2, n = {n}", got=f"{one} and {other}")

    def _tell(self, n: int, join: str, own: list[Outcome], most: int) -> None:
        row: dict[str, Any] = {"n, s": n, "join": join, "memory, bytes": most}
        latencies = [latency for outcome in own for latency in outcome.latencies]
        if latencies:
            row["median latency, ms"] = round(1000 * statistics.median(latencies), 2)
        row["time, s"] = round(min(outcome.seconds for outcome in own), 2)
        row["pairs"] = sum(int(count) for *_, count in own[0].counts)  # type: ignore[call-overload]
        self.rows.append(row)
        self.say(f"{self.figure}: " + ", ".join(f"{k} {v}" for k, v in row.items()))

    def _claims(self) -> Iterator[Claim]:
        ours, other = self.joins
        measures = ["memory, bytes", "median latency, ms", "time, s"] if self.figure == "7-6" else ["memory, bytes"]
        for measure in measures:
            if all(measure in row for row in self.rows):
                by = {(row["n, s"], row["join"]): row[measure] for row in self.rows}
                worst = max(by[n, ours] / by[n, other] for n in self.sizes)
                name = measure.partition(",")[0]
                yield Claim(f"{name}: OA-Join against {other}, at the worst n", worst, 1.0, "lower")
