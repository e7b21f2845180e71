"""Streams of very different rates into one union, in a run of the flow, on the wall clock (Stream Mill, section 6).

A fast stream and a slow one, by Poisson, each behind a selection that passes 95 of 100 rows, meet in a union. The fast
source is read by a thread of its own, which sleeps until a row is due; the slow one is asked in its turn. Rows are
stamped with the clock by their sources, so both streams are ordered, and a silent one may promise the time that it is;
or they bring no times, and the run stamps them (internal timestamps). What the slow stream says while it is silent is a
`Way`: nothing, or on demand a promise of the source or of the clock, or heartbeats, which a source with a thread of its
own gives every so often, asked or not.

Latency is from when a row was handed to the run (of the slow stream, from when it was due) to when the sink is given
its result. The first row is one of the slow stream, and so is the last, so that every wait is bounded by its gaps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

import penstock as pk
from penstock.errors import InternalError
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation, linear
from penstock.model.time import END_OF_TIME
from penstock.operators.operator import Outputs
from penstock.papers.ordered_union import OrderedUnion
from penstock.plan.nodes import Union

FAST, SLOW = 1000.0, 0.5
"""Rows a second."""
PASSES = 95
"""So many of 100 rows pass the selection of their stream."""
SEED = 14
COLUMNS = "n bigint, v bigint"
SCHEMA = f"ts timestamp, {COLUMNS}"
UNION = f"SELECT ts, n FROM fast WHERE v < {PASSES} UNION ALL SELECT ts, n FROM slow WHERE v < {PASSES}"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BEGINS = 0.05
"""So many seconds after the run is ready the first gap begins."""


@dataclass(frozen=True)
class Arrivals:
    """When the rows of both streams are due, in seconds; the first row is a slow one, and so is the last."""

    fast: np.ndarray
    slow: np.ndarray
    values: np.ndarray
    """By which rows are selected: of the fast stream, then of the slow one."""

    @staticmethod
    def by_poisson(rows: int) -> Arrivals:
        """About so many rows of the fast stream, and so many of the slow one as come in that time on average."""
        random = np.random.default_rng(SEED)
        slow = np.cumsum([0.0, *random.exponential(1 / SLOW, max(round(rows * SLOW / FAST), 1))])
        gaps = random.exponential(1 / FAST, int(2 * slow[-1] * FAST) + 10)
        fast = np.cumsum(gaps)
        fast = fast[fast < slow[-1]]
        values = random.integers(0, 100, len(fast) + len(slow))
        values[-len(slow) :] %= PASSES  # a slow row that is left out lets nobody go on
        return Arrivals(fast, slow, values)

    @property
    def passing(self) -> np.ndarray:
        """The numbers of the rows that pass."""
        found: np.ndarray = np.flatnonzero(self.values < PASSES)
        return found


@dataclass(frozen=True)
class Way:
    """What the slow stream says while it is silent."""

    name: str
    on_demand: bool = False
    """Whether its source promises the time when it is asked."""
    heartbeat: float | None = None
    """So many seconds apart it promises the time unasked."""
    declared: dict[str, Any] = field(default_factory=dict)
    """What the clock may say of it."""
    stamped_by_run: bool = False
    """Whether rows of both streams bring no times: the run stamps them, and while one is silent the clock speaks."""


NOTHING = Way("nothing")
ON_DEMAND = Way("a promise on demand", on_demand=True)


class Clock:
    """The clock that stamps rows: as the engine's, and never back."""

    def __init__(self) -> None:
        """It was never looked at."""
        self.last = 0

    def now(self) -> int:
        """In microseconds since 1970."""
        self.last = max(self.last, time.time_ns() // 1000)
        return self.last

    def stamp(self) -> datetime:
        """As the value of a row."""
        return EPOCH + timedelta(microseconds=self.now())


class Playing:
    """Arrivals that are played in real time, and when each row came."""

    def __init__(self, arrivals: Arrivals, *, stamped: bool = True) -> None:
        """They begin with `begin`; rows that are not `stamped` bring no times."""
        self.arrivals, self.stamped = arrivals, stamped
        self.came = np.zeros(len(arrivals.values))
        self.stamps: dict[int, datetime] = {}
        """The times that rows were given, by their numbers."""
        self.start = float("inf")
        self.begun = threading.Event()

    def begin(self) -> None:
        """From now on the clock runs."""
        self.start = time.perf_counter() + BEGINS
        self.begun.set()

    def row(self, number: int, stamp: datetime) -> dict[str, Any]:
        """As the run is given it."""
        self.stamps[number] = stamp
        return ({"ts": stamp} if self.stamped else {}) | {"n": number, "v": int(self.arrivals.values[number])}

    def fast(self) -> Iterator[Any]:
        """The fast stream, in a thread of the run."""
        clock = Clock()
        self.begun.wait()
        for number, due in enumerate(self.arrivals.fast.tolist()):
            self._sleep(due)
            self.came[number] = time.perf_counter()
            yield self.row(number, clock.stamp())

    def slow_with_heartbeats(self, every: float) -> Iterator[Any]:
        """The slow stream, in a thread of the run that promises the time as well."""
        clock, first = Clock(), len(self.arrivals.fast)
        self.begun.wait()
        beat = 0.0
        for number, due in enumerate(self.arrivals.slow.tolist(), first):
            while (beat := beat + every) < due:
                self._sleep(beat)
                yield linear("ts", clock.now())
            beat -= every
            self._sleep(due)
            self.came[number] = self.start + due
            yield self.row(number, clock.stamp())

    def _sleep(self, due: float) -> None:
        left = self.start + due - time.perf_counter()
        if left > 0:
            time.sleep(left)


class Asked:
    """The slow stream as a source that is asked; it promises nothing."""

    def __init__(self, playing: Playing) -> None:
        """Of arrivals that are played."""
        self.playing, self.clock = playing, Clock()
        self.given = 0

    def poll(self) -> Any:
        """Its next row if that is due."""
        playing, slow = self.playing, self.playing.arrivals.slow
        if self.given == len(slow):
            return pk.END
        due = playing.start + float(slow[self.given])
        if time.perf_counter() < due:
            return pk.IDLE
        number = len(playing.arrivals.fast) + self.given
        self.given += 1
        playing.came[number] = due
        return playing.row(number, self.clock.stamp())


class Promising(Asked):
    """The same; what it will give is stamped no earlier than now."""

    def promise(self, now: int) -> int:
        """Nothing below now comes any more."""
        return min(now, self.clock.now())


class Watched(OrderedUnion):
    """An ordered union that remembers how much it held, and how often it was promised something."""

    def __init__(self, schema: Any, *, relaxed: bool = True) -> None:
        """Of the fast stream and the slow one."""
        super().__init__(schema, 2, relaxed=relaxed)
        self.most = self.promises = 0

    def process(self, port: int, batch: Batch) -> Outputs:
        """Look at what is held when rows have come."""
        yield from super().process(port, batch)
        self.most = max(self.most, sum(len(each.rows) for each in self.inputs))

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Count what the slow stream says."""
        self.promises += port == 1 and punctuation.value < END_OF_TIME
        yield from super().punctuate(port, punctuation)


@dataclass(frozen=True)
class Seen:
    """What was seen of a run."""

    latencies: np.ndarray
    """Of the rows that came out, in seconds, in the order of their numbers."""
    held: int
    """Rows that waited in the union at most."""
    promises: int
    """That the slow stream made, besides those of its rows."""

    @property
    def mean(self) -> float:
        """In seconds."""
        return float(self.latencies.mean())

    @property
    def median(self) -> float:
        """In seconds."""
        return float(np.median(self.latencies))

    @property
    def p99(self) -> float:
        """In seconds."""
        return float(np.quantile(self.latencies, 0.99))


def flow_of(playing: Playing, way: Way) -> pk.Flow:
    """The two streams, of which the slow one speaks in a way."""
    slow: Any
    if way.heartbeat is not None:
        slow = playing.slow_with_heartbeats(way.heartbeat)
    else:
        slow = Promising(playing) if way.on_demand else Asked(playing)
    if way.stamped_by_run:
        flow = pk.Flow().stream("fast", playing.fast(), time="ts", schema=COLUMNS, timestamps=pk.internal())
        return flow.stream("slow", slow, time="ts", schema=COLUMNS, timestamps=pk.internal())
    flow = pk.Flow().stream("fast", playing.fast(), time="ts", schema=SCHEMA, progress=pk.ordered())
    return flow.stream("slow", slow, time="ts", schema=SCHEMA, progress=pk.ordered(), **way.declared)


def seen_of(arrivals: Arrivals, way: Way, strategy: str = "dfs", *, ordered: bool = True) -> Seen:
    """Run the union over the arrivals; `ordered` is the paper's, which waits, and ours passes rows on as they come."""
    playing = Playing(arrivals, stamped=not way.stamped_by_run)
    out: list[tuple[float, list[int]]] = []

    def take(table: pa.Table) -> None:
        out.append((time.perf_counter(), table.column("n").to_pylist()))

    flow = flow_of(playing, way)
    run = flow.start({flow.query(UNION, name="union"): take}, strategy=strategy)
    union = watched(run) if ordered else None
    playing.begin()
    run.wait()
    check_whole(run)
    at = np.array([when for when, numbers in out for _ in numbers])
    numbers = np.array([number for _, numbers in out for number in numbers])
    if not np.array_equal(np.sort(numbers), arrivals.passing):
        raise InternalError("A union lost rows.", where=way.name, got=f"{len(numbers)} of {len(arrivals.passing)}")
    latencies = (at - playing.came[numbers])[np.argsort(numbers)]
    if union is None:
        return Seen(latencies, 0, 0)
    return Seen(latencies, union.most, union.promises - len(arrivals.slow))


def watched(run: Any) -> Watched:
    """Let the union of a run be one that keeps order; nothing has come yet."""
    with run.execution.alone():
        (node,) = [node for node in run.execution.graph.nodes if isinstance(node.plan, Union)]
        node.operator = union = Watched(node.operator.schema)
    return union


def check_whole(run: Any) -> None:
    """No row was late: stamps and promises are by the same clock."""
    counts = run.progress.counts
    if counts.late or counts.dead:
        raise InternalError("Rows were stamped before a promise.", where=run.name, got=str(counts))
