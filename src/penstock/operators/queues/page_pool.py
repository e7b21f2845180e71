"""Pages: buffers of bytes of a fixed size, taken from the operating system and given back to it (UpStream, section 7).

A page is cut into locations of one size. It is memory of its own, mapped from the system, so that a page which is given
back lowers what the process holds, however the pages around it are used. A row that is larger than a page gets a page
of its own, as large as it needs.

The pool keeps a spare page or so: a queue that swings between empty and one row would ask the system each time.
"""

from __future__ import annotations

import mmap

import numpy as np

from penstock.errors import StreamError

PAGE_BYTES = 1 << 16
MOST_PAGE_BYTES = 1 << 20
SLOT_BITS = 16
"""A location is the number of its page and, in so many bits, its place there."""
LEAST_SIZE = 16
_SPARE = 1


def rounded(size: int) -> int:
    """The size of a location for so many bytes: a multiple of 16 up to 128, then a quarter of a doubling apart."""
    if size <= 8 * LEAST_SIZE:
        return max(-(-size // LEAST_SIZE), 1) * LEAST_SIZE
    step = 1 << ((size - 1).bit_length() - 3)
    return -(-size // step) * step


class Page:
    """A buffer that is cut into locations of one size."""

    __slots__ = ("bytes", "cells", "free", "number", "size", "slots", "view")

    def __init__(self, buffer: mmap.mmap, number: int, size: int) -> None:
        """All locations are free; the first is used first."""
        self.number, self.size = number, size
        self.bytes = len(buffer)
        self.slots = self.bytes // size
        self.view = memoryview(buffer)
        self.cells = np.frombuffer(buffer, np.dtype((np.void, size)), self.slots)
        """The locations, as one value each."""
        self.free = list(range(self.slots - 1, -1, -1))
        """The locations that are not used; the last is used next."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is used."""
        return len(self.free) == self.slots

    def location(self, slot: int) -> int:
        """The number of one of its locations."""
        return self.number << SLOT_BITS | slot

    def at(self, slot: int) -> memoryview:
        """The bytes of a location."""
        start = slot * self.size
        return self.view[start : start + self.size]


class PagePool:
    """Where the pages of queues come from; several may share one."""

    def __init__(self, page_bytes: int = PAGE_BYTES, spare: int = _SPARE) -> None:
        """`spare`: so many pages that nobody uses are kept."""
        if page_bytes % mmap.PAGESIZE or not 0 < page_bytes <= MOST_PAGE_BYTES:
            raise StreamError(
                "A page is made of whole pages of the operating system.",
                got=f"page_bytes={page_bytes}",
                hint=f"a multiple of {mmap.PAGESIZE} up to {MOST_PAGE_BYTES}",
            )
        self.page_bytes, self.most_spare = page_bytes, spare
        self._spare: list[mmap.mmap] = []
        self.pages = 0
        """Pages that are in use."""
        self.bytes = 0
        """Their size."""

    @property
    def spare(self) -> int:
        """How many pages are kept that nobody uses."""
        return len(self._spare)

    def take(self, number: int, size: int) -> Page:
        """A page of locations of a size; one that is larger than usual where the size is."""
        room = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE if size > self.page_bytes else self.page_bytes
        usual = room == self.page_bytes
        buffer = self._spare.pop() if usual and self._spare else _mapped(room)
        self.pages += 1
        self.bytes += room
        return Page(buffer, number, size)

    def give_back(self, page: Page) -> None:
        """A page is not used any more; its memory goes to the system once nobody looks at it."""
        self.pages -= 1
        self.bytes -= page.bytes
        buffer = page.view.obj
        assert isinstance(buffer, mmap.mmap)
        if page.bytes == self.page_bytes and len(self._spare) < self.most_spare:
            self._spare.append(buffer)


def _mapped(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
