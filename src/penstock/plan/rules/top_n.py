"""A condition on row numbers, `rn <= 10`, told to whoever numbers the rows: those after the tenth are held no longer.

The condition stays where it is. Between the two only single rows are looked at, so nobody misses what is left out.
"""

from __future__ import annotations

from penstock.plan.expressions import Call, Column, Expression, Literal
from penstock.plan.nodes import Node, Project, RowNumber, Select

_TURNED = {"ge": "le", "gt": "lt", "eq": "eq"}


def first_only(select: Select) -> Select:
    """The selection, over rows that are numbered no further than it asks for."""
    bounds = [found for part in _parts(select.predicate) if (found := _bound(part)) is not None]
    below = select.input
    for column, most in bounds:
        below = _limited(below, column, most)
    return select.with_inputs(below)


def _parts(predicate: Expression) -> list[Expression]:
    if isinstance(predicate, Call) and predicate.name == "and":
        return [part for arg in predicate.args for part in _parts(arg)]
    return [predicate]


def _bound(part: Expression) -> tuple[str, int] | None:
    """The column of which a condition says how large it is at the most, and how large that is."""
    match part:
        case Call(name="le" | "lt" | "eq" as name, args=(Column(name=column), Literal(value=int() as most))):
            return column, most - (name == "lt")
        case Call(name="ge" | "gt" | "eq" as name, args=(Literal(value=int() as most), Column(name=column))):
            return column, most - (_TURNED[name] == "lt")
        case _:
            return None


def _limited(node: Node, column: str, most: int) -> Node:
    match node:
        case RowNumber(name=name, most=known) if name == column:
            return node.of_first(max(most if known is None else min(known, most), 0))
        case Select(input=below):
            return node.with_inputs(_limited(below, column, most))
        case Project(input=below, columns=columns):
            read = dict(columns)[column]
            return node.with_inputs(_limited(below, read.name, most)) if isinstance(read, Column) else node
        case _:
            return node
