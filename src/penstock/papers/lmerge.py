"""`penstock papers lmerge`: the experiments of the merge paper, as ratios within one run.

Memory and throughput against the number of inputs, the chattiness of policies, the effect of bounds (Figs 2 to 6);
bursts and congestion (Figs 7 and 8) and plan switching with feedback (Fig 9) in virtual time, so that nothing depends
on the machine.
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.bench.claims import Claim, Report
from penstock.model.batch import Batch
from penstock.model.elements import Element, Insert
from penstock.model.schema import schema_of
from penstock.operators.merge.base import LogicalMerge
from penstock.operators.merge.baselines import CleanseThenR1, R3Minus
from penstock.operators.merge.ordered import R0, R1, R2
from penstock.operators.merge.r3 import R3
from penstock.operators.merge.r4 import R4
from penstock.papers.lmerge_scenarios import bursts, congestion, plan_switching
from penstock.papers.lmerge_streams import Parameters, increasing, ordered, replica

Say = Callable[[str], None]
INPUTS = (2, 4, 6, 8, 10)
ORDERED = Parameters(disorder=0.0)
REVISED = Parameters(disorder=0.5, revised=0.36, stable_freq=0.001)


def interleaved(streams: list[Iterable[Element]]) -> Iterator[tuple[str, Element]]:
    """An element of each input in turn."""
    reading = {f"in{i}": iter(s) for i, s in enumerate(streams)}
    while reading:
        for name, elements in list(reading.items()):
            element = next(elements, None)
            if element is None:
                del reading[name]
            else:
                yield name, element


Arrivals = list[tuple[str, Element]]
Kind = type[LogicalMerge]


def merge_seconds(kind: type[LogicalMerge], arrivals: Arrivals, inputs: int) -> float:
    """How long a merge takes over all elements."""
    merge = kind([f"in{i}" for i in range(inputs)])
    started = time.perf_counter()
    for name, element in arrivals:
        merge.push(name, element)
    return time.perf_counter() - started


def loop_seconds(arrivals: Arrivals) -> float:
    """How long a bare loop takes that lets the first of equal events through, with a dict."""
    seen: dict[Any, int] = {}
    out = []
    started = time.perf_counter()
    for _name, element in arrivals:
        if type(element) is Insert:
            key = (element.vs, element.payload)
            if key not in seen:
                seen[key] = element.ve
                out.append(element)
    return time.perf_counter() - started


def best_of(runs: Sequence[Callable[[], float]], rounds: int = 3) -> list[float]:
    """The least seconds of each, in rounds over all, so that a busy moment does not fall on one of them.

    What was made before is kept out of the garbage collector's sight: nobody's run pays for looking at it.
    """
    gc.collect()
    gc.freeze()
    try:
        timed = [[run() for run in runs] for _ in range(rounds)]
    finally:
        gc.unfreeze()
    return [min(seconds) for seconds in zip(*timed, strict=True)]


def throughputs(
    kinds: Sequence[type[LogicalMerge]], make: Callable[[int], Iterable[Element]], inputs: int
) -> list[float]:
    """Elements a second that merges take; making the elements is not in the time."""
    arrivals = list(interleaved([make(i) for i in range(inputs)]))
    seconds = best_of([partial(merge_seconds, kind, arrivals, inputs) for kind in kinds])
    return [len(arrivals) / s for s in seconds]


def peak_memories(
    kinds: Sequence[type[LogicalMerge]], make: Callable[[int], Iterable[Element]], inputs: int
) -> list[int]:
    """The greatest number of bytes that merges hold; output is not kept, and what makes the input not counted."""
    without = _peak(lambda name, element: None, make, inputs)
    names = [f"in{i}" for i in range(inputs)]
    return [_peak(kind(names).push, make, inputs) - without for kind in kinds]


def _peak(take: Callable[[str, Element], object], make: Callable[[int], Iterable[Element]], inputs: int) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        peak = 0
        for count, (name, element) in enumerate(interleaved([make(i) for i in range(inputs)])):
            take(name, element)
            if count % 500 == 0:
                peak = max(peak, tracemalloc.get_traced_memory()[0])
        return peak
    finally:
        tracemalloc.stop()


def arrow_rate(rows: int = 200_000, inputs: int = 2, size: int = 10_000) -> float:
    """Elements a second through R0 on Arrow batches."""
    schema = schema_of([("ts", "bigint"), ("k", "bigint")], "ts")
    table = pa.table({"ts": np.arange(rows) * 3, "k": np.arange(rows) % 400}).cast(schema.arrow)
    batches = [Batch(schema, table=table.slice(i, size)) for i in range(0, rows, size)]
    best = 0.0
    for _ in range(5):
        merge = R0([f"in{i}" for i in range(inputs)])
        started = time.perf_counter()
        for batch in batches:
            for i in range(inputs):
                merge.push_batch(f"in{i}", batch)
        best = max(best, rows * inputs / (time.perf_counter() - started))
    return best


def lagging(streams: list[list[Element]], lag: int) -> list[tuple[str, Element]]:
    """The first stream as it comes, the others so many elements later."""
    timed = [
        (at + (lag if number else 0), number, at, element)
        for number, stream in enumerate(streams)
        for at, element in enumerate(stream)
    ]
    return [(f"in{number}", element) for _, number, _, element in sorted(timed, key=lambda t: t[:3])]


def mean_wait(kind: type[LogicalMerge], arrivals: Iterable[tuple[str, Element]], inputs: int) -> float:
    """How many elements are taken between the first sight of an event and its output, on average."""
    merge = kind([f"in{i}" for i in range(inputs)])
    seen: dict[Any, int] = {}
    waits = []
    for count, (name, element) in enumerate(arrivals):
        if isinstance(element, Insert):
            seen.setdefault((element.vs, element.payload), count)
        for out in merge.push(name, element):
            if isinstance(out, Insert):
                waits.append(count - seen[out.vs, out.payload])
    return statistics.mean(waits)


def _replica(p: Parameters, told: int) -> list[Element]:
    return list(increasing(replica(p, told)))


class Experiments:
    """One run of all of them."""

    def __init__(self, events: int, say: Say) -> None:
        """So many events per input."""
        self.events, self.say = events, say
        self.rows: list[dict[str, Any]] = []
        self.claims: list[Claim] = []

    def run(self) -> Report:
        """Figs 2 to 9."""
        self._ordered()
        self._revised()
        self._policies()
        self._stable_freq()
        self._lag()
        self._latency()
        self._growth()
        self._per_element()
        self._scenarios()
        return Report("lmerge", self.rows, self.claims)

    def _parameters(self, p: Parameters, **changes: Any) -> Parameters:
        return Parameters(**{**p.__dict__, "events": self.events, **changes})

    def _tell(self, figure: str, **numbers: Any) -> None:
        self.rows.append({"figure": figure, **numbers})
        self.say(f"{figure}: " + ", ".join(f"{k} {v}" for k, v in numbers.items()))

    def _ordered(self) -> None:
        """Figs 2 and 3: ordered streams without adjusts, by every algorithm."""
        p, small = self._parameters(ORDERED), self._parameters(ORDERED, events=self.events // 4)
        kinds: tuple[Kind, ...] = (R0, R1, R2, R3, R4, R3Minus)
        for inputs in (2, 10):
            rates = throughputs(kinds, lambda i: list(increasing(ordered(p))), inputs)
            held = peak_memories(kinds, lambda i: increasing(ordered(small)), inputs)
            for kind, rate, most in zip(kinds, rates, held, strict=True):
                self._tell("2, 3: ordered", algorithm=kind.name, inputs=inputs, rate=round(rate), bytes=most)
        by_name = dict(zip([k.name for k in kinds], rates, strict=True))
        for faster, slower in pairwise(["R0", "R1", "R2", "R3", "R3-"]):
            ratio = by_name[faster] / by_name[slower]
            self.claims.append(Claim(f"throughput: {faster} against {slower}", ratio, 1.0, "higher"))

    def _revised(self) -> None:
        """Fig 6: disorder and adjusts, R3 beside R3- and Cleanse + R1."""
        p = self._parameters(REVISED)
        small = self._parameters(REVISED, events=self.events // 4, stable_freq=0.004)
        kinds: tuple[Kind, ...] = (R3, R3Minus, CleanseThenR1)
        held: dict[tuple[str, int], int] = {}
        for inputs in INPUTS:
            rates = throughputs(kinds, lambda i: list(increasing(replica(p, i))), inputs)
            peaks = peak_memories(kinds, lambda i: increasing(replica(small, i)), inputs)
            for kind, rate, most in zip(kinds, rates, peaks, strict=True):
                held[kind.name, inputs] = most
                self._tell("6: revised", algorithm=kind.name, inputs=inputs, rate=round(rate), bytes=most)
        growth = held["R3", 10] / held["R3", 2]
        self.claims.append(Claim("memory: R3 with 10 inputs against 2", growth, 1.3, "lower"))
        less = held["Cleanse + R1", 10] / held["R3", 10]
        self.claims.append(Claim("memory: Cleanse + R1 against R3 at 10 inputs", less, 5.0, "higher"))
        self.claims.append(
            Claim("throughput: R3 against Cleanse + R1 at 10 inputs", rates[0] / rates[2], 2.0, "higher")
        )

    def _policies(self) -> None:
        """Fig 4: adjusts in and out as disorder and revisions grow, by policy; and how long events wait."""
        for revised in (0.1, 0.3, 0.5):
            p = self._parameters(REVISED, revised=revised, stable_freq=0.01, text=16)
            arrivals = list(interleaved([list(increasing(replica(p, i))) for i in range(3)]))
            for policy in ("reflect all", "first seen", "half frozen", "conservative"):
                merge = R3(["in0", "in1", "in2"], policy=policy)
                for name, element in arrivals:
                    merge.push(name, element)
                waited = merge.counts.waited / max(merge.counts.inserts_out, 1)
                self._tell(
                    "4: chattiness", policy=policy, revised=revised, adjusts_in=merge.counts.adjusts_in,
                    adjusts_out=merge.counts.adjusts_out, waited=round(waited, 1),
                )  # fmt: skip

    def _stable_freq(self) -> None:
        """Fig 5: more bounds need less memory and cost time."""
        for frequency in (0.0005, 0.002, 0.01):
            p = self._parameters(REVISED, stable_freq=frequency, duration=2000, events=self.events // 2)
            make = partial(_replica, p)
            kinds: tuple[Kind, ...] = (R3, R4)
            rates, held = throughputs(kinds, make, 2), peak_memories(kinds, make, 2)
            for kind, rate, most in zip(kinds, rates, held, strict=True):
                self._tell("5: bounds", algorithm=kind.name, stable_freq=frequency, rate=round(rate), bytes=most)

    def _lag(self) -> None:
        """Section VI-C3: the further the others lag, the more of what they bring is dropped at once."""
        p = self._parameters(REVISED, stable_freq=0.01, duration=2000, text=16)
        streams = [_replica(p, i) for i in range(3)]
        lags = (0, self.events // 20, self.events // 4)
        arrivals = [lagging(streams, lag) for lag in lags]
        seconds = best_of([partial(merge_seconds, R3, given, 3) for given in arrivals])
        for lag, given, took in zip(lags, arrivals, seconds, strict=True):
            self._tell("VI-C3: lag", lag=lag, rate=round(len(given) / took))

    def _latency(self) -> None:
        """Section VI-D3: elements taken between the first sight of an event and its output, on average."""
        p = self._parameters(REVISED, stable_freq=0.01, duration=2000, text=16)
        for kind in (R3, CleanseThenR1):
            arrivals = interleaved([list(increasing(replica(p, i))) for i in range(3)])
            self._tell("VI-D3: latency", algorithm=kind.name, waited=round(mean_wait(kind, arrivals, 3), 1))
        waits = {r["algorithm"]: r["waited"] for r in self.rows if r["figure"] == "VI-D3: latency"}
        self.claims.append(
            Claim(
                "latency: elements waited, R3 against Cleanse + R1", waits["R3"] / waits["Cleanse + R1"], 0.1, "lower"
            )
        )

    def _growth(self) -> None:
        """Table IV: time per element when eight times as many events are alive, as a ratio."""
        kinds: tuple[Kind, ...] = (R0, R1, R2, R3, R4)
        few, many = (
            list(interleaved([list(increasing(ordered(self._parameters(ORDERED, duration=d, text=16)))) for _ in "ab"]))
            for d in (2_000, 16_000)
        )
        runs = [partial(merge_seconds, kind, given, 2) for kind in kinds for given in (few, many)]
        seconds = best_of(runs)
        for kind, before, after in zip(kinds, seconds[::2], seconds[1::2], strict=True):
            growth = (after / len(many)) / (before / len(few))
            self._tell("Table IV: growth", algorithm=kind.name, slower_at_8_times=round(growth, 2))

    def _per_element(self) -> None:
        """Per element, beside a bare loop; and R0 over Arrow."""
        p = self._parameters(ORDERED, text=32)
        arrivals = list(interleaved([list(increasing(ordered(p))) for _ in range(10)]))
        bare, ours = best_of([partial(loop_seconds, arrivals), partial(merge_seconds, R3, arrivals, 10)], rounds=7)
        loop, arrow = len(arrivals) / bare, arrow_rate()
        self._tell("per element", bare_loop=round(loop), r3=round(len(arrivals) / ours), r0_on_arrow=round(arrow))
        self.claims.append(Claim("per element: R3, times a bare loop", ours / bare, 4.0, "lower"))
        faster = arrow / loop
        self.claims.append(Claim("R0 on Arrow batches against the bare loop, times faster", faster, 10.0, "higher"))

    def _scenarios(self) -> None:
        """Figs 7 to 9."""
        for name, run in (("7: bursts", bursts), ("8: congestion", congestion)):
            inputs, output = run()
            variation = [statistics.pstdev(r) / statistics.mean(r) for r in (*inputs, output)]
            self._tell(name, inputs=[round(v, 3) for v in variation[:-1]], output=round(variation[-1], 3))
            self.rows[-1]["series"] = [*inputs, output]
            if name.startswith("7"):
                smoother = statistics.mean(variation[:-1]) / variation[-1]
                what = "bursts: variation of the inputs' rate against the output's"
                self.claims.append(Claim(what, smoother, 5.0, "higher"))
        without, with_feedback, alone = plan_switching(self.events)
        self._tell("9: plan switching", alone=alone, merged=without, with_feedback=with_feedback)
        self.claims.append(
            Claim("plan switching: how much sooner with feedback", without / with_feedback, 4.0, "higher")
        )
