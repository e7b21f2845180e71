"""Window aggregation over columns: panes of numbers, windows from panes, the same work per row for any RANGE/SLIDE.

Two levels, as in Gigascope: a batch is brought down to one number per pane, group and measure with a few array
operations; rows that come one at a time are first gathered in a small table. When windows close, a total slides over
the panes: measures that can be taken out again are added and taken out; for the others (extremes, floating point sums)
two stacks are kept, the panes that leave first with the combination of everything after them, and one combination of
those that entered since. Either way a window costs a few array operations over the groups, amortised.

State: one page per pane (groups and numbers), one per pane of the leaving stack, one for the codes of groups, one for
the rest.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.algorithms.aggregates.group_codes import GroupCodes, Key
from penstock.algorithms.aggregates.measures import SAFE, Array, Measure, Result, values_of
from penstock.algorithms.operator import BoundMemory, Operator, Outputs
from penstock.algorithms.windows.sliding import Sliding
from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.model.values import canonical

MIN_COLUMNAR = 32
MAX_PENDING = 50_000
SPARE_CODES = 1024
"""So many codes of dead groups, and as many again as are alive, may wait before living ones are renumbered."""
Pane = tuple[Array, list[Array]]
"""The codes of the groups in a pane, ascending, and per measure their numbers."""


@dataclass
class Slide:
    """What slides from window to window."""

    panes: list[int] = field(default_factory=list)
    """The panes, ascending, that have something in them and are not given up."""
    closed: int | None = None
    """The first window not yet put out."""
    inside: list[int] = field(default_factory=list)
    """The panes in the total."""
    totals: dict[int, Array] = field(default_factory=dict)
    """Per measure that can be taken out: the total over `inside`."""
    entered: dict[int, Array] = field(default_factory=dict)
    """Per other measure: the combination of the panes since `turned`."""
    turned: int | None = None
    """Panes before this one are in the leaving stack."""
    holders: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """Per group: in how many panes it is."""
    weights: dict[int, int] = field(default_factory=dict)
    """No sum of integers over living panes can be greater than these together; each goes with the pane it is under."""


class ColumnarAggregate(Operator):
    """A windowed aggregate whose measures are numbers."""

    def __init__(
        self,
        schema: Schema,
        window: Sliding,
        keys: tuple[int, ...],
        key_schema: Schema,
        measures: tuple[Measure, ...],
        results: tuple[Result, ...],
    ) -> None:
        """`schema` is that of the results, `keys` are positions in the input, measures and results go together."""
        super().__init__(schema)
        self.window, self.keys, self.key_schema = window, keys, key_schema
        self.measures, self.results = measures, results
        self.passed_on = BoundMemory()
        self._codes: GroupCodes | None = None
        self._kept_codes = 0

    def attach(self, pages: Any) -> None:
        """Other pages hold other groups."""
        super().attach(pages)
        self._codes = None

    @property
    def codes(self) -> GroupCodes:
        """The codes of the groups, from their page on first use."""
        if self._codes is None:
            self._codes = GroupCodes(self.key_schema, self.pages.get("keys") or ())
            self._kept_codes = len(self._codes)
        return self._codes

    # Taking rows

    def process(self, port: int, batch: Batch) -> Outputs:
        """Bring the batch down to numbers per pane and group."""
        if batch.columnar and len(batch) >= MIN_COLUMNAR:
            self._take_columns(batch)
        else:
            self._take_rows(batch)
        return ()

    def _take_rows(self, batch: Batch) -> None:
        pending: dict[tuple[int, Key], list[Any]] = self.pages.get("pending") or {}
        time = batch.schema.time_index
        origin, length = self.window.origin, self.window.pane
        keys = self.keys
        for row in batch.rows:
            slot = ((row[time] - origin) // length, tuple([canonical(row[i]) for i in keys]))  # type: ignore[operator]
            numbers = pending.get(slot)
            if numbers is None:
                pending[slot] = numbers = [None] * len(self.measures)
            self._add_row(numbers, row)
        self.pages.put("pending", pending)
        if len(pending) > MAX_PENDING:
            self._settle()

    def _add_row(self, numbers: list[Any], row: Sequence[Any]) -> None:
        for at, measure in enumerate(self.measures):
            if measure.column is None:
                numbers[at] = (numbers[at] or 0) + 1
                continue
            value = row[measure.column]
            if value is None:
                continue
            before = numbers[at]
            match measure.kind:
                case "count":
                    numbers[at] = (before or 0) + 1
                case "sum":
                    numbers[at] = value if before is None else before + value
                case "min":
                    numbers[at] = (
                        value if before is None else np.fmin(before, value) if measure.is_float else min(before, value)
                    )
                case _:
                    numbers[at] = (
                        value
                        if before is None
                        else np.maximum(before, value)
                        if measure.is_float
                        else max(before, value)
                    )

    def _settle(self) -> None:
        """Move what was gathered row by row into the panes."""
        pending: dict[tuple[int, Key], list[Any]] = self.pages.get("pending") or {}
        if not pending:
            return
        state = self._state()
        by_pane: dict[int, list[tuple[int, list[Any]]]] = {}
        for (pane, key), numbers in pending.items():
            by_pane.setdefault(pane, []).append((self.codes.code(key), numbers))
        for pane, entries in by_pane.items():
            entries.sort(key=lambda entry: entry[0])
            arrays: list[Array] = []
            for at, measure in enumerate(self.measures):
                raw = [measure.identity if numbers[at] is None else numbers[at] for _, numbers in entries]
                if measure.kind == "sum" and not measure.is_float:
                    self._weigh(state, pane, sum(abs(v) for v in raw))
                arrays.append(np.array(raw, object if self._is_wide(state, measure) else measure.dtype))
            self._put_in_pane(state, pane, np.array([code for code, _ in entries], np.int64), arrays)
        self.pages.delete("pending")
        self._save(state)

    def _take_columns(self, batch: Batch) -> None:
        state = self._state()
        panes = self.window.panes_of(batch.times())
        first = int(panes.min())
        codes = self.codes.encode([batch.table.column(i) for i in self.keys], len(batch))
        groups = len(self.codes)
        present, slots = _compress(panes - first)
        slots = slots * groups + codes
        size = len(present) * groups
        cells: Array | None = None
        if size > max(4 * len(batch), 1 << 20):
            cells, slots = np.unique(slots, return_inverse=True)
            size = len(cells)
        gathered = self._gather(batch, slots, size, state, int(present[-1]) + first)
        if cells is None:
            cells = np.flatnonzero(gathered[0])
            gathered = [g[cells] for g in gathered]
        edges = np.searchsorted(cells, np.arange(len(present) + 1) * groups)
        for at, pane in enumerate((present + first).tolist()):
            lo, hi = int(edges[at]), int(edges[at + 1])
            self._put_in_pane(state, pane, cells[lo:hi] - at * groups, [g[lo:hi] for g in gathered])
        self._save(state)

    def take_panes(self, panes: Array, keys: Sequence[pa.ChunkedArray], numbers: Sequence[Array]) -> None:
        """Take numbers that were brought down elsewhere: one entry per pane and group, and per measure its numbers."""
        if not len(panes):
            return
        state = self._state()
        codes = self.codes.encode(keys, len(panes))
        order = np.lexsort((codes, panes))
        panes, codes = panes[order], codes[order]
        present, starts = np.unique(panes, return_index=True)
        edges = [*starts.tolist(), len(panes)]
        sorted_numbers = [n[order] for n in numbers]
        for pane, lo, hi in zip(present.tolist(), edges, edges[1:], strict=False):
            self._put_in_pane(state, pane, codes[lo:hi], [n[lo:hi] for n in sorted_numbers])
        self._save(state)

    def _gather(self, batch: Batch, slots: Array, size: int, state: Slide, last: int) -> list[Array]:
        """The numbers of a batch, whose last pane is `last`."""
        columns: dict[int, tuple[Array, Array | None]] = {}
        for measure in self.measures:
            if measure.column is not None and measure.column not in columns:
                columns[measure.column] = values_of(batch, measure.column)
        for measure in self.measures:
            if measure.kind == "sum" and not measure.is_float:
                values = columns[measure.column][0]  # type: ignore[index]
                self._weigh(state, last, max(abs(int(values.min())), abs(int(values.max()))) * len(values))
        rows = self.measures[0].gather(slots, size, None, None, wide=False)
        gathered = [rows]
        for measure in self.measures[1:]:
            values, valid = columns[measure.column]  # type: ignore[index]
            if measure.kind == "count" and valid is None:
                gathered.append(rows)
            else:
                wide = self._is_wide(state, measure)
                gathered.append(measure.gather(slots, size, values, valid, wide=wide))
        return gathered

    @staticmethod
    def _weigh(state: Slide, pane: int, weight: int) -> None:
        state.weights[pane] = state.weights.get(pane, 0) + weight

    @staticmethod
    def _is_wide(state: Slide, measure: Measure) -> bool:
        """Whether 64 bits might not hold a sum."""
        return measure.kind == "sum" and not measure.is_float and sum(state.weights.values()) >= SAFE

    def _put_in_pane(self, state: Slide, pane: int, codes: Array, numbers: list[Array]) -> None:
        before: Pane | None = self.pages.get(f"p{pane}")
        fresh = codes
        if before is None:
            at = bisect_left(state.panes, pane)
            state.panes.insert(at, pane)
        else:
            fresh = np.setdiff1d(codes, before[0], assume_unique=True)
            codes, numbers = self._merge(before, (codes, numbers))
        state.holders = _sized(state.holders, len(self.codes))
        state.holders[fresh] += 1
        self.pages.put(f"p{pane}", (codes, numbers))

    def _merge(self, left: Pane, right: Pane) -> Pane:
        if len(left[0]) == len(right[0]) and np.array_equal(left[0], right[0]):
            return left[0], [m.combine(a, b) for m, a, b in zip(self.measures, left[1], right[1], strict=True)]
        codes = np.union1d(left[0], right[0])
        at_left, at_right = np.searchsorted(codes, left[0]), np.searchsorted(codes, right[0])
        merged = []
        for measure, a, b in zip(self.measures, left[1], right[1], strict=True):
            total = np.full(len(codes), measure.identity, np.result_type(a, b))
            total[at_left] = a
            total[at_right] = measure.combine(total[at_right], b)
            merged.append(total)
        return codes, merged

    # Putting windows out

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Put out the windows that the bound closes, give up their panes, pass the bound on as one on window ends."""
        if not punctuation.is_linear:
            return
        bound = punctuation.value
        self._settle()
        table = self._close(bound)
        if table is not None and table.num_rows:
            yield Batch(self.schema, table=table)
        out = END_OF_TIME if bound == END_OF_TIME else self.window.output_bound(bound)
        if self.passed_on.advance(self.pages, out):
            yield self.output_bound(out)

    def _close(self, bound: int) -> pa.Table | None:
        state = self._state()
        if not state.panes:
            return None
        last = self.window.last_of_pane(state.panes[-1])
        first_open = last + 1 if bound == END_OF_TIME else self.window.first(bound)
        if state.closed is not None and first_open <= state.closed:
            return None
        with np.errstate(invalid="ignore"):  # infinities may meet: the sum is NaN, as it should be
            emitted = list(self._windows(state, min(first_open, last + 1)))
        table = self._table(emitted) if emitted else None
        state.closed = first_open if state.closed is None else max(state.closed, first_open)
        self._give_up(state, self.window.first_pane(first_open))
        self._save(state)
        return table

    def _windows(self, state: Slide, end: int) -> Iterator[tuple[int, Array, list[Array]]]:
        """Each window that has groups: its id, the codes of its groups, the measures of these."""
        wid = self.window.first_of_pane(state.panes[0])
        if state.closed is not None:
            wid = max(wid, state.closed)
        while wid < end:
            lo = bisect_left(state.panes, self.window.first_pane(wid))
            hi = bisect_left(state.panes, self.window.end_pane(wid))
            if lo == hi:
                wid = max(wid + 1, self.window.first_of_pane(state.panes[hi])) if hi < len(state.panes) else end
                continue
            numbers = self._advance(state, state.panes[lo:hi])
            groups = np.flatnonzero(numbers[0])
            yield wid, groups, [n[groups] for n in numbers]
            wid += 1

    def _advance(self, state: Slide, panes: list[int]) -> list[Array]:
        """The numbers of the window that holds these panes, from those of the window before."""
        size = len(self.codes)
        self._size(state, size)
        before, now = set(state.inside), set(panes)
        for pane in state.inside:
            if pane not in now:
                self._leave(state, pane)
        for pane in panes:
            if pane not in before:
                self._enter(state, pane)
        state.inside = panes
        if self._others and (state.turned is None or panes[0] >= state.turned):
            self._turn(state, panes, size)
        leaving: list[Array] | None = None
        if self._others and state.turned is not None and panes[0] < state.turned:
            leaving = self.pages.get(f"s{panes[0]}")
        numbers: list[Array] = []
        other = 0
        for at, measure in enumerate(self.measures):
            if at in state.totals:
                numbers.append(state.totals[at])
                continue
            total = state.entered[at]
            if leaving is not None:
                total = measure.combine(total, measure.grown(leaving[other], size))
            numbers.append(total)
            other += 1
        return numbers

    @property
    def _others(self) -> list[int]:
        """The measures that cannot be taken out of a total."""
        return [at for at, m in enumerate(self.measures) if not m.is_invertible]

    def _size(self, state: Slide, size: int) -> None:
        for at, measure in enumerate(self.measures):
            kept = state.totals if measure.is_invertible else state.entered
            kept[at] = measure.grown(kept[at], size) if at in kept else measure.neutral(size)

    def _enter(self, state: Slide, pane: int) -> None:
        codes, numbers = self.pages.get(f"p{pane}")
        for at, measure in enumerate(self.measures):
            if measure.is_invertible:
                if numbers[at].dtype == object and state.totals[at].dtype != object:
                    state.totals[at] = state.totals[at].astype(object)
                state.totals[at][codes] += numbers[at]
            else:
                state.entered[at][codes] = measure.combine(state.entered[at][codes], numbers[at])

    def _leave(self, state: Slide, pane: int) -> None:
        codes, numbers = self.pages.get(f"p{pane}")
        for at, total in state.totals.items():
            total[codes] -= numbers[at]

    def _turn(self, state: Slide, panes: list[int], size: int) -> None:
        """Stack the panes of a window: each with the combination of itself and all after it; none has entered since."""
        running = [self.measures[at].neutral(size) for at in self._others]
        for pane in reversed(panes):
            codes, numbers = self.pages.get(f"p{pane}")
            following = []
            for total, at in zip(running, self._others, strict=True):
                mine = total.copy()
                mine[codes] = self.measures[at].combine(mine[codes], numbers[at])
                following.append(mine)
            running = following
            self.pages.put(f"s{pane}", running)
        state.turned = panes[-1] + 1
        for at in self._others:
            state.entered[at] = self.measures[at].neutral(size)

    def _table(self, emitted: list[tuple[int, Array, list[Array]]]) -> pa.Table:
        counts = [len(groups) for _, groups, _ in emitted]
        wids = np.repeat(np.array([wid for wid, _, _ in emitted], np.int64), counts)
        ends = wids * self.window.slide + (self.window.origin + self.window.slide)
        groups = np.concatenate([g for _, g, _ in emitted])
        measures = [np.concatenate([m[at] for _, _, m in emitted]) for at in range(len(self.measures))]
        bound_type = self.schema.fields[1].type.arrow
        columns = [
            pa.array(wids),
            pc.cast(pa.array(ends - self.window.range), bound_type),
            pc.cast(pa.array(ends), bound_type),
            *self.codes.columns(groups),
            *[r.lower(measures) for r in self.results],
        ]
        return pa.Table.from_arrays(columns, schema=self.schema.arrow)

    def _give_up(self, state: Slide, first_needed: int) -> None:
        """Forget the panes that no open window holds, and the codes of groups that are in no pane any more."""
        for pane in [p for p in state.inside if p < first_needed]:
            self._leave(state, pane)
        state.inside = [p for p in state.inside if p >= first_needed]
        cut = bisect_left(state.panes, first_needed)
        for pane in state.panes[:cut]:
            state.holders[self.pages.get(f"p{pane}")[0]] -= 1
            state.weights.pop(pane, None)
            self.pages.delete(f"p{pane}")
            if self._others:
                self.pages.delete(f"s{pane}")
        state.panes = state.panes[cut:]
        live = np.flatnonzero(state.holders > 0)
        if len(self.codes) > 2 * len(live) + SPARE_CODES:
            self._renumber(state, live)

    def _renumber(self, state: Slide, live: Array) -> None:
        """Give the living groups new codes; the stacks are made anew at the next window."""
        lookup = np.full(len(self.codes), -1, np.int64)
        lookup[live] = np.arange(len(live))
        for pane in state.panes:
            codes, numbers = self.pages.get(f"p{pane}")
            self.pages.put(f"p{pane}", (lookup[codes], numbers))
            if self._others:
                self.pages.delete(f"s{pane}")
        state.totals = {at: total[live] for at, total in state.totals.items()}
        state.entered, state.turned, state.holders = {}, None, state.holders[live]
        self._codes = self.codes.keep(live)
        self._kept_codes = -1

    # State

    def _state(self) -> Slide:
        return self.pages.get("slide") or Slide()

    def _save(self, state: Slide) -> None:
        self.pages.put("slide", state)
        if len(self.codes) != self._kept_codes:
            self._kept_codes = len(self.codes)
            self.pages.put("keys", list(self.codes.keys))


def _sized(values: Array, size: int) -> Array:
    return values if len(values) >= size else np.concatenate([values, np.zeros(size - len(values), values.dtype)])


def _compress(panes: Array) -> tuple[Array, Array]:
    """The panes that occur, ascending, and for each row its place among them."""
    span = int(panes.max()) + 1
    if span > max(4 * len(panes), 1 << 16):
        return np.unique(panes, return_inverse=True)
    present = np.flatnonzero(np.bincount(panes, minlength=span))
    if len(present) == span:
        return present, panes
    lookup = np.zeros(span, np.int64)
    lookup[present] = np.arange(len(present))
    return present, lookup[panes]
