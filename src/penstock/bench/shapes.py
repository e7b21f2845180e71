"""`penstock bench shapes`: few keys and many, integers and text, cheap aggregates and dear ones, any RANGE/SLIDE.

There must be no shape at which the in-process engine falls off a cliff, so each is run beside DuckDB's batch answer to
the same query, the best of a few times, and the results are compared. DuckDB has all rows before it and tells nobody of
progress or of late rows; it is what the machine can do. Where results are many times the rows, the rows are a part: as
many a second, for less time.

Memory is what the query holds when all rows have come and its windows are still open, in Python and in Arrow, more than
after a single row. What the live groups need is: for each group in each pane that an open window holds, eight bytes for
the group and for each of its numbers; for each such group its key, and its numbers once more, as the total of a window.
A distinct value is a number. It is claimed of shapes with many keys; few keys take little.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import product
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.bench import shape_contestants as by
from penstock.bench.claims import Claim, Report
from penstock.bench.data import DISORDER, SLIDE
from penstock.bench.shape_contestants import NUMBERS, Outcome, Shape
from penstock.errors import InternalError
from penstock.flow.flow import Flow
from penstock.io.sources import open_source
from penstock.model.progress import bounded
from penstock.model.time import SECOND

KEYS = (1, 1000, 100_000, 1_000_000)
TYPES: tuple[Literal["integer", "text"], ...] = ("integer", "text")
RATIOS = (1, 10, 60)
MANY = 100_000
"""From so many keys on, memory is claimed."""
PARTS = {1: 1, 10: 4, 60: 8}
"""Of the rows, where keys are many or values are told apart, 1 in so many: there DuckDB copies most."""
ROUNDS = 2, 10
"""At least and at most; a shape is done when it has taken `ENOUGH` seconds."""
ENOUGH = 1.5
Say = Callable[[str], None]


@dataclass(frozen=True)
class Contestant:
    """Who takes part, and at which shapes."""

    name: str
    run: Callable[[pa.Table, Shape], Outcome]
    least_keys: int = 0

    def takes(self, shape: Shape) -> bool:
        """Whether it is measured at a shape."""
        return shape.keys >= self.least_keys


def everyone() -> list[Contestant]:
    """All that take part; the first is who the others are compared with."""
    found = [Contestant("in-process", by.in_process)]
    if find_spec("duckdb") is not None:
        found.append(Contestant("DuckDB batch", by.duckdb_batch))
    return found


def all_shapes() -> list[Shape]:
    """In the order in which they are run."""
    return [Shape(k, t, a, r) for k, t, a, r in product(KEYS, TYPES, by.AGGREGATES, RATIOS)]


def held_bytes(table: pa.Table, shape: Shape) -> int:
    """What the query holds after all rows, before the end, more than after one."""
    return _held(table, shape) - _held(table.slice(0, 1), shape)


def _held(table: pa.Table, shape: Shape) -> int:
    flow = Flow().stream("main", table, time="ts", progress=bounded(f"{DISORDER} seconds"))
    query: Any = flow.query(shape.query)
    gc.collect()
    arrow = pa.total_allocated_bytes()
    tracemalloc.start()
    execution = query.execution()
    for item in open_source(table, "ts").open():
        execution.feed("main", item)
    del item
    gc.collect()
    numpy = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return int(numpy + pa.total_allocated_bytes() - arrow)


def needed_bytes(table: pa.Table, shape: Shape) -> int:
    """What the live groups need then."""
    panes = table["ts"].cast(pa.int64()).to_numpy() // (SLIDE * SECOND)
    bound = int(table["ts"].cast(pa.int64()).to_numpy().max()) - DISORDER * SECOND
    first = bound // (SLIDE * SECOND) - shape.ratio + 1
    open_ = table.append_column("p", pa.array(panes)).filter(pa.array(panes >= first))
    cells = open_.group_by(["p", "k"]).aggregate([])
    keys = pc.unique(cells["k"])
    key_bytes = len(keys) * 8 + (int(pc.sum(pc.binary_length(keys)).as_py() or 0) if shape.type == "text" else 0)
    row = 8 * (1 + NUMBERS[shape.aggregates])
    needed = len(cells) * row + len(keys) * row + key_bytes
    if shape.aggregates == "count distinct":
        needed += 8 * open_.group_by(["p", "k", "d"]).aggregate([]).num_rows
        needed += 16 * open_.group_by(["k", "d"]).aggregate([]).num_rows
    return needed


@dataclass
class ShapesBench:
    """One run of the benchmark."""

    rows: int
    say: Say = print
    shapes: list[Shape] = field(default_factory=all_shapes)
    contestants: list[Contestant] = field(default_factory=everyone)
    best: dict[tuple[str, Shape], Outcome] = field(default_factory=dict)
    memory: dict[Shape, tuple[int, int]] = field(default_factory=dict)
    """What is held, and what is needed."""
    _tables: dict[tuple[int, str, int], pa.Table] = field(default_factory=dict)

    def run(self) -> Report:
        """Shape by shape, the contestants in turn."""
        for shape in self.shapes:
            table = self._table_of(shape)
            self._measure(shape, table)
            if shape.keys >= MANY:
                self.memory[shape] = held_bytes(table, shape), needed_bytes(table, shape)
            self.say(self._line(shape))
        absent = [] if find_spec("duckdb") is not None else ["DuckDB"]
        return Report("shapes", list(self._table()), list(self._claims()), absent)

    def _measure(self, shape: Shape, table: pa.Table) -> None:
        """The contestants in turn, so that whatever else the machine does strikes all; short ones more often."""
        least, most = ROUNDS
        begun = time.perf_counter()
        for done in range(most):
            if done >= least and time.perf_counter() - begun > ENOUGH:
                return
            for contestant in self.contestants:
                if contestant.takes(shape):
                    self._keep(contestant.name, shape, contestant.run(table, shape))

    def _table_of(self, shape: Shape) -> pa.Table:
        part = PARTS[shape.ratio] if shape.keys >= MANY or shape.aggregates == "count distinct" else 1
        key = shape.keys, shape.type, part
        if key not in self._tables:
            if len(self._tables) >= len(RATIOS):
                self._tables.clear()
            self._tables[key] = by.shape_rows(self.rows, shape.keys, shape.type, part)
        return self._tables[key]

    def _keep(self, name: str, shape: Shape, outcome: Outcome) -> None:
        ours = self.best.get((self.contestants[0].name, shape))
        if ours is not None and not outcome.agrees(ours):
            raise InternalError(
                f"{name} gives another result than {self.contestants[0].name}.",
                where=str(shape),
                got=f"{outcome.fingerprint} for {ours.fingerprint}",
            )
        before = self.best.get((name, shape))
        if before is None or outcome.seconds < before.seconds:
            self.best[name, shape] = outcome

    def _line(self, shape: Shape) -> str:
        rates = [
            f"{c.name} {found.rows / found.seconds / 1e6:.2f} M rows/s"
            for c in self.contestants
            if (found := self.best.get((c.name, shape))) is not None
        ]
        held = f", {_times(self.memory[shape]):.2f} times what groups need" if shape in self.memory else ""
        return f"{shape}: {', '.join(rates)}{held}"

    # What it comes to

    def _table(self) -> Iterable[dict[str, Any]]:
        for shape in self.shapes:
            row: dict[str, Any] = {
                "keys": shape.keys, "type": shape.type, "aggregates": shape.aggregates, "ratio": shape.ratio,
            }  # fmt: skip
            for contestant in self.contestants:
                if (found := self.best.get((contestant.name, shape))) is not None:
                    row[contestant.name] = round(found.rows / found.seconds)
            if ("DuckDB batch", shape) in self.best:
                row["times slower"] = round(self._slower(shape), 2)
            if shape in self.memory:
                row["memory, times needed"] = round(_times(self.memory[shape]), 2)
            yield row

    def _slower(self, shape: Shape) -> float:
        return self.best["in-process", shape].seconds / self.best["DuckDB batch", shape].seconds

    def _claims(self) -> Iterable[Claim]:
        compared = [shape for shape in self.shapes if ("DuckDB batch", shape) in self.best]
        if compared:
            worst = float(np.max([self._slower(shape) for shape in compared]))
            yield Claim("in-process: worst of all shapes against DuckDB batch, times slower", worst, 2.5, "lower")
        if self.memory:
            most = max(_times(found) for found in self.memory.values())
            yield Claim("in-process: most memory at any shape, times what live groups need", most, 2.0, "lower")


def _times(memory: tuple[int, int]) -> float:
    held, needed = memory
    return held / needed
