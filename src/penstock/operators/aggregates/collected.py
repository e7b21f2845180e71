"""Aggregates that give arrays: all values that are not null, or the distinct ones.

Spark leaves the order open; here an answer must not depend on the order of arrival. `collect_list` has the values by
the time of their rows, those of one time by value; `collect_set` has them by value. A group without values has an empty
array. A partial has each value with how often it was put in, so it can be taken out again (holistic, thesis 6.2.2).
"""

from __future__ import annotations

from typing import Any

from penstock.model.schema import DataType
from penstock.model.values import canonical
from penstock.operators.aggregates.functions import AggregateFunction, put_in, take_out
from penstock.operators.aggregates.ordering import ordered

Times = dict[Any, int]


def _placed(values: tuple[Any, Any]) -> Times | None:
    """A value with its time."""
    value, time = values
    return None if value is None else {(time, canonical(value)): 1}


def _in_time(times: Times) -> tuple[Any, ...]:
    in_order = sorted(times.items(), key=lambda item: (ordered(item[0][0]), ordered(item[0][1])))
    return tuple([value for (_, value), count in in_order for _ in range(count)])


def collect_list(argument: DataType | None, result: DataType) -> AggregateFunction:
    """All values in the order of time."""
    return AggregateFunction("collect_list", _placed, put_in, _in_time, take_out, empty=())


def _once(value: Any) -> Times:
    return {canonical(value): 1}


def _in_order(times: Times) -> tuple[Any, ...]:
    return tuple(sorted(times, key=ordered))


def collect_set(argument: DataType | None, result: DataType) -> AggregateFunction:
    """The distinct values in order."""
    return AggregateFunction("collect_set", _once, put_in, _in_order, take_out, empty=())
