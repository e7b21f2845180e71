"""MJoin: an inner join of several streams in one operator, which keeps their rows and no intermediate results.

A batch of one stream looks for partners in the others, one after the other, in the order in which it meets fewest
(`probing`): by the columns that are equal to some that are joined so far, and by the times that are near enough to all
of those (`reach`). Conditions are asked as soon as all that they speak of is there. What is left in the end comes out,
at once and in no order, and the batch is kept. A row is given up once no row that is still to come can meet it, of any
other stream; it is kept longer than in a tree of joins, where its pairs are kept instead.

Rows that come a few at a time look among loose ones, larger batches into runs (`multi_kept`): loose rows become runs
before, and runs loose rows once a few have looked there so often that it pays. State: the rows of each stream, what was
measured, and the inputs' bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.batch import Batch, Row, rows_of, table_of
from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.model.values import canonical_row
from penstock.operators.joins.bounds import taken
from penstock.operators.joins.forms import Side
from penstock.operators.joins.keys import KeyRows
from penstock.operators.joins.multi_forms import MultiForms
from penstock.operators.joins.multi_kept import LooseInput, MultiRun, runs_joined
from penstock.operators.joins.probing import Measure, Probing, Step
from penstock.operators.joins.reach import MultiPromised, Reach
from penstock.operators.operator import Operator, Outputs
from penstock.operators.state import PROMISES

FEW_ROWS = 32
"""A batch of no more rows is joined row by row."""
MELTING = 64
"""Runs become loose rows once a few rows looked there for every so many of theirs."""
MOST = 1 << 18
"""About so many results are looked up at once."""


@dataclass
class MultiBounds:
    """What each input has promised, and the numbers of the runs of each."""

    times: list[int]
    attributes: list[int]
    runs: list[list[int]]
    next: int = 0
    few: int = 0
    """How many rows looked into runs by themselves since the last larger batch."""


@dataclass(frozen=True)
class Partial:
    """Rows of some inputs that meet, place by place: of each input where its rows are, and their times."""

    places: dict[int, np.ndarray]
    times: dict[int, np.ndarray]

    @property
    def joined(self) -> frozenset[int]:
        """The inputs."""
        return frozenset(self.places)

    def __len__(self) -> int:
        """How many there are."""
        return len(next(iter(self.places.values())))

    def taken(self, at: np.ndarray) -> Partial:
        """Some of them."""
        return Partial({i: p[at] for i, p in self.places.items()}, {i: t[at] for i, t in self.times.items()})

    def beside(self, other: int, places: np.ndarray, times: np.ndarray) -> Partial:
        """With rows of another input."""
        return Partial({**self.places, other: places}, {**self.times, other: times})


def both(parts: Sequence[Partial]) -> Partial:
    """Several as one."""
    if len(parts) == 1:
        return parts[0]
    joined = parts[0].places
    return Partial(
        {i: np.concatenate([part.places[i] for part in parts]) for i in joined},
        {i: np.concatenate([part.times[i] for part in parts]) for i in joined},
    )


class MultiJoinOperator(Operator):
    """Joins several inputs."""

    kind = "mjoin"

    def __init__(
        self, forms: MultiForms, sides: tuple[Side, ...], probing: Probing, reach: Reach, promised: MultiPromised
    ) -> None:
        """The keys of a side are its columns that equal nothing where they are null."""
        super().__init__(forms.schema)
        self.ports = len(sides)
        self.forms, self.sides, self.probing, self.reach, self.promised = forms, sides, probing, reach, promised
        self._attributes = [side.schema.index(side.attribute) for side in sides]

    def process(self, port: int, batch: Batch) -> Outputs:
        """Join a batch with what the other inputs keep, then keep what may still be met."""
        if not len(batch):
            return
        known = self._bounds()
        self.probing.measures = self.pages.get("measures") or {}
        yield from self._processed(port, batch, known)
        if self.probing.measures:
            self.pages.put("measures", self.probing.measures)

    def _processed(self, port: int, batch: Batch, known: MultiBounds) -> Outputs:
        if len(batch) <= FEW_ROWS and not batch.columnar and self._melts(len(batch), known):
            out = self._by_rows(port, batch.rows, known)
            if out:
                yield Batch(self.schema, out)
            return
        side, table = self.sides[port], batch.table
        keyless = side.without_key(table)
        if keyless is not None:
            table = table.filter(pa.array(~keyless))
        if table.num_rows:
            self._tighten(known)
            run = MultiRun(table, side.times(table))
            yield from self._join(port, run, known)
            self._keep(port, run, known)

    # Many rows

    def _join(self, port: int, run: MultiRun, known: MultiBounds) -> Outputs:
        held = [[self._run(number) for number in numbers] for numbers in known.runs]
        if any(not runs for at, runs in enumerate(held) if at != port):
            return
        held[port] = [run]
        tables = [pa.concat_tables([each.table for each in runs]) for runs in held]
        first = Partial({port: np.arange(len(run))}, {port: run.times})
        for found in self._extended(first, tables, held):
            yield Batch(self.schema, table=self.forms.table(tables, found.places))

    def _extended(
        self, partial: Partial, tables: Sequence[pa.Table], held: Sequence[Sequence[MultiRun]]
    ) -> Iterator[Partial]:
        """What results of some inputs come to with all of them."""
        joined = partial.joined
        if not len(partial):
            return
        if len(joined) == self.ports:
            yield partial
            return
        step = self.probing.next(joined)
        found: list[Partial] = []
        size = total = 0
        for part in self._looked_up(partial, step, tables, held[step.other]):
            found.append(part)
            size, total = size + len(part), total + len(part)
            if size >= MOST:
                yield from self._extended(self._asked(both(found), joined, tables), tables, held)
                found, size = [], 0
        self.probing.told(joined, step.other, len(partial), total)
        if found:
            yield from self._extended(self._asked(both(found), joined, tables), tables, held)

    def _looked_up(
        self, partial: Partial, step: Step, tables: Sequence[pa.Table], runs: Sequence[MultiRun]
    ) -> Iterator[Partial]:
        """The results with each row of the next input that they meet."""
        first, last = self.reach.span(list(partial.times.items()), step.other)
        low, high = int(first.min()), int(last.max())
        keys: KeyRows | None = None
        offset = 0
        for run in runs:
            if run.newest >= low and run.oldest <= high:
                if keys is None:
                    keys = self._keys(partial, step, tables)
                for own, places in run.index(step.columns).partners(keys, first, last, MOST):
                    if len(own):
                        yield partial.taken(own).beside(step.other, places + offset, run.times[places])
            offset += len(run)

    @staticmethod
    def _keys(partial: Partial, step: Step, tables: Sequence[pa.Table]) -> KeyRows:
        """What of the results is to equal the columns of the next input."""
        parts = []
        for at, place in step.sources:
            column = tables[at].select([place]).take(pa.array(partial.places[at]))
            parts += KeyRows.of(column, [0]).parts
        return KeyRows(len(partial), parts)

    def _asked(self, partial: Partial, before: frozenset[int], tables: Sequence[pa.Table]) -> Partial:
        """Those for which the conditions hold that can be asked now."""
        for condition in self.forms.due(before, partial.joined):
            if not len(partial):
                break
            mask = condition.holds(tables, partial.places)
            if not mask.all():
                partial = partial.taken(np.flatnonzero(mask))
        return partial

    def _keep(self, port: int, run: MultiRun, known: MultiBounds) -> None:
        """Keep the rows that a row to come may meet; runs before that are not larger than twice the size become one."""
        open_ = run.times >= self.reach.settled(port, known.attributes)
        if not open_.any():
            return
        merged = [run if open_.all() else MultiRun(run.table.filter(pa.array(open_)), run.times[open_])]
        numbers, size = known.runs[port], len(merged[0])
        while numbers and len(before := self._run(numbers[-1])) <= 2 * size:
            merged.insert(0, before)
            self.pages.delete(f"run{numbers.pop()}")
            size += len(before)
        numbers.append(known.next)
        self.pages.put_new(f"run{known.next}", runs_joined(merged, self.sides[port]))
        known.next += 1
        known.few = 0
        self.pages.put("bounds", known)

    def _tighten(self, known: MultiBounds) -> None:
        """Make runs of loose rows."""
        for port, side in enumerate(self.sides):
            loose = self._loose(port)
            if len(loose):
                self.pages.delete(f"loose{port}")
                table = table_of(side.schema, list(loose))
                self._keep(port, MultiRun(table, side.times(table)), known)

    # A few rows

    def _melts(self, size: int, known: MultiBounds) -> bool:
        """Whether a few rows can look among loose ones: there are no runs, or they have become loose rows."""
        runs = [(port, number) for port, numbers in enumerate(known.runs) for number in numbers]
        if not runs:
            return True
        known.few += size
        self.pages.put("bounds", known)
        if known.few * MELTING < sum(len(self._run(number)) for _, number in runs):
            return False
        for port, number in runs:
            loose = self._loose(port)
            for row in rows_of(self._run(number).table):
                loose.add(row[self._attributes[port]], row)  # type: ignore[arg-type]
            self.pages.put(f"loose{port}", loose)
            self.pages.delete(f"run{number}")
        known.runs, known.few = [[] for _ in self.sides], 0
        return True

    def _by_rows(self, port: int, rows: Sequence[Row], known: MultiBounds) -> list[Row]:
        """The results of a few rows, one by one, each of which is then kept."""
        out: list[Row] = []
        held = [self._loose(at) for at in range(self.ports)]
        settled = self.reach.settled(port, known.attributes)
        side, at = self.sides[port], self._attributes[port]
        before = len(held[port])
        for row in rows:
            if None in [row[i] for i in side.keys]:
                continue
            time: int = row[at]  # type: ignore[assignment]
            self._extend_row({port: row}, {port: time}, held, out)
            if time >= settled and settled != END_OF_TIME:
                held[port].add(time, row)
        if len(held[port]) > before:
            self.pages.put(f"loose{port}", held[port])
        return out

    def _extend_row(
        self, rows: dict[int, Row], times: dict[int, int], held: Sequence[LooseInput], out: list[Row]
    ) -> None:
        joined = frozenset(rows)
        if len(joined) == self.ports:
            out.append(self.forms.row(rows))
            return
        step = self.probing.next(joined)
        first, last = self.reach.span_of_row(list(times.items()), step.other)
        key = canonical_row(tuple([rows[at][place] for at, place in step.sources]))
        found = held[step.other].find(step.columns, key, first, last)
        self.probing.told(joined, step.other, 1, len(found))
        for time, _, row in found:
            more = {**rows, step.other: row}
            if all(condition.holds_for(more) for condition in self.forms.due(joined, frozenset(more))):
                self._extend_row(more, {**times, step.other: time}, held, out)

    # Punctuation

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Give up what can no longer be met in the other inputs, then say what follows for results."""
        known = self._bounds()
        heard = taken(known, self.sides[port], port, punctuation)
        if not heard.moved:
            return
        self.pages.put("bounds", known)
        if heard.settles:
            for other in range(self.ports):
                if other != port:
                    self._settle(other, self.reach.settled(other, known.attributes), known)
        yield from self._promise(known)

    def _settle(self, port: int, settled: int, known: MultiBounds) -> None:
        """Rows of an input below a time can no longer be met: give them up."""
        loose = self._loose(port)
        if len(loose) and loose.give_up(settled):
            if len(loose):
                self.pages.put(f"loose{port}", loose)
            else:
                self.pages.delete(f"loose{port}")
        kept: list[int] = []
        for number in known.runs[port]:
            run = self._run(number)
            left = None if settled == END_OF_TIME else run.since(settled)
            if left is None:
                self.pages.delete(f"run{number}")
                continue
            if left is not run:
                self.pages.put(f"run{number}", left)
            kept.append(number)
        if kept != known.runs[port]:
            known.runs[port] = kept
            self.pages.put("bounds", known)

    def _promise(self, known: MultiBounds) -> Outputs:
        """What holds of all that is still to come, as far as it says something new."""
        frontier: Frontier = self.pages.get(PROMISES) or Frontier()
        told = self.promised.of(self.reach, known.times, known.attributes)
        fresh = [promise for promise in told if frontier.add(promise)]
        if fresh:
            self.pages.put(PROMISES, frontier)
        yield from fresh

    # State

    def rows_held(self) -> int:
        """How many rows are kept, of all inputs."""
        runs = [self._run(number) for numbers in self._bounds().runs for number in numbers]
        return sum(map(len, runs)) + sum(len(self._loose(port)) for port in range(self.ports))

    def _bounds(self) -> MultiBounds:
        found: MultiBounds | None = self.pages.get("bounds")
        size = self.ports
        return found or MultiBounds([MIN_TICK] * size, [MIN_TICK] * size, [[] for _ in range(size)])

    def _loose(self, port: int) -> LooseInput:
        found: LooseInput | None = self.pages.get(f"loose{port}")
        return LooseInput() if found is None else found

    def _run(self, number: int) -> MultiRun:
        found: MultiRun = self.pages.get(f"run{number}")
        return found

    def to_plain(self, key: str, page: Any) -> Any:
        """Runs without their indexes."""
        match page:
            case MultiRun():
                return [page.table, page.times]
            case LooseInput():
                return list(page)
            case MultiBounds():
                return [page.times, page.attributes, page.runs, page.next, page.few]
            case dict():
                told = [(sorted(joined), other, m.looked, m.found, m.used) for (joined, other), m in page.items()]
                return sorted(told)
            case _:
                return page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        if key.startswith("run"):
            return MultiRun(data[0], np.asarray(data[1]))
        if key.startswith("loose"):
            at = self._attributes[int(key.removeprefix("loose"))]
            return LooseInput((row[at], tuple(row)) for row in data)
        if key == "measures":
            return {(frozenset(joined), other): Measure(*rest) for joined, other, *rest in data}
        return MultiBounds(*data)
