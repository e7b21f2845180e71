"""Windows that are dropped by lot: the baseline of append queues (UpStream, section 6.3.1).

Every window of a key is kept with a probability, whatever load there is and however old it is, and all rows of those
that are kept are handed on in the order in which they came, a row once for each window that it is kept for: nothing is
shared among windows that overlap. With probability 1 it is the append queue, which processes everything. A row is held
once, until the last of its windows has been given it; one of which no window is kept is shed.

The lot is a number that follows from the key, the window and the seed alone, so it needs no state.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from penstock.errors import StreamError
from penstock.model.batch import Row
from penstock.model.schema import Schema
from penstock.operators.queues.blocks import BlockChain, Stored
from penstock.operators.queues.extents import Extents, Interval
from penstock.operators.queues.marks import INSIDE, OPEN, Closed, MarkedRows
from penstock.operators.queues.queue import Key, MemoryManager
from penstock.operators.queues.window_cells import KeyCell, Promise
from penstock.operators.queues.window_queue import BLOCK_BYTES, WindowQueue

_BITS = 64
_ALL = (1 << _BITS) - 1


def lot(seed: int, key: int, window: int) -> float:
    """A number from 0 to 1 that is as good as drawn (SplitMix64's finish)."""
    mixed = (seed * 0x9E3779B97F4A7C15 + key * 0xBF58476D1CE4E5B9 + window * 0x94D049BB133111EB) & _ALL
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = ((mixed ^ mixed >> shift) * factor) & _ALL
    return (mixed ^ mixed >> 31) / (1 << _BITS)


class SheddingWindows(WindowQueue):
    """All rows of some of the windows."""

    kind = "shedding windows"

    def __init__(
        self,
        schema: Schema,
        key: tuple[str, ...],
        extents: Extents,
        memory: MemoryManager | None = None,
        *,
        keep: float = 1.0,
        seed: int = 0,
        promise: Promise = Promise.NOTHING,
        complete_from: int | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        """`keep` is the share of windows that are kept; 1 over the load factor is what can be processed."""
        super().__init__(
            schema, key, extents, memory, promise=promise, complete_from=complete_from, block_bytes=block_bytes
        )
        if not 0 < keep <= 1:
            raise StreamError("Some windows are kept.", where=self.kind, got=f"keep={keep}", hint="0 < keep <= 1")
        self.keep, self.seed = keep, seed
        self._rows = BlockChain(self.tuples, 0, block_bytes)
        """In order of arrival: the number of the row stands for a time."""
        self._line: deque[tuple[int, int, list[int]]] = deque()
        """Per row that is held its number, key and windows; number -1 where a window has ended."""
        self._arrivals = 0
        self._given = 0
        """For how many of its windows the first row was given."""
        self._open: set[tuple[int, int]] = set()
        """Windows of which a row was given."""

    def is_kept(self, key: int, window: int) -> bool:
        """Whether the lot keeps a window."""
        return lot(self.seed, key, window) < self.keep

    def ready(self, now: int) -> int:
        """How many rows and ends of windows stand in line."""
        return len(self._line)

    def _take_in(self, number: int, cell: KeyCell, row: Row, time: int, holding: list[Interval], now: int) -> None:
        kept = [wid for low, high in holding for wid in range(low, high + 1) if self.is_kept(number, wid)]
        if not kept:
            self.counts.shed += 1
            return
        self._rows.insert(Stored(self._arrivals, 0, self._codec.encode_row(row)))
        self._line.append((self._arrivals, number, kept))
        self._arrivals += 1

    def _closed(self, number: int, cell: KeyCell, whole: list[Interval], now: int) -> None:
        for run in whole:
            self.queue_ages.add(number, run, now)
            for wid in range(run[0], run[1] + 1):
                if self.is_kept(number, wid):
                    self._line.append((-1, number, [wid]))

    def promised(self) -> int:
        """No window that is still to come out ends before this."""
        return self._promised_beside([windows[0] for _, _, windows in self._line] + [wid for _, wid in self._open])

    def dequeue(self, now: int, most: int) -> MarkedRows:
        """What stands first, a row for one window after the other."""
        self.tuples.account(now)
        rows: list[Row] = []
        keys: list[int] = []
        taken: list[int] = []
        marks: list[int] = []
        closed: list[Closed] = []
        while self._line:
            number, key, windows = self._line[0]
            if number < 0:
                self._line.popleft()
                closed.append(Closed(len(rows), key, windows[0]))
                self._open.remove((key, windows[0]))
                self.queue_ages.answer(key, windows[0], now)
                continue
            if len(rows) == most:
                break
            window = windows[self._given]
            rows.append(self._codec.decode_row(memoryview(self._rows.first().data)))
            keys.append(key)
            taken.append(window)
            marks.append(INSIDE if (key, window) in self._open else OPEN)
            self.counts.windows_committed += (key, window) not in self._open
            self._open.add((key, window))
            self.counts.dequeued += not self._given
            self._given += 1
            if self._given == len(windows):
                self._rows.pop()
                self._line.popleft()
                self._given = 0
        return self._marked(rows, keys, taken, marks, closed, now)

    def read(self, key: Key) -> Row | None:
        """The newest row of a key that stands in line."""
        number = self._keys.find(key)
        last = max([at for at, own, _ in self._line if own == number], default=-1)
        found = [each for each in self._rows if each.time == last]
        return self._codec.decode_row(memoryview(found[0].data)) if found else None

    def to_plain(self) -> Any:
        """The line besides."""
        line = [self._rows.to_plain(), list(self._line), self._arrivals, self._given, sorted(self._open)]
        return {**super().to_plain(), "line": line}

    def from_plain(self, data: Any, version: int) -> None:
        """The same."""
        super().from_plain(data, version)
        rows, stood, self._arrivals, self._given, still_open = data["line"]
        self._rows.from_plain(rows)
        self._line = deque((number, key, list(windows)) for number, key, windows in stood)
        self._open = {(key, window) for key, window in still_open}
