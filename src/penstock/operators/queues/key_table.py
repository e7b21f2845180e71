"""Update keys as small numbers: the key hash table of the paper (UpStream, section 7), for rows alone and for batches.

A batch finds its keys column by column (`GroupCodes`). A row alone finds its key in a dictionary, which is made when
the first row comes alone. Either knows the keys of the other once it is asked: what one of them has seen since then is
told to the other, so that a key that is new costs a few steps once, and keys are not kept twice where rows come in one
way only.

`PerKey` is a number that is kept of every key: an array for batches that is seen as numbers of Python by rows alone.
`KeyCells` are several of them side by side, as the paper's key cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.model.batch import Batch
from penstock.model.schema import Schema
from penstock.model.values import canonical, canonical_row
from penstock.operators.aggregates.group_codes import GroupCodes
from penstock.operators.queues.queue import Kept, Key

NONE = -(1 << 63)
"""In place of a time or a location: there is none."""


class PerKey:
    """A number for every key; numpy's `array`, and a `view` of it that is quick to read and write one at a time."""

    __slots__ = ("array", "fill", "view")

    def __init__(self, fill: int | float = 0) -> None:
        """Integers or floats, as `fill` is; keys that are new have it."""
        self.fill = fill
        self._use(np.full(0, fill, np.float64 if isinstance(fill, float) else np.int64))

    def grow(self, count: int) -> None:
        """There are so many keys now."""
        had = len(self.array)
        if count > had:
            more = np.full(max(count, 2 * had, 16), self.fill, self.array.dtype)
            more[:had] = self.array
            self._use(more)

    def _use(self, array: np.ndarray) -> None:
        self.array = array
        self.view: Any = array.data

    def to_plain(self, count: int) -> np.ndarray:
        """The numbers of so many keys."""
        return self.array[:count].copy()

    def from_plain(self, data: np.ndarray) -> None:
        """The other way; there is room for them."""
        self.grow(len(data))
        self.array[: len(data)] = data


class KeyCells:
    """Several numbers for every key that lie side by side, so that whoever touches one of them has all at hand."""

    def __init__(self) -> None:
        """No numbers yet; all are added before there are keys."""
        self._columns: list[PerKey] = []
        self._room = 0

    def add(self, fill: int | float = 0) -> PerKey:
        """One number more."""
        self._columns.append(PerKey(fill))
        return self._columns[-1]

    def grow(self, count: int) -> None:
        """There are so many keys now."""
        if count <= self._room:
            return
        self._room = max(count, 2 * self._room, 16)
        cells = np.empty((self._room, len(self._columns)), np.int64)
        for at, column in enumerate(self._columns):
            more = cells[:, at].view(column.array.dtype)
            more[:] = column.fill
            more[: len(column.array)] = column.array
            column._use(more)

    def keep(self, kept: Kept) -> None:
        """Some keys are forgotten."""
        for column in self._columns:
            column._use(column.array[kept.numbers].copy())
        self._room = 0
        self.grow(len(kept.numbers))

    def to_plain(self, count: int) -> list[np.ndarray]:
        """The numbers of so many keys, one array for each number."""
        return [column.to_plain(count) for column in self._columns]

    def from_plain(self, data: list[np.ndarray]) -> None:
        """The other way."""
        self.grow(len(data[0]))
        for column, kept in zip(self._columns, data, strict=True):
            column.from_plain(kept)


class KeyTable:
    """The numbers of the keys that were seen."""

    def __init__(self, schema: Schema, key: tuple[str, ...]) -> None:
        """`key` names columns of the schema."""
        self.places = [schema.index(name) for name in key]
        self._one = self.places[0] if len(self.places) == 1 else None
        self._schema = Schema(tuple(schema.fields[i] for i in self.places))
        self._has_floats = any(f.type.is_fractional or f.type.is_nested for f in self._schema.fields)
        self._codes = GroupCodes(self._schema)
        self._numbers: dict[object, int] | None = None
        """By the key, or by its one value."""
        self._untold: list[Key] = []
        """Keys that only the dictionary knows."""
        self._count = 0

    def __len__(self) -> int:
        """How many keys were seen."""
        return self._count

    def number(self, row: tuple[object, ...]) -> int:
        """The number of a row's key; one that is new gets the next."""
        one = self._one
        key = row[one] if one is not None else tuple([row[i] for i in self.places])
        if self._has_floats:
            key = canonical(key)
        numbers = self._numbers
        if numbers is None or len(numbers) < self._count:
            numbers = self._known()
        found = numbers.get(key)
        if found is None:
            found = numbers[key] = self._count
            self._untold.append((key,) if one is not None else key)  # type: ignore[arg-type]
            self._count += 1
        return found

    def find(self, key: Key) -> int | None:
        """The number of a key, if it was seen."""
        found = canonical_row(key)
        return self._known().get(found[0] if len(found) == 1 else found)

    def numbers(self, batch: Batch) -> np.ndarray:
        """The numbers of the keys of a batch's rows."""
        codes = self._told()
        if not self.places:
            self._count = 1
            return codes.encode([], len(batch))
        table = batch.table
        found = codes.encode([table.column(i) for i in self.places], len(batch))
        self._count = len(codes)
        return found

    def keys(self) -> list[Key]:
        """All keys in the order of their numbers."""
        return self._told().keys

    def keep(self, kept: Kept) -> None:
        """Some keys are forgotten."""
        self._codes = self._told().keep(kept.numbers)
        self._numbers, self._count = None, len(kept.numbers)

    def _known(self) -> dict[object, int]:
        """The dictionary of all keys."""
        if self._numbers is None:
            self._numbers = {}
        had = len(self._numbers)
        if had < self._count:
            new = range(had, self._count)
            keys = self._codes.keep(np.arange(had, self._count)).keys if had else self._codes.keys
            found = map(canonical_row, keys)
            self._numbers.update(zip([k[0] for k in found] if len(self.places) == 1 else found, new, strict=True))
        return self._numbers

    def _told(self) -> GroupCodes:
        """The codes of all keys."""
        if self._untold:
            self._codes.add(self._untold)
            self._untold = []
            assert len(self._codes) == self._count, "two keys of the dictionary are one key of the codes"
        return self._codes

    def to_plain(self) -> Any:
        """The keys in the order of their numbers."""
        return self._told().to_plain()

    def from_plain(self, data: Any) -> None:
        """The other way."""
        self._codes = GroupCodes.from_plain(self._schema, data)
        self._numbers, self._untold = None, []
        self._count = len(self._codes)
