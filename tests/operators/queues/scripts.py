"""Random lives of a queue: rows come, are taken and delivered, time passes, the state goes through bytes.

Each life is played on a queue and written down in a log that the oracle reads, beside a queue that is a plain list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import strategies as st

from penstock.model.batch import Batch, Row, table_of
from penstock.model.plain import decode, encode
from penstock.model.schema import schema_of
from penstock.operators.queues import append_queue, meter, update_queue
from penstock.operators.queues.queue import Queue
from penstock.reference.staleness import (
    StalenessLog,
    average_over_keys,
    staleness_at,
    staleness_integral,
    unapplied_integral,
)

SCHEMA = schema_of([("ts", "bigint"), ("symbol", "string"), ("n", "bigint"), ("note", "string")], "ts")
KEY = ("symbol",)
SYMBOLS = ("IBM", "GOOG", "ORCL", "MSFT")

rows = st.tuples(st.integers(0, 6), st.sampled_from(SYMBOLS), st.sampled_from(["", "short", "x" * 90, None]))
steps = st.one_of(
    st.tuples(st.just("enqueue"), st.lists(rows, max_size=6), st.booleans()),
    st.tuples(st.just("dequeue"), st.integers(1, 3)),
    st.tuples(st.just("delivered"), st.sampled_from([None, 1, 2])),
    st.tuples(st.just("pass"), st.integers(1, 4)),
    st.tuples(st.just("again")),
)
scripts = st.lists(steps, min_size=4, max_size=16)


@contextmanager
def few(most: int) -> Iterator[None]:
    """Up to so many rows are gone through one by one."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (update_queue, append_queue, meter):
            patch.setattr(module, "FEW", most)
        yield


@dataclass
class Life:
    """A queue, what happened to it, and what it must hold."""

    make: Callable[[], Queue]
    queue: Queue = field(init=False)
    log: StalenessLog = field(default_factory=StalenessLog)
    now: int = 100
    origin: int | None = None
    under_way: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    """All that came, by number."""
    taken: list[list[int]] = field(default_factory=list)
    usage: list[tuple[int, int, int]] = field(default_factory=list)
    """Time, locations and used ones, from each change on."""

    def __post_init__(self) -> None:
        self.queue = self.make()

    def play(self, script: list[tuple[Any, ...]]) -> None:
        for step in script:
            getattr(self, f"_{step[0]}")(*step[1:])
            used = self.queue.memory(self.now)
            self.usage.append((self.now, used.locations, used.used))
            self.check_earliest()

    def _enqueue(self, given: list[tuple[int, str, str | None]], columnar: bool) -> None:
        came = []
        for ahead, symbol, note in given:
            time = self.now // 2 + ahead
            number = self.log.arrive(symbol, time, self.now)
            came.append((time, symbol, number, note))
            self.origin = self.now if self.origin is None else self.origin
        self.rows.extend(came)
        columns = table_of(SCHEMA, came) if columnar else None
        self.queue.enqueue(Batch(SCHEMA, None if columnar else came, columns), self.now)

    def _dequeue(self, most: int) -> None:
        rows = self.queue.dequeue(self.now, most).rows
        assert len(rows) <= most
        found: list[int] = [row[2] for row in rows]  # type: ignore[misc]
        assert list(rows) == [self.rows[n] for n in found]
        self.log.dequeues.extend((n, self.now) for n in found)
        self.under_way.extend(found)
        self.taken.append(found)

    def _delivered(self, most: int | None) -> None:
        self.queue.delivered(self.now, most)
        come = self.under_way[:most]
        del self.under_way[:most]
        self.log.deliveries.extend((n, self.now) for n in come)

    def _pass(self, ticks: int) -> None:
        self.now += ticks

    def _again(self) -> None:
        """The state goes through bytes to a queue that is made anew."""
        kept = self.queue.to_plain()
        data = decode(encode(kept))
        self.queue = self.make()
        self.queue.from_plain(data, self.queue.version)
        assert encode(self.queue.to_plain()) == encode(kept)

    def finish(self) -> None:
        """Take and deliver all."""
        while len(self.queue):
            self._dequeue(2)
            self._pass(1)
            self._delivered(None)
        self._delivered(None)

    def check_earliest(self) -> None:
        """What is told of the times of rows that wait is what a copy gives when it is emptied, if it can be by now."""
        copy = self.make()
        copy.from_plain(self.queue.to_plain(), copy.version)
        times = copy.dequeue(self.now, len(copy) + 1).times()
        if len(times) == len(self.queue):
            assert self.queue.earliest() == (int(times.min()) if len(times) else None)

    def check_staleness(self) -> None:
        """What the queue says is what the definitions say."""
        log, now = self.log, self.now
        origin = now if self.origin is None else self.origin
        areas: dict[str, list[Fraction]] = {"queue": [], "application": [], "unapplied": []}
        for key in log.keys:
            told = self.queue.staleness(now, (key,))
            assert told.queue == staleness_at(log, key, log.dequeues, now)
            assert told.application == staleness_at(log, key, log.deliveries, now)
            assert told.unapplied == len(log.pending(key, log.deliveries, now))
            areas["queue"].append(staleness_integral(log, key, log.dequeues, origin, now))
            areas["application"].append(staleness_integral(log, key, log.deliveries, origin, now))
            areas["unapplied"].append(unapplied_integral(log, key, log.deliveries, origin, now))
            for name, found in areas.items():
                expected = float(found[-1] / (now - origin)) if now > origin else 0.0
                assert getattr(told, f"average_{name}") == pytest.approx(expected, rel=1e-12)
        told = self.queue.staleness(now)
        for name, found in areas.items():
            expected = float(average_over_keys(found, origin, now))
            assert getattr(told, f"average_{name}") == pytest.approx(expected, rel=1e-12)
