"""Lookups in a logical plan: a stream joined with a table that is known before the query runs.

A table is bounded and has no time, so nothing of the stream need be kept: a row is answered at once, starts when it
started and lives as long as it did, and what was promised of the stream holds of what comes out. Rows meet if they are
equal in some columns and a condition on both holds; the condition is asked of every pair that is equal there.

A table may have versions: rows of one key, each valid from a time on. A lookup *as of* a column of the stream then sees
one row of each key: that of the greatest start that is not after the row's own time, and none if that one has an end
which the time has reached. A null time sees none.

Which rows a table has is no part of what a node means: state above a lookup is of rows that were answered, and stays.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa

from penstock.model.cached import cached_property
from penstock.model.properties import StreamProperties, renamed_all
from penstock.model.schema import Field, Schema
from penstock.plan.expressions import Expression, renamed, worded
from penstock.plan.integrity import check_column, check_count, check_predicate, check_reads
from penstock.plan.node import Node, Unary

LookupKind = Literal["inner", "left", "semi", "anti"]


@dataclass(frozen=True)
class TableInfo:
    """A declared table."""

    name: str
    schema: Schema
    key: tuple[str, ...] = ()
    """The columns that tell versions of one row from those of another."""
    valid_from: str | None = None
    valid_to: str | None = None
    content: pa.Table | None = field(default=None, compare=False, repr=False)
    """Its rows; None where an engine reads them itself, until it has."""

    @property
    def rows(self) -> pa.Table:
        """Its rows, which must be there."""
        assert self.content is not None, f"the rows of table {self.name} are not there"
        return self.content


@dataclass(frozen=True)
class TableRows(Node):
    """A table where a query names it: its columns, for conditions to be read over. No plan has it."""

    table: TableInfo

    @property
    def schema(self) -> Schema:
        """The table's, without a time."""
        return replace(self.table.schema, time=None)


@dataclass(frozen=True)
class Lookup(Unary):
    """Rows of a stream with those of a table that they meet, or rows that meet one or none."""

    table: TableInfo
    kind: LookupKind
    equal: tuple[tuple[str, Expression], ...]
    """Columns of the stream, and what of the table each is to be equal to; null equals nothing."""
    names: tuple[str, ...]
    """What the columns of the stream, and then of the table, are called in the output, and in the condition."""
    condition: Expression | None = None
    """What else must hold of a pair, over the columns of both."""
    as_of: str | None = None
    """The column of the stream at whose time the table is looked at, where it has versions."""

    def __post_init__(self) -> None:
        """Columns are there, and those that are compared are of one type."""
        check_count("Lookup, names", self.names, len(self.input.schema.fields) + len(self.table.schema.fields))
        check_reads("Lookup, table", [e for _, e in self.equal], self.table.schema)
        for name, expression in self.equal:
            check_column("Lookup", name, expression.type, self.input.schema)
        if self.as_of is not None:
            assert self.table.valid_from is not None
            check_column("Lookup, as of", self.as_of, self.table.schema[self.table.valid_from].type, self.input.schema)
        if self.condition is not None:
            check_predicate("Lookup", self.condition, self.pairs)

    @property
    def is_of_pairs(self) -> bool:
        """Whether columns of the table come out."""
        return self.kind in ("inner", "left")

    @property
    def called(self) -> dict[str, str]:
        """What the columns of the stream are called in the output."""
        return dict(zip(self.input.schema.names, self.names, strict=False))

    @property
    def called_of_table(self) -> dict[str, str]:
        """What the columns of the table are called in the output of pairs."""
        return dict(zip(self.table.schema.names, self.names[len(self.input.schema.fields) :], strict=True))

    @cached_property
    def pairs(self) -> Schema:
        """The columns of both under their names, with the time of the stream's row."""
        below, own = self.input.schema, self.table.schema
        fields = [
            Field(name, f.type, f.hidden, f.words)
            for name, f in zip(self.names, [*below.fields, *own.fields], strict=True)
        ]
        time = self.called[str(below.time)]
        return Schema(tuple(fields), time, below.lifetime, unusable=below.unusable + own.unusable, lives=below.lives)

    @cached_property
    def schema(self) -> Schema:
        """The columns of both, or those of the stream."""
        if self.is_of_pairs:
            return self.pairs
        below = self.input.schema
        return replace(self.pairs, fields=self.pairs.fields[: len(below.fields)], unusable=below.unusable)

    @property
    def takes_revisions(self) -> bool:
        """An insert and its adjusts are the same row, and meet the same rows."""
        return True

    @cached_property
    def properties(self) -> StreamProperties:
        """Order stays; where a row may meet several, what told it from others does not."""
        below = self.input.properties
        below = replace(below, update_key=renamed_all(below.update_key, self.called))
        if self.is_of_pairs:
            return replace(below, strictly_ordered=False, deterministic_ties=False, key=None, unique=None)
        return replace(below, key=renamed_all(below.key, self.called), unique=renamed_all(below.unique, self.called))

    @property
    def label(self) -> str:
        """How rows meet."""
        kind = "" if self.kind == "inner" else f"{self.kind} "
        said = []
        for name, expression in self.equal:
            own = worded(renamed(expression, self.called_of_table), self.pairs)
            said.append(f"{self.pairs[self.called[name]].words or self.called[name]} = {own}")
        if self.condition is not None:
            said.append(worded(self.condition, self.pairs))
        of = "" if self.as_of is None else f" AS OF {self.called[self.as_of]}"
        return f"Lookup {kind}{self.table.name}{of}{' ON ' if said else ''}{' AND '.join(said)}"


def lookups(plan: Node) -> list[Lookup]:
    """The lookups of a plan."""
    return [node for node in plan.walk() if isinstance(node, Lookup)]
