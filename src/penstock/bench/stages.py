"""`penstock bench stages`: micro-batches of queries that are started on Spark, with the folder of results written.

How long a micro-batch takes, the median of some after the first, is compared with a scan of the same files through
Python, which does nothing, and with Spark's own tumbling `window()` written to parquet: with many rows, with a quarter
of them, and with few; and with Flink SQL, as rows a second of large micro-batches. Then plans of which earlier releases
ran all in one place are compared with a grouped one: an aggregate without groups, one over another with other groups, a
union of two, and one key that has nine rows of ten; and one whose expressions Spark computes before rows go to Python.
What each comes to is compared with the in-process engine.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.bench.claims import Claim, Report
from penstock.bench.data import DISORDER, SLIDE, START, make_rows
from penstock.bench.micro_batches import AT_ONCE, BATCHES, MicroBatches, per_key, write_files
from penstock.bench.peers import python_of, run_peer
from penstock.model.time import SECOND

RATIOS = (1, 10, 60, 600)
LENGTH = 600
"""Seconds of event time in a micro-batch."""
FEW = 1000
Say = Callable[[str], None]


WINDOW = f"[RANGE {SLIDE} seconds, SLIDE {SLIDE} seconds,"


PLANS = {
    "grouped": per_key(1),
    "without groups": f"SELECT count(*) AS n, max(v) AS m {WINDOW} WA ts] FROM main",
    "two groupings": f"SELECT max(n) AS n, max(m) AS m {WINDOW} WA window_end] FROM ({per_key(1)}) x",
    "union of two aggregates": (
        f"{per_key(1)} UNION ALL "
        f"SELECT v % 1000, count(*) AS n, max(v) AS m {WINDOW} WA ts] FROM main GROUP BY v % 1000"
    ),
    "one key has nine of ten": per_key(1),
    "by a remainder, of a CASE": (
        "SELECT v % 1000 AS k, count(*) AS n, max(CASE WHEN v > 500000 THEN v - 500000 ELSE v END) AS m "
        f"{WINDOW} WA ts] FROM main GROUP BY v % 1000"
    ),
}
ROUNDS = 2
"""Plans take turns so often, and the quicker time counts."""


def make_files(home: Path, rows: int, *, keys: int = 1000, skewed: bool = False) -> Path:
    """A folder with so many rows a micro-batch, of which none is late."""
    folder = home / f"{rows}-{keys}-{skewed}"
    tables = []
    rng = np.random.default_rng(1)
    for at in range(BATCHES * AT_ONCE):
        begin, size = START + at // AT_ONCE * LENGTH * SECOND, rows // AT_ONCE
        times = begin + np.sort(rng.integers(0, LENGTH * SECOND, size)) - rng.integers(0, DISORDER * SECOND, size)
        key = rng.integers(0, keys, size)
        if skewed:
            key[rng.random(size) < 0.9] = 0
        columns = {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "k": pa.array(key, pa.int64()),
            "v": pa.array(rng.integers(0, 1_000_000, size).astype(np.int32)),
        }
        tables.append(pa.table(columns))
    write_files(folder, tables)
    return folder


@dataclass
class StagesBench:
    """One run of the benchmark."""

    spark: Any
    rows: int
    """In a large micro-batch."""
    say: Say = print
    took: dict[tuple[str, int], float] = field(default_factory=dict)
    """Milliseconds of a micro-batch, by contestant and rows in it."""
    claims: list[Claim] = field(default_factory=list)

    def run(self) -> Report:
        """Everything, in one session."""
        home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
        absent = [] if python_of("flink") is not None else ["flink"]
        try:
            self._sizes(home)
            self._plans(home)
            if not absent:
                self._flink(home)
        finally:
            shutil.rmtree(home, ignore_errors=True)
        rows = [
            {"micro_batch": name, "rows": count, "milliseconds": round(ms)} for (name, count), ms in self.took.items()
        ]
        return Report("stages", rows, self.claims, absent)

    # Sizes of micro-batches

    def _sizes(self, home: Path) -> None:
        for count in (self.rows, self.rows // 4, FEW):
            folder = make_files(home, count)
            batches = MicroBatches(self.spark, folder)
            batches.scan()  # whoever comes first would wait for workers
            before = batches.scan()
            self._keep("Spark's window(), tumbling", count, batches.window())
            for ratio in RATIOS if count > FEW else (1,):
                self._keep(f"started, RANGE/SLIDE of {ratio}", count, batches.started(per_key(ratio)))
            self._keep("scan through Python", count, min(before, batches.scan()))
        large, middle = self.rows, self.rows // 4
        ours = [self.took[f"started, RANGE/SLIDE of {ratio}", large] for ratio in RATIOS]
        self._claim(f"Spark started: worst of {large:,} rows, times a scan", max(ours), "scan through Python", large, 2)
        tumbling = self.took["started, RANGE/SLIDE of 1", middle]
        faster = self.took["Spark's window(), tumbling", middle] / tumbling
        self.claims.append(
            Claim(f"Spark started: {middle:,} rows against window(), times faster", faster, 1.8, "higher")
        )
        few = self.took["started, RANGE/SLIDE of 1", FEW]
        self._claim(f"Spark started: {FEW:,} rows, times window()", few, "Spark's window(), tumbling", FEW, 1.25)

    def _claim(self, name: str, ms: float, than: str, rows: int, bar: float) -> None:
        self.claims.append(Claim(name, ms / self.took[than, rows], bar, "lower"))

    # Plans

    def _plans(self, home: Path) -> None:
        plain, skewed = home / f"{self.rows}-1000-False", make_files(home, self.rows, skewed=True)
        for _ in range(ROUNDS):
            for name, sql in PLANS.items():
                folder = skewed if name.startswith("one key") else plain
                took = MicroBatches(self.spark, folder).started(sql)
                self._keep(name, self.rows, min(took, self.took.get((name, self.rows), took)))
        for name in list(PLANS)[1:]:
            rate = self.took["grouped", self.rows] / self.took[name, self.rows]
            self.claims.append(Claim(f"Spark started: {name}, rate of the grouped one's", rate, 0.7, "higher"))

    # Flink

    def _flink(self, home: Path) -> None:
        data = make_rows(str(home), 4 * self.rows)
        for ratio, bar in ((10, 0.9), (60, 1.0)):
            rate = run_peer("flink", data, ratio * SLIDE, SLIDE, data.count).rate
            self._keep(f"Flink SQL, RANGE/SLIDE of {ratio}", self.rows, 1000 * self.rows / rate)
            ours = 1000 * self.rows / self.took[f"started, RANGE/SLIDE of {ratio}", self.rows]
            self.claims.append(
                Claim(f"Spark started: {ratio} against Flink SQL, times faster", ours / rate, bar, "higher")
            )

    # Contestants

    def _keep(self, name: str, rows: int, ms: float) -> None:
        self.took[name, rows] = ms
        self.say(f"{name:32} {rows:9,} rows  {ms:7.0f} ms")
