"""Functions of arrays, maps and structs on single values, which are tuples (`model.nested`), with Spark's ANSI meaning.

`a[i]` and `get` count from 0, `element_at`, `slice` and `array_position` from 1 and, below zero, from the end. What
is not there is an error, but for `get` and `try_element_at`; the value of a key that is not there is null. Two
values are one value as in GROUP BY: null is null, NaN is NaN, the two zeros are one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from penstock.errors import EvaluationError
from penstock.model.comparing import compare, order_key
from penstock.model.schema import DataType
from penstock.model.values import canonical
from penstock.plan.regular_expressions import parse

Strict = Callable[[list[Any], DataType], Any]
MOST = 1 << 22
"""Elements of an array that a function makes."""


def _no_element(index: int, array: tuple[Any, ...], hint: str) -> EvaluationError:
    return EvaluationError("The array has no such element.", got=f"{index} of {len(array)}", hint=hint)


def _item(args: list[Any], type_: DataType) -> Any:
    array, index = args
    if not 0 <= index < len(array):
        raise _no_element(index, array, "get(array, index) gives null instead")
    return array[index]


def _get(args: list[Any], type_: DataType) -> Any:
    array, index = args
    return array[index] if 0 <= index < len(array) else None


def _element_at(args: list[Any], type_: DataType) -> Any:
    array, index = args
    if index == 0 or abs(index) > len(array):
        raise _no_element(index, array, "the first is 1, the last -1; try_element_at(array, index) gives null instead")
    return array[index - 1 if index > 0 else index]


def _try_element_at(args: list[Any], type_: DataType) -> Any:
    array, index = args
    if index == 0:
        raise _no_element(index, array, "the first is 1, the last -1")
    return None if abs(index) > len(array) else array[index - 1 if index > 0 else index]


def _map_value(args: list[Any], type_: DataType) -> Any:
    entries, key = args
    return next((value for own, value in entries if compare("eq", own, key)), None)


def _map(args: list[Any]) -> tuple[Any, ...]:
    """A map of keys and values in turn."""
    return as_map(zip(args[::2], args[1::2], strict=True))


def as_map(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, Any], ...]:
    """A map of pairs; no key is null, and none comes twice."""
    made = tuple(pairs)
    if any(key is None for key, _ in made):
        raise EvaluationError("A key of a map is null.", hint="give it a value with coalesce(…)")
    seen = set()
    for key, _ in made:
        if canonical(key) in seen:
            raise EvaluationError("A map has a key twice.", got=repr(key), hint="leave one of them out")
        seen.add(canonical(key))
    return made


def _contains(args: list[Any], type_: DataType) -> bool | None:
    array, value = args
    if any(inner is not None and compare("eq", inner, value) for inner in array):
        return True
    return None if None in array else False


def _overlap(args: list[Any], type_: DataType) -> bool | None:
    left, right = (_keys(array) for array in args)
    if (left - {None}) & (right - {None}):
        return True
    return None if left and right and (None in left or None in right) else False


def _keys(array: tuple[Any, ...]) -> set[Any]:
    return {canonical(value) for value in array}


def _position(args: list[Any], type_: DataType) -> int:
    array, value = args
    found = (at for at, inner in enumerate(array, 1) if inner is not None and compare("eq", inner, value))
    return next(found, 0)


def _first(array: Iterable[Any]) -> tuple[Any, ...]:
    """Of values that are one value, the first."""
    found: dict[Any, Any] = {}
    for value in array:
        found.setdefault(canonical(value), value)
    return tuple(found.values())


def _intersection(args: list[Any], type_: DataType) -> tuple[Any, ...]:
    right = _keys(args[1])
    return _first(value for value in args[0] if canonical(value) in right)


def _difference(args: list[Any], type_: DataType) -> tuple[Any, ...]:
    right = _keys(args[1])
    return _first(value for value in args[0] if canonical(value) not in right)


def _extreme(choose: Callable[..., Any]) -> Strict:
    def apply(args: list[Any], type_: DataType) -> Any:
        there = [value for value in args[0] if value is not None]
        return choose(there, key=order_key) if there else None

    return apply


def _sorted(args: list[Any], type_: DataType) -> tuple[Any, ...]:
    """Up, null first; or down, null last."""
    array, up = args
    there = sorted([value for value in array if value is not None], key=order_key, reverse=not up)
    missing = [None] * (len(array) - len(there))
    return (*missing, *there) if up else (*there, *missing)


def _sorted_null_last(args: list[Any], type_: DataType) -> tuple[Any, ...]:
    there = sorted([value for value in args[0] if value is not None], key=order_key)
    return (*there, *[None] * (len(args[0]) - len(there)))


def _slice(args: list[Any], type_: DataType) -> tuple[Any, ...]:
    array, start, length = args
    if start == 0 or length < 0:
        got = f"start {start}, length {length}"
        raise EvaluationError("slice takes a start that is not 0, and a length.", got=got, hint="the first is 1")
    begin = start - 1 if start > 0 else len(array) + start
    return tuple(array[begin : begin + length]) if begin >= 0 else ()


def _flatten(args: list[Any], type_: DataType) -> tuple[Any, ...] | None:
    if None in args[0]:
        return None
    arrays: tuple[tuple[Any, ...], ...] = args[0]
    return _concat(arrays, type_)


def _repeat(args: list[Any]) -> tuple[Any, ...] | None:
    value, times = args
    if times is None:
        return None
    if times > MOST:
        raise _too_long(times)
    return tuple([value] * max(times, 0))


def _too_long(count: int) -> EvaluationError:
    return EvaluationError("The array would be too long.", got=f"{count} elements", hint=f"no more than {MOST}")


def _checked(array: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(array) > MOST:
        raise _too_long(len(array))
    return array


def _concat(args: Iterable[Any], type_: DataType) -> tuple[Any, ...]:
    return _checked(tuple([value for array in args for value in array]))


def _remove(args: list[Any], type_: DataType) -> tuple[Any, ...]:
    array, value = args
    return tuple([inner for inner in array if inner is None or not compare("eq", inner, value)])


def _join(args: list[Any], type_: DataType) -> str:
    array, separator, *missing = args
    there = array if missing else [text for text in array if text is not None]
    return str(separator).join([missing[0] if text is None else text for text in there])


@lru_cache(maxsize=256)
def _separators(pattern: str) -> re.Pattern[str]:
    return re.compile(parse(pattern).python)


def _split(args: list[Any], type_: DataType) -> tuple[str, ...]:
    """What stands between the places where a pattern, which never finds nothing, is found; at most so many parts."""
    text, pattern, most = args
    parts: list[str] = []
    at = 0
    for found in _separators(pattern).finditer(text):
        if 0 < most == len(parts) + 1:
            break
        parts.append(text[at : found.start()])
        at = found.end()
    return (*parts, text[at:])


NESTED: dict[str, Strict] = {
    "field": lambda args, type_: args[0][args[1]],
    "fields": lambda args, type_: tuple([None if inner is None else inner[args[1]] for inner in args[0]]),
    "item": _item,
    "get": _get,
    "element_at": _element_at,
    "try_element_at": _try_element_at,
    "map_value": _map_value,
    "size": lambda args, type_: len(args[0]),
    "map_keys": lambda args, type_: tuple([key for key, _ in args[0]]),
    "map_values": lambda args, type_: tuple([value for _, value in args[0]]),
    "map_entries": lambda args, type_: args[0],
    "map_from_entries": lambda args, type_: None if None in args[0] else as_map(args[0]),
    "map_contains_key": lambda args, type_: any(compare("eq", own, args[1]) for own, _ in args[0]),
    "array_contains": _contains,
    "arrays_overlap": _overlap,
    "array_position": _position,
    "array_distinct": lambda args, type_: _first(args[0]),
    "array_union": lambda args, type_: _first((*args[0], *args[1])),
    "array_intersect": _intersection,
    "array_except": _difference,
    "array_min": _extreme(min),
    "array_max": _extreme(max),
    "sort_array": _sorted,
    "array_sort": _sorted_null_last,
    "array_compact": lambda args, type_: tuple([value for value in args[0] if value is not None]),
    "array_remove": _remove,
    "array_join": _join,
    "array_concat": _concat,
    "array_reverse": lambda args, type_: args[0][::-1],
    "flatten": _flatten,
    "slice": _slice,
    "split": _split,
}

MAKERS: dict[str, Callable[[list[Any]], Any]] = {
    "array": tuple,
    "struct": tuple,
    "map": _map,
    "array_repeat": _repeat,
}
"""Those that take nulls as they are."""
