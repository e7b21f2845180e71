"""What a node means, whatever the columns in it are called.

An identity (`identity`) has the names that sub-queries give their columns, since nodes above them read by name. Here
the columns of a node go by their places instead, so that a query whose inner aliases are worded otherwise means the
same, node by node. The names of the result are the user's own, and belong to what the last node means.

Where streams speak of groups, or several attributes of one progress, promises name columns, and state holds promises:
there names are a part of what is meant. So they are of joins, and of nodes that this module does not know.

`wordless` goes further: it knows joins, lookups, row numbers and what is unnested, and minds no promises. A query that
means the same in that sense can be called as the other one was (`renaming`), and is then the same, names included.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from penstock.plan.expressions import renamed
from penstock.plan.identity import Known, canonical, digest, numbered
from penstock.plan.nodes import (
    ROW_NUMBER,
    AlterLifetime,
    Distinct,
    GroupAggregate,
    Join,
    Lookup,
    MultiJoin,
    Node,
    NumberRows,
    Pattern,
    Project,
    RowNumber,
    Select,
    Settle,
    Source,
    Stamp,
    Union,
    Unnest,
    WindowAggregate,
)
from penstock.plan.windows import Window

Places = Mapping[str, str]
"""What stands for each column of a node, by name."""
Form = Callable[[Node, Known, Sequence[Places]], tuple[Any, Places]]
"""What a node says by itself, given what stands for the columns of its inputs, and what stands for its own."""


def meanings(known: Sequence[Known]) -> list[str]:
    """What each node of a plan means, in the order in which it walks, given its identities."""
    if any(_names_in_promises(each.node) for each in known):
        return [each.identity for each in known]
    return _meant(known, _form)


def wordless(known: Sequence[Known]) -> list[str]:
    """What each node of a plan means if it does not matter what it, and all below it, call columns."""
    return _meant(known, _wordless)


def _meant(known: Sequence[Known], form: Form) -> list[str]:
    found: list[str] = []
    _mean(known[0].node, iter(known), found, form)
    found[0] = digest([found[0], list(known[0].node.schema.names)])
    return numbered(found)


def _names_in_promises(node: Node) -> bool:
    return isinstance(node, Source) and bool(node.per or node.schema.attributes)


def _mean(node: Node, known: Iterator[Known], found: list[str], formed: Form) -> tuple[str, Places]:
    own, at = next(known), len(found)
    found.append("")
    below = [_mean(each, known, found, formed) for each in node.inputs]
    form, places = formed(node, own, [names for _, names in below])
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
        case Distinct() | Settle() | AlterLifetime() | Stamp():
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


def _wordless(node: Node, own: Known, below: Sequence[Places]) -> tuple[Any, Places]:
    match node:
        case Join():
            return _joined(node, below), _places(node)
        case MultiJoin():
            conditions = [canonical(renamed(each, _places(node))) for each in node.conditions]
            on = [names[name] for names, name in zip(below, node.on, strict=True)]
            equal = [[[at, below[at][name]] for at, name in members] for members in node.equal]
            types = [[str(field.type), field.hidden] for field in node.fields.fields]
            said = [canonical(node.apart), canonical(node.columns), types, _places(node)[str(node.schema.time)]]
            return ["MultiJoin", on, equal, said, conditions, node.last], _places(node)
        case Pattern():
            keyed = [[names[name] for names, name in zip(below, each, strict=True)] for each in node.equal]
            groups = [key.is_group for key in node.keys]
            return ["Pattern", list(node.negated), node.context, keyed, groups, node.within], _places(node)
        case Lookup():
            return _looked_up(node, below[0])
        case RowNumber():
            order = [[below[0][each.column], each.descending, each.nulls_last] for each in node.order]
            keys = [below[0][key] for key in node.keys]
            return ["RowNumber", _window(node.window, below[0]), keys, order, node.most], _places(node)
        case Unnest():
            made = {name: f"{_nth(node)} {at}" for at, name in enumerate(node.names)}
            kept = {name: below[0][name] for name in node.schema.names if name not in made}
            return ["Unnest", below[0][node.column], node.outer, node.place, len(made)], {**kept, **made}
        case _:
            return _form(node, own, below)


def _joined(node: Join, below: Sequence[Places]) -> Any:
    left, right = below
    both = [f"0 {left[name]}" for name in node.left.schema.names]
    both += [f"1 {right[name]}" for name in node.right.schema.names]
    pairs = {**dict(zip(node.names, both, strict=True)), node.time_name: "time"}
    condition = None if node.condition is None else canonical(renamed(node.condition, pairs))
    equal = [[left[one], right[other]] for one, other in node.equal]
    return ["Join", node.kind, canonical(node.near), [left[node.on[0]], right[node.on[1]]], equal, condition]


def _looked_up(node: Lookup, below: Places) -> tuple[Any, Places]:
    """A lookup by the columns of the stream, and those of the table by their own names, as often as it is looked up."""
    table = node.table
    places = {name: below[own] for own, name in node.called.items()}
    places |= {name: f"{_nth(node)} {own}" for own, name in node.called_of_table.items()}
    condition = None if node.condition is None else canonical(renamed(node.condition, places))
    versions = [table.key, table.valid_from, table.valid_to, below[node.as_of]] if node.as_of is not None else []
    equal = [[below[name], canonical(made)] for name, made in node.equal]
    form = ["Lookup", table.name.lower(), node.kind, canonical(versions), equal, condition]
    return form, places if node.is_of_pairs else {name: places[name] for name in node.schema.names}


def _nth(node: Node) -> str:
    """A node, told from others of its kind that its columns have come through."""
    return f"{type(node).__name__} {sum(isinstance(each, type(node)) for each in node.walk())}"
