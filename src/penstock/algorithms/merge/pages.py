"""The objects of a merge as plain data.

A merge is a web: an event is in the index and in a calendar, an input is among the inputs and leads. `flatten` numbers
the objects and containers of the web and writes each once, `unflatten` makes them anew with the same web between them.
Only the classes listed here can come out of it, and only their attributes are set: nothing is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.algorithms.merge import base, baselines, divergence, index, policies, r3, r4, trail
from penstock.algorithms.merge.choose import ALGORITHMS
from penstock.model import elements, likeness
from penstock.model.plain import NotPlain

_CLASSES: dict[str, type] = {
    **{kind.__name__: kind for kind in ALGORITHMS.values()},
    **{kind.__name__: kind for kind in policies.NAMES},
    **{
        kind.__name__: kind
        for kind in (
            base.Input, base.Counts, base.Misstep, baselines.Cleanse, divergence.Divergence, divergence.Watch,
            divergence.Record, index.Node, index.Calendar, index.Days, index.Holds, index.Index, r3.R3, r4.Bag, r4.Ends,
            trail.Trail, trail.Walk, likeness.Likeness,
            elements.Insert, elements.Adjust, elements.Punctuation,
        )
    },
}  # fmt: skip
_NAMES = {kind: name for name, kind in _CLASSES.items()}
_ATOMS = (type(None), bool, int, float, str, bytes)


def flatten(root: Any) -> list[Any]:
    """Everything that hangs together with `root`, which comes first: a list of descriptions that name each other."""
    numbers: dict[int, int] = {}
    waiting: list[Any] = []

    def refer(value: Any) -> Any:
        kind = type(value)
        if kind in (list, dict, set) or kind in _NAMES:
            number = numbers.get(id(value))
            if number is None:
                number = numbers[id(value)] = len(waiting)
                waiting.append(value)
            return [number]
        if kind is tuple and any(type(v) not in _ATOMS for v in value):
            return ["t", *map(refer, value)]
        if kind in _ATOMS or kind is tuple:
            return value
        return ["v", value]

    refer(root)
    described: list[Any] = []
    for value in waiting:  # which grows meanwhile
        described.append(_described(value, refer))
    return described


def _described(value: Any, refer: Callable[[Any], Any]) -> tuple[str, Any]:
    match value:
        case list():
            return "list", [refer(v) for v in value]
        case set():
            return "set", [refer(v) for v in value]
        case dict():
            return "dict", [[refer(k) for k in value], [refer(v) for v in value.values()]]
        case _:
            state = _attributes(value)
            return _NAMES[type(value)], [list(state), [refer(v) for v in state.values()]]


def _attributes(value: Any) -> dict[str, Any]:
    if hasattr(value, "__dict__"):
        return dict(vars(value))
    names = type(value).__slots__
    return {name: getattr(value, name) for name in ((names,) if isinstance(names, str) else names)}


def unflatten(described: list[Any]) -> Any:
    """The object that `flatten` was given."""
    made = [_empty(kind) for kind, _ in described]

    def resolve(value: Any) -> Any:
        if type(value) is not list:
            return value
        if value[0] == "t":
            return tuple([resolve(v) for v in value[1:]])
        return value[1] if value[0] == "v" else made[value[0]]

    keyed: list[tuple[Any, Any]] = []
    for value, (_, content) in zip(made, described, strict=True):
        if isinstance(value, list):
            value.extend(map(resolve, content))
        elif isinstance(value, set | dict):
            keyed.append((value, content))
        else:
            for name, held in zip(*content, strict=True):
                object.__setattr__(value, name, resolve(held))
    for value, content in keyed:  # keys must be whole before they are put in
        if isinstance(value, set):
            value.update(map(resolve, content))
        else:
            value.update(zip(map(resolve, content[0]), map(resolve, content[1]), strict=True))
    return made[0]


def _empty(kind: str) -> Any:
    if kind in ("list", "dict", "set"):
        return {"list": list, "dict": dict, "set": set}[kind]()
    if kind not in _CLASSES:
        raise NotPlain(f"no part of a merge is called {kind}")
    return object.__new__(_CLASSES[kind])
