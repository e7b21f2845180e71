"""Sub-queries in WHERE that are joins: EXISTS and IN keep the rows that have a partner, their negations the others.

A sub-query is taken as a relation that is joined, if it reads one relation and asks no more of it than a WHERE; that
WHERE may speak of the rows outside, and must say how near the times are, as any join must. `NOT IN` is true only where
every comparison is false: a null on either side is in the way of that, as it is in SQL.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from penstock.sql.reading import Reading, shown

_PLAIN = {"expressions", "from_", "where", "kind", "distinct"}


@dataclass(frozen=True)
class SubQuery:
    """A sub-query that stands in a condition of WHERE by itself."""

    tree: exp.Expr
    """The condition."""
    relation: exp.Expr
    where: exp.Expr | None
    negated: bool
    member: tuple[exp.Expr, exp.Expr] | None
    """What is asked to be among what, if that is asked."""


def taken_apart(where: exp.Expr, reading: Reading) -> tuple[list[exp.Expr], list[SubQuery]]:
    """The conditions that WHERE joins by AND: plain ones, and those that are sub-queries."""
    plain: list[exp.Expr] = []
    found: list[SubQuery] = []
    for condition in _conditions(where, reading):
        sub = _sub_query(condition, reading)
        if sub is None:
            plain.append(condition)
        else:
            found.append(sub)
    return plain, found


def _conditions(tree: exp.Expr, reading: Reading) -> list[exp.Expr]:
    if isinstance(tree, exp.And) and any(_is_asked(part) for part in tree.walk()):
        parts = reading.need(tree, "this"), reading.need(tree, "expression")
        return [each for part in parts for each in _conditions(part, reading)]
    if isinstance(tree, exp.Paren) and any(_is_asked(part) for part in tree.walk()):
        return _conditions(reading.need(tree, "this"), reading)
    return [tree]


def _is_asked(node: exp.Expr) -> bool:
    return isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query") is not None)


def _sub_query(condition: exp.Expr, reading: Reading) -> SubQuery | None:
    """The sub-query that a condition is; None if it is none."""
    at, negated = condition, False
    while isinstance(at, exp.Not | exp.Paren) and any(_is_asked(part) for part in at.walk()):
        negated ^= isinstance(at, exp.Not)
        at = reading.need(at, "this")
    if not _is_asked(at):
        return None
    query = reading.need(at, "this" if isinstance(at, exp.Exists) else "query")
    while isinstance(query, exp.Subquery):
        query = reading.need(query, "this")
    is_plain = isinstance(query, exp.Select) and not any(
        value for arg, value in query.args.items() if arg not in _PLAIN
    )
    if not is_plain:
        raise reading.error(
            "A sub-query in WHERE reads one relation and has a WHERE, and nothing else.",
            query,
            got=shown(query),
            hint="give the rest a name with WITH, and read that",
        )
    from_, where = reading.need(query, "from_"), reading.part(query, "where")
    items = reading.parts(query, "expressions")
    reading.value(query, "distinct")  # whether there is a row is the same
    member = None
    if isinstance(at, exp.In):
        if len(items) != 1 or isinstance(items[0], exp.Star):
            raise reading.error("IN compares with one column.", query, got=shown(query), hint="SELECT one column")
        inner = reading.need(items[0], "this") if isinstance(items[0], exp.Alias) else items[0]
        if isinstance(items[0], exp.Alias):
            reading.name(items[0], "alias")
        member = reading.need(at, "this"), inner
    else:
        for item in items:
            reading.whole(item)
    condition_of = None if where is None else reading.need(where, "this")
    return SubQuery(condition, reading.need(from_, "this"), condition_of, negated, member)
