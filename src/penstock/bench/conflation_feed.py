"""Rows that come whatever their consumer does, and how stale it was: for `penstock bench conflation`.

A feed is rows, each with the time at which it is made, in microseconds from the start. They are written as files of
JSON lines, those of a fifth of a second together, when their time has come by the wall clock. What was delivered, and
when, is read from the records of a run: a micro-batch has happened when its record was put.

Staleness is that of the application (UpStream, section 3.3), looked at from outside: at an instant a key is as stale as
the oldest of its rows is old that no delivered row has answered.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from penstock.storage.files import place_of
from penstock.storage.log import RecordLog

EVERY = 0.2
"""Seconds of rows that are in a file."""
SECOND = 1_000_000
DDL = "at bigint, key string, value string"


@dataclass(frozen=True)
class Feed:
    """Rows in the order of their times."""

    at: np.ndarray
    """Microseconds from the start."""
    keys: Sequence[str]
    values: Sequence[str]

    @property
    def seconds(self) -> float:
        """How long it goes on."""
        return float(self.at[-1]) / SECOND

    def lines(self, start: float, first: int, last: int) -> str:
        """Some rows as lines of JSON, with times of the wall clock."""
        at = (self.at[first:last] + int(start * SECOND)).tolist()
        rows = zip(at, self.keys[first:last], self.values[first:last], strict=True)
        return "\n".join(json.dumps({"at": when, "key": key, "value": value}) for when, key, value in rows)

    def last_values(self) -> dict[str, str]:
        """What holds of each key in the end."""
        return dict(zip(self.keys, self.values, strict=True))


def even(rate: int, keys: int, seconds: float) -> Feed:
    """Rows at even distances, of keys by lot, all of which come at once in the beginning."""
    count, lot = int(rate * seconds), np.random.default_rng(11)
    numbers = np.concatenate([np.arange(keys), lot.integers(0, keys, count - keys)])
    at = (np.arange(count) * SECOND / rate).astype(np.int64)
    return Feed(at, [f"k{number}" for number in numbers], [str(n) for n in range(count)])


def order_book(capture: Path, speed: int, seconds: float) -> Feed:
    """The changes of a captured order book, so many times as fast as they came, over and over for so long."""
    lines = map(json.loads, gzip.decompress(capture.read_bytes()).splitlines())
    rows = [row for row in lines if row["kind"] == "update"]
    once = np.array([(row["recv"] - rows[0]["recv"]) / speed for row in rows])
    times = int(np.ceil(seconds / once[-1]))
    at = np.concatenate([once + turn * once[-1] for turn in range(times)])
    keys = [f"{row['symbol']} {row['side']} {row['price']}" for row in rows]
    return Feed((at * SECOND).astype(np.int64), keys * times, [str(row["size"]) for row in rows] * times)


class Feeding(threading.Thread):
    """Writes a feed into a folder as its time comes."""

    def __init__(self, feed: Feed, folder: Path) -> None:
        """It begins when the thread is started."""
        super().__init__(daemon=True)
        self.feed, self.folder, self.began = feed, folder, 0.0

    def run(self) -> None:
        """Until all rows are there."""
        self.began, written, number = time.time(), 0, 0
        while written < len(self.feed.at):
            number += 1
            time.sleep(max(self.began + number * EVERY - time.time(), 0))
            last = int(np.searchsorted(self.feed.at, (time.time() - self.began) * SECOND))
            if last > written:
                self._write(number, self.feed.lines(self.began, written, last))
                written = last

    def _write(self, number: int, lines: str) -> None:
        partial = self.folder / f".{number:06d}"
        partial.write_text(lines)
        partial.rename(self.folder / f"{number:06d}.json")


@dataclass(frozen=True)
class Delivery:
    """What came out of a micro-batch."""

    when: float
    rows: list[dict[str, Any]]


def deliveries(home: Path, folder: Path) -> list[Delivery]:
    """What each micro-batch of a run has given, and when."""
    log = RecordLog(place_of(home / "log"))
    found = []
    for record in map(log.read, log.numbers()):
        files = sorted(folder.glob(f"part-*-{record.number:012d}-*"))
        found.append(Delivery(record.at, [row for file in files for row in pq.read_table(file).to_pylist()]))
    return found


def staleness(feed: Feed, began: float, given: Sequence[Delivery], instants: np.ndarray) -> np.ndarray:
    """Seconds that each key was stale at each instant, in seconds from the start: keys by instants."""
    made: dict[str, list[int]] = {}
    for at, key in zip(feed.at.tolist(), feed.keys, strict=True):
        made.setdefault(key, []).append(at)
    came: dict[str, list[tuple[float, int]]] = {}
    for each in given:
        for row in each.rows:
            if row["key"] in made:
                came.setdefault(row["key"], []).append((each.when - began, row["at"] - int(began * SECOND)))
    found = np.zeros((len(made), len(instants)))
    for at, (key, updates) in enumerate(made.items()):
        times = np.array([*updates, np.iinfo(np.int64).max])
        when = np.array([when for when, _ in came.get(key, ())])
        known = np.maximum.accumulate(np.array([-1, *(answered for _, answered in came.get(key, ()))]))
        oldest = times[np.searchsorted(times, known[np.searchsorted(when, instants, side="right")], side="right")]
        found[at] = np.maximum(instants - oldest / SECOND, 0)
    return found
