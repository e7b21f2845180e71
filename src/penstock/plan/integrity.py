"""Whether a node fits its inputs: it reads columns that are there, of the types it takes them for.

Nodes ask when they are made, so a rewrite that loses a column fails where it is done, and not in an engine, or in
three of them in different ways. A query text never gets this far: whoever reads it says what is wrong in its own words,
with the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from penstock.errors import PlanError
from penstock.model.schema import BOOLEAN, VOID, DataType, Schema
from penstock.plan.expressions import Column, Expression, walk
from penstock.plan.monotone import rises_with_all

if TYPE_CHECKING:
    from penstock.plan.node import Node


def check_reads(kind: str, expressions: Iterable[Expression], schema: Schema) -> None:
    """Every column that is read is there, and of that type."""
    for expression in expressions:
        for part in walk(expression):
            if isinstance(part, Column):
                check_column(kind, part.name, part.type, schema)


def check_column(kind: str, name: str, type_: DataType | None, schema: Schema) -> None:
    """A column of exactly that name is there, and of that type if one is given."""
    if name not in schema.names:
        raise PlanError(
            "A node reads a column that its input has not.",
            where=kind,
            got=name,
            hint=f"the input has {', '.join(schema.names)}",
        )
    found = schema[name].type
    if type_ is not None and found != type_:
        raise PlanError(
            "A node takes a column for another type.", where=kind, got=f"{name} as {type_}", hint=f"it is {found}"
        )


def check_predicate(kind: str, predicate: Expression, schema: Schema) -> None:
    """A condition is true, false or null."""
    check_reads(kind, [predicate], schema)
    if predicate.type not in (BOOLEAN, VOID):
        raise PlanError("A condition is a boolean.", where=kind, got=f"{predicate} of type {predicate.type}")


def check_rises(kind: str, expression: Expression) -> None:
    """A time that is computed rises with an attribute, and is of a type that has an order in time."""
    if not rises_with_all(expression) or expression.type.domain is None:
        raise PlanError("A time that is computed rises with an attribute.", where=kind, got=str(expression))


def check_agree(kind: str, branches: Sequence[Node]) -> None:
    """Branches have the same types in the same places; names may differ."""
    if not branches:
        raise PlanError("A node over several streams has none.", where=kind, hint="give at least one branch")
    shapes = [tuple(str(f.type) for f in branch.schema.fields) for branch in branches]
    for at, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise PlanError(
                "Branches have different columns.",
                where=f"{kind}, branch {at + 1}",
                got=", ".join(shape),
                hint=f"the first has {', '.join(shapes[0])}",
            )


def check_count(kind: str, inputs: Sequence[object], wanted: int) -> None:
    """A node is given as many inputs as it has."""
    if len(inputs) != wanted:
        raise PlanError("A node is given another number of inputs.", where=kind, got=str(len(inputs)), hint=str(wanted))


def check_lengths(kind: str, duration: int | None, extend: int, at_most: int | None) -> None:
    """An event lives at least a tick, and is not made shorter by extending it; one length is given in one way."""
    if any(length is not None and length < 1 for length in (duration, at_most)) or extend < 0:
        got = ", ".join(f"{n} {v}" for n, v in (("duration", duration), ("extend", extend), ("at most", at_most)) if v)
        raise PlanError("An event lives at least a tick, and extending it makes it no shorter.", where=kind, got=got)
    if duration is not None and (extend or at_most is not None):
        raise PlanError("A duration leaves nothing to extend or to clip.", where=kind, got=f"duration {duration}")
