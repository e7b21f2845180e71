"""Names with dots between them: which are a relation's column, and which go on into its fields.

The parser takes `a.b.c` for a column `c` of a table `b` of a database `a`. A relation's column comes first: `s.f` is
column `f` of relation `s` if there is one, and field `f` of column `s` otherwise. What goes on into fields is put into
the tree as such, so that the rest of the binder has columns where columns are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from penstock.sql.scope import Scope

_PARTS = ("catalog", "db", "table", "this")


def untangle(trees: Collection[exp.Expr | None], scopes: Sequence[Scope]) -> None:
    """Put fields of structs into the parts of a SELECT; sub-queries have names of their own."""
    for tree in trees:
        if tree is not None:
            for column in [*_columns(tree)]:
                _untangle(column, scopes)


def parts_of(tree: exp.Select) -> list[exp.Expr | None]:
    """The parts of a SELECT that name columns, but for what it reads."""
    conditions = [join.args.get("on") for join in tree.args.get("joins") or ()]
    return [*tree.expressions, *conditions, *(tree.args.get(arg) for arg in ("where", "group", "having"))]


def _columns(tree: exp.Expr) -> Collection[exp.Column]:
    is_other = lambda node: isinstance(node, exp.Query) and node is not tree  # noqa: E731
    return [node for node in tree.walk(prune=is_other) if isinstance(node, exp.Column)]


def _untangle(column: exp.Column, scopes: Sequence[Scope]) -> None:
    parts = [part for arg in _PARTS if isinstance(part := column.args.get(arg), exp.Identifier)]
    if len(parts) < 2 or not isinstance(column.this, exp.Identifier):
        return
    first, second = parts[0].name, parts[1].name
    if any(scope.called(second, first) for scope in scopes):
        owned = 2
    elif _has_fields(scopes, first):
        owned = 1
    else:
        return
    if owned == len(parts):
        return
    own = parts[:owned]
    node: exp.Expr = exp.Column(this=own[-1], table=own[0] if owned == 2 else None)
    for field in parts[owned:]:
        node = exp.Dot(this=node, expression=field)
    column.replace(node)


def _has_fields(scopes: Sequence[Scope], name: str) -> bool:
    """Whether a name may be of a column with fields; what a relation is called too, only if the column is a struct."""
    types = [scope.node.schema[column].type for scope in scopes for column in scope.called(name)]
    if any(name.lower() in scope.qualifiers for scope in scopes):
        return any(each.name == "struct" for each in types)
    return bool(types)
