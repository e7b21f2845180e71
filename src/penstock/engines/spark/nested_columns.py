"""Functions of arrays, maps and structs as Spark columns, where Spark's answer is exactly ours.

Forms are as in `scalar_columns`: a column that always has a value, or a column and where it fails by itself. Maps that
are made of values are left to Python, since a key that is null or comes twice would stop the task.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.plan import expressions as e
from penstock.plan.regular_expressions import parse

Made = Column | tuple[Column, Column | None] | None
Form = Callable[[e.Call, list[Column]], Made]


def _unless(wrong: Column, value: Column) -> tuple[Column, Column]:
    return F.when(~wrong, value), wrong


def _same(name: str = "") -> Form:
    return lambda call, parts: F.call_function(name or call.name, *parts)


def _field(call: e.Call, parts: list[Column]) -> Made:
    within = call.args[0].type.element if call.name == "fields" else call.args[0].type
    at = call.args[1]
    assert isinstance(at, e.Literal)
    return parts[0].getField(within.parts[int(str(at.value))][0])


def _item(call: e.Call, parts: list[Column]) -> Made:
    array, index = parts
    place = index.cast("bigint")
    return _unless((place < 0) | (place >= F.size(array)), F.get(array, place.cast("int")))


def _get(call: e.Call, parts: list[Column]) -> Made:
    array, index = parts
    place = index.cast("bigint")
    return F.when((place >= 0) & (place < F.size(array)), F.get(array, place.cast("int")))


def _element_at(call: e.Call, parts: list[Column]) -> Made:
    array, index = parts
    place = index.cast("bigint")
    there = F.abs(place) <= F.size(array)
    value = F.when((place != 0) & there, F.try_element_at(array, place.cast("int")))
    return value, (place == 0) if call.name == "try_element_at" else (place == 0) | ~there


def _slice(call: e.Call, parts: list[Column]) -> Made:
    array, start, length = parts
    if any(a.type.bits > 32 for a in call.args[1:]):
        return None
    return _unless((start == 0) | (length < 0), F.slice(array, start, length))


def _split(call: e.Call, parts: list[Column]) -> Made:
    pattern, most = call.args[1], call.args[2]
    if not (isinstance(pattern, e.Literal) and isinstance(most, e.Literal)):
        return None
    if pattern.value is None or most.value is None:
        return None
    expression = parse(str(pattern.value))
    return None if expression.repeats_group else F.split(parts[0], expression.java, int(str(most.value)))


FORMS: dict[str, Form] = {
    "field": _field,
    "fields": _field,
    "item": _item,
    "get": _get,
    "element_at": _element_at,
    "try_element_at": _element_at,
    "map_value": lambda call, parts: F.try_element_at(*parts),
    "size": lambda call, parts: F.when(parts[0].isNotNull(), F.size(parts[0])),
    "array_concat": _same("concat"),
    "array_reverse": _same("reverse"),
    "slice": _slice,
    "split": _split,
    **dict.fromkeys(
        (
            *("map_keys", "map_values", "map_entries", "map_contains_key", "array_contains", "arrays_overlap"),
            *("array_position", "array_distinct", "array_union", "array_intersect", "array_except", "array_min"),
            *("array_max", "sort_array", "array_sort", "array_compact", "array_remove", "array_join", "flatten"),
        ),
        _same(),
    ),
}
