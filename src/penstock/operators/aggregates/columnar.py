"""Window aggregation over columns: panes of numbers, windows from panes, the same work per row for any RANGE/SLIDE.

Two levels, as in Gigascope: a batch is brought down to one number per pane, group and measure with a few array
operations; rows that come one at a time are first gathered in a table per pane. When windows close, a total slides over
the panes. Where windows tumble and only single rows have come, their tables are the windows, and results are made of
them as they are. Results come in portions, and each portion leaves the state as if the next bound were to bring the
rest. A group whose sum is none that SQL can hold fails for that window.

State: one page per pane (groups and numbers), one per few panes of the leaving stack, one for the codes of groups, one
for rows not yet brought down, one for the rest. Many small windows that tumble are held in one page instead of panes
(`loose_cells`), until something needs the panes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.model.batch import Batch
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.operators.aggregates.cells import Cells
from penstock.operators.aggregates.chosen import Chosen
from penstock.operators.aggregates.closing_groups import Ahead, GroupsPart
from penstock.operators.aggregates.emission import PORTION, promised_ends
from penstock.operators.aggregates.group_codes import GroupCodes
from penstock.operators.aggregates.loose_cells import KINDS, as_one_run, put_run
from penstock.operators.aggregates.measures import Array, Measure, Result, infinite
from penstock.operators.aggregates.pane_numbers import Pane, as_one, put_in_pane, runs_of
from penstock.operators.aggregates.pane_windows import PaneWindows
from penstock.operators.aggregates.row_code import Groups, absorber
from penstock.operators.aggregates.row_tables import RowTables, as_cells
from penstock.operators.aggregates.sent_panes import SentPanes
from penstock.operators.aggregates.slide import Slide
from penstock.operators.aggregates.sliding_total import SlidingTotal
from penstock.operators.aggregates.window_tables import Block, WindowTables
from penstock.operators.operator import BoundMemory, Outputs
from penstock.operators.windows.sliding import Sliding

MIN_COLUMNAR = 32
MAX_PENDING = 50_000
FIRST_LOOK = 16
"""From so many panes on that wait, it is looked less often how many groups there are in them."""
SPARE_CODES = 1024
"""So many codes of dead groups, and half as many as are alive, may wait before living ones are renumbered."""


class ColumnarAggregate(SentPanes):
    """A windowed aggregate whose measures are numbers."""

    kind = "columnar panes"
    version = 4

    def __init__(
        self,
        schema: Schema,
        window: Sliding,
        time: int,
        keys: tuple[int, ...],
        key_schema: Schema,
        measures: tuple[Measure, ...],
        results: tuple[Result, ...],
        lifetime: int = 1,
        attribute: str = "",
    ) -> None:
        """`schema` is that of the results, `time` and `keys` are positions in the input, whose rows live `lifetime`."""
        super().__init__(schema)
        self.lifetime, self.attribute = lifetime, attribute
        self.window, self.keys, self.key_schema = window, keys, key_schema
        self.measures, self.results = measures, results
        self.sliding = SlidingTotal(measures)
        self._cells = Cells(measures)
        self.passed_on = BoundMemory()
        typed = [(place, field.type) for place, field in zip(keys, key_schema.fields, strict=True)]
        self.absorb, self._forget_pane = absorber(window, time, typed, measures, self._start_pane)
        self._windows = PaneWindows(window, self.sliding)
        self._row_tables = RowTables(schema, window, len(keys), results)
        self._tables = WindowTables(schema, window, len(keys), measures, results)
        self._next_look = FIRST_LOOK
        self._may_be_loose = window.is_tumbling and all(m.kind in KINDS for m in measures)
        self._codes: GroupCodes | None = None
        self._kept_codes = 0

    def attach(self, pages: Any) -> None:
        """Other pages hold other groups."""
        super().attach(pages)
        self._codes, self._next_look = None, FIRST_LOOK
        self._forget_pane()

    @property
    def codes(self) -> GroupCodes:
        """The codes of the groups, from their page on first use."""
        if self._codes is None:
            self._codes = self.pages.get("keys") or GroupCodes(self.key_schema)
            self._kept_codes = len(self._codes)
        return self._codes

    # Taking rows

    def process(self, port: int, batch: Batch) -> Outputs:
        """Bring the batch down to numbers per pane and group."""
        if batch.columnar and (len(batch) >= MIN_COLUMNAR or self._loose()):
            with infinite():
                self._take_columns(batch)
        else:
            absorb = self.absorb
            for row in batch.rows:
                absorb(row)
            self.pages.put("pending", self.pages.get("pending"))
        return ()

    def _start_pane(self, pane: int) -> Groups:
        """The table that gathers the single rows of a pane."""
        pending: dict[int, Groups] | None = self.pages.get("pending")
        if pending is None:
            pending = {}
            self.pages.put("pending", pending)
        if pane not in pending and not FIRST_LOOK <= len(pending) < self._next_look:
            if sum(len(groups) for groups in pending.values()) > MAX_PENDING:
                self._settle()
                return self._start_pane(pane)
            self._next_look = 2 * len(pending)  # so that looking costs no more than there is
        return pending.setdefault(pane, {})

    def _settle(self, end: int | None = None) -> None:
        """Move what was gathered row by row into the panes, or those before `end`, while the others go on gathering."""
        pending: dict[int, Groups] = self.pages.get("pending") or {}
        self._forget_pane()
        settling = {p: pending.pop(p) for p in list(pending) if end is None or p < end}
        if not settling:
            return
        state = self._state()
        loose: list[Block] = []
        for pane, groups in settling.items():
            codes = self.codes.encode_keys(list(groups))
            columns = list(zip(*groups.values(), strict=True))
            self.sliding.values.take_sets(self.pages, pane, codes, columns)
            with infinite():
                cells = as_cells(self.measures, codes, columns, pane, state)
                if self._loose():
                    loose.append((np.full(len(cells[0]), pane), *cells))
                else:
                    self._put_in_pane(state, pane, cells)
        if loose:
            self.pages.put("loose", put_run(self.measures, self._loose(), as_one_run(self.measures, loose)))
        if pending:
            self.pages.put("pending", pending)
        else:
            self.pages.delete("pending")
        self._next_look = max(FIRST_LOOK, 2 * len(pending))
        self._save(state)

    def _take_columns(self, batch: Batch) -> None:
        state = self._state()
        panes = self.window.panes_of(batch.times())
        codes = self.codes.encode([batch.table.column(i) for i in self.keys], len(batch))
        if self._goes_loose(state, panes):
            present, edges, own, numbers = self._cells.together(batch, panes, codes, len(self.codes), state)
            run = np.repeat(present, np.diff(edges)), own, numbers
            self.pages.put("loose", put_run(self.measures, self._loose(), run))
            self._save(state)
            return
        for pane, cells in self._cells.of(batch, panes, codes, len(self.codes), state):
            self._put_in_pane(state, pane, cells)
        self.sliding.values.take(self.pages, batch, panes, codes)
        self._save(state)

    def _put_in_pane(self, state: Slide, pane: int, cells: Pane) -> None:
        if state.open(pane):
            self.pages.put_new(f"p{pane}", cells)
        else:
            put_in_pane(self.pages, f"p{pane}", self.measures, cells)

    # Putting windows out

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Put out the windows that the bound closes, give up their panes, pass the bound on as one on window ends."""
        if not punctuation.is_linear:
            chosen = Chosen.by(punctuation, self.attribute, self.key_schema.names)
            if chosen is not None:
                yield from self._close_groups(punctuation.value, chosen)
                yield from promised_ends(self, self.window, punctuation)
            return
        if punctuation.attribute != self.attribute:
            return
        bound = punctuation.value
        state = self._state()
        if self._has_tables_alone(state):
            yield from self._close_tables(state, bound)
        else:
            self._settle(None if bound == END_OF_TIME else self._first_kept(bound))
            yield from self._close(self._state(), bound)
        out = END_OF_TIME if bound == END_OF_TIME else self.window.output_bound(bound)
        if self.passed_on.advance(self.pages, out):
            yield self.output_bound(out)

    def _first_kept(self, bound: int) -> int:
        """No window that a bound closes holds this pane or a later one."""
        first_open = self.window.first(bound)
        return max(self.window.end_pane(first_open - 1), self.window.first_pane(first_open))

    def feedback(self, bound: int) -> int | None:
        """Windows whose results are not needed count as closed, and what only they hold is given up."""
        if bound == END_OF_TIME:
            return END_OF_TIME
        needed = self.window.first_needed(bound)
        self._settle()
        self._tighten()
        state = self._state()
        if state.closed is None or needed > state.closed:
            state.closed = needed
            self._give_up(state, self.window.first_pane(needed))
            self._save(state)
        return self.window.start(needed) + self.lifetime

    def _has_tables_alone(self, state: Slide) -> bool:
        """Whether windows tumble and only single rows have come: then their tables are the windows."""
        return self.window.is_tumbling and not state.panes and not self._loose()

    def _close_tables(self, state: Slide, bound: int) -> Outputs:
        """The results of tumbling windows of which only single rows have come."""
        pending: dict[int, Groups] = self.pages.get("pending") or {}
        first_open = None if bound == END_OF_TIME else self.window.first(bound)
        closing = sorted(pane for pane in pending if first_open is None or pane < first_open)
        if not closing:
            return
        taken = {pane: pending.pop(pane) for pane in closing}
        self._forget_pane()
        self.pages.put("pending", pending)
        reached = closing[-1] + 1 if first_open is None else first_open
        results = self._row_tables.of(taken, state.closed)
        state.closed = reached if state.closed is None else max(state.closed, reached)
        self._save(state)
        yield from results

    def _close(self, state: Slide, bound: int) -> Outputs:
        if self._loose() and Ahead.of(self.pages, self.codes) is not None:
            self._tighten()
            state = self._state()
        if not state.panes:
            yield from self._close_loose(state, bound)
            return
        last = self.window.last_of_pane(state.panes[-1])
        first_open = last + 1 if bound == END_OF_TIME else self.window.first(bound)
        if state.closed is not None and first_open <= state.closed:
            return
        blocks: list[Block] = []
        held = 0
        windows = self._windows.blocks(state, min(first_open, last + 1), self.pages, len(self.codes))
        ahead = Ahead.of(self.pages, self.codes)
        while True:
            with infinite():
                block = next(windows, None)
            if block is not None and ahead is not None:
                block = ahead.without(block)
                if not len(block[0]):
                    continue
            if block is not None:
                blocks.append(block)
                held += len(block[0])
                if held < PORTION:
                    continue
            elif not blocks:
                break
            # What was put out counts as closed, in case that the rest is not asked for before the next bound.
            done = int(blocks[-1][0][-1]) + 1
            state.closed = done if state.closed is None else max(state.closed, done)
            self._save(state)
            with infinite():
                results = list(self._tables.of(blocks, self.codes))
            yield from results
            blocks, held = [], 0
        if ahead is not None:
            ahead.forget(self.pages, first_open)
        state.closed = first_open if state.closed is None else max(state.closed, first_open)
        self._give_up(state, self.window.first_pane(first_open))
        self._save(state)

    def _close_groups(self, bound: int, chosen: Chosen) -> Outputs:
        """Put out the windows of some groups that a bound of theirs closes; they leave what they need no more."""
        self._tighten()
        state = self._state()
        first_open = None if bound == END_OF_TIME else self.window.first(bound)
        if self._has_tables_alone(state):
            yield from self._close_group_tables(state, first_open, chosen)
            return
        self._settle()
        state = self._state()
        part = GroupsPart.of(state, self.pages, self.codes, self.sliding, chosen)
        if part is None:
            return
        last = self.window.last_of_pane(part.state.panes[-1])
        end = last + 1 if first_open is None else min(first_open, last + 1)
        ahead = Ahead.of(self.pages, part.codes)
        with infinite():
            blocks = list(self._windows.blocks(part.state, end, part.pages, len(part.codes)))
            blocks = [block for block in map(ahead.without, blocks) if len(block[0])] if ahead is not None else blocks
            results = list(self._tables.of(blocks, part.codes)) if blocks else []
        part.let_go(state, self.pages, self.window, self.sliding, first_open)
        self._tidy(state)
        self._save(state)
        yield from results

    def _close_group_tables(self, state: Slide, first_open: int | None, chosen: Chosen) -> Outputs:
        """The results of some groups of tumbling windows of which only single rows have come."""
        pending: dict[int, Groups] = self.pages.get("pending") or {}
        taken: dict[int, Groups] = {}
        for pane in sorted(pane for pane in pending if first_open is None or pane < first_open):
            groups = pending[pane]
            own = {key: groups.pop(key) for key in chosen.of(groups)}
            if own:
                taken[pane] = own
            if not groups:
                del pending[pane]
        if taken:
            self._forget_pane()
            self.pages.put("pending", pending)
            yield from self._row_tables.of(taken, state.closed)

    def _give_up(self, state: Slide, first_needed: int) -> None:
        """Forget the panes that no open window holds, and the codes of groups that are in no pane any more."""
        self.sliding.retire(state.totals, state.panes, first_needed, len(self.codes), self.pages)
        gone = state.give_up(first_needed)
        for pane in gone:
            self.pages.delete(f"p{pane}")
        self.sliding.values.give_up(gone, self.pages)
        self._tidy(state)

    def _tidy(self, state: Slide) -> None:
        """Give the living groups new codes when many are of dead ones; it is looked when there are half as many."""
        self.sliding.values.tidy(state.totals, state.live_pairs, state.panes, self.pages)
        if len(self.codes) <= state.live + state.live // 2 + SPARE_CODES:
            return
        alive = np.zeros(len(self.codes), np.bool_)
        for pane in state.panes:
            for codes, _ in runs_of(self.pages.get(f"p{pane}")):
                alive[codes] = True
        for _, codes, _ in self._loose():
            alive[codes] = True
        live = np.flatnonzero(alive)
        state.live = len(live)
        if len(self.codes) > len(live) + len(live) // 2 + SPARE_CODES:
            self._renumber(state, live)

    def _renumber(self, state: Slide, live: Array) -> None:
        """Give the living groups new codes."""
        lookup = np.full(len(self.codes), -1, np.int64)
        lookup[live] = np.arange(len(live))
        for pane in state.panes:
            page = self.pages.get(f"p{pane}")
            runs = [(lookup[codes], numbers) for codes, numbers in runs_of(page)]
            self.pages.put(f"p{pane}", runs if isinstance(page, list) else runs[0])
        if self._loose():
            self.pages.put("loose", [(panes, lookup[codes], numbers) for panes, codes, numbers in self._loose()])
        self.sliding.values.renumber(state.totals, state.panes, self.pages, lookup)
        self.sliding.renumber(state.totals, lookup)
        self._codes = self.codes.keep(live)
        self._kept_codes = -1

    # State

    def _state(self) -> Slide:
        return self.pages.get("slide") or Slide()

    def to_plain(self, key: str, page: Any) -> Any:
        """What is not in panes by name, the keys as a table, panes as one run; others are arrays and tables already."""
        if isinstance(page, Slide | GroupCodes):
            return page.to_plain()
        if isinstance(page, list) and key[0] in "pd":
            return as_one(() if key[0] == "d" else self.measures, page)
        return page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        if key == "keys":
            return GroupCodes.from_plain(self.key_schema, data)
        if self.sliding.values.is_pairs(key):
            return self.sliding.values.from_plain(key, data)
        return Slide.from_plain(data, version) if key == "slide" else data

    def _save(self, state: Slide) -> None:
        self.pages.put("slide", state)
        if len(self.codes) != self._kept_codes:
            self._kept_codes = len(self.codes)
            self.pages.put("keys", self.codes)
