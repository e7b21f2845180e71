"""What queues have in common whose updates are windows: which windows have rows, which are whole, how stale keys are.

Windows are by event time, and rows may come out of order as far as the promises allow. A window is *whole* once a
promise, of all rows or of a key's, has passed its end. A stream that is in order within each key promises by every row
(`Promise`), so that its windows close without punctuation where rows go on coming.

Ties and edges: a row below what was promised is late, which the entrance of its stream should have seen; it is dropped
and counted as `older`. A row in no window at all counts as `outside`.

Cost: a promise costs what it closes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from heapq import heappop, heappush
from typing import Any

from penstock.errors import StreamError
from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.model.values import canonical
from penstock.operators.queues.extents import Extents, Interval
from penstock.operators.queues.key_table import KeyTable
from penstock.operators.queues.marks import Closed, MarkedRows
from penstock.operators.queues.paging import OnDemandPaging
from penstock.operators.queues.queue import Key, MemoryManager, MemoryUsage, Queue, Staleness
from penstock.operators.queues.staleness_sum import StalenessSum
from penstock.operators.queues.tuples import TupleCodec
from penstock.operators.queues.window_ages import Ages
from penstock.operators.queues.window_buffer import WindowBuffer
from penstock.operators.queues.window_cells import KeyCell, Promise, UnderWay, WindowCounts
from penstock.operators.state import check_kind

BLOCK_BYTES = 512
"""Of a block, unless something else is said."""


class WindowQueue(Queue):
    """Rows that wait for the windows that they are in."""

    counts: WindowCounts

    def __init__(
        self,
        schema: Schema,
        key: tuple[str, ...],
        extents: Extents,
        memory: MemoryManager | None = None,
        *,
        promise: Promise = Promise.NOTHING,
        complete_from: int | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        """On pages on demand, unless something else is given.

        `complete_from`: rows before it may lack, so that windows which start before it are no updates.
        """
        super().__init__(schema, key)
        if schema.time is None:
            raise StreamError(
                "A queue of windows needs a stream with a time.",
                where=self.kind,
                got=f"columns {', '.join(schema.names)}",
                hint="declare the stream with time=...",
            )
        self.extents, self.promise, self.block_bytes = extents, promise, block_bytes
        self._first = MIN_TICK if complete_from is None else extents.first_from(complete_from)
        self.counts = WindowCounts()
        self.tuples = OnDemandPaging() if memory is None else memory
        self.queue_ages, self.application_ages = Ages(), Ages()
        self._codec = TupleCodec(schema)
        self._keys = KeyTable(schema, self.key)
        self._time = schema.time_index
        self._cells: list[KeyCell] = []
        self._bound = MIN_TICK
        self._closings: list[tuple[int, int]] = []
        """The ends of the first open windows of keys, with the keys: a heap that may hold some that are closed."""
        self._since: int | None = None
        self._under_way: deque[UnderWay] = deque()
        self._delivery = MIN_TICK

    def __len__(self) -> int:
        """The rows that are held and were never given."""
        c = self.counts
        return c.enqueued - c.dequeued - c.superseded - c.older - c.outside - c.shed

    # What is done with rows and windows

    @abstractmethod
    def _take_in(self, number: int, cell: KeyCell, row: Row, time: int, holding: list[Interval], now: int) -> None:
        """A row came that is not late, and that these windows hold."""

    @abstractmethod
    def _closed(self, number: int, cell: KeyCell, whole: list[Interval], now: int) -> None:
        """Windows of a key are whole."""

    def _served(self, windows: int, cost: int) -> None:
        """So many windows were processed, which took so long."""

    @abstractmethod
    def dequeue(self, now: int, most: int) -> MarkedRows:
        """Rows with their marks, at most so many, and the windows that have ended."""

    # In

    def enqueue(self, batch: Batch, now: int) -> None:
        """Take rows."""
        if batch.lives is not None:
            raise StreamError(
                "A queue of windows takes rows, not revisions.",
                where=self.kind,
                got="a batch with lives",
                hint="settle the stream before the queue",
            )
        self.tuples.account(now)
        for row in batch.rows:
            self._enqueue(row, now)

    def _enqueue(self, row: Row, now: int) -> None:
        number = self._keys.number(row)
        if number == len(self._cells):
            self._new_key(number, now)
        cell = self._cells[number]
        time = row[self._time]
        assert isinstance(time, int)
        self.counts.enqueued += 1
        holding = [(max(low, self._first), high) for low, high in self.extents.holding(time) if high >= self._first]
        if not holding:
            self.counts.outside += 1
        elif time < max(self._bound, cell.bound):
            self.counts.older += 1
        else:
            self._cover(number, cell, holding)
            self._take_in(number, cell, row, time, holding, now)
        if self.promise is not Promise.NOTHING:
            self._promise(number, cell, time + (self.promise is Promise.STRICTLY), now)

    def _new_key(self, number: int, now: int) -> None:
        self._cells.append(KeyCell(WindowBuffer(self.tuples, number, self.block_bytes, MIN_TICK)))
        self.queue_ages.new_key(now)
        self.application_ages.new_key(now)
        if self._since is None:
            self._since = now

    def _cover(self, number: int, cell: KeyCell, holding: list[Interval]) -> None:
        """These windows have a row."""
        first = cell.coverage.first
        for run in holding:
            cell.coverage.add(*run)
        if cell.coverage.first != first:
            self._watch_first(number, cell)

    def _watch_first(self, number: int, cell: KeyCell) -> None:
        """The first open window of a key is another one: its end is waited for."""
        first = cell.coverage.first
        if first is not None:
            heappush(self._closings, (self.extents.end(first), number))

    # Promises

    def punctuate(self, punctuation: Punctuation, now: int) -> None:
        """Close the windows that the promise makes whole, of all keys or of those that it speaks of."""
        if punctuation.is_joint or punctuation.attribute != self.schema.time:
            return
        self.tuples.account(now)
        bound = punctuation.value
        if not punctuation.constants:
            self._promise_all(bound, now)
            return
        said = {name: canonical(value) for name, value in punctuation.constants}
        if not said.keys() <= set(self.key):
            return  # it speaks of some rows of a key alone
        for number, values in enumerate(self._keys.keys()):
            if said.items() <= set(zip(self.key, map(canonical, values), strict=True)):
                self._promise(number, self._cells[number], bound, now)

    def _promise_all(self, bound: int, now: int) -> None:
        if bound <= self._bound:
            return
        self._bound = bound
        closings = self._closings
        while closings and closings[0][0] <= bound:
            _, number = heappop(closings)
            self._close(number, self._cells[number], bound, now)

    def _promise(self, number: int, cell: KeyCell, bound: int, now: int) -> None:
        if bound > max(cell.bound, self._bound):
            cell.bound = bound
            self._close(number, cell, bound, now)

    def _close(self, number: int, cell: KeyCell, bound: int, now: int) -> None:
        whole = cell.coverage.close(self.extents.whole(bound))
        if whole:
            self._watch_first(number, cell)
            for run in whole:
                self.application_ages.add(number, run, now)
            self._closed(number, cell, whole, now)

    def _last_whole(self, cell: KeyCell) -> int:
        """The last window of a key of which nothing more can come."""
        return self.extents.whole(max(self._bound, cell.bound))

    def _promised_beside(self, waiting: list[int]) -> int:
        """No window to come ends before this, where these are to come besides those that are not whole."""
        if self._bound == END_OF_TIME:
            return min(map(self.extents.result_end, waiting), default=END_OF_TIME)
        return self.extents.result_end(min([self.extents.whole(self._bound) + 1, *waiting]))

    @abstractmethod
    def promised(self) -> int:
        """No window that is still to come out ends before this."""

    # Out

    def _marked(
        self, rows: list[Row], keys: list[int], windows: list[int], marks: list[int], closed: list[Closed], now: int
    ) -> MarkedRows:
        """What is dequeued, which is under way from now on."""
        self.counts.given += len(rows)
        self.counts.windows_closed += len(closed)
        if rows or closed:
            self._under_way.append(UnderWay(len(rows), closed, now))
        return MarkedRows(self.schema, rows, keys, windows, marks, closed)

    def delivered(self, now: int, most: int | None = None) -> None:
        """Rows were processed, and the results of windows that ended among them are there."""
        left = sum(part.rows - part.done for part in self._under_way) if most is None else most
        while self._under_way:
            part = self._under_way[0]
            rows = min(left, part.rows - part.done)
            left -= rows
            self.counts.delivered += rows
            closed = part.process(rows)
            for _, number, window in closed:
                self.application_ages.answer(number, window, now)
            if closed:
                self._served(len(closed), now - max(part.at, self._delivery))
                self._delivery = now
            if part.done < part.rows:
                return
            self._under_way.popleft()

    # What it is like

    def key_of(self, number: int) -> Key:
        """The values of a key."""
        return self._keys.keys()[number]

    def staleness(self, now: int, key: Key | None = None) -> Staleness:
        """In windows: of one key, or of all on average."""
        number = None if key is None else self._keys.find(key)
        if self._since is None or (key is not None and number is None):
            return Staleness()
        queue, _, average_queue, _ = self.queue_ages.measure(now, self._since, number)
        application, unapplied, average, average_unapplied = self.application_ages.measure(now, self._since, number)
        return Staleness(queue, application, unapplied, average_queue, average, average_unapplied)

    def metered(self, now: int) -> StalenessSum:
        """What is known of the staleness of all keys, so that it can be summed with that of other queues."""
        return StalenessSum.of_windows(self.queue_ages, self.application_ages, now, self._since)

    def memory(self, now: int) -> MemoryUsage:
        """What the blocks take; a location is a block."""
        return self.tuples.usage(now)

    # State

    def to_plain(self) -> Any:
        """What all queues of windows keep."""
        return {
            "keys": self._keys.to_plain(), "cells": [cell.to_plain() for cell in self._cells], "bound": self._bound,
            "since": self._since, "delivery": self._delivery, "closings": sorted(self._closings),
            "under_way": [part.to_plain() for part in self._under_way], "counts": self.counts.as_dict(),
            "ages": [self.queue_ages.to_plain(), self.application_ages.to_plain()],
            "memory": [self.tuples.kind, self.tuples.version, self.tuples.to_plain()],
        }  # fmt: skip

    def from_plain(self, data: Any, version: int) -> None:
        """The same; the memory manager must be of the kind that wrote it."""
        kind, of_version, memory = data["memory"]
        check_kind(self.tuples, kind, of_version, f"{self.kind}, memory")
        self.tuples.from_plain(memory, of_version)
        self._keys.from_plain(data["keys"])
        self._cells = []
        for number, plain in enumerate(data["cells"]):
            self._cells.append(KeyCell(WindowBuffer(self.tuples, number, self.block_bytes, MIN_TICK)))
            self._cells[-1].from_plain(plain)
        self._bound, self._since, self._delivery = data["bound"], data["since"], data["delivery"]
        self._closings = [(end, number) for end, number in data["closings"]]
        self._under_way = deque(map(UnderWay.from_plain, data["under_way"]))
        self.counts = WindowCounts(**data["counts"])
        self.queue_ages.from_plain(data["ages"][0])
        self.application_ages.from_plain(data["ages"][1])
