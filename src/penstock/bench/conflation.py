"""`penstock bench conflation`: streams on Spark that are too fast for a slow Python function, conflated and not.

*Overload*: rows of 200 keys come at five times the rate at which a function of Python that stands behind the queue can
take them, as measured by how long it sleeps and how many of it sleep at a time. *Order book*: a captured book is
replayed at twenty times its speed, over and over, to a function that is five times too slow. Both run on the wall
clock, as long as rows come, once with `flow.conflate` and once without, and are looked at from outside: how stale keys
are is computed from the rows and from when micro-batches have happened. A query runs a micro-batch before rows come, so
that nothing is measured of a machine that warms up.

The bars were fixed before anything was measured.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import penstock as pk
from penstock.bench.claims import Claim, Report
from penstock.bench.conflation_feed import DDL, Delivery, Feed, Feeding, deliveries, even, order_book, staleness

Say = Callable[[str], None]
KEYS, COST, OVERLOAD = 200, 0.005, 5
"""Keys, seconds that the function takes for a row, and how many times too fast rows come."""
MOST = {"overload": "10 seconds", "order book": "20 seconds"}
SPEED = 20
CAPTURE = Path(__file__).parents[4] / "shared" / "data" / "orderbook_capture_1.jsonl.gz"
CONFLATED, QUEUED = "conflated", "every row"
STEADY, FLAT, GROWS = 1.5, 1.3, 1.5
"""Last part of a run against an earlier one: micro-batches, staleness that is flat, staleness that grows."""
SETTLED = 1 / 3
"""Which part of a run passes before what is measured must be steady."""


class ConflationBench:
    """One run of the benchmark."""

    def __init__(self, spark: Any, seconds: float, say: Say, capture: Path = CAPTURE) -> None:
        """Rows come for so many seconds in each case."""
        self.spark, self.seconds, self.say, self.capture = spark, seconds, say, capture
        self.places = int(spark.sparkContext.defaultParallelism)
        self.rows: list[dict[str, Any]] = []
        self.claims: list[Claim] = []

    def run(self) -> Report:
        """All cases."""
        rate = int(OVERLOAD * self.places / COST)
        self._case("overload", even(rate, KEYS, self.seconds), COST)
        absent = [] if self.capture.exists() else [f"the capture of an order book, {self.capture.name}"]
        if not absent:
            feed = order_book(self.capture, SPEED, self.seconds)
            self._case("order book", feed, OVERLOAD * self.places * feed.seconds / len(feed.at))
        return Report("conflation", self.rows, self.claims, absent)

    def _case(self, name: str, feed: Feed, cost: float) -> None:
        for way in (CONFLATED, QUEUED):
            played = Played(self.spark, feed, cost, MOST[name] if way == CONFLATED else None)
            self.rows.append({"case": name, "stream": way, **played.told()})
            self.claims += played.claims(name)
            self.say(f"{name}, {way}: {self.rows[-1]}")


class Played:
    """A feed that was given to a query, and what came of it."""

    def __init__(self, spark: Any, feed: Feed, cost: float, max_staleness: str | None) -> None:
        """Conflated, if there is a bound on how stale keys may be; that is asked for, and then measured."""
        self.feed, self.max_staleness = feed, max_staleness
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-conflation-"))
        try:
            self._play(spark, cost)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.instants = np.arange(0.25, feed.seconds, 0.25)
        self.stale = staleness(feed, self.began, self.given, self.instants)

    def _play(self, spark: Any, cost: float) -> None:
        (self.folder / "in").mkdir()
        (self.folder / "in" / "000000.json").write_text('{"at": 0, "key": "", "value": "0"}')
        run = self._query(spark, cost).start(str(self.folder / "out"), retention=pk.Retention(records=100_000))
        run.process_available()
        feeding = Feeding(self.feed, self.folder / "in")
        feeding.start()
        feeding.join()
        self.began, self.queue = feeding.began, next(iter(run.progress.queues), None)
        if self.max_staleness is None:  # what has not come by now is behind
            run.stop()
        else:
            run.finish()
        self.given: list[Delivery] = deliveries(self.folder / "flow" / "q", self.folder / "out")

    def _query(self, spark: Any, cost: float) -> Any:
        def slow(value: str) -> str:
            time.sleep(cost)
            return value

        frame = spark.readStream.schema(DDL).json(str(self.folder / "in"))
        flow = pk.Flow(spark, path=str(self.folder / "flow"))
        flow.stream("s", frame, time="at", progress=pk.bounded(1 << 50), update_key="key")
        flow.function("slow", slow, "string", version="1")
        if self.max_staleness is not None:
            flow.conflate("calm", "s", max_staleness=self.max_staleness)
        name = "s" if self.max_staleness is None else "calm"
        return flow.query(f"SELECT at, key, slow(value) AS value FROM {name}", name="q")

    def periods(self) -> np.ndarray:
        """Seconds from each micro-batch to the next, while rows came."""
        ends = [each.when - self.began for each in self.given]
        return np.diff([end for end in ends if 0 < end < self.feed.seconds])

    def book(self) -> dict[str, str]:
        """What was delivered last of each key."""
        return {row["key"]: row["value"] for each in self.given for row in each.rows if row["key"]}

    def mean(self, first: float, last: float) -> float:
        """Staleness over all keys in a part of the run."""
        part = (self.instants >= first * self.feed.seconds) & (self.instants < last * self.feed.seconds)
        return float(self.stale[:, part].mean())

    def settled(self) -> np.ndarray:
        """Staleness of keys at instants, once the line is as long as it gets."""
        return self.stale[:, self.instants >= SETTLED * self.feed.seconds]

    def told(self) -> dict[str, Any]:
        """A row of the table; times are in seconds."""
        periods, thirds = self.periods(), [self.mean(at / 3, (at + 1) / 3) for at in range(3)]
        return {
            "rows": len(self.feed.at),
            "keys": len(self.stale),
            "delivered": sum(len(each.rows) for each in self.given),
            "micro-batches": len(periods) + 1,
            "median micro-batch": round(float(np.median(periods)), 2) if len(periods) else None,
            "staleness by thirds": " ".join(f"{each:.2f}" for each in thirds),
            "p99": round(float(np.quantile(self.settled(), 0.99)), 2),
            "most": round(float(self.settled().max()), 2),
            "least bound": None if self.queue is None else round(self.queue.least_bound or 0, 2),
        }

    def claims(self, name: str) -> Sequence[Claim]:
        """What must hold."""
        early, late = self.mean(1 / 3, 2 / 3), self.mean(2 / 3, 1)
        if self.max_staleness is None:
            return [Claim(f"{name}, {QUEUED}: staleness of the last third against that before", late / early, GROWS,
                          "higher")]  # fmt: skip
        bound, periods = float(self.max_staleness.split()[0]), self.periods()
        parts = np.array_split(periods[len(periods) // 3 :], 2)
        steady = float(np.median(parts[1]) / np.median(parts[0]))
        wrong = sum(self.book().get(key) != value for key, value in self.feed.last_values().items())
        return [
            Claim(f"{name}, {CONFLATED}: p99 of staleness, of max_staleness", float(np.quantile(self.settled(), 0.99))
                  / bound, 1.0, "lower"),
            Claim(f"{name}, {CONFLATED}: the stalest key ever, of max_staleness (none starves)",
                  float(self.settled().max()) / bound, 1.5, "lower"),
            Claim(f"{name}, {CONFLATED}: staleness of the last third against that before", late / early, FLAT, "lower"),
            Claim(f"{name}, {CONFLATED}: micro-batches at the end against those before", steady, STEADY, "lower"),
            Claim(f"{name}, {CONFLATED}: keys whose last value is wrong at the end", float(wrong), 0.0, "lower"),
        ]  # fmt: skip
