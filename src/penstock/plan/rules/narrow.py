"""Joins are given the columns that somebody reads of their results, and no others.

What is joined is a stream or a view of it, with all of its columns. In-process they cost nothing, since a column is
shared; where rows change places on their way to a join they would travel, and be kept there until the other stream has
passed them. So projections below a join are cut down to what is read above it, by the join itself, or by what follows,
and where there is none that could be, one is put there.

State is kept under what is read, by name: a side that is a stream with all of its columns is given them by a projection
too, and columns of a stream come in the order of their names. So a column that is added to a stream, or moved, and that
nobody reads is of no concern to the join.

A column that is computed stays if that may fail: a row without it is a dead letter, whoever reads it. Of the rows of
one time all columns say which is the latest, so a join with the latest is given all of the right's. Unions, duplicate
elimination and lookups are given all of their columns. A plan without joins stays the same object, and so
does its state: what a join keeps depends on what is read.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from penstock.model.schema import Field
from penstock.plan.expressions import Column, always_has_value, columns_in
from penstock.plan.join_nodes import Latest
from penstock.plan.multi_nodes import MultiJoin, Taken
from penstock.plan.nodes import AlterLifetime, Join, Node, NumberRows, Project, Select, Settle, Source


def narrowed(plan: Node, *, by_name: bool = True) -> Node:
    """The plan with joins that are given no more than is read.

    Unless it is `by_name`, columns stay in the order of their streams, as state of earlier releases has them.
    """
    if not any(isinstance(node, Join | MultiJoin) for node in plan.walk()):
        return plan
    return _in_order(_Narrowing(by_name).of(plan, plan.schema.names), plan)


class _Narrowing:
    """Cuts plans down to what is read."""

    def __init__(self, by_name: bool) -> None:
        self.by_name = by_name

    def of(self, node: Node, wanted: Collection[str]) -> Node:
        """A node whose output has the columns that are wanted, by the same names, in any order; it may have more."""
        match node:
            case Join():
                return self._join(node, wanted)
            case MultiJoin():
                return self._multi_join(node, wanted)
            case Project():
                return self._projection(node, wanted)
            case Select(predicate=predicate):
                return node.with_inputs(self.of(node.input, {*wanted, *columns_in(predicate)}))
            case _:
                return self._whole(node)

    def _whole(self, node: Node) -> Node:
        """A node that is given all columns of its inputs, where they were."""
        return node.with_inputs(*(_in_order(self.of(below, below.schema.names), below) for below in node.inputs))

    def _projection(self, node: Project, wanted: Collection[str]) -> Node:
        kept = tuple(
            (name, made) for name, made in node.columns if name in {*wanted, node.time} or not always_has_value(made)
        )
        names = {name for name, _ in kept}
        read = {str(node.input.schema.time)}.union(*(columns_in(made) for _, made in kept))
        return replace(
            node,
            input=self.of(node.input, read),
            columns=kept,
            hidden=node.hidden & names,
            unnamed=node.unnamed & names,
        )

    def _join(self, node: Join, wanted: Collection[str]) -> Node:
        read = {*wanted} if node.condition is None else {*wanted, *columns_in(node.condition)}
        half = len(node.left.schema.fields)
        inputs, names = [], list[str]()
        for port, (below, called) in enumerate(zip(node.inputs, (node.names[:half], node.names[half:]), strict=True)):
            own = {str(below.schema.time), node.on[port], *(pair[port] for pair in node.equal)}
            as_it_is = port == 1 and isinstance(node.near, Latest)
            if as_it_is:
                own = {*below.schema.names}
            kept = {
                field.name: name
                for field, name in zip(below.schema.fields, called, strict=True)
                if name in read or field.name in own
            }
            narrow = self.of(below, kept)
            inputs.append(_in_order(narrow, below) if as_it_is else self._only(narrow, kept))
            names += [kept[name] for name in inputs[-1].schema.names]
        made = replace(node, left=inputs[0], right=inputs[1], names=tuple(names))
        if made.time_name == node.time_name:
            return made
        # A column that nobody reads is called as the time would be, were it not there.
        return self._whole(node)

    def _multi_join(self, node: MultiJoin, wanted: Collection[str]) -> Node:
        members = [*enumerate(node.on), *(member for same in node.equal for member in same)]
        read = {*wanted, str(node.schema.time), *map(node.named, members)}.union(*map(columns_in, node.conditions))
        kept = [(taken, own) for taken, own in zip(node.columns, node.fields.fields, strict=True) if own.name in read]
        inputs = []
        for at, below in enumerate(node.streams):
            own = {below.schema.names[taken.place] for taken, _ in kept if taken.inputs == (at,) and not taken.is_time}
            own |= {str(below.schema.time)}
            inputs.append(self._only(self.of(below, own), own))
        columns = tuple(
            taken if taken.is_time else replace(taken, place=_place(taken, node.streams, inputs)) for taken, _ in kept
        )
        if self.by_name:  # what comes out, too, is in an order that is not that of the streams' columns
            order = sorted(range(len(columns)), key=lambda at: (columns[at].inputs, columns[at].place))
            columns, kept = tuple(columns[at] for at in order), [kept[at] for at in order]
        fields = replace(node.fields, fields=tuple(own for _, own in kept))
        return replace(node, streams=tuple(inputs), columns=columns, fields=fields)

    def _only(self, node: Node, kept: Collection[str]) -> Node:
        """The node's output without other columns than these; those of a stream by name."""
        fields = [field for field in node.schema.fields if field.name in kept]
        if self.by_name and _passes_on(node):
            return _projected(node, sorted(fields, key=lambda field: field.name))
        return node if len(fields) == len(node.schema.fields) else _projected(node, fields)


def _passes_on(node: Node) -> bool:
    """Whether columns of a stream come out as they are, in the order in which it has them."""
    if isinstance(node, Source):
        return True
    return isinstance(node, Select | NumberRows | AlterLifetime | Settle) and _passes_on(node.inputs[0])


def _in_order(node: Node, as_in: Node) -> Node:
    """The node's output in the order that another has, for whoever goes by places."""
    names = as_in.schema.names
    if node.schema.names == names:
        return node
    return _projected(node, [node.schema[name] for name in names])


def _place(taken: Taken, before: Sequence[Node], after: Sequence[Node]) -> int:
    """Where a column of an input is now."""
    (at,) = taken.inputs
    return after[at].schema.index(before[at].schema.names[taken.place])


def _projected(node: Node, fields: Sequence[Field]) -> Project:
    return Project(
        node,
        tuple((field.name, Column(field.name, field.type)) for field in fields),
        str(node.schema.time),
        frozenset(field.name for field in fields if field.hidden),
        frozenset(field.name for field in fields if field.words),
    )
