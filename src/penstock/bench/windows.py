"""`penstock bench windows`: sliding windows by everyone, over RANGE/SLIDE of 1, 10, 60 and 600, in one run.

Each contestant runs over the same rows; slow ones get fewer rows and are compared by their rate. Every result is
compared with that of the in-process engine over the same number of rows. The floor is our own query with tumbling
windows of one slide.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.bench import contestants as by
from penstock.bench.claims import Claim, Report
from penstock.bench.contestants import Timing
from penstock.bench.data import SLIDE, Rows, make_rows
from penstock.bench.peers import PEERS, python_of, run_peer

RATIOS = (1, 10, 60, 600)
Say = Callable[[str], None]


@dataclass
class WindowBench:
    """One run of the benchmark."""

    home: str
    spark: Any
    rows: int
    repeat: int = 2
    say: Say = print
    timings: dict[tuple[str, int], Timing] = field(default_factory=dict)
    expected: dict[tuple[int, int], by.Fingerprint] = field(default_factory=dict)
    sets: dict[int, Rows] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)

    def data(self, rows: int) -> Rows:
        """The data set of a size, made once."""
        if rows not in self.sets:
            self.sets[rows] = make_rows(self.home, rows)
        return self.sets[rows]

    def run(self) -> Report:
        """All contestants at all ratios; every contestant is warmed up by its smallest ratio."""
        for ratio in RATIOS:
            self._time("in-process", ratio, lambda r, n: by.in_process(n, r))
            self._duckdb(ratio)
        for ratio in RATIOS:
            self._time("Spark batch", ratio, lambda r, n: by.spark_batch(self.spark, n, r))
        for ratio in RATIOS:
            share = {1: 1, 10: 1, 60: 2, 600: 16}[ratio]
            self._time("Spark window()", ratio, lambda r, n: by.spark_window(self.spark, n, r), share, repeat=1)
        for ratio in RATIOS:
            self._time("Spark streaming", ratio, lambda r, n: by.spark_streaming(self.spark, n, r), 2)
        for ratio in RATIOS[:3]:
            self._time("window() streaming", ratio, lambda r, n: by.spark_window_stream(self.spark, n, r), 2, repeat=1)
        for peer in PEERS:
            self._peer(peer)
        return Report("windows", list(self._table()), list(self._claims()), self.absent)

    def _time(
        self, name: str, ratio: int, run: Callable[[int, Rows], Timing], share: int = 1, repeat: int | None = None
    ) -> None:
        data = self.data(self.rows // share)
        best: Timing | None = None
        for _ in range(repeat or self.repeat):
            timing = run(ratio, data)
            best = timing if best is None or timing.seconds < best.seconds else best
        assert best is not None
        self._check(name, ratio, best)
        self.timings[name, ratio] = best
        self.say(f"{name:20} {ratio:4}  {best.rate / 1e6:8.3f} M rows/s  ({best.rows} rows)")

    def _check(self, name: str, ratio: int, timing: Timing) -> None:
        key = (timing.rows, ratio)
        if key not in self.expected:
            self.expected[key] = by.in_process(self.data(timing.rows), ratio).fingerprint
        if timing.fingerprint != self.expected[key]:
            raise AssertionError(f"{name} at {ratio} gives {timing.fingerprint}, in-process gives {self.expected[key]}")

    def _duckdb(self, ratio: int) -> None:
        try:
            import duckdb  # noqa: F401
        except ImportError:
            if "DuckDB" not in self.absent:
                self.absent.append("DuckDB")
            return
        self._time("DuckDB batch", ratio, lambda r, n: by.duckdb_batch(n, r))

    def _peer(self, peer: str) -> None:
        if python_of(peer) is None:
            self.absent.append(peer)
            return
        share = {"flink": 4, "bytewax": 40, "pathway": 40}[peer]
        for ratio in (10, 60):
            rows = self.rows // share
            timing = run_peer(peer, self.data(rows), ratio * SLIDE, SLIDE, rows)
            if timing is not None:
                self._check(peer, ratio, timing)
                self.timings[peer, ratio] = timing
                self.say(f"{peer:20} {ratio:4}  {timing.rate / 1e6:8.3f} M rows/s  ({timing.rows} rows)")

    # What it comes to

    def _table(self) -> Iterable[dict[str, Any]]:
        for (name, ratio), timing in self.timings.items():
            row = {"contestant": name, "ratio": ratio, "rows": timing.rows, "rows_per_second": round(timing.rate)}
            if timing.state_rows is not None:
                row["state_rows"] = timing.state_rows
            yield row

    def _claims(self) -> Iterable[Claim]:
        yield from self._batch_claims()
        yield from self._streaming_claims()
        yield from self._local_claims()

    def _slower(self, name: str, ratio: int, floor: tuple[str, int]) -> float:
        return self.timings[floor].rate / self.timings[name, ratio].rate

    def _batch_claims(self) -> Iterable[Claim]:
        floor = ("Spark batch", 1)
        for ratio, bar in ((60, 1.5), (600, 2.5)):
            slower = self._slower("Spark batch", ratio, floor)
            yield Claim(f"Spark batch: {ratio} against tumbling, times slower", slower, bar, "lower")
        for ratio, bar in ((60, 8.0), (600, 40.0)):
            faster = self._slower("Spark window()", ratio, ("Spark batch", ratio))
            yield Claim(f"Spark batch: {ratio} against window(), times faster", faster, bar, "higher")

    def _streaming_claims(self) -> Iterable[Claim]:
        floor = ("Spark streaming", 1)
        worst = max(self._slower("Spark streaming", r, floor) for r in RATIOS[1:])
        yield Claim("Spark streaming: worst against tumbling, times slower", worst, 2.0, "lower")
        rates = [self.timings["Spark streaming", r].rate for r in RATIOS[1:]]
        yield Claim("Spark streaming: spread from 10 to 600", max(rates) / min(rates), 1.3, "lower")
        faster = self._slower("window() streaming", 60, ("Spark streaming", 60))
        yield Claim("Spark streaming: 60 against window(), times faster", faster, 3.0, "higher")
        theirs = self.timings["window() streaming", 60].state_rows or 0
        ours = self.timings["Spark streaming", 60].state_rows or 1
        yield Claim("Spark streaming: state rows of window() per one of ours at 60", theirs / ours, 10.0, "higher")

    def _local_claims(self) -> Iterable[Claim]:
        rates = [self.timings["in-process", r].rate for r in RATIOS]
        yield Claim("in-process: spread from 1 to 600", max(rates) / min(rates), 1.5, "lower")
        for ratio in (10, 60):
            for peer, bar in (("flink", 10.0), ("bytewax", 100.0), ("pathway", 100.0)):
                if (peer, ratio) in self.timings:
                    faster = self._slower(peer, ratio, ("in-process", ratio))
                    yield Claim(f"in-process: {ratio} against {peer}, times faster", faster, bar, "higher")
            if ("DuckDB batch", ratio) in self.timings:
                slower = self._slower("in-process", ratio, ("DuckDB batch", ratio))
                yield Claim(f"in-process: {ratio} against DuckDB batch, times slower", slower, 3.0, "lower")


def bench_windows(spark: Any, rows: int, say: Say) -> Report:
    """Run the benchmark over so many rows."""
    home = tempfile.mkdtemp(prefix="penstock-bench-")
    try:
        return WindowBench(home, spark, rows, say=say).run()
    finally:
        shutil.rmtree(home, ignore_errors=True)
