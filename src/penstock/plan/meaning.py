"""What a node means, whatever the columns in it are called.

An identity (`identity`) has the names that sub-queries give their columns, since nodes above them read by name. Here
the columns of a node go by their places instead, so that a query whose inner aliases are worded otherwise means the
same, node by node. The names of the result are the user's own, and belong to what the last node means.

Where streams speak of groups, or several attributes of one progress, promises name columns, and state holds promises:
there names are a part of what is meant. So they are of nodes that this module does not know.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.plan.expressions import renamed
from penstock.plan.identity import Known, canonical, digest, numbered
from penstock.plan.nodes import (
    ROW_NUMBER,
    AlterLifetime,
    Distinct,
    GroupAggregate,
    Node,
    NumberRows,
    Project,
    Select,
    Settle,
    Source,
    Union,
    WindowAggregate,
)
from penstock.plan.windows import Window

Places = Mapping[str, str]
"""What stands for each column of a node, by name."""


def meanings(known: Sequence[Known]) -> list[str]:
    """What each node of a plan means, in the order in which it walks, given its identities."""
    plan = known[0].node
    if any(_names_in_promises(each.node) for each in known):
        return [each.identity for each in known]
    found: list[str] = []
    _mean(plan, iter(known), found)
    found[0] = digest([found[0], list(plan.schema.names)])
    return numbered(found)


def _names_in_promises(node: Node) -> bool:
    return isinstance(node, Source) and bool(node.per or node.schema.attributes)


def _mean(node: Node, known: Iterator[Known], found: list[str]) -> tuple[str, Places]:
    own, at = next(known), len(found)
    found.append("")
    below = [_mean(each, known, found) for each in node.inputs]
    form, places = _form(node, own, [names for _, names in below])
    found[at] = digest([form, [meaning for meaning, _ in below]])
    return found[at], places


def _form(node: Node, own: Known, below: Sequence[Places]) -> tuple[Any, Places]:
    """What a node says by itself, and what stands for the columns that come out of it."""
    match node:
        case Source():
            return own.own, {name: name for name in node.schema.names}
        case Select():
            return ["Select", canonical(renamed(node.predicate, below[0]))], below[0]
        case Project():
            places = _places(node)
            columns = [canonical(renamed(e, below[0])) for _, e in node.columns]
            return ["Project", columns, places[node.time], sorted(places[name] for name in node.hidden)], places
        case WindowAggregate():
            return ["WindowAggregate", *_grouped(node, below[0]), _window(node.window, below[0])], _places(node)
        case GroupAggregate():
            return ["GroupAggregate", *_grouped(node, below[0])], _places(node)
        case NumberRows():
            return canonical(node), {**below[0], ROW_NUMBER: ROW_NUMBER}
        case Distinct() | Settle() | AlterLifetime():
            return canonical(node), below[0]
        case Union():
            return canonical(node), _places(node)
        case _:
            read = [list(each.schema.names) for each in node.inputs]
            return [canonical(node), read], {name: name for name in node.schema.names}


def _places(node: Node) -> Places:
    return {name: str(at) for at, name in enumerate(node.schema.names)}


def _grouped(node: WindowAggregate | GroupAggregate, below: Places) -> list[Any]:
    calls = [dataclasses.replace(call.reading(below), name="") for call in node.aggregates]
    return [canonical(calls), [below[key] for key in node.keys]]


def _window(window: Window, below: Places) -> Any:
    """A window over columns by what stands for them, in the order in which it names them."""
    kind, said = canonical(window)
    lengths = {name: held for name, held in said.items() if name not in _NAMING}
    return [kind, lengths, [below[column] for column in window.columns]]


_NAMING = frozenset({"attribute", "partition", "number"})
"""Fields of windows that name columns, all of which are among `columns`."""
