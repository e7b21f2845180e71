"""`penstock bench joins`: two streams joined by key within a band of time, beside other engines, in one run.

Each side has a thousand rows a second, up to five seconds out of order. A row is joined with those of the other side
that have its key and come no earlier and no more than a band later. With 1000 keys all are alike; of 100,000 keys one
in a hundred have half of the rows. Bands are such that a row meets one row, or twenty, on the average.

Every contestant's pairs are brought to one fingerprint: how many, and sums over both sides; they must be the same. In
the time is all from rows at hand to pairs at hand; of peers in environments of their own, what their scripts say.

Bytewax takes part twice: with its own join in event time, which waits for rows out of order as ours does, and with a
stateful step written by hand, which has neither a clock nor late rows. A bar is asked of the first; the lead on the
second is in the table.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.bench.claims import Claim, Report
from penstock.bench.data import START as START_TICKS
from penstock.bench.peers import python_of, run_script
from penstock.errors import InternalError
from penstock.flow.flow import Flow
from penstock.model.batch import Batch
from penstock.model.progress import bounded
from penstock.model.time import MILLISECOND, SECOND

START = START_TICKS // SECOND
RATE = 1000
"""Rows of a side in a second."""
DISORDER = 5
HOT = 100
"""Where keys are not alike, one in so many has a share of half of the rows."""
ROUNDS = 2
BY_HAND = "Bytewax, by hand"
PEERS = {
    "Flink SQL": ("flink", "joins"),
    "Bytewax's windowed join": ("bytewax", "windowed_joins"),
    BY_HAND: ("bytewax", "joins"),
}
"""Who is in an environment of its own, and which script it runs."""
PARTS = {"Flink SQL": 4, "Bytewax's windowed join": 20, BY_HAND: 20}
"""Slow ones are given one in so many of the rows, the first ones."""
BARS = {"Flink SQL": 10.0, "Bytewax's windowed join": 100.0}
Say = Callable[[str], None]
Fingerprint = tuple[int, int, int, int]


@dataclass(frozen=True)
class Case:
    """How many keys, and how many rows a row meets on the average."""

    keys: int
    matches: int

    @property
    def band(self) -> int:
        """In milliseconds."""
        alike = self.matches * 1000 * self.keys // RATE
        # Half of the rows are of the hot keys, and meet half of the rows of their own; the others meet hardly any.
        return alike if self.keys <= 1000 else self.matches * 1000 * (self.keys // HOT) * 4 // RATE

    def rows(self, size: int, seed: int) -> pa.Table:
        """The rows of one side, as they come."""
        random = np.random.default_rng(seed)
        reached = np.arange(size) * 1000 // RATE
        ms = np.maximum(reached - random.integers(0, DISORDER * 1000, size), 0) + START * 1000
        keys = random.integers(0, self.keys, size)
        if self.keys > 1000:
            keys = np.where(random.random(size) < 0.5, keys % (self.keys // HOT), keys)
        ts = pa.array(ms * MILLISECOND).cast(pa.timestamp("us", tz="UTC"))
        return pa.table({"ts": ts, "k": keys, "v": random.integers(0, 1000, size)})

    def __str__(self) -> str:
        """For a line."""
        return f"{self.keys} keys, {self.matches} rows met"


CASES = tuple(Case(keys, matches) for keys in (1000, 100_000) for matches in (1, 20))


@dataclass(frozen=True)
class Outcome:
    """How long it took, of how many rows of both sides, and what came out."""

    seconds: float
    rows: int
    fingerprint: Fingerprint

    @property
    def rate(self) -> float:
        """Rows of both sides in a second."""
        return self.rows / self.seconds


@dataclass(frozen=True)
class Sides:
    """The rows of both sides, at hand and in files."""

    case: Case
    left: pa.Table
    right: pa.Table
    folder: Path

    def part(self, one_in: int) -> Sides:
        """The first rows."""
        size = self.left.num_rows // one_in
        return Sides(self.case, self.left.slice(0, size), self.right.slice(0, size), self.folder)

    @property
    def size(self) -> int:
        """Rows of both."""
        return int(self.left.num_rows + self.right.num_rows)


def fingerprint(lt: Any, rt: Any, lv: Any, rv: Any) -> Fingerprint:
    """How many pairs, and sums over both sides of them."""
    times = [(np.asarray(t) // MILLISECOND - START * 1000) % 1_000_003 for t in (lt, rt)]
    return len(times[0]), int(np.sum(lv)), int(np.sum(rv)), int((times[0] * 31 + times[1] * 7).sum())


def pairs_sql(case: Case) -> str:
    """The query, as several of them take it."""
    return (
        "SELECT l.ts AS lt, r.ts AS rt, l.k AS k, l.v AS lv, r.v AS rv FROM l JOIN r ON l.k = r.k "
        f"AND r.ts BETWEEN l.ts AND l.ts + INTERVAL {case.band} MILLISECONDS"
    )


def in_process(sides: Sides) -> Outcome:
    """By us, as tables of the default size."""
    flow = Flow()
    for name, table in (("l", sides.left), ("r", sides.right)):
        flow.stream(name, table, time="ts", progress=bounded(f"{DISORDER} seconds"))
    query: Any = flow.query(pairs_sql(sides.case))
    started = time.perf_counter()
    batches = [item.table for item in query.items() if isinstance(item, Batch)]
    seconds = time.perf_counter() - started
    return Outcome(seconds, sides.size, of_table(pa.concat_tables(batches)))


def duckdb_batch(sides: Sides) -> Outcome:
    """By DuckDB, which has all rows before it."""
    import duckdb

    connection = duckdb.connect()
    connection.register("l", sides.left)
    connection.register("r", sides.right)
    sql = pairs_sql(sides.case)
    started = time.perf_counter()
    table = connection.sql(sql).to_arrow_table()
    seconds = time.perf_counter() - started
    return Outcome(seconds, sides.size, of_table(table))


def of_table(table: pa.Table) -> Fingerprint:
    """The fingerprint of pairs."""
    lt, rt = (table[name].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_numpy() for name in ("lt", "rt"))
    return fingerprint(lt, rt, pc.fill_null(table["lv"], 0).to_numpy(), table["rv"].to_numpy())


def by_script(peer: str, what: str) -> Callable[[Sides], Outcome]:
    """By a peer's own script over files."""

    def run(sides: Sides) -> Outcome:
        paths = []
        for name, table in (("left", sides.left), ("right", sides.right)):
            paths.append(str(sides.folder / f"{peer}_{name}.parquet"))
            pq.write_table(table, paths[-1])
        found = run_script(peer, what, *paths, str(sides.case.band))
        a, b, c, d = found["fingerprint"]
        return Outcome(found["seconds"], sides.size, (a, b, c, d))

    return run


def everyone() -> dict[str, Callable[[Sides], Outcome]]:
    """All that take part; the first is who the others are compared with."""
    found: dict[str, Callable[[Sides], Outcome]] = {"in-process": in_process}
    if find_spec("duckdb") is not None:
        found["DuckDB batch"] = duckdb_batch
    for name, (peer, what) in PEERS.items():
        if python_of(peer) is not None:
            found[name] = by_script(peer, what)
    return found


@dataclass
class JoinsBench:
    """One run of the benchmark."""

    rows: int
    say: Say = print
    cases: tuple[Case, ...] = CASES
    contestants: dict[str, Callable[[Sides], Outcome]] = field(default_factory=everyone)
    best: dict[tuple[str, Case], Outcome] = field(default_factory=dict)

    def run(self) -> Report:
        """Case by case, the contestants in turn."""
        with tempfile.TemporaryDirectory(prefix="penstock-joins-") as folder:
            for case in self.cases:
                sides = Sides(case, case.rows(self.rows, 1), case.rows(self.rows, 2), Path(folder))
                for name, run in self.contestants.items():
                    self._measure(name, run, sides.part(PARTS.get(name, 1)))
                self.say(
                    f"{case}: " + ", ".join(f"{n} {self.best[n, case].rate:,.0f} rows/s" for n in self.contestants)
                )
        absent = [name for name in ("DuckDB batch", *BARS) if name not in self.contestants]
        return Report("joins", list(self._table()), list(self._claims()), absent)

    def _measure(self, name: str, run: Callable[[Sides], Outcome], sides: Sides) -> None:
        expected = self.best.get(("in-process", sides.case)) if sides.size == 2 * self.rows else None
        if expected is None and name != "in-process":
            expected = in_process(sides)
        for _ in range(1 if name in PARTS else ROUNDS):
            outcome = run(sides)
            if expected is not None and outcome.fingerprint != expected.fingerprint:
                raise InternalError(
                    f"{name} gives another result than in-process.",
                    where=str(sides.case),
                    got=f"{outcome.fingerprint} for {expected.fingerprint}",
                )
            before = self.best.get((name, sides.case))
            if before is None or outcome.seconds < before.seconds:
                self.best[name, sides.case] = outcome

    def _table(self) -> Iterable[dict[str, Any]]:
        for case in self.cases:
            row: dict[str, Any] = {"keys": case.keys, "rows met": case.matches, "band, ms": case.band}
            row["pairs"] = self.best["in-process", case].fingerprint[0]
            row |= {name: round(self.best[name, case].rate) for name in self.contestants}
            if BY_HAND in self.contestants:
                row["lead on that"] = round(self._faster("in-process", BY_HAND, case), 1)
            yield row

    def _claims(self) -> Iterable[Claim]:
        if "DuckDB batch" in self.contestants:
            worst = max(self._faster("DuckDB batch", "in-process", case) for case in self.cases)
            yield Claim("in-process: slowest case against DuckDB's batch join, times slower", worst, 4.0, "lower")
        for name, bar in BARS.items():
            if name in self.contestants:
                least = min(self._faster("in-process", name, case) for case in self.cases)
                yield Claim(f"in-process: least lead on {name} at any case, times faster", least, bar, "higher")

    def _faster(self, one: str, other: str, case: Case) -> float:
        return self.best[one, case].rate / self.best[other, case].rate
