"""The aggregates above a queue of windows: they open the windows that they are told to, and no others (Table 1).

A row updates, at the first aggregate, those windows that make up the window of the plan that it is given for. When the
queue says that it has ended, the results go up from aggregate to aggregate, through whatever stands between two of
them, and the last one's come out. Between aggregates rows may be chosen and computed, and nothing may be remembered,
since a row that windows share comes once for each of them.

A row that comes for a window that is not open, or opens one that is, means that queue and aggregates contradict each
other: a broken window. It is an `InternalError`.

State: a page per key and window that is open. Groups may be finer than keys: a window then has a result for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import InternalError, reason_of
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.interrupts import let_through
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.operators.aggregates.emission import failed_groups
from penstock.operators.aggregates.partials import Grouping, Table
from penstock.operators.operator import BoundMemory, Operator, Output, Outputs, Stateless
from penstock.operators.queues.extents import Extents, Interval
from penstock.operators.queues.marks import OPEN, MarkedRows
from penstock.operators.windows.sliding import Sliding


@dataclass(frozen=True)
class MarkedLevel:
    """One aggregate, and what stands between it and the next."""

    schema: Schema
    """Of its results: wid, window_start, window_end, keys, aggregates."""
    window: Sliding
    grouping: Grouping
    after: tuple[Stateless, ...] = ()

    def absorb(self, tables: dict[int, Table], rows: Sequence[Row], wanted: Interval) -> int:
        """Update the wanted windows that hold these rows; how many updates that were."""
        time, updates = self.grouping.schema.time_index, 0
        for row in rows:
            at = row[time]
            assert isinstance(at, int)
            low, high = max(self.window.first(at), wanted[0]), min(self.window.last(at), wanted[1])
            for wid in range(low, high + 1):
                self.grouping.absorb(tables.setdefault(wid, {}), row)
            updates += max(high - low + 1, 0)
        return updates

    def results(self, tables: dict[int, Table]) -> Iterator[Output]:
        """The results of windows in their order, as what stands after the aggregate makes of them."""
        rows: list[Row] = []
        failed: list[tuple[Row, str]] = []
        for wid in sorted(tables):
            bounds = self.window.extent(wid)
            for key, partials in tables[wid].items():
                try:
                    rows.append((wid, *bounds, *key, *self.grouping.results(partials)))
                except Exception as error:  # an overflow, or whatever a user's aggregate raised
                    let_through(error)
                    failed.append(((wid, *bounds, *key), reason_of(error)))
        if failed:
            yield failed_groups(self.schema, len(self.grouping.keys), failed)
        made: list[Output] = [Batch(self.schema, rows)] if rows else []
        for operator in self.after:
            made = [
                out
                for each in made
                for out in (operator.process(0, each) if isinstance(each, Batch) else (each,))
            ]  # fmt: skip
        yield from made


class MarkedPlan(Operator):
    """Aggregates over one another, above one queue of windows."""

    kind = "marked plan"

    def __init__(self, levels: Sequence[MarkedLevel], extents: Extents) -> None:
        """The level nearest to the queue first; `extents` are the queue's."""
        last = levels[-1].after[-1].schema if levels[-1].after else levels[-1].schema
        super().__init__(last)
        self.levels, self.extents = tuple(levels), extents
        self.updates = 0
        """How many updates of windows were made, which is what processing costs."""
        self._passed_on = BoundMemory()

    def process(self, port: int, batch: Batch) -> Outputs:
        """Open, update and close windows as the marks say."""
        assert isinstance(batch, MarkedRows), "rows of a queue of windows"
        start = 0
        for closed in batch.closed:
            self._take(batch, start, closed.place)
            start = closed.place
            yield from self._close(closed.key, closed.window)
        self._take(batch, start, len(batch))

    def _take(self, batch: MarkedRows, start: int, end: int) -> None:
        for at in range(start, end):
            key, window = batch.keys[at], batch.windows[at]
            tables = self._tables(key, window, opens=batch.marks[at] == OPEN)
            self.updates += self.levels[0].absorb(tables, (batch.rows[at],), self.extents.parts(window)[0])
            self.pages.put(_page(key, window), tables)

    def _tables(self, key: int, window: int, *, opens: bool) -> dict[int, Table]:
        found: dict[int, Table] | None = self.pages.get(_page(key, window))
        if opens == (found is not None):
            raise InternalError(
                "A queue and the aggregates above it contradict each other about a window.",
                where=f"key {key}, window {window}",
                got="a row that opens it, and it is open" if opens else "a row inside it, and it is not open",
            )
        return {} if found is None else found

    def _close(self, key: int, window: int) -> Outputs:
        tables = self._tables(key, window, opens=False)
        self.pages.delete(_page(key, window))
        parts = self.extents.parts(window)
        for at, level in enumerate(self.levels):
            above: dict[int, Table] = {}
            for out in level.results(tables):
                if not isinstance(out, Batch) or at + 1 == len(self.levels):
                    yield out
                else:
                    self.updates += self.levels[at + 1].absorb(above, out.rows, parts[at + 1])
            tables = above

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """The queue keeps promises to itself, and says what follows of them: no window to come ends before this."""
        return self.promise(punctuation.value)

    def promise(self, bound: int) -> Outputs:
        """No window to come ends before a bound, as `WindowedQueue.promised` says."""
        if self._passed_on.advance(self.pages, bound):
            said: list[Punctuation] = [Punctuation(((str(self.levels[-1].schema.time), bound),))]
            for operator in self.levels[-1].after:
                said = [out for each in said for out in operator.punctuate(0, each)]
            yield from said

    def end(self) -> Outputs:
        """The stream has ended, and so has everything in the queue."""
        return self.promise(END_OF_TIME)

    # State

    def to_plain(self, key: str, page: Any) -> Any:
        """Partials as plain data."""
        return {wid: self.levels[0].grouping.to_plain(t) for wid, t in page.items()} if key[0] == "k" else page

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """Partials as their functions want them."""
        return {wid: self.levels[0].grouping.from_plain(t) for wid, t in data.items()} if key[0] == "k" else data


def _page(key: int, window: int) -> str:
    return f"k{key}w{window}"
