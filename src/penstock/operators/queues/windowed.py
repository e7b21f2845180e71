"""Update queues whose updates are windows (UpStream, sections 6 and 7.2).

What waits of a key is its most recent window, and whoever takes it is given all of that window's rows and no others, or
nothing of it: a window that was overtaken is dropped as a whole. `dequeue` gives rows with marks (`marks`), one key
after the other as the key states say (`key_states`), and says which windows have ended. What the most recent window is,
is the difference between lazy and eager windows (`lazy_eager`).

A row that no window to come needs is dropped as it comes, and counted as `older`. Cost: a few steps per row in order.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from penstock.model.batch import Row
from penstock.model.schema import Schema
from penstock.operators.queues.blocks import GIVEN, STARTER
from penstock.operators.queues.extents import Extents, Interval
from penstock.operators.queues.key_orders import InPlace
from penstock.operators.queues.key_states import KeyStates
from penstock.operators.queues.marks import DISALLOW, INSIDE, OPEN, Closed, MarkedRows
from penstock.operators.queues.queue import Key, KeyOrder, MemoryManager
from penstock.operators.queues.window_buffer import WindowBuffer
from penstock.operators.queues.window_cells import KeyCell, Promise
from penstock.operators.queues.window_queue import BLOCK_BYTES, WindowQueue
from penstock.operators.state import check_kind


class WindowedQueue(WindowQueue):
    """Of every key the most recent window waits."""

    def __init__(
        self,
        schema: Schema,
        key: tuple[str, ...],
        extents: Extents,
        order: KeyOrder | None = None,
        memory: MemoryManager | None = None,
        *,
        promise: Promise = Promise.NOTHING,
        complete_from: int | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        """IN-PLACE on pages on demand, unless something else is given; see `WindowQueue`."""
        super().__init__(
            schema, key, extents, memory, promise=promise, complete_from=complete_from, block_bytes=block_bytes
        )
        self.states = KeyStates(InPlace() if order is None else order)

    def ready(self, now: int) -> int:
        """How many keys could be served now: of each there is a row, or its window has ended."""
        return self.states.servable

    def earliest(self) -> int | None:
        """The time of the first row that is held."""
        return min([cell.buffer.first_time for cell in self._cells if len(cell.buffer)], default=None)

    # What lazy and eager windows differ in, besides what they do with windows that are whole

    @abstractmethod
    def _arrived(self, number: int, cell: KeyCell, holding: list[Interval], now: int) -> None:
        """A row came that these windows hold."""

    @abstractmethod
    def _keep_from(self, cell: KeyCell) -> int:
        """Where the windows begin that may still be committed to."""

    # In

    def _take_in(self, number: int, cell: KeyCell, row: Row, time: int, holding: list[Interval], now: int) -> None:
        starts = holding[-1][1] > cell.started
        self._arrived(number, cell, holding, now)
        cell.started = max(cell.started, holding[-1][1])
        if not cell.buffer.add(time, STARTER if starts else 0, self._codec.encode_row(row)):
            self.counts.older += 1
        elif number in self.states.idle and cell.buffer.is_available:
            self.states.promote(number)

    def _update(self, number: int, cell: KeyCell, window: int, now: int) -> None:
        """A window is the most recent one of its key: `isUpdate`."""
        self.counts.windows_superseded += cell.waiting is not None
        cell.waiting = window
        self.counts.superseded += cell.buffer.keep(self._keep_from(cell))
        self.states.update(number, now)

    def promised(self) -> int:
        """No window that is still to come out ends before this."""
        windows = [w for cell in self._cells for w in (cell.committed, cell.waiting) if w is not None]
        return self._promised_beside(windows)

    # Out

    def dequeue(self, now: int, most: int) -> MarkedRows:
        """Rows of the windows that are committed to, at most so many; windows that have ended cost none of them."""
        self.tuples.account(now)
        rows: list[Row] = []
        keys: list[int] = []
        windows: list[int] = []
        marks: list[int] = []
        closed: list[Closed] = []
        while (ended := self.states.take_ended()) is not None:
            closed.append(self._done(ended, 0))
        while len(rows) < most:
            number = self.states.ready[0] if self.states.ready else self._commit(now)
            if number is None:
                break
            cell = self._cells[number]
            assert cell.committed is not None
            row, mark = self._next(cell)
            rows.append(row)
            keys.append(number)
            windows.append(cell.committed)
            marks.append(mark)
            available = cell.buffer.is_available
            is_over = not available and self._last_whole(cell) >= cell.committed
            self.states.go_on(available=available, ended=is_over)
            if is_over:
                closed.append(self._done(number, len(rows)))
        return self._marked(rows, keys, windows, marks, closed, now)

    def _commit(self, now: int) -> int | None:
        """Commit to the most recent window of the next key."""
        number = self.states.commit(now)
        if number is None:
            return None
        cell = self._cells[number]
        window = cell.waiting
        assert window is not None
        cell.committed, cell.last, cell.waiting, cell.is_open = window, window, None, False
        start, end = self.extents.start(window), self.extents.end(window)
        self.counts.superseded += cell.buffer.commit(start, end, self._keep_from(cell))
        self.counts.windows_committed += 1
        self.queue_ages.answer(number, window, now)
        return number

    def _next(self, cell: KeyCell) -> tuple[Row, int]:
        """The next row of a committed window, and its mark."""
        found = cell.buffer.next()
        self.counts.dequeued += not found.flags & GIVEN
        mark = OPEN if not cell.is_open else DISALLOW if found.flags & STARTER else INSIDE
        cell.is_open = True
        return self._codec.decode_row(memoryview(found.data)), mark

    def _done(self, number: int, place: int) -> Closed:
        cell = self._cells[number]
        window = cell.committed
        assert window is not None
        cell.committed = None
        self.counts.superseded += cell.buffer.finish()
        return Closed(place, number, window)

    def _served(self, windows: int, cost: int) -> None:
        self.states.order.served(windows, cost)

    # What it is like

    def buffer_of(self, key: Key) -> WindowBuffer | None:
        """What is held of a key; None if it was never seen."""
        number = self._keys.find(key)
        return None if number is None else self._cells[number].buffer

    def read(self, key: Key) -> Row | None:
        """The newest row of a key that is held for a window to come."""
        buffer = self.buffer_of(key)
        held = [] if buffer is None else [each for each in buffer.chain if each.time >= buffer.keep_from]
        return self._codec.decode_row(memoryview(held[-1].data)) if held else None

    # State

    def to_plain(self) -> Any:
        """Everything."""
        order = self.states.order
        return {**super().to_plain(), "states": [order.kind, order.version, self.states.to_plain()]}

    def from_plain(self, data: Any, version: int) -> None:
        """The same; the key order must be of the kind that wrote it."""
        kind, of_version, states = data["states"]
        check_kind(self.states.order, kind, of_version, f"{self.kind}, key order")
        super().from_plain(data, version)
        self.states.from_plain(states, of_version)
