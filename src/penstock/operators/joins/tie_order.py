"""Which of two rows of the same time is the later one: the greater one, so that it does not depend on who came first.

Rows are compared column by column, in the order of their schema. Null is less than any value, and NaN greater than any
other number. Texts are compared by their characters' code points, which is the order of their bytes; nested values part
by part. The two zeros are equal, as everywhere; only where rows are equal in all columns -0.0 is the lesser, so that
rows which are equal by this order are the same.

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
    return (*[_value(value) for value in row], _signs(row))


def _value(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    return (1, tuple([_value(part) for part in value]) if isinstance(value, tuple) else value)


def _signs(value: Any) -> tuple[float, ...]:
    """The signs of the zeros in a value, one after the other."""
    if isinstance(value, tuple):
        return tuple([sign for part in value for sign in _signs(part)])
    return (math.copysign(1.0, value),) if isinstance(value, float) and value == 0 else ()


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
    columns = table.take(pa.array(places)).columns
    ranks = [rank for column in columns for rank in _ranks(column)]
    ranks += [rank for column in columns for rank in _sign_ranks(column)]
    order[tied] = places[np.lexsort((*reversed(ranks), timed[tied], grouped[tied]))]
    return order


def _ranks(column: pa.ChunkedArray) -> list[np.ndarray]:
    """Numbers that are in the order of the values of a column, the first ones of more weight."""
    arrow = column.type
    if pa.types.is_null(arrow):
        return []
    if pa.types.is_nested(arrow):
        return [_places([_value(value) for value in values_of(column)])]
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
    values = np.asarray(pc.fill_null(column, 0.0).to_numpy()).astype(np.float64) + 0.0  # -0.0 + 0.0 is 0.0
    bits = values.view(np.int64)
    ranks = np.where(bits < 0, bits ^ _GREATEST, bits)
    ranks[np.isnan(values)] = _GREATEST
    ranks[np.asarray(pc.is_null(column).to_numpy())] = _LEAST
    return ranks


def _sign_ranks(column: pa.ChunkedArray) -> list[np.ndarray]:
    """Numbers that are in the order of the signs of zeros, where a column has any."""
    if pa.types.is_floating(column.type):
        values = np.asarray(pc.fill_null(column, 1.0).to_numpy())
        return [(values != 0) | ~np.signbit(values)]
    return [_places([_signs(value) for value in values_of(column)])] if pa.types.is_nested(column.type) else []


def _places(values: list[tuple[Any, ...]]) -> np.ndarray:
    """The place of each value among all in order, the same for equal ones."""
    places = {value: place for place, value in enumerate(sorted(set(values)))}
    return np.array([places[value] for value in values], np.int64)
