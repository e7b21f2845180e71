"""Which of two rows of the same time is the later one: the greater one, so that it does not depend on who came first.

Rows are compared column by column, in the order of their schema. Null is less than any value, NaN greater than any
other number, and -0.0 less than 0.0, so rows that are equal by this order are the same in every column. Texts are
compared by their characters' code points, which is the order of their bytes; nested values part by part.

The order is looked at only where times are equal: of many rows, `in_order` takes the columns of those that tie alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.batch import Row
from penstock.model.nested import values_of

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def order_of(row: Row) -> tuple[Any, ...]:
    """What rows of one time are compared by."""
    return tuple([_value(value) for value in row])


def _value(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if isinstance(value, float):
        return (2,) if math.isnan(value) else (1, value, math.copysign(1.0, value))
    return (1, order_of(value) if isinstance(value, tuple) else value)


def in_order(groups: np.ndarray, times: np.ndarray, table: pa.Table) -> np.ndarray:
    """The places of rows by group, then by time, then by their columns."""
    order = np.lexsort((times, groups))
    grouped, timed = groups[order], times[order]
    same = (grouped[1:] == grouped[:-1]) & (timed[1:] == timed[:-1])
    if not same.any():
        return order
    tied = np.zeros(len(order), np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    places = order[tied]
    ranks = [rank for column in table.take(pa.array(places)).columns for rank in _ranks(column)]
    order[tied] = places[np.lexsort((*reversed(ranks), timed[tied], grouped[tied]))]
    return order


def _ranks(column: pa.ChunkedArray) -> list[np.ndarray]:
    """Numbers that are in the order of the values of a column, the first ones of more weight."""
    arrow = column.type
    if pa.types.is_null(arrow):
        return []
    if pa.types.is_nested(arrow):
        values = [_value(value) for value in values_of(column)]
        places = {value: place for place, value in enumerate(sorted(set(values)))}
        return [np.array([places[value] for value in values], np.int64)]
    if pa.types.is_floating(arrow):
        return [_float_ranks(column)]
    if pa.types.is_integer(arrow) or pa.types.is_temporal(arrow) or pa.types.is_boolean(arrow):
        width = pa.int32() if pa.types.is_date32(arrow) else pa.int64()
        numbers = pc.fill_null(column.cast(width), 0)
        present = np.asarray(pc.is_valid(column).to_numpy())
        return [present, np.asarray(numbers.to_numpy())]
    ranks = pc.rank(column, "ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    ranks[np.asarray(pc.is_null(column).to_numpy())] = 0
    return [ranks]


def _float_ranks(column: pa.ChunkedArray) -> np.ndarray:
    """The bits of floats, turned so that they are in the order of the floats."""
    values = np.asarray(pc.fill_null(column, 0.0).to_numpy()).astype(np.float64)
    bits = values.view(np.int64)
    ranks = np.where(bits < 0, bits ^ _GREATEST, bits)
    ranks[np.isnan(values)] = _GREATEST
    ranks[np.asarray(pc.is_null(column).to_numpy())] = _LEAST
    return ranks
