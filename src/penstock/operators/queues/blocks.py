"""A key's tuples in blocks on pages: the fixed-length contiguous zones of the window manager (UpStream, section 7.2).

A block is a location of the memory manager that holds tuples of one key one after the other. It has an offset where the
next tuple is taken and one where the next is put; it is set aside when it is needed and given back when it is empty.
The chain of a key's blocks is in order of event time, tuples with equal times in order of arrival: a tuple that comes
in order goes to the end, one that comes out of order into the block where it belongs, which is cut in two where it has
no room left. So a stretch of time is a stretch of the chain, and can be erased.

A tuple that does not fit into a block has a larger one of its own. Cost: a few steps for a tuple in order, a block's
tuples for one that is not, and for the edges of a stretch that is erased.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

from penstock.operators.queues.queue import MemoryManager

_HEAD = struct.Struct("<qIB")
"""Event time, length, and flags."""
GIVEN, STARTER = 1, 2
"""It was handed on at least once; it was the first to come of its last window."""


class Stored(NamedTuple):
    """A tuple in a block."""

    time: int
    flags: int
    data: bytes

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        return _HEAD.size + len(self.data)


class Block:
    """Tuples one after the other in one location."""

    __slots__ = ("count", "end", "first", "last", "location", "room", "start")

    def __init__(self, location: int, room: int) -> None:
        """It holds nothing yet, and has room for so many bytes."""
        self.location, self.room = location, room
        self.start = self.end = self.count = 0
        """Where the first tuple is, where the next goes, and how many there are."""
        self.first = self.last = 0
        """The times of the first and of the last."""


class BlockChain:
    """The tuples of one owner, in order of time."""

    __slots__ = ("block_bytes", "blocks", "changes", "count", "memory", "owner")

    def __init__(self, memory: MemoryManager, owner: int, block_bytes: int) -> None:
        """Nothing is set aside yet."""
        self.memory, self.owner, self.block_bytes = memory, owner, block_bytes
        self.blocks: list[Block] = []
        self.count = 0
        self.changes = 0
        """Goes up whenever a tuple has moved, so that whoever remembers a place looks for it again."""

    def __len__(self) -> int:
        """How many tuples there are."""
        return self.count

    # Putting in

    def insert(self, tuple_: Stored) -> None:
        """Put a tuple in its place: after those that are not later."""
        self.count += 1
        blocks = self.blocks
        if not blocks or tuple_.time >= blocks[-1].last:
            if not blocks or blocks[-1].end + tuple_.size > blocks[-1].room:
                blocks.append(self._new(tuple_.size))
            self._append(blocks[-1], tuple_)
            return
        at = max(bisect_right(blocks, tuple_.time, key=lambda block: block.first) - 1, 0)
        tuples = list(self._tuples(blocks[at]))
        place = bisect_right(tuples, tuple_.time, key=lambda each: each.time)
        tuples.insert(place, tuple_)
        self._put(at, tuples)

    def _new(self, size: int) -> Block:
        room = max(self.block_bytes, size)
        return Block(self.memory.allocate(self.owner, room), room)

    def _append(self, block: Block, tuple_: Stored) -> None:
        view = self.memory.view(block.location)
        _HEAD.pack_into(view, block.end, tuple_.time, len(tuple_.data), tuple_.flags)
        start = block.end + _HEAD.size
        block.end = start + len(tuple_.data)
        view[start : block.end] = tuple_.data
        if not block.count:
            block.first = tuple_.time
        block.last = tuple_.time
        block.count += 1

    def _put(self, at: int, tuples: list[Stored]) -> None:
        """These tuples instead of those of a block: in it, and in blocks after it if they need more."""
        self.changes += 1
        block = self.blocks[at]
        block.start = block.end = block.count = 0
        if not tuples:
            self._release(at)
            return
        fits = sum(each.size for each in tuples) <= block.room
        half = len(tuples) if fits else max(len(tuples) // 2, 1)
        for place, each in enumerate(tuples):
            if block.end + each.size > block.room or (place >= half and block is self.blocks[at]):
                if not block.count:  # not even the first fits
                    self.memory.free(self.owner, block.location)
                    block = self.blocks[at] = self._new(each.size)
                else:
                    at += 1
                    block = self._new(each.size)
                    self.blocks.insert(at, block)
                half = len(tuples)
            self._append(block, each)

    # Taking out

    def _tuples(self, block: Block) -> Iterator[Stored]:
        view = self.memory.view(block.location)
        at = block.start
        while at < block.end:
            time, length, flags = _HEAD.unpack_from(view, at)
            at += _HEAD.size
            yield Stored(time, flags, bytes(view[at : at + length]))
            at += length

    @property
    def first_time(self) -> int:
        """The time of the first tuple; there must be one."""
        return self.blocks[0].first

    @property
    def last_time(self) -> int:
        """The time of the last tuple; there must be one."""
        return self.blocks[-1].last

    def first(self) -> Stored:
        """The first tuple, which stays; there must be one."""
        return next(self._tuples(self.blocks[0]))

    def pop(self) -> Stored:
        """Take the first tuple out."""
        found = self.first()
        block = self.blocks[0]
        block.start += found.size
        block.count -= 1
        self.count -= 1
        if not block.count:
            self._release(0)
        else:
            block.first = _HEAD.unpack_from(self.memory.view(block.location), block.start)[0]
        return found

    def _release(self, at: int) -> None:
        block = self.blocks.pop(at)
        self.memory.free(self.owner, block.location)
        self.changes += 1

    def erase(self, low: int, high: int) -> list[Stored]:
        """Take out the tuples of a stretch of time."""
        erased: list[Stored] = []
        at = bisect_left(self.blocks, low, key=lambda block: block.last)
        while at < len(self.blocks) and self.blocks[at].first < high:
            block = self.blocks[at]
            tuples = list(self._tuples(block))
            kept = [each for each in tuples if not low <= each.time < high]
            if len(kept) == len(tuples):
                at += 1
                continue
            self.count -= len(tuples) - len(kept)
            self._put(at, kept)
            at += 1 if kept else 0
            erased += [each for each in tuples if low <= each.time < high]
        return erased

    def clear(self) -> None:
        """Give everything back."""
        for block in self.blocks:
            self.memory.free(self.owner, block.location)
        self.blocks.clear()
        self.count = 0
        self.changes += 1

    def __iter__(self) -> Iterator[Stored]:
        """All tuples in order."""
        for block in list(self.blocks):
            yield from self._tuples(block)

    # State: the tuples themselves are in the memory manager's

    def to_plain(self) -> Any:
        """Where the blocks are, and what of them is in use."""
        return [(b.location, b.room, b.start, b.end, b.count, b.first, b.last) for b in self.blocks]

    def from_plain(self, data: Any) -> None:
        """The same blocks."""
        self.blocks = []
        for location, room, *others in data:
            block = Block(location, room)
            block.start, block.end, block.count, block.first, block.last = others
            self.blocks.append(block)
        self.count = sum(block.count for block in self.blocks)
        self.changes += 1


class Cursor:
    """A place in a chain up to which tuples were read: all before `time`, and `ties` of those at it."""

    __slots__ = ("_at", "_block", "_changes", "chain", "ties", "time")

    def __init__(self, chain: BlockChain, time: int, ties: int = 0) -> None:
        """Before the tuples of a time, or after so many of them."""
        self.chain, self.time, self.ties = chain, time, ties
        self._block: Block | None = None
        self._at = 0
        self._changes = -1

    def peek(self) -> int | None:
        """The time of the next tuple; None if there is none."""
        if self._changes != self.chain.changes or self._block is None or self._at < self._block.start:
            self._find()
        block = self._block
        if block is not None and self._at >= block.end:
            at = self.chain.blocks.index(block) + 1
            if at == len(self.chain.blocks):
                return None
            block = self._block = self.chain.blocks[at]
            self._at = block.start
        if block is None:
            return None
        found: int = _HEAD.unpack_from(self.chain.memory.view(block.location), self._at)[0]
        return found

    def read(self) -> Stored:
        """The next tuple, which stays where it is and is noted as given."""
        assert self.peek() is not None
        block = self._block
        assert block is not None
        view = self.chain.memory.view(block.location)
        time, length, flags = _HEAD.unpack_from(view, self._at)
        _HEAD.pack_into(view, self._at, time, length, flags | GIVEN)
        start = self._at + _HEAD.size
        self._at = start + length
        self.ties = self.ties + 1 if time == self.time else 1
        self.time = time
        return Stored(time, flags, bytes(view[start : self._at]))

    def move(self, time: int, ties: int) -> None:
        """Stand before the tuples of a time, or after so many of them."""
        self.time, self.ties, self._changes = time, ties, -1

    def _find(self) -> None:
        """Look for the place anew."""
        self._block, self._changes = None, self.chain.changes
        ties = self.ties
        for block in self.chain.blocks:
            if block.last < self.time:
                continue
            view = self.chain.memory.view(block.location)
            at = block.start
            while at < block.end:
                time, length, _ = _HEAD.unpack_from(view, at)
                if time > self.time or (time == self.time and not ties):
                    self._block, self._at = block, at
                    return
                ties -= time == self.time
                at += _HEAD.size + length
            self._block, self._at = block, at
