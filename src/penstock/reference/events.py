"""Events as the oracle has them: rows with their places in the order of arrival, and their lives.

What elements come to, how lives are altered, which stretches of time they cover, and what replicas have in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.model.batch import Row
from penstock.model.likeness import Likeness, nearest
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.model.values import canonical_row
from penstock.plan.nodes import AlterLifetime
from penstock.reference.scalars import same_row

Life = tuple[int, int | None]
"""An end, and of an adjust the end before."""


class Placed(NamedTuple):
    """A row and its place in the order of arrival; where rows have lives, its life."""

    place: int
    row: Row
    life: Life | None = None


def start_of(item: Placed, schema: Schema) -> int:
    """When it starts."""
    vs = item.row[schema.time_index]
    assert isinstance(vs, int)
    return vs


def end_of(item: Placed, schema: Schema) -> int:
    """When it ends."""
    return item.life[0] if item.life is not None else start_of(item, schema) + schema.lifetime


def come_to(items: Sequence[Placed], schema: Schema) -> tuple[list[Placed], list[Placed]]:
    """The events that elements come to, by place; and the adjusts of events that are not there."""
    events: list[Placed] = []
    unknown: list[Placed] = []
    for item in items:
        place, row, vs, end = item.place, item.row, start_of(item, schema), end_of(item, schema)
        old = None if item.life is None else item.life[1]
        if old is not None:
            at = _meant(item, [i for i, e in enumerate(events) if end_of(e, schema) == old], events)
            if at is None:
                unknown.append(item)
                continue
            place, row, _ = events.pop(at)  # an event is where its insert was, with the values that it had there
        if end != vs:
            events.append(Placed(place, row, None if schema.lives is None else (end, None)))
    return sorted(events, key=lambda e: e.place), unknown


def _meant(adjust: Placed, places: list[int], events: list[Placed]) -> int | None:
    """Which event an adjust is of: one with the same row, or else the nearest with floats within the tolerance."""
    row = canonical_row(adjust.row)
    rows = [canonical_row(events[i].row) for i in places]
    like = row if row in rows else nearest(row, rows)
    return None if like is None else places[rows.index(like)]


def altered(node: AlterLifetime, event: Placed) -> Placed:
    """An event with another life: it starts `shift` later, and lives as long as the node says."""
    schema = node.input.schema
    vs, end = start_of(event, schema), end_of(event, schema)
    lived = None if end == END_OF_TIME else end - vs
    length = node.duration
    if length is None:
        length = None if lived is None else lived + node.extend
        length = length if node.at_most is None else min(node.at_most, node.at_most if length is None else length)
    start = vs + node.shift
    row = tuple(start if at == schema.time_index else value for at, value in enumerate(event.row))
    ends = END_OF_TIME if length is None else min(start + length, END_OF_TIME)
    return Placed(event.place, row, None if node.schema.lives is None else (ends, None))


def stretches(items: Sequence[Placed], schema: Schema) -> list[Placed]:
    """For each longest stretch of time in which there is a row with some visible values, one event."""
    alike: dict[object, list[Placed]] = {}
    for item in items:
        alike.setdefault(same_row(visible(item.row, schema)), []).append(item)
    found: list[Placed] = []
    for members in alike.values():
        reached: int | None = None
        for item in sorted(members, key=lambda m: start_of(m, schema)):
            if reached is None or start_of(item, schema) > reached:
                found.append(item)
            else:
                found[-1] = found[-1]._replace(life=(max(reached, end_of(item, schema)), None))
            reached = end_of(found[-1], schema)
    return found


def most(replicas: list[list[Placed]]) -> list[Placed]:
    """Each event as often as the replica has it that has it most often; floats within the tolerance of `likeness`."""
    best: dict[object, list[Placed]] = {}
    likeness = Likeness()
    for items in replicas:
        by_event: dict[tuple[Row, Life | None], list[Placed]] = {}
        for item in items:
            like = likeness.find(0, canonical_row(item.row))
            by_event.setdefault((like, item.life), []).append(item)
        for (row, life), placed in by_event.items():
            likeness.add(0, row)
            if len(placed) > len(best.get((row, life), ())):
                best[row, life] = placed
    return sorted((p for placed in best.values() for p in placed), key=lambda item: item.place)


def visible(row: Row, schema: Schema) -> Row:
    """The values that the user sees."""
    return tuple(value for value, field in zip(row, schema.fields, strict=True) if not field.hidden)
