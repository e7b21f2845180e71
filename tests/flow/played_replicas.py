"""A replica of a query that writes an output folder, played from its definition and without Spark.

Rows arrive up to `disorder` late, the bound is the greatest time less that, a query that passes rows through writes
them at once, and one with windows writes a window when the bound passes its end. It can be wiped and begin again.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.flow.outputs import FolderMerge, merge_outputs
from penstock.model.schema import schema_of
from penstock.model.time import END_OF_TIME
from penstock.storage.files import Place, place_of
from penstock.storage.folders import OutputFolder, OutputStream, Owner, describe

Row = tuple[int, str, float]
SLIDE = 10
STREAM = describe(schema_of([("t", "bigint"), ("k", "string"), ("v", "bigint")], "t"))
KEYED = OutputStream(STREAM.columns, STREAM.time, ("k",))
MEASURED = describe(schema_of([("t", "bigint"), ("k", "string"), ("v", "double")], "t"), ["k"])


def window_counts(rows: list[Row]) -> dict[tuple[int, str], int]:
    return Counter(((t // SLIDE + 1) * SLIDE, k) for t, k, _ in rows)


class Pipeline:
    """A replica: its own arrival order, its own batches, its own lives."""

    def __init__(
        self,
        place: Place,
        rows: list[Row],
        rng: random.Random,
        windowed: bool,
        disorder: int,
        *,
        measured: bool = False,
    ) -> None:
        """`measured`: what a window says is a float, which differs in its last bits from replica to replica."""
        self.place, self.rows, self.rng, self.windowed, self.disorder = place, rows, rng, windowed, disorder
        self.life = 0
        self.stream = (MEASURED if measured else KEYED) if windowed else STREAM
        self.begin()

    def begin(self) -> None:
        """A life from the beginning."""
        self.life += 1
        rng = self.rng
        self.arrivals = sorted(self.rows, key=lambda r: r[0] + rng.randint(0, self.disorder))
        self.seen: list[Row] = []
        self.put_out: set[tuple[int, str]] = set()
        self.number, self.newest, self.ended = 0, -(10**6), False
        owner = Owner(f"{self.life:04d}{rng.getrandbits(64):016x}", "home", "q", "results")
        self.out = OutputFolder(self.place, owner, self.stream, compact=rng.random() < 0.5)
        self.out.claim()

    def wipe(self) -> None:
        """All that it wrote is gone, and it begins again."""
        shutil.rmtree(self.place.path)
        self.begin()

    def write(self, rows: int) -> None:
        """One micro-batch."""
        arrived, self.arrivals = self.arrivals[:rows], self.arrivals[rows:]
        self.seen += arrived
        self.newest = max([self.newest, *(t for t, _, _ in arrived)])
        bound = self.newest - self.disorder
        if not self.arrivals and self.rng.random() < 0.5:
            bound, self.ended = END_OF_TIME, True
        shown: list[Row] = arrived
        frontier = bound
        if self.windowed:
            ready = {w: n for w, n in window_counts(self.seen).items() if w[0] <= bound and w not in self.put_out}
            self.put_out |= set(ready)
            noise = 1e-12 if self.stream is MEASURED else 0
            shown = [(end, k, n + noise * self.rng.randrange(9)) for (end, k), n in ready.items()]
            frontier = bound if self.ended else bound // SLIDE * SLIDE + SLIDE
        files = ()
        if shown:
            table = pa.table({n: pa.array(c) for n, c in zip("tkv", zip(*shown, strict=True), strict=True)})
            files = self.out.named(self.number, [self.out.staging.write([table])])  # type: ignore[assignment]
        self.out.publish(self.number, files, frontier, 0.0)
        self.number += 1


def expected(rows: list[Row], windowed: bool) -> Counter[Row]:
    return Counter((end, k, n) for (end, k), n in window_counts(rows).items()) if windowed else Counter(rows)


def found(place: Place) -> Counter[Row]:
    """What somebody sees who reads the parquet files."""
    files = [pq.ParquetFile(f"{place.path}/{n}") for n in place.files() if n.endswith(".parquet")]
    tables = [file.read(use_threads=False) for file in files]
    return Counter((r["t"], r["k"], round(r["v"], 6)) for t in tables for r in t.to_pylist())


def pipeline(place: Path, rows: list[Row], windowed: bool = False, disorder: int = 10) -> Pipeline:
    return Pipeline(place_of(place), rows, random.Random(1), windowed, disorder)


def merged(tmp_path: Path, *names: str, **options: Any) -> FolderMerge:
    return merge_outputs([str(tmp_path / n) for n in names], str(tmp_path / "out"), str(tmp_path / "m"), **options)
