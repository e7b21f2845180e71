"""Tables in FROM: a stream is joined with a table without a bound on times, and a table by itself is no stream.

The stream's rows are what comes out, so a table stands on the side of a join that may be missing. `FROM rates JOIN
bids` and `FROM rates RIGHT JOIN bids` say the same as with the stream first. `rates FOR SYSTEM_TIME AS OF b.ts`, as
Flink writes it, is the table as it was at the time of each row; the conditions must then say that the key is equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.plan.expressions import Column, Expression, conjunction
from penstock.plan.join_nodes import JoinKind
from penstock.plan.lookup_nodes import Lookup, LookupKind, TableInfo, TableRows
from penstock.plan.nodes import Node, Select
from penstock.sql.bind_expression import ExpressionBinder
from penstock.sql.join_sides import Sides, first_columns
from penstock.sql.operands import Operand
from penstock.sql.reading import Reading
from penstock.sql.scope import Scope

_TURNED: dict[JoinKind, JoinKind] = {"inner": "inner", "right": "left"}
_KINDS: dict[JoinKind, LookupKind] = {"inner": "inner", "left": "left", "semi": "semi", "anti": "anti"}


def refuse_table(scope: Scope, tree: exp.Expr, reading: Reading) -> Scope:
    """A relation that is read by itself must be a stream."""
    if isinstance(scope.node, TableRows):
        name = scope.node.table.name
        raise reading.error(
            "A table by itself is no stream.", tree, got=name, hint=f"join it with a stream: FROM a_stream, {name}"
        )
    return scope


def streams_first(operands: Sequence[Operand], reading: Reading) -> list[Operand]:
    """The relations of FROM with a stream before the tables, where that means the same."""
    ready = list(operands)
    for operand in operands:
        if operand.is_table and operand.clause is not None:
            raise reading.error(
                "A window stands on a stream, and this is a table.", operand.tree, got=operand.table.name,
                hint="write the window after the stream",
            )  # fmt: skip
    first = ready[0]
    if first.is_table:
        if all(operand.is_table for operand in ready):
            refuse_table(first.scope, first.tree, reading)
        second = ready[1]
        if second.is_table or second.asked is not None:
            raise reading.error(
                "The first relation is a table, and so is the next.", first.tree, got=first.table.name,
                hint="write the stream first",
            )  # fmt: skip
        if second.kind not in _TURNED:
            raise _kept(first, second, reading)
        ready[:2] = [
            replace(second, kind="inner", join=None),
            replace(first, kind=_TURNED[second.kind], join=second.join),
        ]
    for operand in ready:
        if operand.is_table and operand.kind not in _KINDS:
            raise _kept(operand, operand, reading)
    return ready


def _kept(table: Operand, join: Operand, reading: Reading) -> Exception:
    name = table.table.name
    return reading.error(
        "While the stream goes on it is never known which rows of a table have no partner.",
        join.join or join.tree,
        got=f"{join.kind.upper()} JOIN keeps rows of {name}",
        hint=f"keep rows of the stream: a_stream LEFT JOIN {name} ON …",
    )


def bind_version(operand: Operand, binder: ExpressionBinder, reading: Reading) -> None:
    """What stands after FOR SYSTEM_TIME AS OF."""
    version = reading.part(operand.tree, "version") if isinstance(operand.tree, exp.Table) else None
    if version is None:
        return
    kind, how = (str(reading.value(version, arg)).upper() for arg in ("this", "kind"))
    if not operand.is_table or operand.table.valid_from is None or (kind, how) != ("TIMESTAMP", "AS OF"):
        said = "SYSTEM_TIME" if kind == "TIMESTAMP" else kind
        raise reading.error(
            "Only a table with versions can be read as of a time.", operand.tree, got=f"{said} {how}",
            hint="declare it with flow.table(…, key=['k'], valid_from='since') and write FOR SYSTEM_TIME AS OF s.ts",
        )  # fmt: skip
    at = reading.need(version, "expression")
    operand.as_of = binder.bind(at)
    wanted = operand.table.schema[operand.table.valid_from]
    if not isinstance(operand.as_of, Column) or operand.as_of.name in operand.names:
        raise reading.error(
            "A table is read as of a column of the stream.", at, got=str(operand.as_of), hint="name the stream's time"
        )
    if operand.as_of.type != wanted.type:
        raise reading.error(
            "The time of the stream and that of the table's versions are of different types.", at,
            got=f"{operand.as_of.name} {operand.as_of.type} and {wanted}", hint="declare both as the same kind of time",
        )  # fmt: skip


def looked_up(
    left: Node, names: list[str], operand: Operand, conditions: list[Expression], reading: Reading
) -> tuple[Node, list[str]]:
    """A stream's rows with those of a table, and what their columns are called."""
    sides = Sides(left, list(names), operand.node, list(operand.names))
    as_of = operand.as_of
    equal, rest = sides.lookups(conditions, constants=as_of is not None)
    if as_of is not None:
        _check_key(operand, equal, reading)
    condition = conjunction(rest) if rest else None
    inner = operand.kind == "inner"
    called = (*sides.left_names, *sides.right_names)
    node: Node = Lookup(
        sides.left,
        operand.table,
        _KINDS[operand.kind],
        tuple(equal),
        called,
        None if inner else condition,
        None if not isinstance(as_of, Column) else sides.left_own(as_of.name),
    )
    if inner and condition is not None:
        node = Select(node, condition)
    if operand.kind in ("semi", "anti"):
        return (first_columns(node, len(names)) if sides.left_names != names else node), list(names)
    return node, [f.name for f in node.schema.fields]


def _check_key(operand: Operand, equal: list[tuple[str, Expression]], reading: Reading) -> None:
    """Versions are told apart by the key, so it must be known."""
    table: TableInfo = operand.table
    plain = {e.name for _, e in equal if isinstance(e, Column)}
    missing = [name for name in table.key if name not in plain]
    if missing:
        where = operand.join if operand.join is not None else operand.tree
        raise reading.error(
            "A table with versions is read by its key.", where, got=f"no condition that {missing[0]} equals",
            hint=f"add {table.name}.{missing[0]} = a column of the stream or a constant, of the type "
            f"{table.schema[missing[0]].type}",
        )  # fmt: skip
