"""Coalesce: what a split has cut in two is one again (GenMig, Algorithm 3).

Two ports, the old plan's results, all before T, and the new one's, all from T on. An old result that ends at T and a
new one that begins there are one event if their rows are equal by every column but the time: the row is the old one's.
Rows are bags: each is joined once, and of several the one that began first with whichever comes first.

A new one that begins at T waits for its other half while the old plan may still give it. An old one that ends at T
waits while the new plan may, unless the consumer takes revisions (`revises`): then it comes out at once, and its end is
moved when the other half comes. What has waited in vain comes out as it is: snapshots are the same.

Progress is that of both inputs. Below T it is the old plan's, then the new one's, and no more than the least start of
what waits; where ends may still be moved, no more than T.

With `ordered` results come in order of start if those of both plans do, so what starts behind something that waits
waits too. Where the two plans are equivalent, and T is later than all that the old one knew when the new one began,
both halves come of the same row: nothing waits for long (section 4.4).

State: what waits, by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

import numpy as np

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.lives import NO_OLD, Lives
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.model.values import canonical_row
from penstock.operators.intervals.layout import Layout
from penstock.operators.operator import BoundMemory, Operator, Outputs

OLD, NEW = 0, 1
Told = tuple[int, int, int, Row]
"""A start, an end, the end before if it is a revision, and the row: an element that comes out."""


@dataclass
class Waiting:
    """Halves of events."""

    olds: dict[Row, list[tuple[int, Row]]] = field(default_factory=dict)
    """Starts of old results that end at T, with their rows, by what they are compared by; in order of start."""
    news: dict[Row, list[tuple[int, Row]]] = field(default_factory=dict)
    """Ends of new results that begin at T, likewise; in order of coming."""
    starts: list[int] = field(default_factory=list)
    """A heap of the starts of `olds`; those in `left` have left them."""
    left: dict[int, int] = field(default_factory=dict)
    ready: list[tuple[int, int, Told]] = field(default_factory=list)
    """A heap of what comes out when its turn has come, where order is kept."""
    number: int = 0

    def least(self) -> int:
        """The least start of an old result that waits."""
        while self.starts and self.left.get(self.starts[0]):
            start = heappop(self.starts)
            self.left[start] -= 1
            if not self.left[start]:
                del self.left[start]
        return self.starts[0] if self.starts else END_OF_TIME

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not (self.olds or self.news or self.ready)


class CoalesceOperator(Operator):
    """Joins the halves of events."""

    ports = 2
    kind = "coalesce"

    def __init__(self, schema: Schema, split: int, *, revises: bool = False, ordered: bool = False) -> None:
        """`split` is T; order and revisions exclude each other, since what was put out has been in its turn."""
        super().__init__(schema)
        self.layout, self.split = Layout(schema), split
        self.revises, self.ordered = revises, ordered
        self.passed_on = BoundMemory()

    def process(self, port: int, batch: Batch) -> Outputs:
        """Join, hold or pass on each result."""
        waiting = self._waiting()
        told: list[Told] = []
        take = self._old if port == OLD else self._new
        ends, time = batch.its_lives().ends.tolist(), self.layout.time
        last = MIN_TICK
        for row, end in zip(batch.rows, ends, strict=True):
            last = row[time]  # type: ignore[assignment]
            told += take(waiting, row, last, end)
        if self.ordered:
            progress = self._progress()
            progress[port] = max(progress[port], last)
            self.pages.put("progress", progress)
            told = self._in_turn(waiting, told)
        self._keep(waiting)
        yield from self._batches(told)

    def _old(self, waiting: Waiting, row: Row, start: int, end: int) -> Iterable[Told]:
        if end < self.split:
            return [(start, end, NO_OLD, row)]
        key = self._key(row)
        if partner := _first(waiting.news, key):
            return [(start, partner[0], NO_OLD, row)]
        if self._bounds()[NEW] > self.split:
            return [(start, end, NO_OLD, row)]
        waiting.olds.setdefault(key, []).append((start, row))
        waiting.olds[key].sort(key=lambda half: half[0])
        if self.revises:
            return [(start, end, NO_OLD, row)]
        heappush(waiting.starts, start)
        return []

    def _new(self, waiting: Waiting, row: Row, start: int, end: int) -> Iterable[Told]:
        if start > self.split:
            return [(start, end, NO_OLD, row)]
        key = self._key(row)
        if partner := _first(waiting.olds, key):
            begun, whole = partner
            if self.revises:
                return [(begun, end, self.split, whole)]
            waiting.left[begun] = waiting.left.get(begun, 0) + 1
            return [(begun, end, NO_OLD, whole)]
        if self._bounds()[OLD] >= self.split:
            return [(start, end, NO_OLD, row)]
        waiting.news.setdefault(key, []).append((end, row))
        return []

    def punctuate(self, port: int, punctuation: Punctuation) -> Outputs:
        """Let out what waits in vain, then say how far both have come."""
        if not self.is_on_time(punctuation):
            return
        bounds = self._bounds()
        if punctuation.value <= bounds[port]:
            return
        bounds[port] = punctuation.value
        self.pages.put("bounds", bounds)
        waiting, told = self._waiting(), list[Told]()
        if bounds[OLD] >= self.split and waiting.news:
            told += [(self.split, end, NO_OLD, row) for halves in waiting.news.values() for end, row in halves]
            waiting.news = {}
        if bounds[NEW] > self.split and waiting.olds:
            if not self.revises:
                told += [(start, self.split, NO_OLD, row) for halves in waiting.olds.values() for start, row in halves]
            waiting.olds, waiting.starts, waiting.left = {}, [], {}
        reached = self._reached(waiting)
        told = self._in_turn(waiting, told) if self.ordered else sorted(told, key=lambda each: each[0])
        self._keep(waiting)
        yield from self._batches(told)
        if self.passed_on.advance(self.pages, reached):
            yield self.output_bound(reached)

    def put_out(self, halves: Iterable[tuple[int, Row]]) -> None:
        """Old results that are out already and now end at T, by their starts: they may be joined like any other."""
        waiting = self._waiting()
        for start, row in halves:
            waiting.olds.setdefault(self._key(row), []).append((start, row))
        self._keep(waiting)

    def is_waiting(self) -> bool:
        """Whether anything is held, or may still be joined."""
        return not self._waiting().is_empty

    def results_waiting(self) -> int:
        """How many results are held."""
        waiting = self._waiting()
        halves = waiting.news.values() if self.revises else (*waiting.olds.values(), *waiting.news.values())
        return len(waiting.ready) + sum(map(len, halves))

    def _reached(self, waiting: Waiting) -> int:
        """What is promised of all that is still to come."""
        old, new = self._bounds()
        reached = max(new, self.split) if old >= self.split else old
        if waiting.olds:
            reached = min(reached, self.split if self.revises else waiting.least())
        if waiting.news:
            reached = min(reached, self.split)
        return reached

    def _in_turn(self, waiting: Waiting, told: Iterable[Told]) -> list[Told]:
        """What comes out in order, of this and of what was ready before: up to where both inputs have come."""
        for each in told:
            waiting.number += 1
            heappush(waiting.ready, (each[0], waiting.number, each))
        bounds, last = self._bounds(), self._progress()
        old, new = (max(pair) for pair in zip(bounds, last, strict=True))
        reached = min(new if bounds[OLD] >= self.split else old, waiting.least())
        due: list[Told] = []
        while waiting.ready and waiting.ready[0][0] <= reached:
            due.append(heappop(waiting.ready)[2])
        return due

    def _batches(self, told: list[Told]) -> Iterator[Batch]:
        if told:
            lives = Lives(np.array([each[1] for each in told]), np.array([each[2] for each in told]))
            yield Batch(self.schema, [each[3] for each in told], lives=lives)

    def _key(self, row: Row) -> Row:
        return canonical_row(tuple([row[at] for at in self.layout.places]))

    def _bounds(self) -> list[int]:
        found: list[int] | None = self.pages.get("bounds")
        return [MIN_TICK] * 2 if found is None else list(found)

    def _progress(self) -> list[int]:
        """The starts of the last results of both, where order is kept."""
        found: list[int] | None = self.pages.get("progress")
        return [MIN_TICK] * 2 if found is None else list(found)

    def _waiting(self) -> Waiting:
        found: Waiting | None = self.pages.get("waiting")
        return Waiting() if found is None else found

    def _keep(self, waiting: Waiting) -> None:
        self.pages.put("waiting", waiting)

    def to_plain(self, key: str, page: Any) -> Any:
        """Halves as lists; heaps are made of them again."""
        if key != "waiting":
            return page
        halves = [[[at, row] for each in some.values() for at, row in each] for some in (page.olds, page.news)]
        return [*halves, [list(each[2]) for each in sorted(page.ready)]]

    def from_plain(self, key: str, data: Any, version: int) -> Any:
        """The other way."""
        if key != "waiting":
            return data
        waiting = Waiting()
        olds, news, ready = data
        for halves, some in ((olds, waiting.olds), (news, waiting.news)):
            for at, row in halves:
                some.setdefault(self._key(tuple(row)), []).append((at, tuple(row)))
        if not self.revises:
            waiting.starts = sorted(start for start, _ in olds)
        for start, end, old, row in ready:
            waiting.number += 1
            waiting.ready.append((start, waiting.number, (start, end, old, tuple(row))))
        return waiting


def _first(halves: dict[Row, list[tuple[int, Row]]], key: Row) -> tuple[int, Row] | None:
    """Take out the first half under a key."""
    found = halves.get(key)
    if not found:
        return None
    half = found.pop(0)
    if not found:
        del halves[key]
    return half
