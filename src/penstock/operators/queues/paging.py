"""Tuples in locations on pages, with exact accounts of what is held (UpStream, section 7.1).

`OnDemandPaging` holds as many pages as the tuples that wait need. Locations that became free on a page that is in use
are used first: the *empty-locations pool* has, for each size, the pages that have some, and the page that was full last
is filled first. A page on which nothing is used goes back to the page pool at once. (The routines of the paper neither
drop full pages from that pool nor give empty ones back.)

Cost: a few steps per location; where many are asked for at a time, per page that they are on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.operators.queues.page_pool import SLOT_BITS, Page, PagePool, rounded
from penstock.operators.queues.queue import MemoryManager, MemoryUsage

_SLOT = (1 << SLOT_BITS) - 1


class PagedMemory(MemoryManager):
    """Pages cut into locations; who has which of them is for those who are derived from it to say."""

    def __init__(self, pool: PagePool | None = None) -> None:
        """Nothing is held yet; `pool` is a pool of its own unless one is given."""
        self.pool = PagePool() if pool is None else pool
        self._pages: list[Page | None] = []
        self._numbers: list[int] = []
        """Numbers of pages that were given back."""
        self._with_room: dict[int, dict[int, Page]] = {}
        """The empty-locations pool: by size, pages that have free locations; the last one is used first."""
        self._locations = self._used = self._held = self._bytes = self._used_bytes = 0
        self._since: int | None = None
        self._last = 0
        self._areas = [0, 0, 0, 0]
        """The integrals over time of locations, used, bytes and used bytes."""

    # Locations

    def _take(self, size: int) -> int:
        size = rounded(size)
        with_room = self._with_room.get(size)
        page = next(reversed(with_room.values())) if with_room else self._new_page(size)
        slot = page.free.pop()
        if not page.free:
            del self._with_room[size][page.number]
        self._locations += 1
        return page.number << SLOT_BITS | slot

    def _take_many(self, size: int, count: int) -> np.ndarray:
        """As many locations of a size."""
        size = rounded(size)
        found: list[np.ndarray] = []
        left = count
        while left:
            with_room = self._with_room.get(size)
            page = next(reversed(with_room.values())) if with_room else self._new_page(size)
            some = min(left, len(page.free))
            slots = np.array(page.free[-some:], np.int64)[::-1]
            del page.free[-some:]
            if not page.free:
                del self._with_room[size][page.number]
            found.append(slots | page.number << SLOT_BITS)
            left -= some
        self._locations += count
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def _give(self, location: int) -> None:
        page = self._page(location)
        page.free.append(location & _SLOT)
        self._locations -= 1
        self._has_more(page, 1)

    def _give_many(self, locations: np.ndarray) -> None:
        for page, at in self._by_page(locations):
            page.free.extend((locations[at] & _SLOT).tolist())
            self._has_more(page, len(at))
        self._locations -= len(locations)

    def _has_more(self, page: Page, more: int) -> None:
        """A page has more free locations than before."""
        if page.is_empty:
            self._with_room.get(page.size, {}).pop(page.number, None)
            self._pages[page.number] = None
            self._numbers.append(page.number)
            self._held -= 1
            self._bytes -= page.bytes
            self.pool.give_back(page)
        elif len(page.free) == more:
            self._with_room.setdefault(page.size, {})[page.number] = page

    def _new_page(self, size: int, number: int | None = None) -> Page:
        if number is None:
            number = self._numbers.pop() if self._numbers else len(self._pages)
        page = self.pool.take(number, size)
        self._pages.extend([None] * (number + 1 - len(self._pages)))
        self._pages[number] = page
        self._with_room.setdefault(size, {})[number] = page
        self._held += 1
        self._bytes += page.bytes
        return page

    def _page(self, location: int) -> Page:
        page = self._pages[location >> SLOT_BITS]
        assert page is not None, "a location on a page that was given back"
        return page

    def _by_page(self, locations: np.ndarray) -> Iterator[tuple[Page, np.ndarray]]:
        """The pages of locations, each with the places in the array of those that are on it."""
        numbers = locations >> SLOT_BITS
        order = np.argsort(numbers, kind="stable")
        cuts = np.flatnonzero(np.diff(numbers[order])) + 1
        for at in np.split(order, cuts) if len(order) else ():
            yield self._page(int(locations[at[0]])), at

    # Bytes

    def view(self, location: int) -> memoryview:
        """The bytes of a location."""
        page = self._pages[location >> SLOT_BITS]
        assert page is not None, "a location on a page that was given back"
        start = (location & _SLOT) * page.size
        return page.view[start : start + page.size]

    def write(self, location: int, data: bytes) -> None:
        """Bytes into a location."""
        page = self._pages[location >> SLOT_BITS]
        assert page is not None, "a location on a page that was given back"
        start = (location & _SLOT) * page.size
        page.view[start : start + len(data)] = data

    def write_many(self, locations: np.ndarray, data: np.ndarray, starts: np.ndarray) -> None:
        """Bytes into locations, those of equal length together."""
        lengths = np.diff(starts)
        for length in np.unique(lengths).tolist():
            which = np.flatnonzero(lengths == length)
            if len(which) == len(lengths):
                rows = data[starts[0] : starts[-1]].reshape(-1, length)
            else:
                rows = data[starts[which][:, None] + np.arange(length)]
            self._write(locations[which], rows)

    def _write(self, locations: np.ndarray, rows: np.ndarray) -> None:
        length = rows.shape[1]
        for page, at in self._by_page(locations):
            mine = rows[at]
            if length < page.size:
                mine = np.pad(mine, ((0, 0), (0, page.size - length)))
            page.cells[locations[at] & _SLOT] = np.ascontiguousarray(mine).view(page.cells.dtype)[:, 0]

    def read_many(self, locations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of locations, one after the other."""
        sizes = np.zeros(len(locations), np.int64)
        parts = list(self._by_page(locations))
        for page, at in parts:
            sizes[at] = page.size
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        data = np.empty(int(starts[-1]), np.uint8)
        if len({page.size for page, _ in parts}) == 1:
            rows = data.view(parts[0][0].cells.dtype)
            for page, at in parts:
                rows[at] = page.cells[locations[at] & _SLOT]
            return data, starts
        for page, at in parts:
            read = page.cells[locations[at] & _SLOT].view(np.uint8).reshape(-1, page.size)
            data[starts[at][:, None] + np.arange(page.size)] = read
        return data, starts

    # Accounts

    def _uses(self, locations: int, size: int) -> None:
        """So many more locations of a size are used."""
        self._used += locations
        self._used_bytes += locations * size

    def account(self, now: int) -> None:
        """Up to now usage was what it is."""
        passed = now - self._last
        if self._since is None:
            self._since = now
        elif passed:
            areas = self._areas
            areas[0] += self._locations * passed
            areas[1] += self._used * passed
            areas[2] += self._bytes * passed
            areas[3] += self._used_bytes * passed
        self._last = now

    def usage(self, now: int) -> MemoryUsage:
        """What is held now, and was on average."""
        current = [self._locations, self._used, self._bytes, self._used_bytes]
        passed = 0 if self._since is None else now - self._since
        later = [area + value * (now - self._last) for area, value in zip(self._areas, current, strict=True)]
        averages = [float(area / passed) for area in later] if passed else [0.0] * 4
        return MemoryUsage(
            self._locations, self._used, self._held, self._bytes, self._used_bytes, *averages
        )  # fmt: skip

    # State

    def to_plain(self) -> Any:
        """Every page with its free locations and what is in the others; in which order pages are filled; accounts."""
        pages = []
        for page in self._pages:
            if page is not None:
                taken = np.setdiff1d(np.arange(page.slots), np.array(page.free, np.int64))
                content = page.cells[taken].tobytes()
                pages.append([page.number, page.size, np.array(page.free, np.uint16), content])
        with_room = {size: list(found) for size, found in self._with_room.items() if found}
        return {
            "pages": pages, "numbers": list(self._numbers), "with_room": with_room,
            "used": [self._used, self._used_bytes], "since": self._since, "last": self._last, "areas": self._areas,
        }  # fmt: skip

    def from_plain(self, data: Any, version: int) -> None:
        """The same pages, filled alike."""
        for number, size, free, content in data["pages"]:
            page = self._new_page(size, number)
            page.free = free.tolist()
            taken = np.setdiff1d(np.arange(page.slots), free)
            page.cells[taken] = np.frombuffer(content, page.cells.dtype)
            self._locations += len(taken)
        self._numbers = list(data["numbers"])
        self._with_room = {
            size: {number: self._page(number << SLOT_BITS) for number in numbers}
            for size, numbers in data["with_room"].items()
        }
        self._used, self._used_bytes = data["used"]
        self._since, self._last, self._areas = data["since"], data["last"], list(data["areas"])


class OnDemandPaging(PagedMemory):
    """Locations belong to those whose tuples wait, and to nobody longer than that."""

    kind = "on-demand paging"

    def allocate(self, owner: int, size: int) -> int:
        """A location that was free, on a page that is in use if there is one."""
        location = self._take(size)
        self._uses(1, self._page(location).size)
        return location

    def free(self, owner: int, location: int) -> None:
        """It may be anybody's from now on."""
        self._uses(-1, self._page(location).size)
        self._give(location)

    def overwrite(self, owner: int, location: int, size: int) -> int:
        """The same location, unless the tuple does not fit."""
        if size <= self._page(location).size:
            return location
        self.free(owner, location)
        return self.allocate(owner, size)

    def allocate_many(self, owners: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """A location for each."""
        found = np.zeros(len(sizes), np.int64)
        for size in np.unique(sizes).tolist():
            which = np.flatnonzero(sizes == size)
            found[which] = self._take_many(size, len(which))
            self._uses(len(which), rounded(size))
        return found

    def free_many(self, owners: np.ndarray, locations: np.ndarray) -> None:
        """They may be anybody's from now on."""
        for page, at in self._by_page(locations):
            self._uses(-len(at), page.size)
        self._give_many(locations)
