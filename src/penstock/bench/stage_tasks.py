"""`penstock bench stages`, the part that looks at tasks: does each plan use all of them, by what Spark itself tells.

Every plan of the benchmark is started once more. From Spark's log of events: how many tasks have read the rows of a
micro-batch, which part of them the busiest had; behind exchanges, how much one task was given for each row, and which
part of the time of all tasks it took.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from penstock.bench.claims import Claim, Report
from penstock.bench.data import DISORDER
from penstock.bench.event_log import ENABLED, FOLDER, Spread, spread_of
from penstock.bench.micro_batches import AT_ONCE, BATCHES, MicroBatches
from penstock.bench.stages import PLANS, make_files
from penstock.flow.flow import Flow
from penstock.model.progress import bounded

Say = Callable[[str], None]


@dataclass
class StageTasksBench:
    """One run, in a session that keeps a log of its events; in another, nothing can be told."""

    spark: Any
    rows: int
    """In a micro-batch."""
    say: Say = print
    spreads: dict[str, Spread] = field(default_factory=dict)

    def run(self) -> Report:
        """All plans."""
        if self.spark.conf.get(ENABLED, "false") != "true":
            return Report("stages", [], [], ["tasks: the session keeps no log of events"])
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as home:
            plain, skewed = (make_files(Path(home), self.rows, skewed=skewed) for skewed in (False, True))
            for name, sql in PLANS.items():
                self.spreads[name] = self._spread(skewed if name.startswith("one key") else plain, sql)
                self.say(f"{name:32} {self.rows:9,} rows  busiest task {self.spreads[name].busiest:.0%}")
        return Report("stages", list(self._table()), list(self._claims()))

    def _spread(self, folder: Path, sql: str) -> Spread:
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as home:
            flow = Flow(self.spark, path=f"{home}/flow")
            frame = MicroBatches(self.spark, folder).frame()
            flow.stream("main", frame, time="ts", progress=bounded(f"{DISORDER} seconds"))
            run: Any = flow.query(sql, "q").start(f"{home}/out")
            run.process_available()
            run.stop()
        events = Path(urlparse(self.spark.conf.get(FOLDER)).path)
        return spread_of(events, str(run.streaming.id), batches=BATCHES)

    # What it comes to

    def _table(self) -> Iterator[dict[str, Any]]:
        for name, spread in self.spreads.items():
            yield {
                "plan": name,
                "tasks that read": spread.readers,
                "busiest task": f"{spread.busiest:.0%}",
                "records sent, per 1000 rows": round(1000 * spread.records, 3),
                "bytes sent a row": round(spread.sent, 2),
                "bytes a row to one task": round(spread.gathered, 2),
                "longest task behind an exchange": f"{spread.longest_behind:.0%} of the time",
            }

    def _claims(self) -> Iterator[Claim]:
        for name, spread in self.spreads.items():
            even = spread.busiest * AT_ONCE
            yield Claim(f"Spark started: {name}, rows of the busiest task, times an even share", even, 1.25, "lower")
        for name, spread in self.spreads.items():
            yield Claim(f"Spark started: {name}, bytes to one task a row of 20", spread.gathered, 5, "lower")
