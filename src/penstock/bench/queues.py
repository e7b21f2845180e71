"""`penstock bench queues`: what it costs to put rows into an update queue, in batches and one at a time, by keys.

Rows have a time, a key and a number. Each case begins with a queue in which all keys wait, and puts in rows of keys by
lot. *In batches*: 65536 rows of Arrow at a time, of which only the newest of each key need be written; *all different*
is the same with no key twice in a batch, so that nothing is saved. *One at a time*: every row is a batch of its own, at
a time of its own, as rows come that are pushed. Time is processor time, the least of the rounds; arrivals are made
before. What comes out is compared with the newest row of each key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.bench.claims import Claim, Report
from penstock.errors import InternalError
from penstock.model.batch import Batch
from penstock.model.schema import Schema, schema_of
from penstock.operators.queues.choosing import ORDERS, queue_for
from penstock.operators.queues.queue import Queue

Say = Callable[[str], None]
KEYS = (1_000, 10_000, 100_000, 1_000_000)
BATCH = 1 << 16
TYPES = ("bigint", "string")
ROUNDS = 3
IN_BATCHES, ALL_DIFFERENT, ALONE = "in batches", "in batches, all different", "one at a time"
FASTEST, SLOWEST = 1_000_000, 200_000
"""Enqueues a second that batches, and rows one at a time, must reach."""
GROWTH = 3.0
"""How many times dearer a row may be with a thousand times the keys: memory is further away, and no more."""


class QueuesBench:
    """The cases, and what was measured."""

    def __init__(self, rows: int, say: Say, keys: Sequence[int] = KEYS) -> None:
        """`rows` are put in per case in batches, a tenth of them one at a time."""
        self.rows, self.say, self.keys = rows, say, tuple(keys)

    def run(self) -> Report:
        """All cases."""
        rows: list[dict[str, Any]] = []
        for type_ in TYPES:
            for keys in self.keys:
                rows += self._case(type_, keys, "in-place")
                self.say(f"queues: {keys} keys, {type_}")
        for policy in ORDERS:
            if policy != "in-place":
                rows += self._case("bigint", self.keys[0], policy)
        return Report("queues", rows, _claims(rows, self.keys))

    def _case(self, type_: str, keys: int, policy: str) -> list[dict[str, Any]]:
        maker = Rows(type_, keys)
        ways = {
            IN_BATCHES: [maker.batch(BATCH) for _ in range(max(self.rows // BATCH, 1))],
            ALONE: maker.alone(max(self.rows // 10, 100)),
        }
        if keys > BATCH:
            ways[ALL_DIFFERENT] = [maker.different(BATCH) for _ in range(max(self.rows // BATCH, 1))]
        told = []
        for way, batches in ways.items():
            seconds = min(self._seconds(maker, policy, batches, checks=not at) for at in range(ROUNDS))
            count = sum(map(len, batches))
            told.append(
                {
                    "keys": keys, "type": type_, "order": policy, "enqueued": way,
                    "nanoseconds a row": round(seconds / count * 1e9), "rows a second": round(count / seconds),
                }
            )  # fmt: skip
        return told

    def _seconds(self, maker: Rows, policy: str, batches: list[Batch], *, checks: bool) -> float:
        queue = queue_for(maker.schema, ["key"], policy)
        queue.enqueue(maker.every(), 0)
        queue.enqueue(Batch(maker.schema, maker.every().part(0, 1).rows), 0)  # makes what rows alone need
        started = time.process_time()
        for at, batch in enumerate(batches):
            queue.enqueue(batch, at + 1)
        passed = time.process_time() - started
        if checks:
            check(queue, batches)
        return passed


class Rows:
    """Rows of keys by lot, each later than the one before."""

    def __init__(self, type_: str, keys: int) -> None:
        """`type_` is the type of the key."""
        self.schema: Schema = schema_of([("ts", "bigint"), ("key", type_), ("value", "double")], "ts")
        self.keys = keys
        self._random = np.random.default_rng(7)
        self._time = keys
        numbers = np.arange(keys)
        self._names = pa.array(numbers) if type_ == "bigint" else pa.array(np.char.add("sym", numbers.astype(str)))
        self._every = self._made(numbers, np.arange(keys))

    def every(self) -> Batch:
        """A row of every key, before all others."""
        return self._every

    def batch(self, rows: int) -> Batch:
        """So many rows as a batch of Arrow."""
        return self._later(self._random.integers(0, self.keys, rows))

    def different(self, rows: int) -> Batch:
        """The same, no key twice."""
        return self._later(self._random.choice(self.keys, rows, replace=False))

    def alone(self, rows: int) -> list[Batch]:
        """So many rows, each by itself."""
        return [Batch(self.schema, [row]) for row in self.batch(rows).rows]

    def _later(self, keys: np.ndarray) -> Batch:
        self._time += len(keys)
        return self._made(keys, np.arange(self._time - len(keys), self._time))

    def _made(self, keys: np.ndarray, times: np.ndarray) -> Batch:
        columns = [pa.array(times), self._names.take(pa.array(keys)), pa.array(self._random.random(len(keys)))]
        return Batch(self.schema, table=pa.Table.from_arrays(columns, schema=self.schema.arrow))


def check(queue: Queue, batches: Sequence[Batch]) -> None:
    """The queue must hold the newest row of every key that came."""
    table = pa.concat_tables([batch.table for batch in batches])
    newest = table.group_by("key").aggregate([("ts", "max")])
    expected = dict(zip(newest["key"].to_pylist(), newest["ts_max"].to_pylist(), strict=True))
    held = queue.dequeue(1 << 40, len(queue)).table
    found = dict(zip(held["key"].to_pylist(), held["ts"].to_pylist(), strict=True))
    if any(found[key] != time_ for key, time_ in expected.items()):
        raise InternalError("An update queue does not hold the newest row of every key.", got=f"{len(found)} keys")


def _claims(rows: Sequence[dict[str, Any]], keys: Sequence[int]) -> list[Claim]:
    def least(ways: Sequence[str]) -> float:
        return float(min(row["rows a second"] for row in rows if row["enqueued"] in ways))

    claims = [
        Claim("rows a second in batches, the least of all", least((IN_BATCHES, ALL_DIFFERENT)), FASTEST, "higher"),
        Claim("rows a second one at a time, the least of all", least((ALONE,)), SLOWEST, "higher"),
    ]
    cost = {(r["type"], r["keys"], r["enqueued"]): r["nanoseconds a row"] for r in rows if r["order"] == "in-place"}
    few, many = keys[0], keys[-1]
    for type_ in TYPES:
        grown = cost[type_, many, ALONE] / cost[type_, few, ALONE]
        claims.append(Claim(f"a row alone, {many} keys against {few}, {type_}", grown, GROWTH, "lower"))
        wide = [k for k in keys if (type_, k, ALL_DIFFERENT) in cost]
        if len(wide) > 1:
            grown = cost[type_, wide[-1], ALL_DIFFERENT] / cost[type_, wide[0], ALL_DIFFERENT]
            name = f"a row of a batch of different keys, {wide[-1]} keys against {wide[0]}, {type_}"
            claims.append(Claim(name, grown, GROWTH, "lower"))
    return claims
