"""`penstock bench memory`: what is kept per open window and group as RANGE/SLIDE grows.

At any time RANGE/SLIDE windows of every group are open, and a plan that keeps each of them keeps that many times the
state. Ours keeps panes: as many, but each once. In-process the state is the snapshot's bytes; on Spark it is the rows
and bytes that the state store reports, ours beside those of `window()`, at their greatest while the stream runs.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.bench import contestants as by
from penstock.bench.claims import Claim, Report
from penstock.bench.data import DISORDER, SLIDE, SPAN, Rows, make_rows
from penstock.flow.flow import Flow
from penstock.io.sources import open_source
from penstock.model.progress import bounded

RATIOS = (1, 10, 60, 600)
KEYS = 1000
Say = Callable[[str], None]


def snapshot_bytes(rows: Rows, ratio: int) -> int:
    """The in-process state after all rows, before the end: as many windows are open as ever will be."""
    flow = Flow().stream("main", rows.table, time="ts", progress=bounded(f"{DISORDER} seconds"))
    query: Any = flow.query(by.query(ratio))
    execution = query.execution()
    for item in open_source(rows.table, "ts").open():
        execution.feed("main", item)
    return len(execution.snapshot())


@dataclass
class MemoryBench:
    """One run of the benchmark."""

    home: str
    spark: Any
    rows: int
    say: Say = print
    kept: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    """Per contestant and ratio: rows and bytes of state."""

    def run(self) -> Report:
        """Ours at all ratios; `window()` as far as it goes in reasonable time."""
        rows = make_rows(self.home, self.rows, keys=KEYS)
        for ratio in RATIOS:
            self._keep("in-process", ratio, 0, snapshot_bytes(rows, ratio))
        for ratio in RATIOS:
            self._keep("Spark streaming", ratio, *self._on_spark(rows, ratio, by.spark_streaming))
        for ratio in RATIOS[:3]:
            self._keep("window() streaming", ratio, *self._on_spark(rows, ratio, by.spark_window_stream))
        return Report("memory", list(self._table()), list(self._claims()))

    def _on_spark(self, rows: Rows, ratio: int, run: Callable[..., by.Timing]) -> tuple[int, int]:
        timing = run(self.spark, rows, ratio)
        return timing.state_rows or 0, timing.state_bytes or 0

    def _keep(self, name: str, ratio: int, rows: int, size: int) -> None:
        self.kept[name, ratio] = rows, size
        self.say(f"{name:20} {ratio:4}  {rows} rows, {size} bytes")

    def _table(self) -> Iterable[dict[str, Any]]:
        for (name, ratio), (rows, size) in self.kept.items():
            open_windows = min(ratio, SPAN // SLIDE) * KEYS
            row: dict[str, Any] = {"contestant": name, "ratio": ratio, "bytes": size}
            if rows:
                row["state_rows"] = rows
            row["bytes_per_open_window_and_group"] = round(size / open_windows, 2)
            yield row

    def _claims(self) -> Iterable[Claim]:
        fewer = self.kept["window() streaming", 60][1] / self.kept["Spark streaming", 60][1]
        yield Claim("Spark streaming: state bytes of window() per one of ours at 60", fewer, 10.0, "higher")
        per_window = [self.kept["in-process", r][1] / r for r in (10, 600)]
        growth = per_window[1] / per_window[0]
        yield Claim("in-process: state bytes per open window and group, 600 against 10", growth, 1.5, "lower")


def bench_memory(spark: Any, rows: int, say: Say) -> Report:
    """Run the benchmark over so many rows."""
    home = tempfile.mkdtemp(prefix="penstock-bench-")
    try:
        return MemoryBench(home, spark, rows, say=say).run()
    finally:
        shutil.rmtree(home, ignore_errors=True)
