"""The naive memory manager: a location that a key once had stays the key's (UpStream, section 7.3).

The baseline of the paper. When a tuple is taken its location stays set aside for the key, dirty until the next tuple of
the key comes, so that in the end every key that was ever seen holds one. An owner of several locations at a time, as
that of a window's blocks, keeps them all.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.operators.queues.paging import PagedMemory
from penstock.operators.queues.queue import Kept


class NaiveMemory(PagedMemory):
    """Nothing is ever given back."""

    kind = "naive memory"

    def __init__(self, *args: Any, **named: Any) -> None:
        """Nobody has a location yet."""
        super().__init__(*args, **named)
        self._dirty: dict[int, list[int]] = {}
        """Per owner, locations of its own that hold nothing that is wanted."""

    def allocate(self, owner: int, size: int) -> int:
        """A location of the owner's that holds nothing, or a new one."""
        mine = self._dirty.get(owner)
        location = -1
        if mine:
            for at in range(len(mine) - 1, -1, -1):
                if self._page(mine[at]).size >= size:
                    location = mine.pop(at)
                    break
        if location < 0:
            location = self._take(size)
        self._uses(1, self._page(location).size)
        return location

    def free(self, owner: int, location: int) -> None:
        """It stays the owner's."""
        self._uses(-1, self._page(location).size)
        self._dirty.setdefault(owner, []).append(location)

    def overwrite(self, owner: int, location: int, size: int) -> int:
        """The same location, unless the tuple does not fit: then the old one stays the owner's too."""
        if size <= self._page(location).size:
            return location
        self.free(owner, location)
        return self.allocate(owner, size)

    def allocate_many(self, owners: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """A location for each."""
        pairs = zip(owners.tolist(), sizes.tolist(), strict=True)
        return np.array([self.allocate(owner, size) for owner, size in pairs], np.int64)

    def free_many(self, owners: np.ndarray, locations: np.ndarray) -> None:
        """They stay their owners'."""
        for owner, location in zip(owners.tolist(), locations.tolist(), strict=True):
            self.free(owner, location)

    def keep(self, kept: Kept) -> None:
        """Those that are forgotten leave their locations to others."""
        dirty, self._dirty = self._dirty, {}
        for owner, mine in dirty.items():
            new = int(kept.new[owner])
            if new >= 0:
                self._dirty[new] = mine
            else:
                self._give_many(np.array(mine, np.int64))

    def to_plain(self) -> Any:
        """The pages, and whose the dirty locations are."""
        dirty = {owner: list(mine) for owner, mine in self._dirty.items() if mine}
        return {**super().to_plain(), "dirty": dirty}

    def from_plain(self, data: Any, version: int) -> None:
        """The same pages, and the same owners."""
        super().from_plain(data, version)
        self._dirty = {owner: list(mine) for owner, mine in data["dirty"].items()}
