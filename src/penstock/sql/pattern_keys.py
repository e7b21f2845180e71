"""What is equal in all steps of a pattern, from conditions that two columns are equal and from PARTITION BY."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.plan.pattern_nodes import PatternKey
from penstock.sql.operands import Operand
from penstock.sql.reading import Reading, shown

Member = tuple[int, str]
"""A column of a step, by its own name."""


class PatternKeys:
    """The keys of one pattern."""

    def __init__(self, operands: Sequence[Operand], reading: Reading) -> None:
        """The steps as they are written."""
        self.operands, self.reading = operands, reading
        self.classes: list[tuple[set[Member], exp.Expr]] = []
        self.groups: list[PatternKey] = []

    def is_equality(self, condition: exp.Expr) -> bool:
        """Whether a condition is that columns of two steps are equal."""
        if not isinstance(condition, exp.EQ):
            return False
        members = [self._member(side) for side in (condition.this, condition.expression)]
        return None not in members and len({member[0] for member in members if member is not None}) == 2

    def _member(self, tree: exp.Expr) -> Member | None:
        if not isinstance(tree, exp.Column):
            return None
        table = tree.args.get("table")
        name = None if table is None else table.name
        found = [(at, each.scope.called(tree.name, name)) for at, each in enumerate(self.operands)]
        owners = [(at, called[0]) for at, called in found if len(called) == 1]
        return owners[0] if len(owners) == 1 else None

    def equate(self, condition: exp.Expr) -> None:
        """Take note of an equality."""
        members = {m for side in (condition.this, condition.expression) if (m := self._member(side)) is not None}
        met = [each for each in self.classes if each[0] & members]
        self.classes = [each for each in self.classes if not each[0] & members]
        self.classes.append((members.union(*(each[0] for each in met)), met[0][1] if met else condition))

    def of_partition(self, columns: Sequence[exp.Expr]) -> None:
        """Columns that all steps have under one name."""
        for column in columns:
            name = self.reading.name(column) if isinstance(column, exp.Column) else ""
            found = [each.scope.called(name) for each in self.operands]
            if not name or any(len(called) != 1 for called in found):
                raise self.reading.error(
                    "PARTITION BY of a pattern names a column that all steps have.", column, got=shown(column),
                    hint="or write WHERE a.x = b.y AND …",
                )  # fmt: skip
            key = PatternKey(tuple(called[0] for called in found), is_group=True)
            self._check_types(key, column)
            self.groups.append(key)

    def found(self, tree: exp.Expr) -> tuple[PatternKey, ...]:
        """The keys; each has a column of every step."""
        return (*self.groups, *(self._key(members, condition) for members, condition in self.classes))

    def _key(self, members: set[Member], condition: exp.Expr) -> PatternKey:
        columns = [[name for at, name in sorted(members) if at == step] for step in range(len(self.operands))]
        lacking = [self._name(step) for step, names in enumerate(columns) if not names]
        if lacking:
            raise self.reading.error(
                "Columns that are equal in some steps of a pattern are equal in all of them.", condition,
                got=f"{shown(condition)}; nothing of {', '.join(lacking)}",
                hint=f"add {shown(condition.this)} = {lacking[0]}.…, or ask it of the result in a query around this",
            )  # fmt: skip
        double = [(step, names) for step, names in enumerate(columns) if len(names) > 1]
        if double:
            step, names = double[0]
            raise self.reading.error(
                "Two columns of a step are equal to the same of another.", condition, got=", ".join(names),
                hint=f"write {' = '.join(f'{self._name(step)}.{name}' for name in names)}, and one of them as the key",
            )  # fmt: skip
        key = PatternKey(tuple(names[0] for names in columns))
        self._check_types(key, condition)
        return key

    def _check_types(self, key: PatternKey, tree: exp.Expr) -> None:
        types = [each.node.schema[name].type for name, each in zip(key.columns, self.operands, strict=True)]
        if len(set(types)) > 1:
            raise self.reading.error(
                "The keys of a pattern are of one type.", tree, got=" and ".join(map(str, dict.fromkeys(types))),
                hint="CAST one of them in a sub-query that is the step",
            )  # fmt: skip

    def _name(self, step: int) -> str:
        return min(self.operands[step].scope.qualifiers, default="the step")
