"""Joins are given the columns that somebody reads of their results, and no others.

What is joined is a stream or a view of it, with all of its columns. In-process they cost nothing, since a column is
shared; where rows change places on their way to a join they would travel, and be kept there until the other stream has
passed them. So projections below a join are cut down to what is read above it, by the join itself, or by what follows,
and where there is none that could be, one is put there.

A column that is computed stays if that may fail: a row without it is a dead letter, whoever reads it. Of the rows of
one time all columns say which is the latest, so a join with the latest is given all of the right's. Unions, duplicate
elimination and lookups are given all of their columns. A plan without joins stays the same object, and so
does its state: what a join keeps depends on what is read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from penstock.plan.expressions import Column, always_has_value, columns_in
from penstock.plan.join_nodes import Latest
from penstock.plan.multi_nodes import MultiJoin, Taken
from penstock.plan.nodes import Join, Node, Project, Select


def narrowed(plan: Node) -> Node:
    """The plan with joins that are given no more than is read."""
    if not any(isinstance(node, Join | MultiJoin) for node in plan.walk()):
        return plan
    return _narrowed(plan, plan.schema.names)


def _narrowed(node: Node, wanted: Collection[str]) -> Node:
    """A node whose output has the columns that are wanted, by the same names; it may have more."""
    match node:
        case Join():
            return _narrowed_join(node, wanted)
        case MultiJoin():
            return _narrowed_multi_join(node, wanted)
        case Project():
            return _narrowed_projection(node, wanted)
        case Select(predicate=predicate):
            return node.with_inputs(_narrowed(node.input, {*wanted, *columns_in(predicate)}))
        case _:
            return node.with_inputs(*(_narrowed(below, below.schema.names) for below in node.inputs))


def _narrowed_projection(node: Project, wanted: Collection[str]) -> Node:
    kept = tuple(
        (name, made) for name, made in node.columns if name in {*wanted, node.time} or not always_has_value(made)
    )
    names = {name for name, _ in kept}
    read = {str(node.input.schema.time)}.union(*(columns_in(made) for _, made in kept))
    return replace(
        node,
        input=_narrowed(node.input, read),
        columns=kept,
        hidden=node.hidden & names,
        unnamed=node.unnamed & names,
    )


def _narrowed_join(node: Join, wanted: Collection[str]) -> Node:
    read = {*wanted} if node.condition is None else {*wanted, *columns_in(node.condition)}
    half = len(node.left.schema.fields)
    inputs, names = [], list[str]()
    for port, (below, called) in enumerate(zip(node.inputs, (node.names[:half], node.names[half:]), strict=True)):
        own = {str(below.schema.time), node.on[port], *(pair[port] for pair in node.equal)}
        if port == 1 and isinstance(node.near, Latest):
            own = {*below.schema.names}
        kept = {
            field.name: name
            for field, name in zip(below.schema.fields, called, strict=True)
            if name in read or field.name in own
        }
        inputs.append(_only(_narrowed(below, kept), kept))
        names += kept.values()
    made = replace(node, left=inputs[0], right=inputs[1], names=tuple(names))
    if made.time_name == node.time_name:
        return made
    # A column that nobody reads is called as the time would be, were it not there.
    return node.with_inputs(*(_narrowed(below, below.schema.names) for below in node.inputs))


def _narrowed_multi_join(node: MultiJoin, wanted: Collection[str]) -> Node:
    members = [*enumerate(node.on), *(member for same in node.equal for member in same)]
    read = {*wanted, str(node.schema.time), *map(node.named, members)}.union(*map(columns_in, node.conditions))
    kept = [(taken, own) for taken, own in zip(node.columns, node.fields.fields, strict=True) if own.name in read]
    inputs = []
    for at, below in enumerate(node.streams):
        own = {below.schema.names[taken.place] for taken, _ in kept if taken.inputs == (at,) and not taken.is_time}
        own |= {str(below.schema.time)}
        inputs.append(_only(_narrowed(below, own), own))
    columns = tuple(
        taken if taken.is_time else replace(taken, place=_place(taken, node.streams, inputs)) for taken, _ in kept
    )
    fields = replace(node.fields, fields=tuple(own for _, own in kept))
    return replace(node, streams=tuple(inputs), columns=columns, fields=fields)


def _place(taken: Taken, before: Sequence[Node], after: Sequence[Node]) -> int:
    """Where a column of an input is now."""
    (at,) = taken.inputs
    return after[at].schema.index(before[at].schema.names[taken.place])


def _only(node: Node, kept: Collection[str]) -> Node:
    """The node's output without other columns than these."""
    fields = [field for field in node.schema.fields if field.name in kept]
    if len(fields) == len(node.schema.fields):
        return node
    return Project(
        node,
        tuple((field.name, Column(field.name, field.type)) for field in fields),
        str(node.schema.time),
        frozenset(field.name for field in fields if field.hidden),
        frozenset(field.name for field in fields if field.words),
    )
