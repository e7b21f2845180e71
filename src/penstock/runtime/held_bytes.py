"""How many bytes the state of operators and the elements on arcs take, looked up when somebody asks.

Nothing is counted while a graph runs. Whoever asks has objects walked through: what numpy and Arrow hold by their own
word, everything else by Python's, each object once. Of a collection of more than a thousand a thousand at equal
distances are looked at, and stand for the others, so that asking takes milliseconds however large the state is: the
answer is an estimate, good where the things in a collection are of one kind. What Python shares anyway (small numbers,
classes, functions) is nobody's.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Sized
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.model.batch import Batch
from penstock.model.interleaved import Interleaved
from penstock.model.schema import Schema
from penstock.operators.state import Pages

LOOKED_AT = 1000
SHARED = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType, Schema, pa.Schema, pa.DataType, type(None))
COLLECTIONS = (list, tuple, set, frozenset, deque)


def bytes_of_pages(pages: Pages) -> int:
    """Of the state of an operator."""
    seen: set[int] = set()
    return sum(_bytes(key, seen) + _bytes(pages.get(key), seen) for key in pages.keys())  # noqa: SIM118


def bytes_of(elements: Iterable[object]) -> int:
    """Of elements, with what they share held once."""
    seen: set[int] = set()
    return sum(_bytes(element, seen) for element in elements)


def _bytes(value: Any, seen: set[int]) -> int:
    if isinstance(value, SHARED) or id(value) in seen:
        return 0
    kind = type(value)
    if kind in (bool, int, float):
        return 0 if kind is bool or (kind is int and -5 <= value <= 256) else sys.getsizeof(value)
    seen.add(id(value))
    if kind in (str, bytes):
        return sys.getsizeof(value)
    if isinstance(value, Batch):
        forms = (value._table, value._rows, value.lives)
        return sys.getsizeof(value) + sum(_bytes(form, seen) for form in forms)
    if isinstance(value, Interleaved):
        return sum(_bytes(each, seen) for each in (value.whole, value.places, value.said, value.kept))
    if isinstance(value, np.ndarray):
        of_objects = _several(value.ravel().tolist(), seen) if value.dtype == object else 0
        return (value.nbytes if value.base is None else _base(value, seen)) + of_objects
    if isinstance(value, pa.Table | pa.RecordBatch | pa.Array | pa.ChunkedArray):
        return int(value.nbytes)
    if isinstance(value, dict):
        return sys.getsizeof(value) + _several(value, seen) + _several(value.values(), seen)
    if isinstance(value, COLLECTIONS):
        return sys.getsizeof(value) + _several(value, seen)
    return sys.getsizeof(value) + sum(_bytes(each, seen) for each in _attributes(value))


def _base(value: np.ndarray, seen: set[int]) -> int:
    """A view: what it looks at is held, once."""
    base: Any = value.base
    return _bytes(base, seen) if isinstance(base, np.ndarray) else value.nbytes


def _several(values: Iterable[Any], seen: set[int]) -> int:
    """Of what is in a collection."""
    assert isinstance(values, Sized)
    count = len(values)
    if count <= LOOKED_AT:
        return sum(_bytes(each, seen) for each in values)
    found = sum(_bytes(each, seen) for each in islice(values, 0, None, -(-count // LOOKED_AT)))
    return found * count // len(range(0, count, -(-count // LOOKED_AT)))


def _attributes(value: Any) -> Iterable[Any]:
    """What an object of ours holds."""
    own = getattr(value, "__dict__", None)
    if own is not None:
        yield own
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                yield getattr(value, name)
