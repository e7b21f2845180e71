"""The groups of which a join has promised less than the end, and what each of them waits for.

More can be promised of a group when an input says more of it, or when the oldest of its rows is given up. So groups are
found by their constants, and by how old the oldest row is that each side keeps of them. A bound that gives up no row of
any group costs one look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Any

from penstock.model.time import END_OF_TIME
from penstock.model.values import canonical_row
from penstock.operators.joins.nearness import LEFT, RIGHT
from penstock.operators.joins.spoken import Naming, Values

Oldest = tuple[int, int]
"""The least attributes of the rows that the left and the right keep of a group."""
Group = tuple[Naming, Values]


class WaitingGroups:
    """Groups with the oldest rows of theirs."""

    __slots__ = ("_groups", "_heaps", "_made", "_namings", "swept")

    def __init__(self, groups: Iterable[tuple[Naming, Values, Oldest]] = ()) -> None:
        """Groups that are known."""
        self._groups: dict[tuple[str, ...], dict[Values, Oldest]] = {}
        self._namings: dict[tuple[str, ...], Naming] = {}
        self._heaps: tuple[list[tuple[int, int, Group]], list[tuple[int, int, Group]]] = ([], [])
        self._made = 0
        for naming, values, oldest in groups:
            self.put((naming, values), oldest)
        self.swept = len(self)
        """How many there were when those that bounds have passed were taken out last."""

    def __len__(self) -> int:
        """How many there are."""
        return sum(map(len, self._groups.values()))

    def __iter__(self) -> Iterator[Group]:
        """All of them."""
        for names, groups in self._groups.items():
            yield from ((self._namings[names], values) for values in groups)

    def put(self, group: Group, oldest: Oldest) -> None:
        """A group waits, with these rows of its own."""
        naming, values = group
        self._namings[naming.names] = naming
        self._groups.setdefault(naming.names, {})[values] = oldest
        for heap, least in zip(self._heaps, oldest, strict=True):
            if least < END_OF_TIME:
                self._made += 1  # groups are not compared
                heappush(heap, (least, self._made, group))

    def remove(self, group: Group) -> None:
        """A group waits no more."""
        naming, values = group
        groups = self._groups.get(naming.names, {})
        groups.pop(values, None)
        if not groups:
            self._groups.pop(naming.names, None)

    def given_up(self, side: int, settled: int) -> list[Group]:
        """The groups of which a side keeps a row below a bound no more."""
        heap, found = self._heaps[side], {}
        while heap and (heap[0][0] < settled or settled == END_OF_TIME):
            least, _, (naming, values) = heappop(heap)
            known = self._groups.get(naming.names, {}).get(values)
            if known is not None and known[side] == least:
                found[naming.names, values] = naming, values
        return list(found.values())

    def about(self, side: int, constants: dict[int, Any]) -> Iterator[Group]:
        """The groups that may have rows with these constants; they are by the places of columns of a side."""
        for names, groups in list(self._groups.items()):
            naming = self._namings[names]
            shared = [(at, constants[column]) for column, at in naming.columns[side] if column in constants]
            if len(shared) == len(names):  # of each name one value is told
                told = dict(shared)
                values = tuple([told[at] for at in range(len(names))]) if len(told) == len(names) else None
                if values is not None:
                    if values in groups:
                        yield naming, values
                    continue
            for values in list(groups):
                if all(values[at] == value for at, value in shared):
                    yield naming, values

    def to_plain(self) -> Any:
        """Names, what they are on each side, and the groups with their oldest rows."""
        return [
            (n.names, n.columns[LEFT], n.columns[RIGHT], n.sides, list(groups), list(groups.values()))
            for names, groups in self._groups.items()
            for n in [self._namings[names]]
        ]

    @staticmethod
    def from_plain(data: Any) -> WaitingGroups:
        """The other way."""
        made = []
        for names, left, right, sides, values, oldest in data:
            columns = tuple([tuple([tuple(pair) for pair in side]) for side in (left, right)])
            naming = Naming(tuple(names), columns, tuple(sides))  # type: ignore[arg-type]
            made += [(naming, canonical_row(tuple(v)), tuple(o)) for v, o in zip(values, oldest, strict=True)]
        return WaitingGroups(made)
