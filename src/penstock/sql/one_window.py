"""Conditions that are a tumbling window of a join: `floor(a.ts / 5) = floor(b.ts / 5)`, or of two `date_trunc`.

The same expression of both times, one that rises with them and is constant for a while. What is cut at multiples of a
length is that window, counted exactly. What is cut towards zero (`div`, `ts - ts % 5`) has a longer stretch around it:
there the condition stays, and bounds how far apart the times are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.plan.expressions import Call, Column, Expression, Literal, columns_in, renamed
from penstock.plan.join_nodes import Band, Mutual, SameWindow
from penstock.plan.monotone import stretches
from penstock.plan.nodes import Node
from penstock.plan.progressing import derived
from penstock.sql.bind_window import LONGEST
from penstock.sql.operands import Operand


def in_one_window(
    left: Node, names: Sequence[str], operand: Operand, conditions: Sequence[Expression]
) -> tuple[Mutual, tuple[str, str], list[Expression]] | None:
    """How near rows are by such a condition, on which attributes, and the condition, if that says it all."""
    for condition in conditions:
        if not isinstance(condition, Call) or condition.name != "eq":
            continue
        for one, other in (condition.args, condition.args[::-1]):
            first, second = _over_time(left, names, one), _over_time(operand.node, operand.names, other)
            if first is None or second is None or renamed(first[1], {first[0]: second[0]}) != second[1]:
                continue
            near = _cut(second[1])
            if near is not None:
                on = names[left.schema.index(first[0])], operand.names[operand.node.schema.index(second[0])]
                return near, on, [condition] if isinstance(near, SameWindow) else []
    return None


def _over_time(node: Node, names: Sequence[str], expression: Expression) -> tuple[str, Expression] | None:
    """An expression over the columns of one side as one over an attribute of it that progresses, and that."""
    own: Mapping[str, str] = dict(zip(names, node.schema.names, strict=True))
    if not columns_in(expression) or not columns_in(expression) <= own.keys():
        return None
    found = derived(node, renamed(expression, own))
    attributes = () if found is None else tuple(columns_in(found))
    return None if found is None or len(attributes) != 1 else (attributes[0], found)


def _cut(expression: Expression) -> Mutual | None:
    """What the times have in common for which an expression is the same."""
    known = stretches(expression)
    if known is not None:
        return SameWindow(known.length, known.origin) if known.length > 1 else None
    match expression:
        case Call(name="floor", args=(Call(name="divide", args=(Column(), Literal(value=int() as by))),)):
            return SameWindow(by) if 0 < by <= LONGEST else None
        case Call(name="int_divide", args=(Column(), Literal(value=int() as by))):
            return _around_zero(by)
        case Call(name="subtract", args=(Column() as of, Call(name="modulo", args=(same, Literal(value=int() as by))))):
            return _around_zero(by) if of == same else None
        case Call(name="multiply", args=(inner, Literal(value=int() as by))) if by > 0:
            return _cut(inner)
        case _:
            return None


def _around_zero(by: int) -> Band | None:
    """How far apart times are that are cut towards zero alike: there from after `-by` to before `by`."""
    widest = 2 * (by - 1)
    return Band(-widest, widest) if by > 0 and widest <= LONGEST else None
