"""As-of join: each row of the left with the latest rows of the right, as of its own time; neither needs an order.

A row of the left meets, of the rows of the right that are equal to it in their keys and not later than it (by its
attribute moved by `high`), the `most` latest; of rows of one time the greater ones are the later (`tie_order`). So what
a row meets is known once the right has promised to be past it: until then it waits, and then it comes out with what it
meets, or by itself where such rows are kept. One that has all it needs when it comes never waits.

Of the right a row is kept while it can be among the latest of its key for a row of the left that waits or is still to
come: those after the earliest such row, and of those before, the `most` latest of each key. With `low`, rows that are
further back than that meet nothing, and are given up too.

What is still to come on the left, or waits, is all that can come out: its least time is promised, of the left's
attribute and of the time of results, whatever the right has said.

State: the rows of the right (`latest_keeper`), those of the left that wait, and the inputs' bounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.batch import Batch, Row, rows_of, table_of
from penstock.model.elements import Punctuation, linear
from penstock.model.frontier import Frontier
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.joins.bounds import taken
from penstock.operators.joins.forms import Condition, Forms, Side
from penstock.operators.joins.keys import KeyRows
from penstock.operators.joins.latest_keeper import AsOfBounds, Latest, LatestKeeper
from penstock.operators.joins.latest_rows import LatestRows
from penstock.operators.joins.latest_run import LatestRun, latest_of
from penstock.operators.joins.nearness import LEFT, RIGHT, moved
from penstock.operators.joins.waiting import Waiting
from penstock.operators.operator import Output, Outputs, Rejected
from penstock.operators.state import PROMISES

FEW_ROWS = 32
"""A batch of no more rows is joined row by row."""


@dataclass(frozen=True)
class AsOfNames:
    """The names under which promises are made; empty where there is none."""

    left: str
    right: str
    time: str


class AsOfJoin(LatestKeeper):
    """Joins the rows of the left with the latest of the right."""

    ports = 2
    kind = "as-of-join"

    def __init__(
        self,
        schema: Schema,
        sides: tuple[Side, Side],
        latest: Latest,
        names: AsOfNames,
        condition: Condition | None = None,
    ) -> None:
        """Whether rows of the left without any come out is for the left side to say."""
        super().__init__(schema, sides, latest)
        self.names = names
        self.keeps = sides[LEFT].keeps
        self.forms = Forms(schema, sides, condition)

    def process(self, port: int, batch: Batch) -> Outputs:
        """Keep rows of the right; answer rows of the left that have all they need, and let the others wait."""
        if not len(batch):
            return
        known = self._bounds()
        few = len(batch) <= FEW_ROWS and not batch.columnar
        if port == RIGHT:
            if few:
                self.add_rows(batch.rows)
            else:
                self.add_table(batch.table, known)
            self.give_up(known)
        elif few:
            yield from self._take_rows(batch.rows, known)
        else:
            yield from self._take_table(batch.table, known)

    # The left

    def _settled(self, known: AsOfBounds) -> int:
        """Rows of the left below this have all they need."""
        return moved(known.attributes[RIGHT], -self.meets.high)

    def _take_rows(self, rows: Iterable[Row], known: AsOfBounds) -> Outputs:
        settled, at, waiting = self._settled(known), self.places[LEFT], self._waiting()
        ready: list[Row] = []
        before = len(waiting)
        for row in rows:
            if row[at] < settled or settled == END_OF_TIME or self.key(LEFT, row) is None:  # type: ignore[operator]
                ready.append(row)
            else:
                waiting.add(row[at], row)  # type: ignore[arg-type]
        if len(waiting) > before:
            self.pages.put("waiting", waiting)
        if ready:
            yield from self._answer_rows(ready, known)

    def _take_table(self, table: pa.Table, known: AsOfBounds) -> Outputs:
        side = self.sides[LEFT]
        times, settled, keyless = side.times(table), self._settled(known), side.without_key(table)
        ready = times < settled if settled != END_OF_TIME else np.ones(len(times), np.bool_)
        if keyless is not None:
            ready |= keyless
        if not ready.all():
            waiting = self._waiting()
            rest = np.flatnonzero(~ready)
            rest = rest[np.argsort(times[rest], kind="stable")]
            waiting.add_table(table.take(pa.array(rest)), times[rest])
            self.pages.put("waiting", waiting)
            table = table.filter(pa.array(ready))
        if table.num_rows:
            yield from self._answer_table(table, known)

    def _answer_rows(self, rows: list[Row], known: AsOfBounds) -> Outputs:
        """What a few rows of the left meet."""
        if not self.melts(len(rows), known):
            yield from self._answer_table(table_of(self.sides[LEFT].schema, rows), known)
            return
        out: list[Row] = []
        failed: list[Output] = []
        loose, at, meets = self.loose(), self.places[LEFT], self.meets
        for row in rows:
            key, is_met = self.key(LEFT, row), False
            if key is not None:
                time: int = row[at]  # type: ignore[assignment]
                found = loose.latest(key, time + meets.high, meets.most)
                for when, other in zip(*found, strict=True):
                    if meets.low is None or when >= time + meets.low:
                        is_met |= self._is_pair(self.forms.pair(row, other), out, failed)
            if self.keeps and not is_met:
                out.append(self.forms.alone_row(LEFT, row, of_pairs=True))
        yield from failed
        if out:
            yield Batch(self.schema, out)

    def _is_pair(self, pair: Row, out: list[Row], failed: list[Output]) -> bool:
        held = self.forms.holds(pair)
        if isinstance(held, Rejected):
            failed.append(held)
            return False
        if held:
            out.append(pair)
        return held

    def _answer_table(self, table: pa.Table, known: AsOfBounds) -> Outputs:
        """What many rows of the left meet."""
        side = self.sides[LEFT]
        keyless = side.without_key(table)
        if keyless is not None:
            if self.keeps:
                yield self.forms.alone(LEFT, table.filter(pa.array(keyless)), of_pairs=True)
            table = table.filter(pa.array(~keyless))
        if not table.num_rows:
            return
        self.tighten(known)
        own, others = self._found(table, known)
        places = np.arange(len(own))
        if self.forms.condition is not None and len(own):
            mask, failed = self.forms.holding((table, others), (own, places))
            yield from failed
            own, places = own[mask], places[mask]
        if len(own):
            yield self.forms.pairs((table, others), (own, places))
        if self.keeps:
            alone = np.ones(table.num_rows, np.bool_)
            alone[own] = False
            if alone.any():
                yield self.forms.alone(LEFT, table.filter(pa.array(alone)), of_pairs=True)

    def _found(self, table: pa.Table, known: AsOfBounds) -> tuple[np.ndarray, pa.Table]:
        """Places of rows of the left, and the rows of the right that each meets."""
        side, meets = self.sides[LEFT], self.meets
        times = side.times(table)
        keys = KeyRows.of(table, side.keys)
        found = []
        for number in known.runs:
            run = self.run(number)
            own, places = run.latest(keys, times + meets.high, meets.most)
            found.append((own, run.table.take(pa.array(places)), run.times[places]))
        if not found:
            return np.empty(0, np.int64), self.sides[RIGHT].schema.arrow.empty_table()
        own, others = latest_of(found, meets.most)
        if meets.low is not None:
            near = self.sides[RIGHT].times(others) >= times[own] + meets.low
            own, others = own[near], others.filter(pa.array(near))
        return own, others

    # Punctuation

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Past the right's bound rows of the left come out; past the left's, rows of the right are given up."""
        known = self._bounds()
        heard = taken(known, self.sides[port], port, punctuation)
        if not heard.moved:
            return
        self.pages.put("bounds", known)
        if heard.settles and port == RIGHT:
            yield from self._release(known)
        if heard.settles:
            self.give_up(known)
        yield from self._promise(known)

    def _release(self, known: AsOfBounds) -> Outputs:
        """Answer the rows of the left that have waited long enough."""
        waiting, settled = self._waiting(), self._settled(known)
        if waiting.least() >= settled and settled != END_OF_TIME:
            return
        rows, tables = waiting.release(settled)
        if len(waiting):
            self.pages.put("waiting", waiting)
        else:
            self.pages.delete("waiting")
        schema = self.sides[LEFT].schema
        if sum(table.num_rows for table in tables) + len(rows) <= FEW_ROWS:
            rows = [*rows, *(row for table in tables for row in rows_of(table))]
            tables = []
        elif rows and tables:
            tables, rows = [*tables, table_of(schema, rows)], []
        if tables:
            yield from self._answer_table(pa.concat_tables(tables), known)
        if rows:
            yield from self._answer_rows(rows, known)

    def least_asked(self, known: AsOfBounds) -> int:
        """No row of the left that waits or is to come is before this."""
        return min(known.attributes[LEFT], self._waiting().least())

    def _promise(self, known: AsOfBounds) -> Outputs:
        """What holds of all that is still to come, as far as it says something new."""
        waiting, side = self._waiting(), self.sides[LEFT]
        left = self.least_asked(known)
        waits = waiting.least() if side.on_time else waiting.least_of(side.schema.time_index)
        low = MIN_TICK if self.meets.low is None else moved(left, self.meets.low)
        told = ((self.names.time, min(known.times[LEFT], waits)), (self.names.left, left), (self.names.right, low))
        frontier: Frontier = self.pages.get(PROMISES) or Frontier()
        promises = [linear(name, bound) for name, bound in told if name and bound > MIN_TICK]
        fresh = [promise for promise in promises if frontier.add(promise)]
        if fresh:
            self.pages.put(PROMISES, frontier)
        yield from fresh

    # State

    def _bounds(self) -> AsOfBounds:
        return self.pages.get("bounds") or AsOfBounds()

    def _waiting(self) -> Waiting:
        found: Waiting | None = self.pages.get("waiting")
        return Waiting() if found is None else found

    def to_plain(self, key: str, page: Any) -> Any:
        """Runs as their tables, loose rows as they are."""
        match page:
            case LatestRun():
                return page.plain()
            case LatestRows():
                return list(page)
            case Waiting():
                return page.to_plain()
            case AsOfBounds():
                return [page.times, page.attributes, page.runs, page.next, page.passed, page.few]
            case _:
                return page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way; orders and indexes follow from the rows."""
        if key.startswith("run"):
            return LatestRun(self.sides[RIGHT], data)
        if key == "loose":
            at, rows, made = self.places[RIGHT], [tuple(row) for row in data], LatestRows()
            made.add_all((row[at], self.key(RIGHT, row) or (), row) for row in rows)
            return made
        return Waiting.from_plain(data, self.places[LEFT]) if key == "waiting" else AsOfBounds(*data)
