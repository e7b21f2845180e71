"""The two inputs of a join, each of which may be given more columns to be compared by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from penstock.model.schema import DOUBLE
from penstock.plan.expressions import (
    Call,
    Column,
    Expression,
    always_has_value,
    columns_in,
    renamed,
)
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
            sides = self.compared(condition)
            if sides is None:
                rest.append(condition)
            else:
                equal.append((self._column("left", sides[0]), self._column("right", sides[1])))
        return equal, rest

    def lookups(
        self, conditions: Sequence[Expression], *, constants: bool = False
    ) -> tuple[list[tuple[str, Expression]], list[Expression]]:
        """The columns of the left with what of a table they are to be equal to, and the other conditions.

        What is computed of the table is so once for all rows, so it must have a value for each of them. With
        `constants` one may stand for a column of the left.
        """
        equal: list[tuple[str, Expression]] = []
        rest: list[Expression] = []
        own = dict(zip(self.right_names, self.right.schema.names, strict=True))
        for condition in conditions:
            sides = self.compared(condition, constants=constants)
            if sides is None or not _is_sure(sides[1]):
                rest.append(condition)
            else:
                equal.append((self._column("left", sides[0]), renamed(sides[1], own)))
        return equal, rest

    def compared(self, condition: Expression, *, constants: bool = False) -> tuple[Expression, Expression] | None:
        """What of the left equals what of the right, in one type; None if a condition is not of that kind."""
        if not isinstance(condition, Call) or condition.name != "eq":
            return None
        one, other = condition.args
        left, right = set(self.left_names), set(self.right_names)
        if columns_in(one) and columns_in(one) <= right and columns_in(other) <= left:
            one, other = other, one
        if not columns_in(one) <= left or not columns_in(other) or not columns_in(other) <= right:
            return None
        if not columns_in(one) and not constants:
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


def _is_sure(expression: Expression) -> bool:
    """Whether an expression has a value for every row: a comparison, letters in one case, a number made wider."""
    match expression:
        case Call(name="lower" | "upper", args=(of,)):
            return _is_sure(of)
        case Call(name="cast", args=(of,), type=type_):
            wider = type_.is_integer and type_.bits >= of.type.bits
            return _is_sure(of) and of.type.is_integer and (wider or type_ == DOUBLE)
        case _:
            return always_has_value(expression)


def first_columns(node: Node, size: int) -> Node:
    """A node's first columns."""
    fields = node.schema.fields[:size]
    hidden = frozenset(f.name for f in fields if f.hidden)
    return Project(node, tuple((f.name, Column(f.name, f.type)) for f in fields), str(node.schema.time), hidden)
