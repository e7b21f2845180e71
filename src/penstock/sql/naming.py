"""What the columns of a result are called, and projections that carry the time along."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from penstock.plan.expressions import Column, Expression
from penstock.plan.nodes import WINDOW_FIELDS, Node, Project
from penstock.sql.aggregate_names import AGGREGATES, inner_call
from penstock.sql.reading import Reading
from penstock.sql.scope import Scope


def shared_names(items: Collection[exp.Expr], scope: Scope) -> set[str]:
    """The names, in lower case, by which a select list takes columns of several relations."""
    found: dict[str, set[str]] = {}
    for item in items:
        if is_star(item):
            for own, column in scope.starred(item):
                found.setdefault(own.lower(), set()).add(column.name)
        elif isinstance(item, exp.Column):
            table = item.args.get("table")
            found.setdefault(item.name.lower(), set()).update(scope.called(item.name, table.name if table else None))
    return {name for name, called in found.items() if len(called) > 1}


def is_star(item: exp.Expr) -> bool:
    """Whether an item of a select list stands for many columns."""
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def starred(scope: Scope, star: exp.Expr, shared: Collection[str]) -> list[tuple[str, Expression]]:
    """The columns that a star stands for, by their names: those that several relations have are called after both."""
    return [(column.name if own.lower() in shared else own, column) for own, column in scope.starred(star)]


def item_name(
    item: exp.Expr, bound: Expression, index: int, reading: Reading, scope: Scope, shared: Collection[str] = ()
) -> str:
    """The name of an output column: the alias, the column's own, or one made from the aggregate."""
    if isinstance(item, exp.Alias):
        return reading.name(item, "alias")
    if isinstance(item, exp.Column) and isinstance(bound, Column):
        own = scope.own_name(bound.name)
        if own is not None:
            return bound.name if item.name.lower() in shared else own
    if isinstance(item, exp.Column) and isinstance(bound, Column):
        if not bound.name.startswith("__"):
            return bound.name
        # A group key of an inner window beside the columns of the outer one.
        return f"group_{item.name.lower()}" if item.name.lower() in WINDOW_FIELDS else str(item.name)
    if isinstance(item, exp.Dot):
        return str(item.expression.name)
    item = inner_call(item)
    if isinstance(item, exp.Any):
        return "any"
    if type(item) in AGGREGATES or isinstance(item, exp.Anonymous):
        function = AGGREGATES.get(type(item)) or item.name.lower()
        inner = item.expressions[0] if isinstance(item, exp.Anonymous) and item.expressions else item.this
        if isinstance(inner, exp.Distinct):
            inner = inner.expressions[0]
        return f"{function}_{inner.name}" if isinstance(inner, exp.Column) else str(function)
    return f"col{index}"


def refuse_twice(items: Collection[exp.Expr], reading: Reading, scope: Scope, shared: Collection[str]) -> None:
    """Refuse a select list that gives two columns one name; those that are `shared` by relations are told apart."""
    seen: set[str] = set()
    for item in items:
        names: Collection[str] = []
        if isinstance(item, exp.Alias):
            names = [str(item.alias)]
        elif is_star(item):
            told = [(own, column.name) for own, column in scope.starred(item)]
            names = [scope.said(called) or called if own.lower() in shared else own for own, called in told]
        elif isinstance(item, exp.Column):
            told_apart = item.name.lower() in shared
            names = [f"{item.table}.{item.name}" if told_apart else str(item.name)]
        for name in names:
            if name.lower() in seen:
                raise reading.error(
                    "Two columns of the result have the same name.",
                    item,
                    got=name,
                    hint="give one of them another name with AS",
                )
            seen.add(name.lower())


def is_named(item: exp.Expr) -> bool:
    """Whether the query itself names an output column."""
    return isinstance(item, exp.Alias | exp.Column)


def unique(columns: list[tuple[str, Expression]], made: Collection[int]) -> list[tuple[str, Expression]]:
    """Names that were made here get a number where they are taken; `made` has the places of such columns."""
    seen = {name.lower() for at, (name, _) in enumerate(columns) if at not in made}
    result = []
    for at, (name, expression) in enumerate(columns):
        given, n = name, 2
        while at in made and given.lower() in seen:
            given, n = f"{name}_{n}", n + 1
        seen.add(given.lower())
        result.append((given, expression))
    return result


def fresh(name: str, taken: Collection[str]) -> str:
    """The name, or one made from it that is not taken; names do not mind case."""
    lower = {t.lower() for t in taken}
    while name.lower() in lower:
        name = "_" + name
    return name


def projected(node: Node, columns: list[tuple[str, Expression]]) -> Project:
    """A projection that carries the time along, hidden if it is not among the columns."""
    time = node.schema.time
    assert time is not None
    for name, expression in columns:
        if isinstance(expression, Column) and expression.name == time:
            return Project(node, tuple(columns), name)
    hidden = fresh("__time", [name for name, _ in columns])
    carried = (hidden, Column(time, node.schema[time].type))
    return Project(node, (*columns, carried), hidden, frozenset({hidden}))
