"""OA-Join: a join of two streams that needs no order of them (thesis, chapter 7).

Each side keeps its rows that may still meet one of the other. A batch is joined with what the other side keeps when it
comes, and then kept itself; rows of which all partners have come are never kept. Punctuation of one side settles rows
of the other: no more partners of theirs come, so they are given up, and where rows without a partner come out, this is
when. Pairs come out at once and in no order.

What comes out is promised as early as the inputs allow (`promised`); what they promise of groups does the same for the
rows of these (`group_promises`).

Rows that come in large batches are kept as runs (`runs`), those that come a few at a time as they are (`loose`). In
which form runs are kept, and how partners are found among them, is decided as the inputs go (`finding`). State: the
runs and the loose rows of each side, the inputs' bounds, and what is promised of groups. In it runs are rows as they
came; indexes, and that some were packed, follow from these.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.batch import Batch, Row, table_of
from penstock.model.elements import Punctuation
from penstock.model.frontier import Frontier
from penstock.model.schema import Schema
from penstock.model.time import MIN_TICK
from penstock.model.values import canonical_row
from penstock.operators.joins.bounds import Bounds, taken
from penstock.operators.joins.finding import Finding, Form, Found, Kept
from penstock.operators.joins.forms import Condition, Forms, Side
from penstock.operators.joins.group_promises import WAITING, GroupPromises
from penstock.operators.joins.loose import Key, Loose, LooseRows
from penstock.operators.joins.nearness import LEFT, RIGHT, Nearness
from penstock.operators.joins.once import Once
from penstock.operators.joins.packed import Packed
from penstock.operators.joins.promised import Promised
from penstock.operators.joins.runs import Run, joined
from penstock.operators.joins.waiting_groups import WaitingGroups
from penstock.operators.operator import Operator, Output, Outputs, Rejected
from penstock.operators.state import PROMISES

FEW_ROWS = 32
"""A batch of no more rows is joined row by row."""
BOTH = (LEFT, RIGHT)


class OAJoin(Operator):
    """Joins two inputs."""

    ports = 2
    kind = "oa-join"
    version = 2
    """The first knew nothing of groups."""

    def __init__(
        self,
        schema: Schema,
        sides: tuple[Side, Side],
        near: Nearness,
        promised: Promised,
        kind: str,
        condition: Condition | None = None,
        form: Form = "adaptive",
        once: tuple[bool, bool] = (False, False),
    ) -> None:
        """`kind` is that of the logical join; `form` is how rows are kept, see `finding`.

        Rows of a side that meet one at most, `once`, are given up when they have (`once`).
        """
        super().__init__(schema)
        self.sides, self.near, self.promised = sides, near, promised
        self.is_semi, self.is_of_pairs = kind == "semi", kind not in ("semi", "anti")
        self.forms = Forms(schema, sides, condition)
        self.waits = [side.keeps or (port == LEFT and not self.is_of_pairs) for port, side in enumerate(sides)]
        """Of each side, whether its rows come out by themselves."""
        self.once = Once(self, once)
        self.notes = [waits or self.once.of[port] for port, waits in enumerate(self.waits)]
        """Of each side, whether it counts which of its rows have met one."""
        self.asks_all = condition is not None and condition.may_fail
        """Whether every pair is asked, so that which of them fail does not depend on who came first."""
        self.finding = Finding(sides, near, self.notes, form)
        self.groups = GroupPromises(self)

    def process(self, port: int, batch: Batch) -> Outputs:
        """Join a batch with what the other side keeps, then keep what may still be met."""
        if not len(batch):
            return
        known = self._bounds()
        yield from self._take(port, batch, known)
        if self.once.is_done(1 - port):  # rows of the other side that have met one leave
            self.once.drop(1 - port, known)
            yield from self.groups.met(port, batch, known)

    def _take(self, port: int, batch: Batch, known: Bounds) -> Outputs:
        if len(batch) <= FEW_ROWS and not batch.columnar:
            yield from self._by_rows(port, batch, known)
            return
        side, table = self.sides[port], batch.table
        self._tighten(1 - port, known)
        keyless = side.without_key(table)
        if keyless is not None:
            if side.keeps:
                yield self.forms.alone(port, table.filter(pa.array(keyless)), of_pairs=self.is_of_pairs)
            table = table.filter(pa.array(~keyless))
        if table.num_rows:
            run = self._as_run(port, table)
            wrong = yield from self._join(port, run, known)
            if not wrong.all():
                yield from self._keep(port, run.kept(~wrong) if wrong.any() else run, known)

    # Many rows

    def _as_run(self, port: int, table: pa.Table) -> Run:
        return Run(table, self.sides[port].times(table), np.zeros(table.num_rows, np.bool_))

    def _join(self, port: int, run: Run, known: Bounds) -> Generator[Output, None, np.ndarray]:
        """The pairs of a batch and the runs of the other side; which rows have failed, and are not to be kept."""
        others = [(number, self._run(number)) for number in known.runs[1 - port]]
        found: Iterable[Found] = self.finding.found(port, run, others)
        wrong = np.zeros(len(run), np.bool_)
        if self.once.of[1 - port]:  # a row that fails is in no pair, so all are looked for before any comes out
            found, wrong, told = self.once.sound(port, run, list(found))
            yield from told
        for each in found:
            yield from self._met(port, run, each)
        return wrong

    def _met(self, port: int, run: Run, found: Found) -> Outputs:
        """Rows of a batch that meet rows of a run of the other side, place by place."""
        number, other, own, places = found
        if not self.is_of_pairs and port == RIGHT and not self.asks_all:  # rows that are done with are not looked at
            open_ = ~other.met[places]
            own, places = own[open_], places[open_]
        sides: tuple[Kept, Kept] = (run, other) if port == LEFT else (other, run)
        if self.forms.condition is not None and len(own):
            mask, failed = self.forms.holding(sides, (own, places) if port == LEFT else (places, own))
            yield from failed
            own, places = own[mask], places[mask]
        if not len(own):
            return
        if self.is_of_pairs:
            yield self.forms.pairs(sides, (own, places) if port == LEFT else (places, own))
        if self.notes[port]:
            run.met[own] = True
        if self.notes[1 - port]:
            fresh = np.unique(places[~other.met[places]])
            other.met[fresh] = True
            if len(fresh):
                self.pages.put(f"run{number}", other)
                if self.is_semi and port == RIGHT:
                    yield self.forms.of_left(other.chosen(fresh))

    def _keep(self, port: int, run: Run, known: Bounds) -> Outputs:
        """Keep the rows that a row to come may meet; of the others, those that come out by themselves do."""
        settled = self.near.settled(port, known.attributes[1 - port])
        open_ = run.times >= self.groups.settled_rows(port, run.table, settled)
        if not self.is_of_pairs and port == LEFT:
            if self.is_semi and run.met.any():
                yield self.forms.of_left(run.table.filter(pa.array(run.met)))
            if not self.asks_all:
                open_ &= ~run.met
        if self.once.of[port]:
            open_ &= ~run.met
        if self.sides[port].keeps:
            alone = ~open_ & ~run.met
            if alone.any():
                yield self.forms.alone(port, run.table.filter(pa.array(alone)), of_pairs=self.is_of_pairs)
        if open_.any():
            self._add(port, run if open_.all() else run.kept(open_), known)

    def _add(self, port: int, run: Run, known: Bounds) -> None:
        """Keep a run; those before it that are not larger than twice its size become one with it.

        Runs that would then be of a long time stay apart, since they are given up, and looked at, one by one.
        """
        numbers, merged = known.runs[port], list[Kept]([run])
        batch, size, oldest, newest = run.newest - run.oldest, len(run), run.oldest, run.newest
        since = self._run(numbers[0]).oldest if numbers else oldest
        room = max(self.near.width // 8, (newest - since) // 16)
        while numbers and len(before := self._run(numbers[-1])) <= 2 * size:
            longest = max(newest - oldest, before.newest - before.oldest)
            oldest, newest = min(oldest, before.oldest), max(newest, before.newest)
            if newest - oldest > max(room, longest + longest // 2):
                break
            merged.insert(0, before)
            self.pages.delete(f"run{numbers.pop()}")
            size += len(before)
        whole = joined(merged, self.sides[port].times) if len(merged) > 1 else run
        made = self.finding.kept(port, whole, known.attributes[1 - port], batch)
        numbers.append(known.next)
        self.pages.put_new(f"run{known.next}", made)
        known.next += 1
        self.pages.put("bounds", known)

    def _tighten(self, port: int, known: Bounds) -> None:
        """Make a run of the loose rows of a side."""
        loose = list(self._loose(port))
        if loose:
            run = self._as_run(port, table_of(self.sides[port].schema, [each.row for each in loose]))
            run.met[:] = [each.met for each in loose]
            self.pages.delete(f"loose{port}")
            self._add(port, run, known)

    # A few rows

    def _by_rows(self, port: int, batch: Batch, known: Bounds) -> Outputs:
        """The same of a few rows, one by one: with the other side's loose rows, and with its runs if there are any."""
        side, made = self.sides[port], list[Output]()
        rows = [(row, self._key(side, row)) for row in batch.rows]
        met, gone = [False] * len(rows), set[int]()
        sound = [at for at, (_, key) in enumerate(rows) if key is not None]
        if known.runs[1 - port] and sound:
            run = self._as_run(port, table_of(side.schema, [rows[at][0] for at in sound]))
            wrong = yield from self._join(port, run, known)
            for at, is_met in zip(sound, run.met.tolist(), strict=True):
                met[at] = is_met
            gone = {at for at, is_wrong in zip(sound, wrong.tolist(), strict=True) if is_wrong}
        out: list[Row] = []
        settled = self.near.settled(port, known.attributes[1 - port])
        attribute, own = side.schema.index(side.attribute), self._loose(port)
        for at, (row, key) in enumerate(rows):
            if at in gone:
                continue
            time: int = row[attribute]  # type: ignore[assignment]
            over = settled
            if key is not None:
                met[at] |= self._meet(port, row, self._found(port, key, time), out, made)
                over = self.groups.settled(port, key, settled)
            self._place(port, (time, key, row), met[at], over, own, out)
        if len(own):
            self.pages.put(f"loose{port}", own)
        yield from made
        if out:
            yield Batch(self.schema, out)

    @staticmethod
    def _key(side: Side, row: Row) -> Key | None:
        """What a row is found by; None where it equals nothing."""
        key = canonical_row(tuple([row[i] for i in side.keys]))
        return None if None in key else key

    def _found(self, port: int, key: Key, time: int) -> Sequence[Loose]:
        first, last = self.near.partners(port, time)  # type: ignore[arg-type]
        return self._loose(1 - port).find(key, first, last)  # type: ignore[arg-type]

    def _meet(self, port: int, row: Row, found: Sequence[Loose], out: list[Row], failed: list[Output]) -> bool:
        """Whether a row meets one of those that are near and equal; what comes of it is added to `out`."""
        is_met = False
        for partner in found:
            done = partner.met and not self.is_of_pairs and port == RIGHT
            if done and not self.asks_all:
                continue
            pair = self.forms.pair(row, partner.row) if port == LEFT else self.forms.pair(partner.row, row)
            held = self.forms.holds(pair)
            if isinstance(held, Rejected):
                failed.append(held)
            elif held:
                is_met = True
                if self.is_of_pairs:
                    out.append(pair)
                elif self.is_semi and port == RIGHT and not done:
                    out.append(partner.row)
                if self.notes[1 - port]:
                    partner.met = True
        if is_met and self.notes[1 - port]:
            kept = self._loose(1 - port)
            if self.once.of[1 - port]:
                kept.drop([partner for partner in found if partner.met])
            self._put_loose(1 - port, kept)
        return is_met

    def _place(
        self, port: int, kept: tuple[int, Key | None, Row], met: bool, settled: int, own: LooseRows, out: list[Row]
    ) -> None:
        """Keep a row that may still be met, or give it out if that is all that comes of it."""
        time, key, row = kept
        is_done = not self.is_of_pairs and port == LEFT and met
        if is_done and self.is_semi:
            out.append(row)
        if (is_done and not self.asks_all) or (met and self.once.of[port]):
            return
        if key is not None and time >= settled:
            own.add(time, key, row, met=met and self.notes[port])
        elif self.sides[port].keeps and not met:
            out.append(self.forms.alone_row(port, row, of_pairs=self.is_of_pairs))

    # Punctuation

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Give up what can no longer be met on the other side, then say what follows for pairs."""
        known, settled = self._bounds(), MIN_TICK
        if not punctuation.is_linear:
            yield from self.groups.take(port, punctuation, known)
            return
        heard = taken(known, self.sides[port], port, punctuation)
        if heard.settles:
            settled = self.near.settled(1 - port, known.attributes[port])
            yield from self._settle(1 - port, settled, known)
        if heard.moved:
            self.pages.put("bounds", known)
            yield from self._promise(known)
            yield from self.groups.gave_up(1 - port, settled, known)

    def _settle(self, port: int, settled: int, known: Bounds) -> Outputs:
        """Rows of a side below a time can no longer be met: give them up."""
        yield from self._settle_loose(port, settled)
        kept: list[int] = []
        for number in known.runs[port]:
            run = self._run(number)
            if run.oldest >= settled:
                kept.append(number)
                continue
            over = run.times < settled
            if self.sides[port].keeps:
                alone = over & ~run.met
                if alone.any():
                    yield self.forms.alone(port, run.chosen(np.flatnonzero(alone)), of_pairs=self.is_of_pairs)
                    run.met |= alone
                    self.pages.put(f"run{number}", run)
            if run.newest < settled:
                self.pages.delete(f"run{number}")
                continue
            if run.middle < settled:
                self.pages.put(f"run{number}", run.kept(~over))
            kept.append(number)
        known.runs[port] = kept
        self.once.drop(port, known)

    def _settle_loose(self, port: int, settled: int) -> Outputs:
        loose = self._loose(port)
        if loose.least() >= settled:
            return
        yield from self._gave_up_loose(port, loose, list(loose.give_up(settled)))

    def _gave_up_loose(self, port: int, loose: LooseRows, gone: list[Loose]) -> Outputs:
        """Loose rows were taken out: those come out that have had no partner, where they do."""
        self._put_loose(port, loose)
        alone = [each.row for each in gone if not each.met] if self.sides[port].keeps else []
        if alone:
            made = [self.forms.alone_row(port, row, of_pairs=self.is_of_pairs) for row in alone]
            yield Batch(self.schema, made)

    def _promise(self, known: Bounds) -> Outputs:
        """What holds of all that is still to come, as far as it says something new."""
        settled = [self.near.settled(port, known.attributes[1 - port]) for port in BOTH]
        kept = [self.groups.kept.since(port, settled[port], known) if self.waits[port] else None for port in BOTH]
        frontier: Frontier = self.pages.get(PROMISES) or Frontier()
        told = self.promised.of(self.near, known.times, known.attributes, kept)
        fresh = [promise for promise in told if frontier.add(promise)]
        if fresh:
            self.pages.put(PROMISES, frontier)
        yield from fresh

    # State

    def rows_held(self) -> int:
        """How many rows are kept, of both sides."""
        runs = [len(self._run(number)) for numbers in self._bounds().runs for number in numbers]
        return sum(runs) + sum(len(self._loose(port)) for port in BOTH)

    def _bounds(self) -> Bounds:
        found: Bounds | None = self.pages.get("bounds")
        return found or Bounds([MIN_TICK] * 2, [MIN_TICK] * 2, [[], []])

    def _loose(self, port: int) -> LooseRows:
        found: LooseRows | None = self.pages.get(f"loose{port}")
        return LooseRows() if found is None else found

    def _put_loose(self, port: int, loose: LooseRows) -> None:
        if len(loose):
            self.pages.put(f"loose{port}", loose)
        else:
            self.pages.delete(f"loose{port}")

    def _run(self, number: int) -> Kept:
        """A run that is kept."""
        found: Kept = self.pages.get(f"run{number}")
        return found

    def to_plain(self, key: str, page: Any) -> Any:
        """Runs as they came: neither packed, nor with their indexes."""
        if isinstance(page, Run | Packed | LooseRows | WaitingGroups):
            return page.to_plain()
        return [page.times, page.attributes, page.runs, page.next] if isinstance(page, Bounds) else page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        if key.startswith("run"):
            table, times, met = data
            return Run(table, times, np.array(met, np.bool_))
        if key == WAITING:
            return WaitingGroups.from_plain(data)
        return LooseRows.from_plain(data) if key.startswith("loose") else Bounds(*data)
