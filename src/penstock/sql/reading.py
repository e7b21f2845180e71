"""What of a syntax tree has been read: whatever a query says that nobody read is an error, and not left out.

Handlers take every argument of a node through a `Reading`. When a query is bound, the tree is gone through once: an
argument that is set and was taken by no handler is refused, with its place. So a part of SQL that nobody thought of
(an option of a function, a modifier of a table, a clause of a later version of the parser) cannot change what a query
was meant to say without a word. Cost: one entry of a set per argument.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from penstock.errors import QueryError
from penstock.sql.dialect import position
from penstock.sql.refusals import instead_of

_NAMES = {
    ("Select", "hint"): "a hint", ("Select", "into"): "INTO", ("Select", "kind"): "SELECT AS",
    ("Select", "operation_modifiers"): "a modifier of SELECT", ("Distinct", "on"): "DISTINCT ON",
    ("Group", "rollup"): "ROLLUP", ("Group", "cube"): "CUBE", ("Group", "grouping_sets"): "GROUPING SETS",
    ("Group", "totals"): "TOTALS", ("Group", "all"): "GROUP BY ALL", ("Table", "sample"): "TABLESAMPLE",
    ("Table", "pivots"): "PIVOT", ("Table", "version"): "AS OF a version or time", ("Table", "hints"): "a table hint",
    ("Table", "db"): "a database", ("Table", "catalog"): "a catalog", ("Subquery", "sample"): "TABLESAMPLE",
    ("Subquery", "pivots"): "PIVOT", ("TableAlias", "columns"): "a list of column names after an alias",
    ("Star", "except_"): "* EXCEPT", ("Star", "replace"): "* REPLACE", ("Star", "rename"): "* RENAME",
    ("Select", "locks"): "FOR UPDATE", ("With", "recursive"): "RECURSIVE",
    ("Union", "by_name"): "BY NAME",
}  # fmt: skip


class Reading:
    """The arguments of one query's nodes that were taken."""

    def __init__(self, sql: str) -> None:
        """`sql` is the user's text, which errors point into."""
        self.sql = sql
        self._read: set[tuple[int, str]] = set()

    def value(self, node: exp.Expr, arg: str) -> Any:
        """An argument as it is, or None."""
        self._read.add((id(node), arg))
        return node.args.get(arg)

    def flag(self, node: exp.Expr, arg: str) -> bool:
        """Whether an argument is set."""
        return bool(self.value(node, arg))

    def part(self, node: exp.Expr, arg: str) -> exp.Expr | None:
        """The node that an argument is, or None; anything else counts as not read."""
        found = node.args.get(arg)
        if found is not None and not isinstance(found, exp.Expr):
            return None
        self._read.add((id(node), arg))
        return found

    def need(self, node: exp.Expr, arg: str) -> exp.Expr:
        """The node that an argument is; an error if it is missing."""
        found = self.part(node, arg)
        if found is None:
            raise self.error("Something is missing here.", node, got=shown(node))
        return found

    def parts(self, node: exp.Expr, arg: str) -> list[exp.Expr]:
        """The nodes that an argument lists."""
        found = self.value(node, arg) or []
        if not isinstance(found, list) or not all(isinstance(f, exp.Expr) for f in found):
            raise self.error("This is not supported.", node, got=shown(node))
        return found

    def name(self, node: exp.Expr, arg: str = "this") -> str:
        """The name or word that an argument is; empty if there is none."""
        found = self.value(node, arg)
        if isinstance(found, exp.Identifier | exp.Var):
            self.value(found, "quoted")
            found = self.value(found, "this")
        return str(found) if isinstance(found, str) else ""

    def whole(self, node: exp.Expr) -> exp.Expr:
        """The node, all of which is taken at once."""
        for inner in node.walk():
            self._read.update((id(inner), arg) for arg in inner.args)
        return node

    def finish(self, tree: exp.Expr) -> None:
        """Refuse what was not read."""
        for node in tree.walk():  # outer nodes first
            for arg, value in node.args.items():
                if (id(node), arg) not in self._read and _is_set(value) and arg != "_type":
                    raise self.unread(node, arg, value)

    def unread(self, node: exp.Expr, arg: str, value: object) -> QueryError:
        """The error for an argument that has no meaning here."""
        kind = type(node).__name__
        name = _NAMES.get((kind, arg)) or f"{arg.strip('_').replace('_', ' ').upper()} of {kind.upper()}"
        parts = [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, exp.Expr)]
        at = parts[0] if parts else node
        if name == "PIVOT" and at.args.get("unpivot"):
            name = "UNPIVOT"
        return self.error("This part of the query is not supported.", at, got=name, hint=instead_of(name))

    def error(self, what: str, node: exp.Expr, got: str = "", hint: str = "") -> QueryError:
        """An error that points at a node."""
        line, column = position(node, self.sql)
        return QueryError(what, sql=self.sql, line=line, column=column, got=got, hint=hint)


def _is_set(value: object) -> bool:
    return not (value is None or value is False or value in ("", []))


def shown(node: exp.Expr) -> str:
    """A node as SQL, for messages; not more than a line."""
    try:
        text = node.sql("spark", unsupported_level=ErrorLevel.IGNORE)
    except (SqlglotError, ValueError, TypeError, AttributeError, RecursionError):
        return type(node).__name__.upper()
    return text if len(text) <= 80 else text[:77] + "..."
