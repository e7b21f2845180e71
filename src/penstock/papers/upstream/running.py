"""A queue in the running graph, on the wall clock: rows come when they come, and the consumer takes as long as it does.

The same arrivals as on the simulated clock (`simulation`), with one cost of a row made so many seconds. A source waits
until each row is due and hands it on; the sink of the run sleeps for a cost with every row. Staleness is what somebody
outside sees: when the source gave a row away, when the sink was handed it, and when it was done; nothing of it is the
queue's own. It is told in units of what a row was measured to cost, from the first row to the last.

What is compared with each other runs at the same time, so that what disturbs one disturbs the other.

Nothing is told of what comes after the last row: the run is stopped then, with what waits. A row that its source gives
away much too late tells that the machine had no time for this process: then the run is given up and made again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

import penstock as pk
from penstock.errors import InternalError
from penstock.papers.upstream.simulation import COST, Arrivals

SECONDS = 0.02
"""What a row costs the consumer."""
LATE = 0.06
"""A source that is this late was kept from running."""
TRIES = 30
Found = TypeVar("Found")
Answer = tuple[int, float]
"""The number of a row, and when it was answered."""


@dataclass(frozen=True)
class Seen:
    """What was seen of a run; staleness in costs of a row."""

    queue: float
    application: float
    live: float
    """Application staleness as the run's own progress tells it."""
    served: int
    cost: float
    """What a row took, in seconds: from its being handed over to the next one's, where one waited."""


def area(came: Sequence[float], answers: Sequence[Answer], end: float) -> float:
    """The integral of one key's staleness until a time: its updates came then, and an answer answers all up to it.

    An update is the oldest that is pending from when it came, and all before it were answered, until it is answered.
    """
    total, done, answered_before = 0.0, 0, 0.0
    for number, at in sorted(answers, key=lambda answer: answer[1]):
        while done <= number:
            start, stop = max(came[done], answered_before), min(max(at, came[done]), end)
            if stop > start:
                total += (stop - start) * (stop + start - 2 * came[done]) / 2
            answered_before, done = max(at, answered_before), done + 1
    if done < len(came) and end > (start := max(came[done], answered_before)):
        total += (end - start) * (end + start - 2 * came[done]) / 2
    return total


def averaged(keys: np.ndarray, came: Sequence[float], answers: Sequence[Answer], end: float) -> float:
    """Staleness on average over time and over keys; `keys` are those of the rows that came, by number."""
    total = 0.0
    for key in np.unique(keys[: len(came)]).tolist():
        own = np.flatnonzero(keys[: len(came)] == key)
        place = {number: at for at, number in enumerate(own.tolist())}
        mine = [(place[number], at) for number, at in answers if number in place]
        total += area([came[number] for number in own.tolist()], mine, end)
    return total / (len(np.unique(keys[: len(came)])) * (end - came[0]))


class Source:
    """Rows that come by the clock; each has its number as its time."""

    def __init__(self, arrivals: Arrivals, seconds: float, note: str | None = None) -> None:
        """A cost is so many seconds."""
        self.due = arrivals.times / COST * seconds
        self.keys = arrivals.keys
        self.note = note
        self.came: list[float] = []
        self.last, self.stopped = threading.Event(), threading.Event()
        self.is_disturbed = False

    def rows(self) -> Iterator[dict[str, Any]]:
        """All of them, and then nothing until it is stopped."""
        more = {} if self.note is None else {"note": self.note}
        start = time.monotonic() + 0.02
        for number, (due, key) in enumerate(zip(self.due.tolist(), self.keys.tolist(), strict=True)):
            left = start + due - time.monotonic()
            if left > 0:
                time.sleep(left)
            self.came.append(time.monotonic())
            self.is_disturbed = self.is_disturbed or self.came[-1] > start + due + LATE
            if self.is_disturbed:
                break
            yield {"n": number, "key": key, **more}
        self.last.set()
        self.stopped.wait()


class Consumer:
    """A sink that takes its time."""

    def __init__(self, seconds: float) -> None:
        """So many for a row."""
        self.seconds = seconds
        self.taken: list[Answer] = []
        self.done: list[Answer] = []

    def __call__(self, table: pa.Table) -> None:
        """Rows are handed over."""
        for number in table.column("n").to_pylist():
            self.taken.append((number, time.monotonic()))
            time.sleep(self.seconds)
            self.done.append((number, time.monotonic()))

    @property
    def cost(self) -> float:
        """What a row took, with what the run did before the next; the median, so that rests do not count."""
        starts = [at for _, at in self.taken]
        return median(np.diff(starts).tolist()) if len(starts) > 1 else self.seconds


def undisturbed(attempt: Callable[[], Found | None]) -> Found:
    """What comes of an attempt that nothing disturbed; it gives None if something did."""
    for _ in range(TRIES):
        found = attempt()
        if found is not None:
            return found
    raise InternalError(
        "The machine is too busy to measure anything by the clock.", got=f"{TRIES} runs that were disturbed",
        hint="run it again when nothing else runs",
    )  # fmt: skip


def together(attempts: Mapping[str, Callable[[], Found | None]]) -> dict[str, Found]:
    """What comes of attempts that are made at the same time, none of which was disturbed."""

    def attempt() -> dict[str, Found] | None:
        with ThreadPoolExecutor(len(attempts)) as pool:
            under_way = {name: pool.submit(made) for name, made in attempts.items()}
            found = {name: each.result() for name, each in under_way.items()}
        whole = {name: each for name, each in found.items() if each is not None}
        return whole if len(whole) == len(attempts) else None

    return undisturbed(attempt)


def seen(arrivals: Arrivals, *policies: str, seconds: float = SECONDS) -> dict[str, Seen]:
    """Run conflated streams over some arrivals until the last has come, one for each policy."""
    return together({policy: partial(_seen_once, arrivals, policy, seconds) for policy in policies})


def _seen_once(arrivals: Arrivals, policy: str, seconds: float) -> Seen | None:
    source, consumer = Source(arrivals, seconds), Consumer(seconds)
    query = pk.conflate(source.rows(), time="n", key="key", schema="n BIGINT, key BIGINT", policy=policy, budget=1)
    run = query.start(consumer)
    source.last.wait()
    end = source.came[-1]
    live = run.progress.queues[0].average_application_staleness
    source.stopped.set()
    run.stop()
    if source.is_disturbed or time.monotonic() - end > seconds * 10 + LATE:
        return None
    cost = max(consumer.cost, seconds)
    return Seen(
        averaged(source.keys, source.came, consumer.taken, end) / cost,
        averaged(source.keys, source.came, consumer.done, end) / cost,
        live / cost, len(consumer.done), cost,
    )  # fmt: skip
