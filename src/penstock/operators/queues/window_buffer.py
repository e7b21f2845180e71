"""The window buffer of a key: the window that is being processed and what accumulates after it (UpStream, 6.2, 7.2).

The paper has a dequeue buffer with the tuples of the window that was committed to, and an enqueue buffer with those of
windows to come. Here both are one chain of blocks in order of time, where a tuple lies once however many windows hold
it. `keep_from` is where the windows begin that may still be committed to; between that and the end of the committed
window nothing is kept. A tuple of the committed window is read, and given up at once if it lies before `keep_from`.

A tuple of the committed window may come out of order, behind what was read of it. It then waits in a chain of its own
and is read next; if a later window needs it too, it lies in both. This happens only where windows are committed to
before they are whole.

With at most one tuple per tick, in order, the buffer of eager windows never holds more than range + slide - 1 tuples,
which is at most (ceil(range / slide) + 1) * slide - 1. Lazily the same bounds what accumulates; beside it there are the
unread tuples of the committed window, at most range - 1.
"""

from __future__ import annotations

from typing import Any

from penstock.operators.queues.blocks import GIVEN, BlockChain, Cursor, Stored
from penstock.operators.queues.queue import MemoryManager


class WindowBuffer:
    """The tuples of one key."""

    __slots__ = ("chain", "committed", "cursor", "keep_from", "stragglers")

    def __init__(self, memory: MemoryManager, owner: int, block_bytes: int, keep_from: int) -> None:
        """Nothing is set aside until a tuple comes."""
        self.chain = BlockChain(memory, owner, block_bytes)
        self.stragglers = BlockChain(memory, owner, block_bytes)
        self.keep_from = keep_from
        self.cursor: Cursor | None = None
        """Up to where the committed window was read; None while there is none."""
        self.committed = (0, 0)
        """From when until when the committed window is."""

    def __len__(self) -> int:
        """How many tuples it holds."""
        return self.chain.count + self.stragglers.count

    @property
    def accumulated(self) -> int:
        """Of those, the ones that windows to come need: the paper's enqueue buffer."""
        return sum(each.time >= self.keep_from for each in self.chain)

    @property
    def unread(self) -> int:
        """Of those, the ones of the committed window that were not read: what is left of the dequeue buffer."""
        if self.cursor is None:
            return 0
        times = [each.time for each in self.chain if self.cursor.time <= each.time < self.committed[1]]
        read = min(self.cursor.ties, times.count(self.cursor.time))
        return len(times) - read + self.stragglers.count

    @property
    def first_time(self) -> int:
        """The time of the first tuple; there must be one."""
        return min(chain.first_time for chain in (self.chain, self.stragglers) if chain.count)

    # At enqueue

    def add(self, time: int, flags: int, data: bytes) -> bool:
        """Keep a tuple where some window needs it; whether one does."""
        cursor = self.cursor
        committed = cursor is not None and self.committed[0] <= time < self.committed[1]
        if cursor is not None and committed and time < cursor.time:
            self.stragglers.insert(Stored(time, flags, data))
            if time >= self.keep_from:
                self.chain.insert(Stored(time, flags | GIVEN, data))  # the other one counts as what waits
                self.chain.changes += 1  # it lies behind the cursor, even where it came to lie at the end
            return True
        if committed or time >= self.keep_from:
            self.chain.insert(Stored(time, flags, data))
            return True
        return False

    def keep(self, keep_from: int) -> int:
        """Windows before this time will not be committed to; how many tuples that nobody was given went for it."""
        self.keep_from = keep_from
        return self._trim()

    def _trim(self) -> int:
        chain, cursor, lost = self.chain, self.cursor, 0
        while chain.count and chain.first_time < self.keep_from:
            if cursor is not None and chain.first_time >= cursor.time:
                if chain.first_time > cursor.time or not cursor.ties:
                    break
                cursor.move(cursor.time, cursor.ties - 1)
            lost += not chain.pop().flags & GIVEN
        if cursor is not None and self.committed[1] < self.keep_from and chain.count:
            lost += sum(not each.flags & GIVEN for each in chain.erase(self.committed[1], self.keep_from))
        return lost

    # At dequeue

    def commit(self, start: int, end: int, keep_from: int) -> int:
        """The window between these times is read from now on; how many tuples that nobody was given went for it."""
        self.cursor, self.committed = Cursor(self.chain, start), (start, end)
        return self.keep(keep_from)

    @property
    def is_available(self) -> bool:
        """Whether there is a tuple of the committed window that was not read: `isAvail`."""
        if self.cursor is None:
            return False
        following = self.cursor.peek()
        return self.stragglers.count > 0 or (following is not None and following < self.committed[1])

    def next(self) -> Stored:
        """The next tuple of the committed window."""
        cursor = self.cursor
        assert cursor is not None
        if self.stragglers.count:
            return self.stragglers.pop()
        time = cursor.peek()
        assert time is not None
        if time >= self.keep_from:
            return cursor.read()
        found = self.chain.pop()
        assert found.time == time, "what was read and is not needed has been given up"
        cursor.move(time, 0)
        return found

    def finish(self) -> int:
        """All of the committed window was read; how many tuples that nobody was given went for it."""
        self.cursor = None
        return self._trim()

    # State

    def to_plain(self) -> Any:
        """Where the blocks are, and how far the committed window was read."""
        cursor = None if self.cursor is None else (self.cursor.time, self.cursor.ties)
        return [self.chain.to_plain(), self.stragglers.to_plain(), self.keep_from, self.committed, cursor]

    def from_plain(self, data: Any) -> None:
        """The same."""
        chain, stragglers, self.keep_from, (low, high), cursor = data
        self.committed = low, high
        self.chain.from_plain(chain)
        self.stragglers.from_plain(stragglers)
        self.cursor = None if cursor is None else Cursor(self.chain, *cursor)
