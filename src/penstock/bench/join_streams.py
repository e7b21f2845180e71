"""The joins of `penstock bench joins` as streams on Spark, beside Spark's own join of two streams.

Both sides come in files, a few of each in a micro-batch; pairs are written to parquet. How long a micro-batch takes is
the median of a query's, after the first, with what its state comes to at its greatest. Both have the same rows, the
same bounds on how late they are and the same condition, and give the same pairs as in-process. Spark's own join has
its state in memory, as it is by default and quicker than in RocksDB.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from penstock.bench.claims import Claim, Report
from penstock.bench.joins import CASES, DISORDER, Case, Fingerprint, Sides, in_process, of_table, pairs_sql
from penstock.bench.micro_batches import AT_ONCE, BATCHES, middle_of, write_files
from penstock.engines.spark.baseline import native_join_stream
from penstock.errors import InternalError
from penstock.flow.flow import Flow
from penstock.model.progress import bounded

Say = Callable[[str], None]
OURS, THEIRS = "Spark started", "Spark's own join"
STORE = "spark.sql.streaming.stateStore.providerClass"
IN_MEMORY = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"


@dataclass(frozen=True)
class Measured:
    """What micro-batches of a query come to."""

    milliseconds: float
    state_bytes: int


@dataclass
class JoinStreamsBench:
    """One run, in one session."""

    spark: Any
    rows: int
    """Of each side in a micro-batch."""
    say: Say = print
    cases: tuple[Case, ...] = CASES
    took: dict[tuple[str, Case], Measured] = field(default_factory=dict)

    def run(self) -> Report:
        """All cases, both contestants in each."""
        home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
        try:
            for number, case in enumerate(self.cases):
                self._case(case, home / str(number))
        finally:
            shutil.rmtree(home, ignore_errors=True)
        return Report("joins", list(self._table()), list(self._claims()))

    def _case(self, case: Case, home: Path) -> None:
        size = self.rows * BATCHES
        sides = Sides(case, case.rows(size, 1), case.rows(size, 2), home)
        part = max(self.rows // AT_ONCE, 1)
        home.mkdir()
        for name, table in (("l", sides.left), ("r", sides.right)):
            write_files(home / name, (table.slice(at * part, part) for at in range(BATCHES * AT_ONCE)))
        expected = in_process(sides).fingerprint
        for name, run in ((THEIRS, self._theirs), (OURS, self._ours)):
            self.took[name, case] = run(case, home, expected)
        self.say(
            f"{case} on Spark: " + ", ".join(f"{n} {self.took[n, case].milliseconds:.0f} ms" for n in (OURS, THEIRS))
        )

    def _ours(self, case: Case, home: Path, expected: Fingerprint) -> Measured:
        flow = Flow(self.spark, path=str(home / "flow"))
        for name in "lr":
            flow.stream(name, self._frame(home / name), time="ts", progress=bounded(f"{DISORDER} seconds"))
        run: Any = flow.query(pairs_sql(case), "q").start(str(home / "ours"))
        run.process_available()
        measured = _measured(run.streaming)
        run.finish()
        _check(home / "ours", expected, OURS)
        return measured

    def _theirs(self, case: Case, home: Path, expected: Fingerprint) -> Measured:
        left, right = (self._frame(home / name) for name in "lr")
        pairs = native_join_stream(left, right, case.band, f"{DISORDER} seconds")
        before = self.spark.conf.get(STORE)
        self.spark.conf.set(STORE, IN_MEMORY)
        stream = pairs.writeStream.outputMode("append").format("parquet").option("path", str(home / "theirs"))
        running = stream.option("checkpointLocation", str(home / "c")).trigger(availableNow=True).start()
        running.awaitTermination()
        self.spark.conf.set(STORE, before)
        _check(home / "theirs", expected, THEIRS)
        return _measured(running)

    def _frame(self, folder: Path) -> Any:
        reader = self.spark.readStream.schema("ts timestamp, k bigint, v bigint")
        return reader.option("maxFilesPerTrigger", AT_ONCE).parquet(str(folder))

    # What it comes to

    def _table(self) -> Iterable[dict[str, Any]]:
        for case in self.cases:
            ours, theirs = self.took[OURS, case], self.took[THEIRS, case]
            yield {
                "keys": case.keys,
                "rows met": case.matches,
                OURS: round(2000 * self.rows / ours.milliseconds),
                THEIRS: round(2000 * self.rows / theirs.milliseconds),
                "times faster": round(theirs.milliseconds / ours.milliseconds, 2),
                "state bytes": ours.state_bytes,
                "its state bytes": theirs.state_bytes,
            }

    def _claims(self) -> Iterable[Claim]:
        least = min(self.took[THEIRS, c].milliseconds / self.took[OURS, c].milliseconds for c in self.cases)
        yield Claim("Spark started: least lead on Spark's own join at any case, times faster", least, 1.5, "higher")
        most = max(self.took[OURS, c].state_bytes / max(self.took[THEIRS, c].state_bytes, 1) for c in self.cases)
        yield Claim("Spark started: most state against Spark's own join at any case, times", most, 1.0, "lower")


def _measured(running: Any) -> Measured:
    states = [sum(o.memoryUsedBytes for o in p.stateOperators) for p in running.recentProgress]
    return Measured(middle_of(running), max(states, default=0))


def _check(folder: Path, expected: Fingerprint, name: str) -> None:
    got = of_table(pq.read_table(folder))
    if got != expected:
        raise InternalError(
            f"{name} gives other pairs than in-process.", where=str(folder), got=f"{got} for {expected}"
        )
