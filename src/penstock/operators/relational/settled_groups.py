"""Settling some groups ahead of the others: what a group-wise promise makes final comes out at once.

A promise of the events with some values says of these what a bound says of all: those that end before it are final. So
they come out, ahead of what starts before them in other groups; the output is then in order of start within what one
bound releases, and no more. Later events of the groups start no earlier than the oldest of them that is left.

Cost: a look at the events that start before the promise's bound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from penstock.model.batch import Row
from penstock.model.likeness import tie
from penstock.model.time import END_OF_TIME
from penstock.operators.aggregates.chosen import Chosen

Events = dict[Row, Counter[int]]
"""The ends of the events of one start, by row."""


def final_in(page: dict[int, Events], chosen: Chosen, bound: int) -> tuple[list[tuple[Row, int]], int]:
    """Take out of a page the events that are meant and final, with their ends; and where the others of them start."""
    found: list[tuple[Row, int]] = []
    left = END_OF_TIME
    for vs in sorted(page):
        if not _is_before(vs, bound):
            break
        settled = list(_final_at(page[vs], chosen, bound))
        if any(row in chosen for row in page[vs]):
            left = min(left, vs)
        if not page[vs]:
            del page[vs]
        found += sorted(settled, key=lambda event: (tie(event[0]), event[1]))
    return found, left


def _final_at(events: Events, chosen: Chosen, bound: int) -> Iterator[tuple[Row, int]]:
    for row in [row for row in events if row in chosen]:
        ends = events[row]
        for end in [end for end in ends if _is_before(end, bound)]:
            yield from [(row, end)] * ends.pop(end)
        if not ends:
            del events[row]


def _is_before(tick: int, bound: int) -> bool:
    return tick < bound or bound == END_OF_TIME
