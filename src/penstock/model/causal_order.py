"""Elements that came at once, in an order in which each finds the event that it is of.

Where a source gives no order inside a batch, an adjust may stand before its insert. Inserts go first; of the adjusts of
one row, one goes before another that begins with the end at which it stops. Where several orders would do the given one
stays, and so it does where none would.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.model.batch import Batch
from penstock.model.elements import Adjust, Insert
from penstock.model.values import canonical_row


def in_causal_order(batch: Batch) -> Batch:
    """The batch with an order of its rows that makes sense; itself if nothing in it is revised."""
    if batch.lives is None or not batch.lives.revises.any():
        return batch
    return batch.take(np.array(_order(batch.elements(hidden=True)), np.int64))


def in_order_of_causes(elements: Sequence[Insert | Adjust]) -> list[Insert | Adjust]:
    """The same of elements."""
    return [elements[place] for place in _order(elements)]


def _order(elements: Sequence[Insert | Adjust]) -> list[int]:
    order: list[int] = []
    adjusts: dict[tuple[object, int], list[tuple[int, Adjust]]] = {}
    for place, element in enumerate(elements):
        if isinstance(element, Insert):
            order.append(place)
        else:
            adjusts.setdefault((canonical_row(element.payload), element.vs), []).append((place, element))
    for of_one in adjusts.values():
        order += _chained(of_one)
    return order


def _chained(adjusts: list[tuple[int, Adjust]]) -> list[int]:
    """The places of adjusts of one event, each after the one that leads to its old end."""
    order: list[int] = []
    left = list(adjusts)
    while left:
        told = {a.ve for _, a in left if a.ve != a.v_old}
        following = next((each for each in left if each[1].v_old not in told), left[0])
        left.remove(following)
        order.append(following[0])
    return order
