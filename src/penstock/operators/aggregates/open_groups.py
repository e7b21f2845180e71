"""Groups that are not complete yet: one page of them, with the least of their greatest times.

Groups that a promise is likely to complete together lie in one *lot*: they have the same values in the columns that
promises are about, the `lead` of the key. The last partial of a group is the greatest time of its rows.

The oldest group is found by a heap with one entry per group, which may be behind: a group whose time has gone up keeps
its entry until that comes to the top and is put right. So a row costs nothing here, and asking costs what has moved
since. Entries of groups that are gone are swept out when they are the greater part. The heap follows from the groups,
and is not kept with them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from decimal import Decimal
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any

from penstock.operators.aggregates.chosen import Chosen
from penstock.operators.aggregates.partials import Grouping, Key, Table

SPARE = 64
"""So many entries of groups that are gone are left alone."""


def page_of(lot: Key, pages: int) -> int:
    """The number of the page in which a lot lies, the same in every process and in whatever form its values came."""
    text = repr([v.normalize() if isinstance(v, Decimal) else v for v in lot])
    return zlib.crc32(text.encode("utf-8", "backslashreplace")) % pages


class OpenGroups:
    """Some of the groups, by lot."""

    __slots__ = ("_heap", "_next", "grouping", "lead", "lots", "size")

    def __init__(self, grouping: Grouping, lead: tuple[int, ...], groups: Table | None = None) -> None:
        """`lead` are the places in a key by which groups are in lots; `groups` those that a page held."""
        self.grouping, self.lead = grouping, lead
        self.lots: dict[Key, Table] = {}
        self.size = self._next = 0
        self._heap: list[tuple[int, int, Key]] = []
        for key, partials in (groups or {}).items():
            self.lots.setdefault(self.lot_of(key), {})[key] = partials
            self.size += 1
        self._sweep()

    def lot_of(self, key: Key) -> Key:
        """The lot of a group."""
        return tuple([key[at] for at in self.lead])

    def add(self, lot: Key, key: Key, partials: list[Any]) -> None:
        """Put partials into a group, of which they may be the first."""
        table = self.lots.get(lot)
        if table is None:
            table = self.lots[lot] = {}
        if key not in table:
            self.size += 1
            self._enter(partials[-1], key)
        self.grouping.merge(table, key, partials)

    def chosen(self, chosen: Chosen, lot: Key | None) -> Table:
        """The groups that are meant, in one lot if it is known in which."""
        tables = self.lots.values() if lot is None else [self.lots.get(lot, {})]
        return {key: table[key] for table in tables for key in chosen.of(table)}

    def take(self, keys: Iterable[Key]) -> None:
        """Groups are complete, and forgotten."""
        for key in keys:
            lot = self.lot_of(key)
            del self.lots[lot][key]
            self.size -= 1
            if not self.lots[lot]:
                del self.lots[lot]
        if len(self._heap) > 2 * self.size + SPARE:
            self._sweep()

    def all(self) -> Table:
        """Every group."""
        return {key: partials for table in self.lots.values() for key, partials in table.items()}

    def oldest(self) -> int | None:
        """The least of the greatest times; None if there is no group."""
        heap = self._heap
        while heap:
            time, number, key = heap[0]
            group = self.lots.get(self.lot_of(key), {}).get(key)
            if group is None:
                heappop(heap)
            elif group[-1] > time:
                heapreplace(heap, (group[-1], number, key))
            else:
                return time
        return None

    def _enter(self, time: int, key: Key) -> None:
        heappush(self._heap, (time, self._next, key))
        self._next += 1

    def _sweep(self) -> None:
        """An entry per group and no other."""
        groups = self.all()
        self._heap = [(partials[-1], number, key) for number, (key, partials) in enumerate(groups.items())]
        self._next = len(self._heap)
        heapify(self._heap)
