"""The sides of a union brought to one set of names and types."""

from __future__ import annotations

from penstock.model.schema import DataType, Schema
from penstock.plan.expressions import Column, Expression
from penstock.plan.nodes import Node, Project
from penstock.plan.typing import converted
from penstock.sql.naming import fresh


def time_at(schema: Schema) -> int:
    """Where the time stands among the visible columns; -1 if it is hidden."""
    return next((at for at, f in enumerate(schema.visible) if f.name == schema.time), -1)


def aligned(node: Node, names: list[str], types: list[DataType], shared: int) -> Node:
    """A side of a union with the names and types of all; the time is column `shared`, or hidden if that is none."""
    schema = node.schema
    own = [f.name for f in schema.visible]
    same = [schema[n].type for n in own] == types and own == names
    if same and shared >= 0 and not any(f.hidden for f in schema.fields):
        return node
    columns: list[tuple[str, Expression]] = [
        (name, converted(Column(source, schema[source].type), type_))
        for name, source, type_ in zip(names, own, types, strict=True)
    ]
    if shared >= 0:
        return Project(node, tuple(columns), names[shared])
    assert schema.time is not None
    hidden = fresh("__time", names)
    columns.append((hidden, Column(schema.time, schema[schema.time].type)))
    return Project(node, tuple(columns), hidden, frozenset({hidden}))
