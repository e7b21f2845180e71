"""The shapes of `penstock bench shapes` as streams on Spark: few keys and many, integers and text, tumbling windows.

Rows come as in the in-process shapes, at one rate whatever the number of keys, so that with many keys most groups of a
window have one row. A query that is started, with its folder written, is beside Spark's own `window()` written to
parquet; what it comes to is compared with the in-process engine. Streams of all shapes take turns, twice.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

from penstock.bench.claims import Claim, Report
from penstock.bench.micro_batches import AT_ONCE, BATCHES, MicroBatches, per_key, write_files
from penstock.bench.shape_contestants import shape_rows

KEYS = (1000, 100_000, 1_000_000)
TYPES: dict[Literal["integer", "text"], str] = {"integer": "bigint", "text": "string"}
Shape = tuple[int, Literal["integer", "text"]]
Say = Callable[[str], None]


@dataclass
class ShapeStreamsBench:
    """One run, in one session."""

    spark: Any
    rows: int
    """In a micro-batch."""
    say: Say = print
    shapes: list[Shape] = field(default_factory=lambda: list(product(KEYS, TYPES)))
    rounds: int = 2
    ours: dict[Shape, float] = field(default_factory=dict)
    """Milliseconds of a micro-batch, the least of all rounds."""
    windows: dict[Shape, float] = field(default_factory=dict)

    def run(self) -> Report:
        """All shapes in turn."""
        home = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
        try:
            streams = {shape: self._stream(home, shape) for shape in self.shapes}
            next(iter(streams.values())).scan()  # whoever comes first would wait for workers
            for _ in range(self.rounds):
                for shape, batches in streams.items():
                    self._measure(shape, batches)
        finally:
            shutil.rmtree(home, ignore_errors=True)
        return Report("shapes", list(self._table()), list(self._claims()))

    def _stream(self, home: Path, shape: Shape) -> MicroBatches:
        """The files of a shape, a few for each micro-batch."""
        keys, type_ = shape
        files = BATCHES * AT_ONCE
        size = max(self.rows // AT_ONCE, 1)
        table = shape_rows(files * size, keys, type_).select(["ts", "k", "v"])
        folder = home / f"{keys}-{type_}"
        write_files(folder, (table.slice(at * size, size) for at in range(files)))
        return MicroBatches(self.spark, folder, TYPES[type_])

    def _measure(self, shape: Shape, batches: MicroBatches) -> None:
        keys, type_ = shape
        for took, now in ((self.ours, batches.started(per_key(1))), (self.windows, batches.window())):
            took[shape] = min(now, took.get(shape, now))
        self.say(
            f"{keys} {type_} keys on Spark: started {self.ours[shape]:.0f} ms, window() {self.windows[shape]:.0f} ms"
        )

    # What it comes to

    def _table(self) -> Iterable[dict[str, Any]]:
        for keys, type_ in self.shapes:
            shape = keys, type_
            yield {
                "keys": keys,
                "type": type_,
                "Spark started": round(1000 * self.rows / self.ours[shape]),
                "Spark's window()": round(1000 * self.rows / self.windows[shape]),
                "times faster": round(self.windows[shape] / self.ours[shape], 2),
            }

    def _claims(self) -> Iterable[Claim]:
        by_type = [[self.ours[shape] for shape in self.shapes if shape[1] == type_] for type_ in TYPES]
        worst = max(max(took) / min(took) for took in by_type if took)
        yield Claim("Spark started: slowest number of keys against the fastest, times", worst, 1.5, "lower")
        least = min(self.windows[shape] / self.ours[shape] for shape in self.shapes)
        yield Claim("Spark started: least lead on window() at any number of keys, times faster", least, 1.0, "higher")
