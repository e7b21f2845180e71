"""The rows of the right that an as-of join keeps: those that a row of the left may still meet.

Rows that come a few at a time are kept in lists by key (`latest_rows`), others in sorted runs (`latest_run`), of which
those of similar size become one. A batch looks into runs, so loose rows become one before; a few rows look among loose
ones, and runs become loose once that has happened often enough to pay.

A row is given up when it can no longer be among the latest of its key, or be met at all: at once if it is loose; among
runs when so many may be given up that it pays to go through them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.model.batch import Row, rows_of, table_of
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.model.values import canonical_row
from penstock.operators.joins.forms import Side
from penstock.operators.joins.latest_rows import LatestRows
from penstock.operators.joins.latest_run import LatestRun
from penstock.operators.joins.loose import Key
from penstock.operators.joins.nearness import RIGHT, moved
from penstock.operators.operator import Operator

SLACK = 0.5
"""Runs are gone through once so much of their rows may be given up."""
MELTING = 64
"""Runs become loose rows once a few rows looked there for every so many of theirs."""


@dataclass(frozen=True)
class Latest:
    """Which rows of the right a row of the left meets: `left + low <= right <= left + high`, the `most` latest."""

    most: int
    high: int = 0
    low: int | None = None


@dataclass
class AsOfBounds:
    """What each input has promised, and what is kept where."""

    times: list[int] = field(default_factory=lambda: [MIN_TICK] * 2)
    attributes: list[int] = field(default_factory=lambda: [MIN_TICK] * 2)
    runs: list[int] = field(default_factory=list)
    """The numbers of the runs of the right."""
    next: int = 0
    passed: int = 0
    """How many rows of runs that nothing asks for rows before were left when they were last gone through."""
    few: int = 0
    """How often a few rows looked into runs since these were made."""


class LatestKeeper(Operator):
    """Keeps the rows of the right."""

    def __init__(self, schema: Schema, sides: tuple[Side, Side], latest: Latest) -> None:
        """`schema` is that of the output."""
        super().__init__(schema)
        self.sides, self.meets = sides, latest
        self.places = [side.schema.index(side.attribute) for side in sides]

    @abstractmethod
    def least_asked(self, known: AsOfBounds) -> int:
        """No row of the left that waits or is to come is before this."""

    def key(self, port: int, row: Row) -> Key | None:
        """What a row is found by; None where it equals nothing."""
        key = canonical_row(tuple([row[i] for i in self.sides[port].keys]))
        return None if None in key else key

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Keep a few rows."""
        loose, at = self.loose(), self.places[RIGHT]
        keyed = [(row[at], key, row) for row in rows if (key := self.key(RIGHT, row)) is not None]
        if keyed:
            loose.add_all(keyed)  # type: ignore[arg-type]
            self.pages.put("loose", loose)

    def add_table(self, table: pa.Table, known: AsOfBounds) -> None:
        """Keep many rows."""
        keyless = self.sides[RIGHT].without_key(table)
        if keyless is not None:
            table = table.filter(pa.array(~keyless))
        if table.num_rows:
            self._add_run(table, known)

    def _add_run(self, table: pa.Table, known: AsOfBounds) -> None:
        """Keep a run; those before it that are not larger than twice its size become one with it."""
        merged = [table]
        size = table.num_rows
        while known.runs and len(before := self.run(known.runs[-1])) <= 2 * size:
            merged.insert(0, before.table)
            self.pages.delete(f"run{known.runs.pop()}")
            size += len(before)
        whole = pa.concat_tables(merged).combine_chunks() if len(merged) > 1 else table
        self._put_run(LatestRun(self.sides[RIGHT], whole), known)

    def _put_run(self, run: LatestRun, known: AsOfBounds) -> None:
        known.runs.append(known.next)
        self.pages.put_new(f"run{known.next}", run)
        known.next += 1
        known.few = 0
        self.pages.put("bounds", known)

    def tighten(self, known: AsOfBounds) -> None:
        """Make a run of the loose rows."""
        loose = self.loose()
        if len(loose):
            self.pages.delete("loose")
            self._add_run(table_of(self.sides[RIGHT].schema, list(loose)), known)

    def melts(self, size: int, known: AsOfBounds) -> bool:
        """Whether a few rows can look among loose ones: there are no runs, or they have become loose rows."""
        if not known.runs:
            return True
        known.few += size
        self.pages.put("bounds", known)
        if known.few * MELTING < sum(len(self.run(number)) for number in known.runs):
            return False
        for number in known.runs:
            self.add_rows(rows_of(self.run(number).table))
            self.pages.delete(f"run{number}")
        known.runs, known.passed, known.few = [], 0, 0
        return True

    def give_up(self, known: AsOfBounds) -> None:
        """Forget rows of the right that nothing can meet any more."""
        least = self.least_asked(known)
        if least == MIN_TICK:
            return
        since = moved(least, self.meets.high)
        oldest = MIN_TICK if self.meets.low is None else moved(least, self.meets.low)
        if least == END_OF_TIME:
            self.pages.delete("loose")
            for number in known.runs:
                self.pages.delete(f"run{number}")
            known.runs, known.passed = [], 0
            self.pages.put("bounds", known)
            return
        loose = self.loose()
        if len(loose) and loose.give_up(since, oldest, self.meets.most):
            self.pages.put("loose", loose)
        self._thin(since, oldest, known)

    def _thin(self, since: int, oldest: int, known: AsOfBounds) -> None:
        """The same among runs, where it is worth it."""
        runs = [self.run(number) for number in known.runs]
        size = sum(map(len, runs))
        settled, old = sum(run.up_to(since) for run in runs), sum(run.before(oldest) for run in runs)
        if not runs or settled - known.passed + old <= SLACK * size:
            return
        run = runs[0]
        if len(runs) > 1:
            run = LatestRun(self.sides[RIGHT], pa.concat_tables([each.table for each in runs]).combine_chunks())
        kept = run.needed(since, oldest, self.meets.most)
        known.passed = int((run.times[kept] <= since).sum())
        if len(runs) == 1 and kept.all():
            self.pages.put("bounds", known)
            return
        for number in known.runs:
            self.pages.delete(f"run{number}")
        known.runs = []
        if kept.any():
            self._put_run(LatestRun(self.sides[RIGHT], run.table.filter(pa.array(kept))), known)
        self.pages.put("bounds", known)

    def loose(self) -> LatestRows:
        """The rows that are kept in lists."""
        found: LatestRows | None = self.pages.get("loose")
        return LatestRows() if found is None else found

    def run(self, number: int) -> LatestRun:
        """A run that is kept."""
        found: LatestRun = self.pages.get(f"run{number}")
        return found
