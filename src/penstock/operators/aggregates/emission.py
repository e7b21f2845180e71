"""Which windows a bound closes, and the rows that come of them: what window aggregates do alike at punctuation.

A group's window of which an aggregate has no value (a sum that overflows, a user's aggregate that raises) fails as a
whole: window and group are given back with the reason, and the other windows and groups are not touched. Results come
in portions, so that a bound that closes very many windows does not hold them all.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.errors import reason_of
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.interrupts import let_through
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.operators.aggregates.chosen import AHEAD, Chosen
from penstock.operators.aggregates.partials import Grouping, Table
from penstock.operators.operator import BoundMemory, Operator, Outputs, Rejected
from penstock.operators.windows.sliding import Sliding

PORTION = 65_536
"""About so many result rows are handed on at a time, however many windows a bound closes."""


class WindowAggregateOperator(Operator):
    """A windowed aggregate that emits on linear punctuation, and windows of some groups on group-wise punctuation."""

    def __init__(self, schema: Schema, window: Sliding, grouping: Grouping) -> None:
        """`schema` is that of the results: wid, window_start, window_end, keys, aggregates."""
        super().__init__(schema)
        self.window, self.grouping = window, grouping
        self.passed_on = BoundMemory()

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Emit every window that the bound closes, purge, and pass the bound on as one on window ends."""
        if not punctuation.is_linear:
            yield from self._punctuate_groups(punctuation)
            return
        if punctuation.attribute != self.grouping.schema.time:
            return
        bound = punctuation.value
        yield from self._put_out(self.close(bound))
        out = END_OF_TIME if bound == END_OF_TIME else self.window.output_bound(bound)
        if self.passed_on.advance(self.pages, out):
            yield self.output_bound(out)

    def _punctuate_groups(self, promise: Punctuation) -> Outputs:
        """The same of some groups alone."""
        below = self.grouping.schema
        chosen = Chosen.by(promise, str(below.time), [below.fields[i].name for i in self.grouping.keys])
        if chosen is not None:
            yield from self._put_out(self.close_groups(promise.value, chosen))
            yield from promised_ends(self, self.window, promise)

    def _put_out(self, windows: Iterable[tuple[int, Table]]) -> Outputs:
        """The results of windows, in portions."""
        rows: list[Row] = []
        failed: list[tuple[Row, str]] = []
        for wid, table in windows:
            self._lower(wid, table, rows, failed)
            if len(rows) + len(failed) >= PORTION:
                yield from self._portion(rows, failed)
                rows, failed = [], []
        yield from self._portion(rows, failed)

    def feedback(self, bound: int) -> int | None:
        """Windows whose results are not needed are given up, and so is what only they hold."""
        if bound == END_OF_TIME:
            return END_OF_TIME
        needed = self.window.first_needed(bound)
        self.skip_to(needed)
        return self.window.start(needed) + self.grouping.schema.lifetime

    @abstractmethod
    def skip_to(self, wid: int) -> None:
        """Windows before this one are not needed: none of them is put out, not even in part."""

    @abstractmethod
    def close(self, bound: int) -> Iterable[tuple[int, Table]]:
        """The windows that end at or before `bound`, in order, each with its groups; their state is given up.

        The state is right whenever a window has been given: what is not asked for comes with the next bound.
        """

    @abstractmethod
    def close_groups(self, bound: int, chosen: Chosen) -> Iterable[tuple[int, Table]]:
        """The same of some groups alone; neither `close` nor this gives a window of theirs again."""

    def _lower(self, wid: int, table: Table, rows: list[Row], failed: list[tuple[Row, str]]) -> None:
        """The result rows of a window; a group whose aggregates have no value is one that fails."""
        start, end = self.window.extent(wid)
        for key, partials in table.items():
            try:
                rows.append((wid, start, end, *key, *self.grouping.results(partials)))
            except Exception as error:  # an overflow, or whatever a user's aggregate raised
                let_through(error)
                failed.append(((wid, start, end, *key), reason_of(error)))

    def _portion(self, rows: list[Row], failed: list[tuple[Row, str]]) -> Outputs:
        if rows:
            yield Batch(self.schema, rows)
        if failed:
            yield failed_groups(self.schema, len(self.grouping.keys), failed)

    # State: a dictionary is a table of partials, on its own page or with the panes of a running window

    def to_plain(self, key: str, page: Any) -> Any:
        """Partials as plain data."""
        return page if key == AHEAD else _tables(page, self.grouping.to_plain)

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """Partials as their functions want them."""
        return data if key == AHEAD else _tables(data, self.grouping.from_plain)


def _tables(page: Any, convert: Callable[[Table], Table]) -> Any:
    if isinstance(page, dict):
        return convert(page)
    if isinstance(page, tuple):
        panes, total, holders = page
        return panes, convert(total), holders
    return page


def promised_ends(operator: Operator, window: Sliding, promise: Punctuation) -> Outputs:
    """What a promise of some groups says of the ends of their windows, if that is new."""
    bound = promise.value
    out = END_OF_TIME if bound == END_OF_TIME else window.output_bound(bound)
    assert operator.schema.time is not None
    made = Punctuation(((operator.schema.time, out),), promise.constants)
    # No input says twice that a group ends, so what ends for good need not be remembered.
    if out == END_OF_TIME or BoundMemory().promise(operator.pages, made):
        yield made


def failed_groups(schema: Schema, keys: int, failed: Sequence[tuple[Row, str]]) -> Rejected:
    """The windows of groups that have no result, each as the window and the keys with the reason."""
    shown = Schema(schema.fields[: 3 + keys], schema.time, schema.lifetime)
    return Rejected("failed", Batch(shown, [row for row, _ in failed]), (), [reason for _, reason in failed])
