"""Update streams by their definition: what is newest, how long an update lives, and what a conflated stream owes.

A row is newer than another of its key if its time is later; at one time if it is later in the columns that break ties,
null being less than all else; then if its stream was named earlier; then if it came later. A row comes out if no newer
one of its key came before it. An update lives from its time until that of the next of its key that comes out: if that
starts when it does, it has not lived.

What conflation leaves out depends on the load. Whatever it is, of the rows that were delivered the last of each key is
the last of all that came, and those of a key come in the order in which they came in, none after one that is newer
(`owed`). A selection above it is asked of what was delivered: where it rejects the row, nothing holds of the key from
then on, since the life of the row before has ended with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.model.batch import Row
from penstock.model.schema import Schema
from penstock.model.time import END_OF_TIME
from penstock.plan.nodes import Conflate, Newest
from penstock.reference.events import Placed
from penstock.reference.scalars import same_row


def newest(node: Newest, branches: Sequence[Sequence[Placed]]) -> list[Placed]:
    """The rows that come out of the union of some streams, each given by place."""
    schema = node.schema
    arrivals = [(item, rank) for rank, items in enumerate(branches) for item in items]
    arrivals.sort(key=lambda arrival: arrival[0].place)  # stable: one row in two branches comes in their order
    kept = _kept(
        [item for item, _ in arrivals],
        [(*_times(item.row, schema, node.ties), -rank) for item, rank in arrivals],
        [key_of(item.row, schema, node.key) for item, _ in arrivals],
    )
    return _lived(kept, schema, node.key) if node.lives else kept


def conflated(node: Conflate, items: Sequence[Placed]) -> list[Placed]:
    """What a consumer is given that has time for everything: all but what is older than what has come."""
    if node.windows is not None:  # windows are kept or dropped whole, so that every row may count
        return list(items)
    schema = node.schema
    times = [_times(item.row, schema, ()) for item in items]
    return _kept(items, times, [key_of(item.row, schema, node.key) for item in items])


def _kept(items: Sequence[Placed], ages: Sequence[Any], keys: Sequence[Row]) -> list[Placed]:
    """The items before which none came that is of the same key and newer."""
    return [
        item
        for at, item in enumerate(items)
        if not any(keys[before] == keys[at] and ages[before] > ages[at] for before in range(at))
    ]


def _lived(items: Sequence[Placed], schema: Schema, key: Sequence[str]) -> list[Placed]:
    """Each until the next of its key; those that are followed at once are gone."""
    found = []
    for at, item in enumerate(items):
        own = key_of(item.row, schema, key)
        following = [after.row[schema.time_index] for after in items[at + 1 :] if key_of(after.row, schema, key) == own]
        end = following[0] if following else END_OF_TIME
        if end != item.row[schema.time_index]:
            found.append(item._replace(life=(end, None)))  # type: ignore[arg-type]
    return found


def last_values(rows: Sequence[Row], schema: Schema, key: Sequence[str]) -> Mapping[Row, Row]:
    """The newest row of each key, of those that came in this order."""
    found: dict[Row, Row] = {}
    for row in rows:
        own = key_of(row, schema, key)
        if own not in found or row[schema.time_index] >= found[own][schema.time_index]:  # type: ignore[operator]
            found[own] = row
    return found


def owed(arrived: Sequence[Row], delivered: Sequence[Row], schema: Schema, key: Sequence[str]) -> str | None:
    """What is wrong with what was delivered, by the end, of rows that came in this order; None if nothing is."""
    if last_values(arrived, schema, key) != last_values(delivered, schema, key):
        return "the last value of a key is not the one that was delivered last"
    for own in last_values(delivered, schema, key):
        came = [same_row(row) for row in arrived if key_of(row, schema, key) == own]
        at = 0
        for row in (same_row(row) for row in delivered if key_of(row, schema, key) == own):
            if row not in came[at:]:
                return f"{row} was delivered and had not come, or had been passed by"
            at = came.index(row, at) + 1
        times: list[Any] = [row[schema.time_index] for row in delivered if key_of(row, schema, key) == own]
        if times != sorted(times):
            return f"of {own} an older row was delivered after a newer one"
    return None


def key_of(row: Row, schema: Schema, key: Sequence[str]) -> Row:
    """The values by which a row is an update of another."""
    return same_row(tuple(row[schema.index(name)] for name in key))


def _times(row: Row, schema: Schema, ties: Sequence[str]) -> tuple[Any, ...]:
    """What says how new a row is."""
    values = [row[schema.index(name)] for name in ties]
    return (row[schema.time_index], *((value is not None, 0 if value is None else value) for value in values))
