"""A queue and its consumer on a simulated clock.

Arrivals have times; the consumer takes one row whenever it is free, and has processed it `cost` ticks later. Of what
happens at the same tick, arrivals are first, then the delivery, then the next dequeue. Staleness is given in units of
the cost of one row, so that a staleness of 3 is three updates of the application behind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.model.batch import Batch
from penstock.model.schema import schema_of
from penstock.operators.queues.queue import MemoryUsage, Queue, Staleness

SCHEMA = schema_of([("ts", "bigint"), ("key", "bigint")], "ts")
WIDE = schema_of([("ts", "bigint"), ("key", "bigint"), ("note", "string")], "ts")
"""With a text, so that tuples take about half a kilobyte."""
NOTE = "n" * 480
KEY = ("key",)
COST = 1000
"""Ticks that one row takes."""


@dataclass(frozen=True)
class Arrivals:
    """When rows come, ascending, and of which keys."""

    times: np.ndarray
    keys: np.ndarray

    def __len__(self) -> int:
        """How many rows."""
        return len(self.times)


@dataclass(frozen=True)
class Outcome:
    """How stale keys were, in units of the cost, and what the tuples took."""

    queue: float
    application: float
    unapplied: float
    wait: float
    """How long what was served had waited, on average."""
    served: int
    longest: float
    """The longest that a key waited."""
    difference: float
    """By how much the integral of application staleness exceeds that of queue staleness, per row that was served and in
    units of the cost squared (section 5.1)."""
    memory: MemoryUsage


def steady(load: float, keys: int, services: int, seed: int = 1) -> Arrivals:
    """So many updates per cost at even distances, each of a key by lot."""
    rows = int(load * services)
    times = (np.arange(rows) * (COST / load)).astype(np.int64)
    return Arrivals(times, np.random.default_rng(seed).integers(0, keys, rows))


def poisson(load: float, shares: np.ndarray, services: int, seed: int = 1) -> Arrivals:
    """So many updates per cost on average, at random times, of keys by lot with some shares."""
    random = np.random.default_rng(seed)
    rows = int(load * services)
    times = np.cumsum(random.exponential(COST / load, rows)).astype(np.int64)
    return Arrivals(times, random.choice(len(shares), rows, p=shares / shares.sum()))


def zipf(keys: int, theta: float) -> np.ndarray:
    """Shares of keys by Zipf's law; 0 makes them equal."""
    return np.asarray(np.arange(1, keys + 1) ** -float(theta))


def simulate(queue: Queue, arrivals: Arrivals, cost: int = COST, *, drains: bool = False) -> Outcome:
    """Play arrivals until the last has come, or until all that waits has been delivered too."""
    more = () if queue.schema is SCHEMA else (NOTE,)
    times, keys = arrivals.times.tolist(), arrivals.keys.tolist()
    end = times[-1]
    at, free, waited, served, longest = 0, 0, 0, 0, 0
    since: dict[int, int] = {}
    is_busy = False
    while free <= end or (drains and (is_busy or len(queue))):
        while at < len(times) and times[at] <= free:
            queue.enqueue(Batch(SCHEMA, [(times[at], keys[at], *more)]), times[at])
            since.setdefault(keys[at], times[at])
            at += 1
        if is_busy:
            queue.delivered(free)
        is_busy = bool(len(queue))
        if is_busy:
            (row,) = queue.dequeue(free, 1).rows
            wait = free - since.pop(row[1], row[0])  # type: ignore[call-overload]
            waited, longest, served = waited + wait, max(longest, wait), served + 1
            free += cost
        elif at < len(times):
            free = times[at]
        else:
            break
    end = max(end, free) if drains else end
    found: Staleness = queue.staleness(end)
    passed = (end - times[0]) * len(np.unique(arrivals.keys))
    return Outcome(
        found.average_queue / cost, found.average_application / cost, found.average_unapplied,
        waited / max(served, 1) / cost, served, longest / cost,
        (found.average_application - found.average_queue) * passed / max(served, 1) / cost**2, queue.memory(end),
    )  # fmt: skip
