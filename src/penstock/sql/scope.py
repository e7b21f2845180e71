"""What the column names of one SELECT mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from penstock.plan.catalog import closest
from penstock.plan.expressions import Column
from penstock.plan.nodes import Node
from penstock.sql.reading import Reading


@dataclass(frozen=True)
class Relation:
    """What one operand of FROM is called, and the columns that it brings."""

    qualifiers: frozenset[str]
    columns: Mapping[str, str] | None = None
    """Its columns by the names that they have in it, and what they are called among all that a SELECT reads; None where
    those are all of them."""
    merged: frozenset[str] = frozenset()
    """Columns, in lower case, that only a qualifier finds: without one, those of another relation are meant (USING)."""


@dataclass
class Scope:
    """The rows that a SELECT reads, and the names under which it may refer to them."""

    node: Node
    relations: tuple[Relation, ...]
    reading: Reading

    @property
    def qualifiers(self) -> frozenset[str]:
        """What relations are called."""
        return frozenset().union(*(r.qualifiers for r in self.relations))

    def columns_of(self, relation: Relation) -> Mapping[str, str]:
        """The columns of a relation, by the names that they have in it, and what they are called among all."""
        if relation.columns is not None:
            return relation.columns
        return {f.name: f.name for f in self.node.schema.visible}

    def called(self, name: str, qualifier: str | None = None) -> list[str]:
        """What the columns are called among all that go by a name; names do not mind case, unless that is all."""
        found: dict[str, None] = {}
        for relation in self.relations:
            merged = qualifier is None and name.lower() in relation.merged
            if not merged and (qualifier is None or qualifier.lower() in relation.qualifiers):
                columns = self.columns_of(relation)
                alike = [own for own in columns if own.lower() == name.lower()]
                if name in columns or len(alike) == 1:
                    found[columns[name if name in columns else alike[0]]] = None
        return list(found)

    def has(self, column: exp.Expr) -> bool:
        """Whether the rows have a column that is written so."""
        table = column.args.get("table")
        return bool(self.called(column.name, None if table is None else table.name))

    def check_qualifier(self, column: exp.Expr) -> None:
        """Refuse a column of another stream."""
        table = self.reading.name(column, "table")
        if table and table.lower() not in self.qualifiers:
            raise self.reading.error("Unknown stream.", column, got=table, hint=closest(table, sorted(self.qualifiers)))

    def column(self, column: exp.Expr) -> Column:
        """The column that a name means."""
        schema = self.node.schema
        self.check_qualifier(column)
        name = self.reading.name(column)
        table = column.args.get("table")
        found = self.called(name, None if table is None else table.name)
        if len(found) > 1:
            raise self.reading.error("The name means several columns.", column, got=name, hint=self._told_apart(name))
        if not found:
            self._refuse_unusable_column(column, name)
            among = [r for r in self.relations if table is None or table.name.lower() in r.qualifiers]
            names = dict.fromkeys(own for r in among for own in self.columns_of(r))
            raise self.reading.error("Unknown column.", column, got=name, hint=closest(name, list(names)))
        return Column(found[0], schema[found[0]].type)

    def _told_apart(self, name: str) -> str:
        """How to say which of several columns of a name is meant."""
        owners = [min(r.qualifiers) for r in self.relations if r.qualifiers and self.called(name, min(r.qualifiers))]
        return f"write {' or '.join(f'{owner}.{name}' for owner in owners)}" if owners else "give relations names"

    def _refuse_unusable_column(self, column: exp.Expr, name: str) -> None:
        unusable = {n.lower(): (n, kind) for n, kind in self.node.schema.unusable}
        if name.lower() in unusable:
            raise self.reading.error(
                "The column has a type that queries cannot use.",
                column,
                got=": ".join(unusable[name.lower()]),
                hint="convert it before, or take out of it what is needed",
            )

    def is_star(self, item: exp.Expr) -> bool:
        """Whether an item of the select list stands for all columns, or all of one relation."""
        if isinstance(item, exp.Star):
            self._refuse_unusable(item)
            return True
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            self.check_qualifier(item)
            self.reading.value(item, "this")
            self._refuse_unusable(item)
            return True
        return False

    def said(self, called: str) -> str | None:
        """A column as a query would name it; None if a query cannot."""
        if len(self.relations) == 1 and self.relations[0].columns is None:
            return None if self.node.schema[called].hidden else called
        for relation in self.relations:
            for own, name in self.columns_of(relation).items():
                if name == called:
                    return f"{min(relation.qualifiers)}.{own}" if relation.qualifiers else own
        return None

    def own_name(self, called: str) -> str | None:
        """What a column is called in its relation."""
        columns = [self.columns_of(r).items() for r in self.relations]
        return next((own for each in columns for own, name in each if name == called), None)

    def starred(self, star: exp.Expr | None = None) -> list[tuple[str, Column]]:
        """The columns that a star stands for, by the names that they have."""
        table = star.args.get("table") if isinstance(star, exp.Column) else None
        among = [r for r in self.relations if table is None or table.name.lower() in r.qualifiers]
        pairs = dict.fromkeys(
            (own, called)
            for r in among
            for own, called in self.columns_of(r).items()
            if table is not None or own.lower() not in r.merged
        )
        return [(own, Column(called, self.node.schema[called].type)) for own, called in pairs]

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
