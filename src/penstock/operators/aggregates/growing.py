"""An array that grows at its end, at the cost of what is added."""

from __future__ import annotations

import numpy as np

from penstock.operators.aggregates.measures import Array

_LEAST = 16


class Growing:
    """Numbers of one type."""

    def __init__(self, dtype: type[np.generic]) -> None:
        """Empty."""
        self._room: Array = np.empty(0, dtype)
        self._count = 0

    def __len__(self) -> int:
        """How many there are."""
        return self._count

    @property
    def values(self) -> Array:
        """The numbers; a view, which later ones do not change."""
        return self._room[: self._count]

    def append(self, values: Array) -> None:
        """More numbers behind."""
        end = self._count + len(values)
        if end > len(self._room):
            self._make_room(max(end + end // 4, _LEAST))
        self._room[self._count : end] = values
        self._count = end

    def cut(self, count: int) -> None:
        """Only the first ones stay, in no more room than if the others had not come."""
        self._count = count
        if len(self._room) > max(count + count // 4, _LEAST):
            self._make_room(max(count + count // 8, _LEAST))

    def _make_room(self, size: int) -> None:
        room = np.empty(size, self._room.dtype)
        room[: self._count] = self.values
        self._room = room
