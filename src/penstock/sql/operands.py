"""The relations of FROM as they are being joined, and what their columns are called among those of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from penstock.model.schema import Field, Schema
from penstock.plan.expressions import Expression
from penstock.plan.join_nodes import JoinKind
from penstock.plan.lookup_nodes import TableInfo, TableRows
from penstock.plan.nodes import Node
from penstock.plan.progressing import progressing
from penstock.sql.clause import WindowClause
from penstock.sql.reading import Reading
from penstock.sql.scope import Relation, Scope
from penstock.sql.subqueries import SubQuery


@dataclass
class Operand:
    """One relation of FROM, as it is being joined."""

    scope: Scope
    tree: exp.Expr
    kind: JoinKind = "inner"
    join: exp.Expr | None = None
    clause: WindowClause | None = None
    asked: SubQuery | None = None
    """The sub-query in WHERE that it is of, if it is."""
    names: list[str] = field(default_factory=list)
    """What its columns are called among those of all, hidden ones too."""
    merged: set[str] = field(default_factory=set)
    """Columns, in lower case, that are named in USING and are, without a qualifier, those of another relation."""
    on: list[Expression] = field(default_factory=list)
    """The conditions of its own ON."""
    as_of: Expression | None = None
    """The time at which it is looked at, of a table with versions."""

    @property
    def node(self) -> Node:
        """Its rows."""
        return self.scope.node

    @property
    def is_table(self) -> bool:
        """Whether it is a table and no stream."""
        return isinstance(self.node, TableRows)

    @property
    def table(self) -> TableInfo:
        """The table that it is."""
        assert isinstance(self.node, TableRows)
        return self.node.table

    def own(self, name: str) -> str:
        """What a column is called in the relation itself."""
        return self.node.schema.names[self.names.index(name)]

    @property
    def times(self) -> dict[str, str]:
        """What progresses, by the name among all."""
        return {self.names[self.node.schema.index(name)]: name for name in progressing(self.node)}


def fresh_number(name: str, taken: Sequence[str]) -> str:
    """A name, with a number if it is taken."""
    lower, given, n = {t.lower() for t in taken}, name, 2
    while given.lower() in lower:
        given, n = f"{name}{n}", n + 1
    return given


def name_all(operands: Sequence[Operand]) -> None:
    """Give every column a name of its own: its own where no other relation has it, else with the relation's before."""
    counts: dict[str, int] = {}
    for operand in operands:
        for name in {n.lower() for n in operand.node.schema.names}:
            counts[name] = counts.get(name, 0) + 1
    taken: list[str] = []
    for operand in operands:
        prefix = min(operand.scope.qualifiers, default="")
        for f in operand.node.schema.fields:
            alone = counts[f.name.lower()] == 1
            name = f.name if alone or not prefix else f"{_cased(operand, prefix)}_{f.name}"
            operand.names.append(fresh_number(name, taken))
            taken.append(operand.names[-1])


@dataclass(frozen=True)
class AllColumns(Node):
    """The columns of all relations side by side, for conditions to be read over."""

    fields: Schema

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.fields


def columns_of_all(operands: Sequence[Operand]) -> AllColumns:
    """The columns of some relations by the names that they have among all."""
    fields = [
        Field(name, f.type, f.hidden) for o in operands for name, f in zip(o.names, o.node.schema.fields, strict=True)
    ]
    return AllColumns(Schema(tuple(fields)))


def scope_of(node: Node, operands: Sequence[Operand], reading: Reading, *, merges: bool = True) -> Scope:
    """The columns of some relations; with `merges`, those that USING names are found once."""
    relations = []
    for operand in operands:
        pairs = zip(operand.node.schema.fields, operand.names, strict=False)
        columns = {f.name: name for f, name in pairs if not f.hidden}
        relations.append(Relation(operand.scope.qualifiers, columns, frozenset(operand.merged if merges else ())))
    return Scope(node, tuple(relations), reading)


def _cased(operand: Operand, qualifier: str) -> str:
    """A relation's name as it is written."""
    alias = operand.tree.args.get("alias")
    written = [n.name for n in (alias, operand.tree) if isinstance(n, exp.TableAlias | exp.Table) and n.name]
    return next((name for name in written if name.lower() == qualifier), qualifier)
