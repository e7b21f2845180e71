"""OA-Join: a join of two streams that needs no order of them (thesis, chapter 7).

Each side keeps its rows that may still meet one of the other. A batch is joined with what the other side keeps when it
comes, and then kept itself; rows of which all partners have come are never kept. Punctuation of one side settles rows
of the other: no more partners of theirs come, so they are given up, and where rows without a partner come out, this is
when. Pairs come out at once and in no order.

What comes out is promised as early as the inputs allow. A pair that is still to come has a row that is still to come:
on the left attribute it is not below the left's bound, nor below what the right's bound has settled; on the right one
likewise; the later of both times is not below both inputs' bounds; and of both attributes together (joint punctuation)
no pair is below both bounds, which says more than each by itself.

Keys are small numbers (`GroupCodes`), made anew when most of them are of no row any more. State: the runs of each side
(`runs`), each under a number of its own, and the inputs' bounds. Codes are not kept: they follow from the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Batch, Row, ticks_of
from penstock.model.elements import Punctuation, joint, linear
from penstock.model.frontier import Frontier
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.aggregates.group_codes import GroupCodes
from penstock.operators.joins.nearness import LEFT, RIGHT, Nearness
from penstock.operators.joins.runs import Run, joined, pairs
from penstock.operators.operator import Operator, Outputs, Rejected
from penstock.operators.relational.attempt import by_row
from penstock.operators.state import PROMISES

MOST = 1 << 18
"""About so many pairs come out at once."""
FEW_CODES = 4096
"""So many codes are kept, whether they are of rows or not."""


@dataclass(frozen=True)
class Side:
    """One input of a join."""

    schema: Schema
    attribute: str
    """What must be near the other's."""
    keys: tuple[int, ...]
    """The places of the columns that must equal the other's."""
    keeps: bool
    """Whether its rows without a partner come out."""

    @property
    def on_time(self) -> bool:
        """Whether it is joined by its time."""
        return self.attribute == self.schema.time

    def times(self, batch: Batch) -> np.ndarray:
        """The attribute of each row."""
        return batch.times() if self.on_time else ticks_of(batch.table.column(self.schema.index(self.attribute)))


@dataclass
class Bounds:
    """What each input has promised: of its time, and of the attribute that it is joined by."""

    times: list[int]
    attributes: list[int]
    runs: list[list[int]]
    """The numbers of the runs of each side, older ones first."""
    next: int = 0


@dataclass(frozen=True)
class Promised:
    """The names under which the output's promises are made; empty where there is none."""

    left: str
    right: str
    time: str


Holds = Callable[[Batch], "pa.ChunkedArray | None"]


class OAJoin(Operator):
    """Joins two inputs."""

    ports = 2
    kind = "oa-join"

    def __init__(
        self,
        schema: Schema,
        sides: tuple[Side, Side],
        near: Nearness,
        promised: Promised,
        kind: str,
        condition: tuple[Schema, Holds, Callable[[Row], Any]] | None = None,
    ) -> None:
        """`condition` is what must hold of a pair: its columns, and the condition by columns and by row."""
        super().__init__(schema)
        self.sides, self.near, self.promised, self.condition = sides, near, promised, condition
        self.is_semi, self.is_anti = kind == "semi", kind == "anti"
        self.is_of_pairs = not (self.is_semi or self.is_anti)
        self._codes = self._no_codes()

    def _no_codes(self) -> GroupCodes:
        schema = self.sides[LEFT].schema
        return GroupCodes(Schema(tuple(schema.fields[i] for i in self.sides[LEFT].keys)))

    # Rows

    def process(self, port: int, batch: Batch) -> Outputs:
        """Join a batch with what the other side keeps, then keep what may still be met."""
        if not len(batch):
            return
        side, known = self.sides[port], self._bounds()
        table, times = batch.table, side.times(batch)
        keyless = self._without_key(table, side)
        if keyless is not None:  # null equals nothing
            if side.keeps:
                yield self._alone(port, table.filter(pa.array(keyless)))
            table, times = table.filter(pa.array(~keyless)), times[~keyless]
        if not len(times):
            return
        run = Run(table, times, np.zeros(len(times), np.bool_)).code(self._encode(table, side), self._codes)
        yield from self._join(port, run, known)
        yield from self._keep(port, run, known)

    def _without_key(self, table: pa.Table, side: Side) -> np.ndarray | None:
        """Which rows have a null among their keys; None if none has."""
        nulls = [table.column(i) for i in side.keys if table.column(i).null_count]
        if not nulls:
            return None
        found = np.zeros(table.num_rows, np.bool_)
        for column in nulls:
            found |= np.asarray(pc.is_null(column).to_numpy())
        return found

    def _encode(self, table: pa.Table, side: Side) -> np.ndarray:
        return self._codes.encode([table.column(i) for i in side.keys], table.num_rows)

    def _join(self, port: int, run: Run, known: Bounds) -> Outputs:
        """The pairs of a batch and the rows of the other side."""
        order = run.order
        first, last = self.near.partners(port, run.times[order])
        codes = run.codes[order]
        for number in known.runs[1 - port]:
            other = self._run(number, 1 - port)
            starts, counts = other.find(codes, first, last)
            for own, places in pairs(starts, counts, MOST):
                yield from self._met(port, run, order[own], (number, other), other.order[places])

    def _met(self, port: int, run: Run, own: np.ndarray, kept: tuple[int, Run], places: np.ndarray) -> Outputs:
        """Rows of a batch that meet rows of a run of the other side, place by place."""
        number, other = kept
        if not self.is_of_pairs and port == RIGHT:  # rows of the left that are done with are not looked at
            open_ = ~other.met[places]
            own, places = own[open_], places[open_]
        tables = (run.table, other.table) if port == LEFT else (other.table, run.table)
        if self.condition is not None and len(own):
            indices = (own, places) if port == LEFT else (places, own)
            mask, failed = self._holding(*tables, *indices)
            yield from failed
            own, places = own[mask], places[mask]
        if not len(own):
            return
        if self.is_of_pairs:
            indices = (own, places) if port == LEFT else (places, own)
            yield Batch(self.schema, table=self._paired(*tables, *indices, self.schema))
        if self.sides[port].keeps or (not self.is_of_pairs and port == LEFT):
            run.met[own] = True
        if self.sides[1 - port].keeps or (not self.is_of_pairs and port == RIGHT):
            fresh = np.unique(places[~other.met[places]])
            other.met[fresh] = True
            if len(fresh):
                self.pages.put(f"run{number}", other)
                if self.is_semi:
                    yield Batch(self.schema, table=self._renamed(other.table.take(pa.array(fresh))))

    def _keep(self, port: int, run: Run, known: Bounds) -> Outputs:
        """Keep the rows that a row to come may meet; of the others, those that come out by themselves do."""
        settled = self.near.settled(port, known.attributes[1 - port])
        open_ = run.times >= settled
        if not self.is_of_pairs and port == LEFT:
            if self.is_semi and run.met.any():
                yield Batch(self.schema, table=self._renamed(run.table.filter(pa.array(run.met))))
            open_ &= ~run.met
        if self.sides[port].keeps:
            alone = ~open_ & ~run.met
            if alone.any():
                yield self._alone(port, run.table.filter(pa.array(alone)))
        if open_.any():
            self._add(port, run if open_.all() else run.kept(open_), known)

    def _add(self, port: int, run: Run, known: Bounds) -> None:
        """Keep a run; those before it that are not larger than twice its size become one with it."""
        numbers, merged = known.runs[port], [run]
        size = len(run)
        while numbers and len(before := self._run(numbers[-1], port)) <= 2 * size:
            merged.insert(0, before)
            self.pages.delete(f"run{numbers.pop()}")
            size += len(before)
        made = joined(merged)
        numbers.append(known.next)
        self.pages.put_new(f"run{known.next}", made)
        known.next += 1
        self.pages.put("bounds", known)

    # Punctuation

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Give up what can no longer be met on the other side, then say what follows for pairs."""
        side = self.sides[port]
        if not punctuation.is_linear:
            return
        known, value = self._bounds(), punctuation.value
        is_time = punctuation.attribute == side.schema.time
        is_attribute = punctuation.attribute == side.attribute or (is_time and value == END_OF_TIME)
        moved = False
        if is_time and value > known.times[port]:
            known.times[port] = value
            moved = True
        if is_attribute and value > known.attributes[port]:
            known.attributes[port] = value
            moved = True
            yield from self._settle(1 - port, self.near.settled(1 - port, value), known)
        if moved:
            self.pages.put("bounds", known)
            yield from self._promise(known)

    def _settle(self, port: int, settled: int, known: Bounds) -> Outputs:
        """Rows of a side below a time can no longer be met: give them up."""
        kept: list[int] = []
        for number in known.runs[port]:
            run = self._run(number, port)
            if run.oldest >= settled:
                kept.append(number)
                continue
            over = run.times < settled
            if self.sides[port].keeps:
                alone = over & ~run.met
                if alone.any():
                    yield self._alone(port, run.table.filter(pa.array(alone)))
                    run.met |= alone
                    self.pages.put(f"run{number}", run)
            if run.newest < settled:
                self.pages.delete(f"run{number}")
                continue
            if run.middle < settled:
                self.pages.put(f"run{number}", run.kept(~over))
            kept.append(number)
        known.runs[port] = kept
        self._forget_keys(known)

    def _forget_keys(self, known: Bounds) -> None:
        """Make codes anew if most are of rows that are gone."""
        rows = sum(len(self._run(n, port)) for port in (LEFT, RIGHT) for n in known.runs[port])
        if len(self._codes) <= FEW_CODES + 4 * rows:
            return
        self._codes = self._no_codes()

    def _promise(self, known: Bounds) -> Outputs:
        """What holds of all that is still to come."""
        left, right = known.attributes
        settled = [self.near.settled(LEFT, right), self.near.settled(RIGHT, left)]
        frontier: Frontier = self.pages.get(PROMISES) or Frontier()
        told = [
            linear(name, bound)
            for name, bound in (
                (self.promised.time, self._time_bound(known, settled)),
                (self.promised.left, min(left, settled[LEFT])),
                (self.promised.right, min(right, settled[RIGHT])),
            )
            if name and bound > MIN_TICK
        ]
        if self.promised.left and self.promised.right and self.promised.left != self.promised.right:
            both = self.near.together(left, right)
            if MIN_TICK not in both and END_OF_TIME not in both:
                told.append(joint(**dict(zip((self.promised.left, self.promised.right), both, strict=True))))
        fresh = [promise for promise in told if frontier.add(promise)]
        if fresh:
            self.pages.put(PROMISES, frontier)
        yield from fresh

    def _time_bound(self, known: Bounds, settled: Sequence[int]) -> int:
        """No result to come starts before this."""
        of_pairs = [
            max(known.times[port], settled[1 - port] if self.sides[1 - port].on_time else MIN_TICK)
            for port in (LEFT, RIGHT)
        ]
        bound = min(of_pairs) if self.is_of_pairs else known.times[LEFT]
        for port in (LEFT, RIGHT):
            if self.sides[port].keeps or (port == LEFT and not self.is_of_pairs):
                bound = min(bound, known.times[port], self._kept_since(port, settled[port], known))
        return bound

    def _kept_since(self, port: int, settled: int, known: Bounds) -> int:
        """No row that is kept starts before this."""
        side = self.sides[port]
        if side.on_time:
            return settled
        column = side.schema.time_index
        least = [int(ticks_of(self._run(n, port).table.column(column)).min()) for n in known.runs[port]]
        return min(least, default=END_OF_TIME)

    # What comes out

    def _paired(
        self, left: pa.Table, right: pa.Table, lefts: np.ndarray, rights: np.ndarray, schema: Schema
    ) -> pa.Table:
        columns = [*left.take(pa.array(lefts)).columns, *right.take(pa.array(rights)).columns]
        at = [self.sides[LEFT].schema.time_index, left.num_columns + self.sides[RIGHT].schema.time_index]
        latest = np.maximum(ticks_of(columns[at[0]]), ticks_of(columns[at[1]]))
        columns.append(pa.array(latest).cast(schema.arrow.field(schema.time_index).type))
        return pa.Table.from_arrays(columns, schema=schema.arrow)

    def _holding(
        self, left: pa.Table, right: pa.Table, lefts: np.ndarray, rights: np.ndarray
    ) -> tuple[np.ndarray, list[Rejected]]:
        """Which pairs the condition holds for; those for which it has no value are given back."""
        assert self.condition is not None
        schema, by_column, by_single = self.condition
        batch = Batch(schema, table=self._paired(left, right, lefts, rights, schema))
        try:
            mask = by_column(batch)
        except Exception:  # some pair has no answer: each by itself
            mask = None
        if mask is not None:
            told = pc.fill_null(mask, False) if mask.null_count else mask
            return np.asarray(told.to_numpy(zero_copy_only=False), np.bool_), []
        good, failed = by_row(batch.rows, lambda row: row if by_single(row) else None)
        found = np.zeros(len(batch), np.bool_)
        found[[place for place, _ in good]] = True
        if not failed:
            return found, []
        wrong = batch.take(np.array([place for place, _ in failed]))
        return found, [Rejected("failed", wrong, (), [reason for _, reason in failed])]

    def _alone(self, port: int, table: pa.Table) -> Batch:
        """Rows without a partner: nulls take the place of one."""
        if not self.is_of_pairs:
            return Batch(self.schema, table=self._renamed(table))
        names = list(self.schema.arrow.types)
        half = len(self.sides[LEFT].schema.fields)
        others = names[half:-1] if port == LEFT else names[:half]
        nulls = [pa.nulls(table.num_rows, kind) for kind in others]
        time = table.column(self.sides[port].schema.time_index)
        columns = [*table.columns, *nulls] if port == LEFT else [*nulls, *table.columns]
        return Batch(self.schema, table=pa.Table.from_arrays([*columns, time], schema=self.schema.arrow))

    def _renamed(self, table: pa.Table) -> pa.Table:
        """Rows of the left as they are."""
        return pa.Table.from_arrays(table.columns, schema=self.schema.arrow)

    # State

    def _bounds(self) -> Bounds:
        found: Bounds | None = self.pages.get("bounds")
        return found or Bounds([MIN_TICK] * 2, [MIN_TICK] * 2, [[], []])

    def _run(self, number: int, port: int) -> Run:
        """A run that is kept, with codes by those of now."""
        run: Run = self.pages.get(f"run{number}")
        if run.coded_by is not self._codes:
            run.code(self._encode(run.table, self.sides[port]), self._codes)
        return run

    def to_plain(self, key: str, page: Any) -> Any:
        """Runs without their codes."""
        if isinstance(page, Run):
            return [page.table, page.times, page.met]
        return [page.times, page.attributes, page.runs, page.next] if isinstance(page, Bounds) else page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        if key.startswith("run"):
            table, times, met = data
            return Run(table, times, np.array(met, np.bool_))
        return Bounds(*data)
