"""Columns as whole numbers that are ordered as SQL orders their values, and equal where these are.

NaN is the greatest number, zero has one sign, text goes by its code points, nested values part by part, as in Spark.
Rows are then sorted by plain arrays, whatever the types of their columns are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.comparing import order_key
from penstock.model.nested import values_of

Array = np.ndarray
ROOM = 1 << 62
"""So many values one number stands for, at the most, where it is put together of several."""
_ALL_BUT_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True)
class By:
    """A column, by its place, and how rows are ordered by it."""

    place: int
    descending: bool = False
    nulls_last: bool = False


def codes_of(column: pa.ChunkedArray, by: By) -> Array:
    """A number for each value: the lesser ones come first."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.int64)
    if not column.null_count:
        numbers = _ranked(column)
        return ~numbers if by.descending else numbers
    there = np.asarray(pc.is_valid(column).to_numpy(), np.bool_)
    ranks = _dense(_ranked(column.filter(pa.array(there))))
    most = len(ranks)
    found = np.full(len(column), most if by.nulls_last else -1, np.int64)
    found[there] = most - 1 - ranks if by.descending else ranks
    return found


def _ranked(column: pa.ChunkedArray) -> Array:
    """Of values without nulls, ascending."""
    kind = column.type
    if pa.types.is_nested(kind):
        keys = [order_key(value) for value in values_of(column)]
        places = {key: place for place, key in enumerate(sorted(set(keys)))}
        return np.fromiter((places[key] for key in keys), np.int64, len(keys))
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    if pa.types.is_floating(kind):
        return _of_floats(column.cast(pa.float64()).to_numpy())
    if pa.types.is_timestamp(kind):
        return np.asarray(column.cast(pa.int64()).to_numpy())
    if pa.types.is_date32(kind):
        return np.asarray(column.cast(pa.int32()).to_numpy()).astype(np.int64)
    if pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy()).astype(np.int64, copy=False)
    return np.asarray(pc.rank(column, sort_keys="ascending", tiebreaker="dense").to_numpy()).astype(np.int64)


def _of_floats(values: Array) -> Array:
    """The bits of numbers in such a form that they are ordered as the numbers are."""
    plain = np.where(np.isnan(values), np.nan, values + 0.0)
    bits = plain.view(np.int64)
    return np.where(bits < 0, bits ^ _ALL_BUT_SIGN, bits)


def _dense(numbers: Array) -> Array:
    return np.unique(numbers, return_inverse=True)[1].astype(np.int64) if len(numbers) else numbers


def starts_of(codes: list[Array], size: int) -> Array:
    """Of rows in order, which differ from the row before in one of these."""
    starts = np.zeros(size, np.bool_)
    starts[:1] = True
    for each in codes:
        starts[1:] |= each[1:] != each[:-1]
    return starts


def _order_of(codes: list[Array]) -> Array:
    """The places of rows by several numbers; as few sorts as there are numbers when neighbours are put into one."""
    packed: list[Array] = []
    room = 0
    for each in codes:
        least, most = (int(each.min()), int(each.max())) if len(each) else (0, 0)
        span = most - least + 1
        if packed and room * span < ROOM:
            packed[-1], room = packed[-1] * span + (each - least), room * span
        else:
            packed.append(each if span >= ROOM else each - least)
            room = span
    return np.argsort(packed[0], kind="stable") if len(packed) == 1 else np.lexsort(packed[::-1])


def in_order(table: pa.Table, given: list[Array], ties: list[By]) -> Array:
    """The places of rows ordered by numbers that are given, the first ones first, then by columns where these tie."""
    order = _order_of(given) if given else np.arange(table.num_rows)
    starts = starts_of([each[order] for each in given], len(order))
    tied = ~starts
    tied[:-1] |= ~starts[1:]
    places = np.flatnonzero(tied)
    if len(places):
        among = order[places]
        rows = table.take(pa.array(among))
        further = [codes_of(rows.column(by.place), by) for by in ties]
        order[places] = among[np.lexsort([*further[::-1], np.cumsum(starts)[places]])]
    return order
