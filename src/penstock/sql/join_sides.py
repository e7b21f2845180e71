"""The two inputs of a join, each of which may be given more columns to be compared by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from penstock.plan.expressions import Call, Column, Expression, columns_in, renamed
from penstock.plan.nodes import Node, Project
from penstock.plan.typing import common_type, converted
from penstock.sql.operands import fresh_number


@dataclass
class Sides:
    """The two inputs of a join, each of which may be given more columns to be compared by."""

    left: Node
    left_names: list[str]
    right: Node
    right_names: list[str]

    def left_own(self, name: str) -> str:
        """What a column of the left is called in it."""
        return self.left.schema.names[self.left_names.index(name)]

    def right_own(self, name: str) -> str:
        """What a column of the right is called in it."""
        return self.right.schema.names[self.right_names.index(name)]

    def equalities(self, conditions: Sequence[Expression]) -> tuple[list[tuple[str, str]], list[Expression]]:
        """The columns that are to be equal, and the conditions that say something else."""
        equal: list[tuple[str, str]] = []
        rest: list[Expression] = []
        for condition in conditions:
            sides = self._compared(condition)
            if sides is None:
                rest.append(condition)
            else:
                equal.append((self._column("left", sides[0]), self._column("right", sides[1])))
        return equal, rest

    def _compared(self, condition: Expression) -> tuple[Expression, Expression] | None:
        """What of the left equals what of the right, in one type; None if a condition is not of that kind."""
        if not isinstance(condition, Call) or condition.name != "eq":
            return None
        one, other = condition.args
        sets = set(self.left_names), set(self.right_names)
        if columns_in(one) and columns_in(one) <= sets[1] and columns_in(other) and columns_in(other) <= sets[0]:
            one, other = other, one
        if not (columns_in(one) and columns_in(other) and columns_in(one) <= sets[0] and columns_in(other) <= sets[1]):
            return None
        common = common_type(one.type, other.type)
        return None if common is None else (converted(one, common), converted(other, common))

    def _column(self, side: str, expression: Expression) -> str:
        """The column of an input that an expression is; it is added if there is none."""
        node = cast("Node", getattr(self, side))
        names: list[str] = getattr(self, f"{side}_names")
        own = renamed(expression, dict(zip(names, node.schema.names, strict=True)))
        if isinstance(own, Column):
            return own.name
        if isinstance(node, Project) and (known := next((n for n, e in node.columns if e == own), None)) is not None:
            return known
        called = fresh_number("__key", [*node.schema.names, *names])
        kept = [(f.name, Column(f.name, f.type)) for f in node.schema.fields]
        hidden = frozenset({called, *(f.name for f in node.schema.fields if f.hidden)})
        made = Project(node, (*kept, (called, own)), str(node.schema.time), hidden)
        setattr(self, side, made)
        names.append(fresh_number(f"__{side}_key", [*self.left_names, *self.right_names]))
        return called


def first_columns(node: Node, size: int) -> Node:
    """A node's first columns."""
    fields = node.schema.fields[:size]
    hidden = frozenset(f.name for f in fields if f.hidden)
    return Project(node, tuple((f.name, Column(f.name, f.type)) for f in fields), str(node.schema.time), hidden)
