"""Temporal patterns by their definition: sequences of rows, chosen among all that there are.

The rows of a step are in the order of their times, and of their columns where times are equal. A *link* is two rows of
steps that follow each other: the second is later, and no row of a negated step in between is after the first and before
the second. A *sequence* is a row of each step, each linked to the next, the last no later than `within` after the
first. Of all sequences of a key,

- recent takes, for each row of the last step, the one whose rows are latest, compared from the back;
- chronicle takes rows in order, step by step: a row of a step is given to the first of the sequences that reach up to
  the step before, that it can follow, and that was given none yet;
- continuous follows each row of the first step to the very next row of the second, from there to the next of the third,
  and so on; where one of these is no link, or comes too late, there is none;
- cumulative goes through the rows of the last step in order, and takes all rows of all sequences that the row ends and
  of which all rows are after the last row of the last step that took any.

A sequence that ends with a negated step comes out if no row of that is after its last row and not after `within` since
its first, or the first of those that were collected; it is at that time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from penstock.model.batch import Row
from penstock.plan.pattern_nodes import Pattern
from penstock.reference.latest import by_columns
from penstock.reference.scalars import same_row

Timed = tuple[int, Row]
"""A time, and the row that has it."""


def patterns(node: Pattern, steps: Sequence[Sequence[Row]]) -> list[Row]:
    """All that comes out of a pattern, given the rows of each step, in any order."""
    groups: dict[object, list[list[Row]]] = {}
    for at, rows in enumerate(steps):
        for row in rows:
            key = _key(node, at, row)
            if key is not None:
                groups.setdefault(key, [[] for _ in steps])[at].append(row)
    return [row for group in groups.values() for row in _Group.of(node, group).results()]


def _key(node: Pattern, at: int, row: Row) -> object | None:
    schema = node.steps[at].schema
    values = [row[schema.index(key.columns[at])] for key in node.keys]
    if any(value is None and not key.is_group for value, key in zip(values, node.keys, strict=True)):
        return None
    return same_row(tuple(values))


@dataclass(frozen=True)
class _Group:
    """The rows of one key."""

    node: Pattern
    steps: list[list[Timed]]
    """Of the steps that come, in order."""
    forbidden: list[list[int]]
    """After each of them, the times of rows that must not come then."""

    @staticmethod
    def of(node: Pattern, group: Sequence[Sequence[Row]]) -> _Group:
        steps: list[list[Timed]] = []
        forbidden: list[list[int]] = []
        for at, rows in enumerate(group):
            time = node.steps[at].schema.time_index
            timed: list[Any] = [(row[time], row) for row in rows]
            if node.negated[at]:
                forbidden[-1] += [time for time, _ in timed]
            else:
                steps.append(sorted(timed, key=lambda item: (item[0], *by_columns(item[1]))))
                forbidden.append([])
        return _Group(node, steps, forbidden)

    def results(self) -> Iterator[Row]:
        for sequence in self._chosen():
            rows = [self.steps[at][place] for at, place in enumerate(sequence[-1])]
            times = [time for time, _ in rows]
            last = [times[-1]]
            if self.node.ends_with_nothing:
                assert self.node.within is not None
                first = min(self.steps[0][each[0]][0] for each in sequence)
                last = [first + self.node.within]
                if any(times[-1] < time <= last[0] for time in self.forbidden[-1]):
                    continue
            made: list[Any] = []
            for at, (_, own) in enumerate(rows):
                if self.node.collects(self.node.places[at]):
                    among = [self.steps[at][place][1] for place in sorted({each[at] for each in sequence})]
                    made += [tuple(values) for values in zip(*among, strict=True)]
                else:
                    made += own
            yield (*made, *(last if self.node.ends_with_nothing else ()))

    def _chosen(self) -> list[list[tuple[int, ...]]]:
        """Places of rows, one of each step; several sequences where all of their rows go into one result."""
        if len(self.steps) == 1:
            return [[(place,)] for place in range(len(self.steps[0]))]
        match self.node.context:
            case "recent":
                return [[each] for each in self._recent()]
            case "chronicle":
                return [[each] for each in self._chronicle()]
            case "continuous":
                return [[each] for each in self._continuous()]
            case "cumulative":
                return self._cumulative()

    def _is_link(self, at: int, place: int, after: int) -> bool:
        """Whether a row of the next step can follow a row of a step."""
        one, other = self.steps[at][place][0], self.steps[at + 1][after][0]
        return one < other and not any(one < time < other for time in self.forbidden[at])

    def _in_time(self, first: int, at: int, place: int) -> bool:
        within = self.node.within
        return within is None or self.steps[at][place][0] - self.steps[0][first][0] <= within

    def _sequences(self) -> Iterator[tuple[int, ...]]:
        for each in product(*[range(len(rows)) for rows in self.steps]):
            links = all(self._is_link(at, *each[at : at + 2]) for at in range(len(each) - 1))
            if links and self._in_time(each[0], len(each) - 1, each[-1]):
                yield each

    def _recent(self) -> list[tuple[int, ...]]:
        found: dict[int, tuple[int, ...]] = {}
        for each in self._sequences():
            known = found.get(each[-1])
            if known is None or each[::-1] > known[::-1]:
                found[each[-1]] = each
        return list(found.values())

    def _chronicle(self) -> list[tuple[int, ...]]:
        reached: list[tuple[int, ...]] = [(place,) for place in range(len(self.steps[0]))]
        for at in range(1, len(self.steps)):
            given: list[tuple[int, ...]] = []
            for place in range(len(self.steps[at])):
                able = [
                    each
                    for each in reached
                    if self._is_link(at - 1, each[-1], place) and self._in_time(each[0], at, place)
                ]
                if able:
                    reached.remove(able[0])
                    given.append((*able[0], place))
            reached = given
        return reached

    def _continuous(self) -> list[tuple[int, ...]]:
        found = []
        for first in range(len(self.steps[0])):
            sequence: tuple[int, ...] = (first,)
            for at in range(1, len(self.steps)):
                time = self.steps[at - 1][sequence[-1]][0]
                after = [place for place, (other, _) in enumerate(self.steps[at]) if other > time]
                if not after or not self._is_link(at - 1, sequence[-1], after[0]):
                    break
                sequence = (*sequence, after[0])
            if len(sequence) == len(self.steps) and self._in_time(first, len(sequence) - 1, sequence[-1]):
                found.append(sequence)
        return found

    def _cumulative(self) -> list[list[tuple[int, ...]]]:
        everything, found = list(self._sequences()), []
        since: int | None = None
        for place, (time, _) in enumerate(self.steps[-1]):
            ended = [
                each
                for each in everything
                if each[-1] == place and (since is None or self.steps[0][each[0]][0] > since)
            ]
            if ended:
                found.append(ended)
                since = time
        return found
