"""Nexmark's queries as started queries on Spark, beside Flink SQL over the same events.

Events are CSV on both sides. Flink reads one file; for Spark the same lines are in files of which each micro-batch
reads two, and results are written to the query's folder. As in the other benchmarks of started queries, the first
micro-batches do not count: they wait for workers. What counts is how long the others take together, for as many events
as they have. Flink runs each query twice in one process, and only the second time counts.

What Spark has written is compared with what comes out in-process, and so is what Flink has, row by row. What is claimed
is the geometric mean of the queries' ratios.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.bench.claims import Claim, Report
from penstock.bench.micro_batches import AT_ONCE, BATCHES, WARM
from penstock.bench.nexmark import NexmarkQuery, home, queries
from penstock.bench.nexmark_events import SCHEMA, make_events
from penstock.bench.nexmark_rates import (
    FLINK,
    are_same,
    in_milliseconds,
    in_process,
    write_events,
    write_side_input,
    written,
)
from penstock.bench.peers import python_of, run_script
from penstock.errors import InternalError
from penstock.flow.flow import Flow

STARTED = "Spark started"
BAR = 0.7
DDL = ", ".join(f"{field.name} {'bigint' if pa.types.is_integer(field.type) else 'string'}" for field in SCHEMA)
Say = Callable[[str], None]


def write_parts(events: pa.Table, folder: Path) -> None:
    """The events in files for micro-batches, in their order."""
    folder.mkdir()
    size = math.ceil(events.num_rows / (BATCHES * AT_ONCE))
    for at in range(BATCHES * AT_ONCE):
        path = folder / f"{at:03d}.csv"
        write_events(events.slice(at * size, size), path)
        os.utime(path, (1_000_000 + at, 1_000_000 + at))


def rate_of(running: Any) -> float:
    """Events a second of a streaming query's micro-batches, after the first ones."""
    counted = [p for p in running.recentProgress if p.numInputRows > 0][WARM:]
    return float(1000 * sum(p.numInputRows for p in counted) / sum(p.batchDuration for p in counted))


@dataclass
class NexmarkStreamsBench:
    """One run, in one session."""

    spark: Any
    rows: int
    """In a micro-batch."""
    say: Say = print
    queries: Sequence[NexmarkQuery] = field(default_factory=queries)
    rates: dict[tuple[str, str], float] = field(default_factory=dict)
    """Events a second, per contestant and query."""

    def run(self) -> Report:
        """All queries on Spark, then all in Flink."""
        events = make_events(self.rows * BATCHES)
        with tempfile.TemporaryDirectory(prefix="penstock-nexmark-") as folder:
            write_parts(events, Path(folder) / "parts")
            expected = {query.name: self._started(query, events, Path(folder)) for query in self.queries}
            has_flink = python_of("flink") is not None
            if has_flink:
                write_events(events, Path(folder) / "events.csv")
                write_side_input(Path(folder) / "side_input.csv")
                self._ask_flink(Path(folder), expected)
        return Report("nexmark", list(self._table()), list(self._claims()), [] if has_flink else [FLINK])

    def _started(self, query: NexmarkQuery, events: pa.Table, folder: Path) -> pa.Table:
        """Run a query over the files; what comes out, which is what comes out in-process."""
        reader = self.spark.readStream.schema(DDL).option("maxFilesPerTrigger", AT_ONCE)
        flow = Flow(self.spark, path=str(folder / query.name))
        run: Any = query.script(reader.csv(str(folder / "parts")), flow).query.start(str(folder / query.name / "out"))
        run.process_available()
        self.rates[STARTED, query.name] = rate_of(run.streaming)
        run.finish()
        _, expected = in_process(query, events)
        given = pq.read_table(folder / query.name / "out").select(expected.column_names)
        if not are_same(in_milliseconds(expected), in_milliseconds(given.cast(expected.schema))):
            raise InternalError("What Spark has written is not what comes out in-process.", where=query.name)
        self.say(f"{query.name} {query.title}: {STARTED} {self.rates[STARTED, query.name]:,.0f} rows/s")
        return in_milliseconds(expected)

    def _ask_flink(self, folder: Path, expected: dict[str, pa.Table]) -> None:
        texts, results, names = str(home() / "flink"), folder / "flink", ",".join(expected)
        found = run_script("flink", "nexmark", str(folder / "events.csv"), texts, str(results), names)
        for name, told in found.items():
            ours = expected[name].select(told["columns"])
            if not are_same(ours, written(results / name, ours.schema)):
                raise InternalError("Flink SQL gives another result than in-process.", where=name)
            self.rates[FLINK, name] = self.rows * BATCHES / told["seconds"]
            self.say(f"{name}: {FLINK} {self.rates[FLINK, name]:,.0f} rows/s")

    def _table(self) -> Iterable[dict[str, Any]]:
        for query in self.queries:
            row: dict[str, Any] = {"query": f"{query.name} {query.title}"}
            for contestant in (STARTED, FLINK):
                if (contestant, query.name) in self.rates:
                    row[contestant] = round(self.rates[contestant, query.name])
            if (FLINK, query.name) in self.rates:
                row["of Flink SQL's rate"] = round(self._ratio(query.name), 2)
            yield row

    def _claims(self) -> Iterable[Claim]:
        both = [name for contestant, name in self.rates if contestant == FLINK]
        if both:
            mean = math.exp(sum(math.log(self._ratio(name)) for name in both) / len(both))
            what = f"{STARTED}: rate of {FLINK}'s over {len(both)} queries of Nexmark, geometric mean"
            yield Claim(what, mean, BAR, "higher")

    def _ratio(self, name: str) -> float:
        return self.rates[STARTED, name] / self.rates[FLINK, name]
