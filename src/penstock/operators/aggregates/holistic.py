"""Aggregates of all the values there are: percentiles, the mode, and any other aggregate of distinct values.

A partial has each value with how often it was put in, so it can be taken out again, and takes room for as many values
as are different (holistic, thesis 6.2.2). The order of values is SQL's: NaN is above every number.

A percentile is exact, as Spark's `percentile` is: the values stand in order at the places 0 to n - 1, and between two
places it goes in a straight line; from minus infinity there is none, and it is NaN. Of the values that are there most
often the mode is the least.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from penstock.model.schema import DataType
from penstock.model.values import canonical, canonical_row
from penstock.operators.aggregates.functions import AggregateFunction, Partial, put_in, take_out
from penstock.operators.aggregates.ordering import ordered

Times = dict[Any, int]
"""Values, each with how often it is there."""


def _once(value: Any) -> Times:
    return {canonical(value): 1}


@dataclass(frozen=True)
class _Percentile:
    share: float

    def __call__(self, times: Times) -> float:
        values = sorted(times.items(), key=lambda item: ordered(item[0]))
        place = self.share * (sum(times.values()) - 1)
        low, high = (float(_at(values, whole)) for whole in (math.floor(place), math.ceil(place)))
        if low == high or math.isnan(low):
            return low
        return low + (place - math.floor(place)) * (high - low)


def _at(values: list[tuple[Any, int]], place: int) -> Any:
    """The value at a place among all values in order."""
    for value, times in values:
        place -= times
        if place < 0:
            return value
    raise AssertionError("a place beyond the last value")


def percentile(share: float) -> Callable[[DataType | None, DataType], AggregateFunction]:
    """The value below which that share of all values lies."""

    def row_form(argument: DataType | None, result: DataType) -> AggregateFunction:
        return AggregateFunction("percentile", _once, put_in, _Percentile(share), take_out)

    return row_form


def _most_frequent(times: Times) -> Any:
    most = max(times.values())
    return min((value for value, n in times.items() if n == most), key=ordered)


def mode(argument: DataType | None, result: DataType) -> AggregateFunction:
    """The value that is there most often."""
    return AggregateFunction("mode", _once, put_in, _most_frequent, take_out)


# Of distinct values


@dataclass(frozen=True)
class _OfDistinct:
    inner: AggregateFunction

    def __call__(self, times: Times) -> Any:
        lifted: list[Partial] = [self.inner.lift(value) for value in times]
        return self.inner.result(reduce(self.inner.join, lifted))


def of_distinct(inner: AggregateFunction, arguments: int) -> AggregateFunction:
    """An aggregate of the distinct values, or of distinct rows of several arguments of which none is null."""
    lift = _once if arguments == 1 else once_if_whole
    return AggregateFunction(f"{inner.name} distinct", lift, put_in, _OfDistinct(inner), take_out, empty=inner.empty)


def once_if_whole(values: tuple[Any, ...]) -> Times | None:
    """Values side by side; nothing if one of them is null."""
    return None if None in values else {canonical_row(values): 1}


def count_rows(argument: DataType | None, result: DataType) -> AggregateFunction:
    """How many different rows of several arguments there are, of which none is null."""
    return AggregateFunction("count_distinct", once_if_whole, put_in, len, take_out, empty=0)
