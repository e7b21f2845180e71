"""`penstock bench nexmark`: Nexmark's queries in-process, beside Flink SQL, in one run over one file of events.

In-process a query is timed twice: from rows at hand, as in the other benchmarks, and from the CSV file that Flink reads
and parses within its time; that is then done by Arrow, whose dataset is the source of the stream. Reading the query is
in both. Results are at hand in-process, and go nowhere in Flink; in a run before the timed one they are written, and
are compared with those in-process row by row. What is claimed are geometric means of the queries' ratios.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset

from penstock.bench.claims import Claim, Report
from penstock.bench.nexmark import NexmarkQuery, home, queries, side_input
from penstock.bench.nexmark_events import SCHEMA, make_events
from penstock.bench.peers import python_of, run_script
from penstock.errors import InternalError

FLINK = "Flink SQL"
AT_HAND, FROM_FILE = "in-process", "in-process, from the file"
BAR = 5.0
ROUNDS = 2
BLOCK = 1 << 22
"""Bytes of the file that are read at a time; about seventy thousand events."""
Say = Callable[[str], None]


def read_events(path: Path) -> pa.dataset.Dataset:
    """The events of a file, which Arrow reads part by part."""
    read = pyarrow.csv.ReadOptions(column_names=SCHEMA.names, block_size=BLOCK)
    convert = pyarrow.csv.ConvertOptions(column_types=SCHEMA, strings_can_be_null=True)
    form = pyarrow.dataset.CsvFileFormat(read_options=read, convert_options=convert)
    return pyarrow.dataset.dataset(path, schema=SCHEMA, format=form)


def write_events(events: pa.Table, path: Path) -> None:
    """As both read them: without a line of names, empty where there is nothing."""
    pyarrow.csv.write_csv(events, path, pyarrow.csv.WriteOptions(include_header=False))


def write_side_input(path: Path) -> None:
    """As Flink reads it: with the time in milliseconds from which on a row is valid, before all events."""
    table = side_input()
    write_events(table.append_column("ms", pa.array([0] * table.num_rows)), path)


def in_process(query: NexmarkQuery, events: pa.Table | Path) -> tuple[float, pa.Table]:
    """How long it took, from rows at hand or from a file to all results, and these."""
    started = time.perf_counter()
    table = query.script(read_events(events) if isinstance(events, Path) else events).collect()
    return time.perf_counter() - started, table


def in_milliseconds(table: pa.Table) -> pa.Table:
    """Times as counts from the epoch, as the other side writes them."""
    columns = [
        pc.divide(c.cast(pa.timestamp("us")).cast(pa.int64()), 1000) if pa.types.is_timestamp(c.type) else c
        for c in table.columns
    ]
    return pa.table(columns, table.column_names)


def written(folder: Path, schema: pa.Schema) -> pa.Table:
    """What a query has written to a folder."""
    parts = [
        pyarrow.csv.read_csv(
            part,
            pyarrow.csv.ReadOptions(column_names=schema.names),
            convert_options=pyarrow.csv.ConvertOptions(column_types=schema),
        )
        for part in sorted(folder.glob("part-*"))
        if part.stat().st_size
    ]
    return pa.concat_tables(parts) if parts else schema.empty_table()


def are_same(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables of the same columns have the same rows; floats to nine digits."""
    if one.num_rows != other.num_rows:
        return False
    floats = [f.name for f in one.schema if pa.types.is_floating(f.type)]
    order: Any = [(name, "ascending") for name in (*(n for n in one.column_names if n not in floats), *floats)]
    one, other = (t.take(pc.sort_indices(t, sort_keys=order)) for t in (one, other))
    exact = all(one[n].combine_chunks().equals(other[n].combine_chunks()) for n in one.column_names if n not in floats)
    return exact and all(np.allclose(one[n].to_numpy(), other[n].to_numpy(), rtol=1e-9) for n in floats)


@dataclass
class NexmarkBench:
    """One run of the benchmark."""

    rows: int
    say: Say = print
    queries: Sequence[NexmarkQuery] = field(default_factory=queries)
    seconds: dict[tuple[str, str], float] = field(default_factory=dict)
    """Per contestant and query, the best."""
    sizes: dict[str, int] = field(default_factory=dict)

    def run(self) -> Report:
        """All queries in-process, then all in Flink."""
        with tempfile.TemporaryDirectory(prefix="penstock-nexmark-") as folder:
            events, path = make_events(self.rows), Path(folder) / "events.csv"
            write_events(events, path)
            write_side_input(path.with_name("side_input.csv"))
            results = {query.name: self._measure(query, events, path) for query in self.queries}
            has_flink = python_of("flink") is not None
            if has_flink:
                self._ask_flink(path, Path(folder), results)
        return Report("nexmark", list(self._table()), list(self._claims()), [] if has_flink else [FLINK])

    def _measure(self, query: NexmarkQuery, events: pa.Table, path: Path) -> pa.Table:
        for contestant, source in ((AT_HAND, events), (FROM_FILE, path)):
            rounds = [in_process(query, source) for _ in range(ROUNDS)]
            best, table = min(rounds, key=lambda found: found[0])
            self.seconds[contestant, query.name] = best
            self.say(f"{query.name} {query.title}: {contestant} {self.rows / best:,.0f} rows/s")
        self.sizes[query.name] = table.num_rows
        return in_milliseconds(table)

    def _ask_flink(self, events: Path, folder: Path, results: dict[str, pa.Table]) -> None:
        texts, names = str(home() / "flink"), ",".join(results)
        for name, found in run_script("flink", "nexmark", str(events), texts, str(folder / "flink"), names).items():
            ours = results[name].select(found["columns"])
            if not are_same(ours, written(folder / "flink" / name, ours.schema)):
                raise InternalError("Flink SQL gives another result than in-process.", where=name)
            self.seconds[FLINK, name] = found["seconds"]
            self.say(f"{name}: {FLINK} {self.rows / found['seconds']:,.0f} rows/s")

    def _table(self) -> Iterable[dict[str, Any]]:
        for query in self.queries:
            row: dict[str, Any] = {"query": f"{query.name} {query.title}", "results": self.sizes[query.name]}
            for contestant in (AT_HAND, FROM_FILE, FLINK):
                if (contestant, query.name) in self.seconds:
                    row[contestant] = round(self.rows / self.seconds[contestant, query.name])
            if (FLINK, query.name) in self.seconds:
                row["times faster"] = round(self._faster(AT_HAND, query.name), 1)
                row["from the file"] = round(self._faster(FROM_FILE, query.name), 1)
            yield row

    def _claims(self) -> Iterable[Claim]:
        both = [name for contestant, name in self.seconds if contestant == FLINK]
        for contestant in (AT_HAND, FROM_FILE) if both else ():
            mean = math.exp(sum(math.log(self._faster(contestant, name)) for name in both) / len(both))
            what = f"{contestant}: lead on {FLINK} over {len(both)} queries of Nexmark, geometric mean"
            yield Claim(what, mean, BAR, "higher")

    def _faster(self, contestant: str, name: str) -> float:
        return self.seconds[FLINK, name] / self.seconds[contestant, name]
