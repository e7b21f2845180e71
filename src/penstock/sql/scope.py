"""What the column names of one SELECT mean."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from penstock.plan.catalog import closest
from penstock.plan.expressions import Column
from penstock.plan.nodes import Node
from penstock.sql.reading import Reading


@dataclass
class Scope:
    """The rows that a SELECT reads, and the names under which it may refer to them."""

    node: Node
    qualifiers: frozenset[str]
    reading: Reading

    def has(self, column: exp.Expr) -> bool:
        """Whether the rows have a column that is written so."""
        table = column.args.get("table")
        if table is not None and table.name.lower() not in self.qualifiers:
            return False
        return column.name in self.node.schema and not self.node.schema[column.name].hidden

    def check_qualifier(self, column: exp.Expr) -> None:
        """Refuse a column of another stream."""
        table = self.reading.name(column, "table")
        if table and table.lower() not in self.qualifiers:
            raise self.reading.error("Unknown stream.", column, got=table, hint=closest(table, self.qualifiers))

    def column(self, column: exp.Expr) -> Column:
        """The column that a name means."""
        schema = self.node.schema
        self.check_qualifier(column)
        name = self.reading.name(column)
        if name not in schema or schema[name].hidden:
            names = [f.name for f in schema.visible]
            unusable = {n.lower(): (n, kind) for n, kind in schema.unusable}
            if name.lower() in unusable:
                raise self.reading.error(
                    "The column has a type that queries cannot use.",
                    column,
                    got=": ".join(unusable[name.lower()]),
                    hint="convert it before, or take out of it what is needed",
                )
            raise self.reading.error("Unknown column.", column, got=name, hint=closest(name, names))
        found = schema[name]
        return Column(found.name, found.type)

    def is_star(self, item: exp.Expr) -> bool:
        """Whether an item of the select list stands for all columns."""
        if isinstance(item, exp.Star):
            self._refuse_unusable(item)
            return True
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            self.check_qualifier(item)
            self.reading.value(item, "this")
            self._refuse_unusable(item)
            return True
        return False

    def _refuse_unusable(self, star: exp.Expr) -> None:
        """A star stands for all columns, and must not leave out any without a word."""
        unusable = self.node.schema.unusable
        if unusable:
            raise self.reading.error(
                "SELECT * would take in columns of types that queries cannot use.",
                star,
                got=", ".join(f"{name}: {kind}" for name, kind in unusable),
                hint="name the columns that are wanted",
            )
