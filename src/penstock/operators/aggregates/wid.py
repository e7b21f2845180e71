"""WID: the bucket operator tags a row with its windows' ids, which are one more grouping attribute (thesis 6.1).

State: one table of partials per open window. A row costs one update per window that holds it, so RANGE/SLIDE updates. A
bound closes every window that ends at or before it (the printed figure closes one; see docs/papers/window-queries.md).
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.model.batch import Batch
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.aggregates.chosen import Chosen
from penstock.operators.aggregates.emission import WindowAggregateOperator
from penstock.operators.aggregates.partials import Table
from penstock.operators.operator import Outputs


class WidAggregate(WindowAggregateOperator):
    """Partials per window."""

    kind = "wid"
    version = 2  # a user's own None is marked

    def process(self, port: int, batch: Batch) -> Outputs:
        """Update every window of every row."""
        open_ids: set[int] = self.pages.get("windows") or set()
        needed = self._needed()
        touched: dict[int, Table] = {}
        if self.grouping.is_columnar(batch):
            for pane, key, partials in self.grouping.reduce(batch, self.window.panes_of(batch.times())):
                for wid in range(max(self.window.first_of_pane(pane), needed), self.window.last_of_pane(pane) + 1):
                    self.grouping.merge(self._table(wid, touched), key, partials)
        else:
            time = batch.schema.time_index
            for row in batch.rows:
                key, partials = self.grouping.key(row), self.grouping.lift(row)
                for wid in self.window.wids(row[time]):  # type: ignore[arg-type]
                    if wid < needed:
                        continue
                    self.grouping.merge(self._table(wid, touched), key, partials)
        for wid, table in touched.items():
            self.pages.put(f"w{wid}", table)
        open_ids.update(touched)
        self.pages.put("windows", open_ids)
        return ()

    def skip_to(self, wid: int) -> None:
        """Forget the windows before it."""
        open_ids: set[int] = self.pages.get("windows") or set()
        for old in [w for w in open_ids if w < wid]:
            self.pages.delete(f"w{old}")
        self.pages.put("windows", {w for w in open_ids if w >= wid})
        self.pages.put("needed", max(wid, self._needed()))

    def _needed(self) -> int:
        """The first window that is needed; 0 is one like any other."""
        needed: int | None = self.pages.get("needed")
        return MIN_TICK if needed is None else needed

    def _table(self, wid: int, touched: dict[int, Table]) -> Table:
        table = touched.get(wid)
        if table is None:
            table = touched[wid] = self.pages.get(f"w{wid}") or {}
        return table

    def close(self, bound: int) -> Iterable[tuple[int, Table]]:
        """The open windows below the first that the bound leaves open."""
        open_ids: set[int] = self.pages.get("windows") or set()
        if not open_ids:
            return
        first_open = max(open_ids) + 1 if bound == END_OF_TIME else self.window.first(bound)
        closed = sorted(w for w in open_ids if w < first_open)
        for wid in closed:
            table = self.pages.get(f"w{wid}")
            self.pages.delete(f"w{wid}")
            open_ids.discard(wid)
            self.pages.put("windows", open_ids)
            yield wid, table

    def close_groups(self, bound: int, chosen: Chosen) -> Iterable[tuple[int, Table]]:
        """The groups are taken out of their windows; a window of which nothing is left is forgotten."""
        open_ids: set[int] = self.pages.get("windows") or set()
        first_open = None if bound == END_OF_TIME else self.window.first(bound)
        for wid in sorted(w for w in open_ids if first_open is None or w < first_open):
            table: Table = self.pages.get(f"w{wid}")
            taken = {key: table.pop(key) for key in chosen.of(table)}
            if not taken:
                continue
            if table:
                self.pages.put(f"w{wid}", table)
            else:
                self.pages.delete(f"w{wid}")
                open_ids.discard(wid)
                self.pages.put("windows", open_ids)
            yield wid, taken
