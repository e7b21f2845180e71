"""Paned-WID: partials per pane (PLQ), windows from panes (WLQ) (thesis 6.2).

A row costs one update, whatever RANGE/SLIDE is. When windows close, a window is either the one before it with the panes
that left taken out and those that entered put in (differential: every function has an exact `invert`), or the
combination of its panes; the planner says which, and may say otherwise when a query goes on. Panes are given up as soon
as no open window holds them. State: one page per pane, a list of pane ids, for the differential form the running
window, and how far some groups are closed ahead of the others.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

from penstock.model.batch import Batch
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.operators.aggregates.chosen import AHEAD, Chosen
from penstock.operators.aggregates.emission import WindowAggregateOperator
from penstock.operators.aggregates.functions import Partial
from penstock.operators.aggregates.partials import Grouping, Key, Table
from penstock.operators.operator import Outputs
from penstock.operators.windows.sliding import Sliding


class PanedAggregate(WindowAggregateOperator):
    """Partials per pane, windows from panes."""

    kind = "paned wid"
    version = 2  # a user's own None is marked

    def __init__(self, schema: Schema, window: Sliding, grouping: Grouping, *, differential: bool = False) -> None:
        """`differential` asks for functions that can all be taken out again."""
        super().__init__(schema, window, grouping)
        self.differential = differential

    def process(self, port: int, batch: Batch) -> Outputs:
        """Update the pane of every row."""
        if self.grouping.is_columnar(batch):
            self.take_partials(self.grouping.reduce(batch, self.window.panes_of(batch.times())))
            return ()
        touched: dict[int, Table] = {}
        time = batch.schema.time_index
        pane_of, absorb = self.window.pane_of, self.grouping.absorb
        for row in batch.rows:
            absorb(self._table(pane_of(row[time]), touched), row)  # type: ignore[arg-type]
        self._keep_panes(touched)
        return ()

    def take_partials(self, entries: Iterable[tuple[int, Key, list[Partial]]]) -> None:
        """Join partials of panes and groups with those that there are."""
        touched: dict[int, Table] = {}
        for pane, key, partials in entries:
            self.grouping.merge(self._table(pane, touched), key, partials)
        self._keep_panes(touched)

    def _keep_panes(self, touched: dict[int, Table]) -> None:
        if touched:
            index: list[int] = self.pages.get("panes") or []
            known = set(index)
            for pane, table in touched.items():
                self.pages.put(f"p{pane}", table)
                if pane not in known:
                    insort(index, pane)
            self.pages.put("panes", index)

    def _table(self, pane: int, touched: dict[int, Table]) -> Table:
        table = touched.get(pane)
        if table is None:
            table = touched[pane] = self.pages.get(f"p{pane}") or {}
        return table

    def skip_to(self, wid: int) -> None:
        """Windows before it count as closed, and panes that only they hold are given up."""
        already: int | None = self.pages.get("closed")
        if already is not None and wid <= already:
            return
        first_needed = self.window.first_pane(wid)
        running = self._running()
        if running is not None:
            running.retire(first_needed)
        self.pages.put("closed", wid)
        self._purge(self.pages.get("panes") or [], first_needed)

    def close(self, bound: int) -> Iterable[tuple[int, Table]]:
        """Windows that hold at least one pane, up to the bound; then panes that no open window holds are given up."""
        index: list[int] = self.pages.get("panes") or []
        if not index:
            return
        last_of_all = self.window.last_of_pane(index[-1])
        first_open = last_of_all + 1 if bound == END_OF_TIME else self.window.first(bound)
        wid = self.window.first_of_pane(index[0])
        already: int | None = self.pages.get("closed")
        if already is not None:
            wid = max(wid, already)
        end = min(first_open, last_of_all + 1)
        running = self._running()
        ahead: dict[Key, int] = self.pages.get(AHEAD) or {}
        while wid < end:
            lo = bisect_left(index, self.window.first_pane(wid))
            hi = bisect_left(index, self.window.end_pane(wid))
            if lo == hi:
                # Nothing in this window: jump to the first window that holds the next pane.
                wid = max(wid + 1, self.window.first_of_pane(index[hi])) if hi < len(index) else end
                continue
            table = running.window(index, lo, hi) if running is not None else self._combine(index[lo:hi])
            if ahead:
                table = {key: partials for key, partials in table.items() if ahead.get(key, wid) <= wid}
            wid += 1
            self.pages.put("closed", wid)
            yield wid - 1, table
        if ahead:
            self._keep_ahead({key: first for key, first in ahead.items() if first > first_open})
        if already is None or first_open > already:
            first_needed = self.window.first_pane(first_open)
            if running is not None:
                running.retire(first_needed)
            self.pages.put("closed", first_open)
            self._purge(index, first_needed)

    def _running(self) -> _Running | None:
        """The running window, where there is one; what an earlier, differential run has left would go stale."""
        if self.differential:
            return _Running(self)
        if self.pages.get("running") is not None:
            self.pages.delete("running")
        return None

    def close_groups(self, bound: int, chosen: Chosen) -> Iterable[tuple[int, Table]]:
        """Windows from the panes that hold the groups; then the groups leave the panes that none of theirs needs."""
        index: list[int] = self.pages.get("panes") or []
        own: dict[int, Table] = {}
        for pane in index:
            table: Table = self.pages.get(f"p{pane}")
            taken = chosen.of(table)
            if taken:
                own[pane] = {key: table[key] for key in taken}
        if not own:
            return
        panes = list(own)
        last_of_all = self.window.last_of_pane(panes[-1])
        first_open = last_of_all + 1 if bound == END_OF_TIME else self.window.first(bound)
        already: int | None = self.pages.get("closed")
        wid = self.window.first_of_pane(panes[0]) if already is None else already
        wid = max(wid, self.window.first_of_pane(panes[0]))
        end = min(first_open, last_of_all + 1)
        keys = {key for table in own.values() for key in table}
        ahead: dict[Key, int] = self.pages.get(AHEAD) or {}
        while wid < end:
            lo = bisect_left(panes, self.window.first_pane(wid))
            hi = bisect_left(panes, self.window.end_pane(wid))
            if lo == hi:
                wid = max(wid + 1, self.window.first_of_pane(panes[hi])) if hi < len(panes) else end
                continue
            total: Table = {}
            for pane in panes[lo:hi]:
                for key, partials in own[pane].items():
                    if ahead.get(key, wid) <= wid:
                        self.grouping.merge(total, key, partials)
            wid += 1
            ahead |= {key: max(ahead.get(key, wid), wid) for key in total}
            self.pages.put(AHEAD, ahead)
            yield wid - 1, total
        self._let_go(own, keys, None if bound == END_OF_TIME else first_open)

    def _let_go(self, own: dict[int, Table], keys: set[Key], first_open: int | None) -> None:
        """Take groups out of the panes that they need no more; `first_open` is their first open window, if any."""
        ahead: dict[Key, int] = self.pages.get(AHEAD) or {}
        index: list[int] = self.pages.get("panes") or []
        needed = None if first_open is None else self.window.first_pane(first_open)
        left: dict[Key, int] = {}  # the first pane that is left of a group
        for pane, members in own.items():
            if needed is not None and pane >= needed:
                left = dict.fromkeys(members, pane) | left
                continue
            table: Table = self.pages.get(f"p{pane}")
            for key in members:
                del table[key]
            self.pages.put(f"p{pane}", table)
        running = self._running()
        if running is not None:
            running.recount(keys)
        empty = {pane for pane in own if not self.pages.get(f"p{pane}")}
        for pane in empty:
            self.pages.delete(f"p{pane}")
        if empty:
            self.pages.put("panes", [pane for pane in index if pane not in empty])
        for key in keys:
            first = ahead.pop(key, first_open)
            if first_open is not None and first is not None and key in left:
                first = max(first, first_open)
                if self.window.first_of_pane(left[key]) < first:  # it is also in windows that came out
                    ahead[key] = first
        self._keep_ahead(ahead)

    def _keep_ahead(self, ahead: dict[Key, int]) -> None:
        if ahead:
            self.pages.put(AHEAD, ahead)
        else:
            self.pages.delete(AHEAD)

    def _combine(self, panes: list[int]) -> Table:
        total: Table = {}
        for pane in panes:
            for key, partials in self.pages.get(f"p{pane}").items():
                self.grouping.merge(total, key, partials)
        return total

    def _purge(self, index: list[int], first_needed: int) -> None:
        cut = bisect_left(index, first_needed)
        for pane in index[:cut]:
            self.pages.delete(f"p{pane}")
        if cut:
            self.pages.put("panes", index[cut:])


class _Running:
    """The groups of the last window that was emitted, with how many of its panes hold each group.

    It is kept between bounds; panes about to be given up are taken out of it first, while they can still be read.
    """

    def __init__(self, operator: PanedAggregate) -> None:
        self.pages, self.grouping = operator.pages, operator.grouping
        self.panes: list[int]
        self.total: Table
        self.holders: dict[Key, int]
        self.panes, self.total, self.holders = self.pages.get("running") or ([], {}, {})

    def window(self, index: list[int], lo: int, hi: int) -> Table:
        """The window before, less the panes that left, plus those that entered; those between are not looked at."""
        self._leave_before(index[lo])
        entered = index[bisect_left(index, self.panes[-1] + 1, lo) if self.panes else lo : hi]
        for pane in entered:
            self._put_in(pane)
        self.panes = self.panes + entered if entered else self.panes
        self._keep()
        return self.total

    def _leave_before(self, first: int) -> None:
        leaving = self.panes[: bisect_left(self.panes, first)]
        for at, pane in enumerate(leaving):
            self._take_out(pane, at + 1)
        self.panes = self.panes[len(leaving) :] if leaving else self.panes

    def _keep(self) -> None:
        self.pages.put("running", (self.panes, self.total, self.holders))

    def retire(self, first_needed: int) -> None:
        """Take out the panes below `first_needed` and keep the rest for the next bound."""
        self._leave_before(first_needed)
        self._keep()

    def recount(self, keys: Iterable[Key]) -> None:
        """Some groups were taken out of panes: what is in the window of them is made anew, and empty panes go."""
        self.panes = [pane for pane in self.panes if self.pages.get(f"p{pane}")]
        for key in keys:
            holding = [pane for pane in self.panes if key in self.pages.get(f"p{pane}")]
            self.total.pop(key, None)
            self.holders.pop(key, None)
            if holding:
                self.holders[key] = len(holding)
                self._recombine(key, 0)
        self._keep()

    def _put_in(self, pane: int) -> None:
        for key, partials in self.pages.get(f"p{pane}").items():
            self.holders[key] = self.holders.get(key, 0) + 1
            self.grouping.merge(self.total, key, partials)

    def _take_out(self, pane: int, left: int) -> None:
        """Take out a pane, with which `left` of the panes are no longer in the window."""
        functions = self.grouping.functions
        for key, partials in self.pages.get(f"p{pane}").items():
            if self.holders[key] == 1:
                del self.holders[key], self.total[key]
                continue
            self.holders[key] -= 1
            if any(f.is_failed is not None and f.is_failed(p) for f, p in zip(functions, self.total[key], strict=True)):
                self._recombine(key, left)
                continue
            self.total[key] = [
                self._rest(key, at, total, leaving, left)
                for at, (total, leaving) in enumerate(zip(self.total[key], partials, strict=True))
            ]

    def _rest(self, key: Key, at: int, total: Partial, leaving: Partial, left: int) -> Partial:
        """A total of a group without the partial of a pane; a user's own cannot say that no value is left in it."""
        function = self.grouping.functions[at]
        if leaving is None:
            return total
        if function.is_failed is not None and not self._is_held(key, at, left):
            return None
        return function.invert(total, leaving)  # type: ignore[misc]

    def _is_held(self, key: Key, at: int, left: int) -> bool:
        """Whether a value of the group has come to one of the panes that stay."""
        tables = (self.pages.get(f"p{pane}") for pane in self.panes[left:])
        return any(key in table and table[key][at] is not None for table in tables)

    def _recombine(self, key: Key, left: int) -> None:
        """The total of a group from its panes: a failure cannot be taken out of what it has spoiled."""
        self.total.pop(key, None)
        for pane in self.panes[left:]:
            partials = self.pages.get(f"p{pane}").get(key)
            if partials is not None:
                self.grouping.merge(self.total, key, partials)
