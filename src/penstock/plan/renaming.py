"""A plan whose columns are called otherwise on the way, and that means the same.

Names that no query sees come from its wording: of columns that both relations of a join have, after the relations
(`o_id` and `p_id`), of sub-queries, their aliases. State may hold them, in tables and in promises. So a query that is
worded otherwise goes on under the names of the checkpoint, and nothing in the state need be changed.

`naming` is what a node calls by itself; the rest it takes from its inputs. What cannot be called otherwise, since this
module does not know the node, stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from penstock.errors import PenstockError
from penstock.plan.expressions import AggregateCall, renamed
from penstock.plan.nodes import (
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
from penstock.plan.windows import PartitionedWindow, SlideByTupleWindow, Window

W = TypeVar("W", bound=Window)
Names = Mapping[str, str]
"""What columns are called, by what they were called before."""


class _UnknownNodeError(Exception):
    """A node that may name columns, where it cannot be told which."""


def naming(node: Node) -> tuple[str, ...]:
    """The names that a node gives to columns."""
    match node:
        case Project():
            return tuple(name for name, _ in node.columns)
        case Join() | Lookup() | Unnest() | Pattern():
            return node.names
        case MultiJoin():
            return node.fields.names
        case WindowAggregate() | GroupAggregate():
            return tuple(call.name for call in node.aggregates)
        case RowNumber():
            return (*node.bounds, node.name)
        case _:
            return ()


def called(plan: Node, names: Sequence[Sequence[str] | None]) -> Node:
    """The plan whose nodes, in the order in which it walks, give these names; those that are None give their own."""
    own = [naming(node) for node in plan.walk()]
    given = [had if new is None or len(new) != len(had) else tuple(new) for had, new in zip(own, names, strict=True)]
    if given == own:
        return plan
    try:
        return _called(plan, iter(given))
    except (_UnknownNodeError, PenstockError):  # names that meet, since only a part of them is known
        return plan


def _called(node: Node, names: Iterator[tuple[str, ...]]) -> Node:
    own = next(names)
    inputs = [_called(each, names) for each in node.inputs]
    below = [
        dict(zip(old.schema.names, new.schema.names, strict=True)) for old, new in zip(node.inputs, inputs, strict=True)
    ]
    return _over(node, inputs, below, own)


def _over(node: Node, inputs: list[Node], below: Sequence[Names], own: tuple[str, ...]) -> Node:
    """A node over inputs whose columns are called otherwise, with names of its own."""
    match node:
        case Source():
            return node
        case Select():
            return replace(node, input=inputs[0], predicate=renamed(node.predicate, below[0]))
        case Project():
            return _projection(node, inputs[0], below[0], own)
        case WindowAggregate():
            aggregates = _calls(node.aggregates, below[0], own)
            keys = tuple(below[0][key] for key in node.keys)
            window = _window(node.window, below[0])
            return replace(node, input=inputs[0], window=window, keys=keys, aggregates=aggregates)
        case GroupAggregate():
            keys = tuple(below[0][key] for key in node.keys)
            return replace(node, input=inputs[0], keys=keys, aggregates=_calls(node.aggregates, below[0], own))
        case Join():
            return _join(node, inputs, below, own)
        case MultiJoin():
            return _multi_join(node, inputs, below, own)
        case Pattern():
            return _pattern(node, inputs, below, own)
        case Lookup():
            return _lookup(node, inputs[0], below[0], own)
        case RowNumber():
            return _row_number(node, inputs[0], below[0], own)
        case Unnest():
            return replace(node, input=inputs[0], column=below[0][node.column], names=own)
        case Union() | Distinct() | Settle() | NumberRows() | Stamp():
            return node.with_inputs(*inputs)
        case _ if all(old == new for names in below for old, new in names.items()):
            return node.with_inputs(*inputs)
        case _:
            raise _UnknownNodeError


def _projection(node: Project, below: Node, names: Names, own: tuple[str, ...]) -> Project:
    columns = tuple((name, renamed(made, names)) for name, (_, made) in zip(own, node.columns, strict=True))
    new = dict(zip(naming(node), own, strict=True))
    hidden, unnamed = (frozenset(new[name] for name in held) for held in (node.hidden, node.unnamed))
    return replace(node, input=below, columns=columns, time=new[node.time], hidden=hidden, unnamed=unnamed)


def _calls(calls: Sequence[AggregateCall], names: Names, own: tuple[str, ...]) -> tuple[AggregateCall, ...]:
    return tuple(replace(call.reading(names), name=name) for call, name in zip(calls, own, strict=True))


def _window(window: W, names: Names) -> W:
    moved = replace(window, attribute=names[window.attribute])
    if isinstance(moved, PartitionedWindow):
        return replace(moved, partition=tuple(names[name] for name in moved.partition))
    if isinstance(moved, SlideByTupleWindow) and moved.number is not None:
        return replace(moved, number=names[moved.number])
    return moved


def _join(node: Join, inputs: list[Node], below: Sequence[Names], own: tuple[str, ...]) -> Join:
    left, right = below
    bare = replace(
        node,
        left=inputs[0],
        right=inputs[1],
        on=(left[node.on[0]], right[node.on[1]]),
        equal=tuple((left[one], right[other]) for one, other in node.equal),
        names=own,
        condition=None,
    )
    if node.condition is None:
        return bare
    pairs = {**dict(zip(node.names, own, strict=True)), node.time_name: bare.time_name}
    return replace(bare, condition=renamed(node.condition, pairs))


def _multi_join(node: MultiJoin, inputs: list[Node], below: Sequence[Names], own: tuple[str, ...]) -> MultiJoin:
    new = dict(zip(node.fields.names, own, strict=True))
    fields = tuple(replace(each, name=new[each.name]) for each in node.fields.fields)
    attributes = tuple(new[name] for name in node.fields.attributes)
    return replace(
        node,
        streams=tuple(inputs),
        on=tuple(names[name] for names, name in zip(below, node.on, strict=True)),
        equal=tuple(tuple((at, below[at][name]) for at, name in members) for members in node.equal),
        fields=replace(node.fields, fields=fields, time=new[str(node.fields.time)], attributes=attributes),
        conditions=tuple(renamed(each, new) for each in node.conditions),
    )


def _pattern(node: Pattern, inputs: list[Node], below: Sequence[Names], own: tuple[str, ...]) -> Pattern:
    keys = tuple(
        replace(key, columns=tuple(names[name] for names, name in zip(below, key.columns, strict=True)))
        for key in node.keys
    )
    return replace(node, steps=tuple(inputs), keys=keys, names=own)


def _lookup(node: Lookup, below: Node, names: Names, own: tuple[str, ...]) -> Lookup:
    pairs = dict(zip(node.names, own, strict=True))
    return replace(
        node,
        input=below,
        equal=tuple((names[name], made) for name, made in node.equal),
        names=own,
        condition=None if node.condition is None else renamed(node.condition, pairs),
        as_of=None if node.as_of is None else names[node.as_of],
    )


def _row_number(node: RowNumber, below: Node, names: Names, own: tuple[str, ...]) -> RowNumber:
    start, end, name = own
    return replace(
        node,
        input=below,
        window=_window(node.window, names),
        keys=tuple(names[key] for key in node.keys),
        order=tuple(replace(each, column=names[each.column]) for each in node.order),
        bounds=(start, end),
        name=name,
    )
