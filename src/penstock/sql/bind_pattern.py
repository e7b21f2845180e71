"""Patterns in FROM: what follows what, and what WHERE says of it.

A condition of WHERE, of those that it joins by AND, is one of these:

- about one step: it says which rows can be that step, and is asked before anything follows anything;
- that columns of two steps are equal: together such conditions must name a column of every step, which are then a key
  of the pattern, as are columns in PARTITION BY (of which null is a value, too);
- a difference of the times of the first and of the last step: the longest time is a bound on the pattern, as in OVER,
  and the shortest, if it is more than a tick, is asked of what was found;
- anything else is asked of what was found, as it is of an as-of join.

A pattern needs an end for whatever it keeps. The recent context has one, since it keeps one sequence of each key; the
others need the longest time, unless the query says UNLIMITED; and something that must not come needs one in any case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlglot import exp

from penstock.errors import QueryError
from penstock.model.time import Domain
from penstock.plan.catalog import Catalog
from penstock.plan.differences import Difference, differences, split
from penstock.plan.expressions import Expression, conjunction, renamed
from penstock.plan.nodes import Node, Pattern, Select
from penstock.plan.pattern_nodes import CONTEXTS
from penstock.sql.aggregate_names import aggregate_name
from penstock.sql.bands import check_band
from penstock.sql.bind_expression import ExpressionBinder
from penstock.sql.operands import Operand, columns_of_all, name_all, scope_of
from penstock.sql.pattern_keys import PatternKeys
from penstock.sql.pattern_syntax import FORM, Over
from penstock.sql.reading import Reading, shown
from penstock.sql.scope import Relation, Scope

_NEGATION = "SEQ(a, NOT b) OVER [5 MINUTES FOLLOWING a]"


def bind_pattern(
    catalog: Catalog, reading: Reading, tree: exp.Expr, operands: list[Operand], where: exp.Expr | None
) -> tuple[Scope, list[Expression]]:
    """The sequences with the names of their columns, and what WHERE asks of them."""
    return _PatternBinder(catalog, reading, tree, operands).bind(where)


class _PatternBinder:
    """Binds one pattern."""

    def __init__(self, catalog: Catalog, reading: Reading, tree: exp.Expr, operands: list[Operand]) -> None:
        self.catalog, self.reading, self.tree, self.operands = catalog, reading, tree, operands
        self.error = reading.error
        steps = reading.parts(tree, "steps")
        self.negated = tuple(reading.flag(step, "negated") for step in steps)
        self.places = [at for at, negated in enumerate(self.negated) if not negated]
        mode = reading.part(tree, "mode")
        self.context: Any = "recent" if mode is None else reading.name(mode).lower()
        self._check(steps, mode)
        name_all(operands)
        self.keys = PatternKeys(operands, reading)
        self.longest: list[int] = []
        """Lengths of time that bound the pattern."""

    def bind(self, where: exp.Expr | None) -> tuple[Scope, list[Expression]]:
        self._check_order()
        self.keys.of_partition(self.reading.parts(self.tree, "partition"))
        own, rest = self._sorted(where)
        steps = [self._chosen(operand, asked) for operand, asked in zip(self.operands, own, strict=True)]
        within = self._within()
        names = tuple(name for at in self.places for name in self.operands[at].names)
        node = Pattern(tuple(steps), self.negated, self.context, self.keys.found(self.tree), names, within)
        scope = scope_of(node, [self.operands[at] for at in self.places], self.reading)
        if self.negated[-1]:
            scope.relations += (self._deadline(node),)
        binder = self._binder(scope)
        return scope, [each for condition in rest for each in split(binder.predicate(condition))]

    def _deadline(self, node: Pattern) -> Relation:
        """The last step that does not come has a time after all: the one until which it did not."""
        last = self.operands[-1]
        time = str(last.node.schema.time)
        return Relation(last.scope.qualifiers, {time: str(node.schema.time)}, frozenset({time.lower()}))

    # What is written

    def _check(self, steps: Sequence[exp.Expr], mode: exp.Expr | None) -> None:
        if self.context not in CONTEXTS:
            assert mode is not None
            hint = f"use one of {', '.join(context.upper() for context in CONTEXTS)}"
            raise self.error("There is no such context of a pattern.", mode, got=self.context.upper(), hint=hint)
        if len(steps) < 2:
            raise self.error("A pattern has at least two steps.", self.tree, got=str(len(steps)), hint=FORM)
        if self.negated[0]:
            raise self.error(
                "A pattern begins with a step that comes.", steps[0], got=shown(steps[0].this),
                hint="that nothing came before is said by WHERE NOT EXISTS (SELECT …), with the times between",
            )  # fmt: skip
        seen: set[str] = set()
        for operand in self.operands:
            if operand.is_table:
                raise self.error(
                    "Rows of a table do not follow one another.", operand.tree, got=operand.table.name,
                    hint="join the table with what the pattern finds, in a query around it",
                )  # fmt: skip
            again = operand.scope.qualifiers & seen
            if again:
                name = min(again)
                raise self.error("Two steps have the same name.", operand.tree, got=name, hint=f"write {name} AS x")
            seen |= operand.scope.qualifiers
        self._check_times()

    def _check_times(self) -> None:
        first = self.operands[0].node.schema
        for operand in self.operands[1:]:
            own = operand.node.schema
            if own[own.time].type != first[first.time].type:
                raise self.error(
                    "The times of the steps are of different types.", operand.tree,
                    got=f"{first.time} {first[first.time].type} and {own.time} {own[own.time].type}",
                    hint="declare the streams with the same kind of time",
                )  # fmt: skip

    def _check_order(self) -> None:
        """An order that is written is that of the time."""
        order = self.reading.part(self.tree, "order")
        time = str(self.operands[0].node.schema.time)
        if order is not None and self.reading.name(order).lower() != time.lower():
            raise self.error(
                "A pattern goes by the time of its stream.", order, got=f"ORDER BY {shown(order)}",
                hint=f"ORDER BY {time}",
            )  # fmt: skip

    # WHERE

    def _sorted(self, where: exp.Expr | None) -> tuple[list[list[Expression]], list[exp.Expr]]:
        """The conditions on each step, and those that are asked of what was found; others are taken note of."""
        binder = self._binder(scope_of(columns_of_all(self.operands), self.operands, self.reading))
        own: list[list[Expression]] = [[] for _ in self.operands]
        rest: list[exp.Expr] = []
        for condition in _conditions(where, self.reading) if where is not None else ():
            about = self._about(condition)
            if len(about) == 1:
                own[about.pop()].append(binder.predicate(condition))
            elif self.keys.is_equality(condition):
                binder.predicate(condition)
                self.keys.equate(condition)
            elif about == {0, self.places[-1]} and self._bounds_time(condition, binder):
                pass
            else:
                self._check_comes(condition, about)
                rest.append(condition)
        return own, rest

    def _about(self, condition: exp.Expr) -> set[int]:
        """The steps that a condition speaks of."""
        found: set[int] = set()
        for column in condition.find_all(exp.Column):
            table = column.args.get("table")
            name = None if table is None else table.name
            found |= {at for at, each in enumerate(self.operands) if each.scope.called(column.name, name)}
        return found

    def _bounds_time(self, condition: exp.Expr, binder: ExpressionBinder) -> bool:
        """Whether a condition says no more than how much later the last step is than the first."""
        first, last = self.operands[0], self.operands[self.places[-1]]
        times = [first.names[first.node.schema.time_index]], [last.names[last.node.schema.time_index]]
        if not all(self._is_time(column) for column in condition.find_all(exp.Column)):
            return False
        parts = split(binder.predicate(condition))
        found = [each for each in differences(parts, *times).values() if len(each[1]) == len(parts)]
        if not found:
            return False
        difference = found[0][0]
        if difference.high is not None:
            self.longest.append(difference.high)
        return (difference.low or 0) <= 1  # else what is nearer is found first, and asked afterwards

    def _is_time(self, column: exp.Expr) -> bool:
        return any(column.name.lower() == str(each.node.schema.time).lower() for each in self.operands)

    def _check_comes(self, condition: exp.Expr, about: set[int]) -> None:
        for at in about:
            if self.negated[at]:
                raise self.error(
                    "A step that must not come has no row that could be asked together with others.", condition,
                    got=shown(condition), hint="conditions on it speak of it alone, or say that a key is equal",
                )  # fmt: skip

    def _binder(self, scope: Scope) -> ExpressionBinder:
        def resolve(node: exp.Expr) -> Expression | None:
            if aggregate_name(node, self.catalog):
                raise binder.error("An aggregate cannot stand here.", node, hint="use HAVING, in a query around it")
            return scope.column(node) if isinstance(node, exp.Column) else None

        binder = ExpressionBinder(self.catalog, self.reading, resolve)
        return binder

    @staticmethod
    def _chosen(operand: Operand, asked: Sequence[Expression]) -> Node:
        if not asked:
            return operand.node
        return Select(operand.node, renamed(conjunction(list(asked)), {n: operand.own(n) for n in operand.names}))

    # How long

    def _within(self) -> int | None:
        part = self.reading.part(self.tree, "over")
        over: Over | None = None if part is None else self.reading.value(part, "this")
        trailing = self.negated[-1]
        if part is not None and over is not None:
            self._check_anchor(part, over)
            if over.span is not None:
                self.longest.append(self._ticks(part, over))
        if not self.longest and trailing:
            raise self.error(
                "Nothing says until when the last step must not come.", self.tree, got="no bound on the time",
                hint=f"write {_NEGATION}",
            )  # fmt: skip
        if not self.longest:
            if self.context != "recent" and over is None:
                raise self._unbounded()
            return None
        within = min(self.longest)
        domain = self.operands[0].node.schema.domain
        check_band(self.reading, self.tree, Difference(1, within), domain, "a step is later than the one before it")
        return within

    def _unbounded(self) -> QueryError:
        name = self._name(self.places[-1])
        by = "1 HOUR" if self.operands[0].node.schema.domain is Domain.TIMESTAMP else "100"
        return self.error(
            "Nothing says how long a sequence may take, so rows that wait could never be given up.", self.tree,
            got=f"MODE {self.context.upper()} without a bound on the time",
            hint=f"add OVER [{by} PRECEDING {name}]; or OVER [UNLIMITED PRECEDING {name}], if all may be kept; "
            "or MODE RECENT, which keeps one sequence of each key",
        )  # fmt: skip

    def _check_anchor(self, part: exp.Expr, over: Over) -> None:
        trailing = self.negated[-1]
        if trailing and (over.direction != "FOLLOWING" or over.span is None):
            raise self.error(
                "That a step must not come is said of a time after the first.", part,
                got=f"{over.direction} {over.step}", hint=f"write {_NEGATION}",
            )  # fmt: skip
        at = self.places[-1] if over.direction == "PRECEDING" else 0
        if over.step.lower() not in self.operands[at].scope.qualifiers:
            raise self.error(
                f"OVER is of the time {over.direction} the {'last' if at else 'first'} step.", part, got=over.step,
                hint=f"write {over.direction} {self._name(at)}; part of a pattern may be one in a sub-query",
            )  # fmt: skip

    def _name(self, at: int) -> str:
        return min(self.operands[at].scope.qualifiers, default="the step")

    def _ticks(self, part: exp.Expr, over: Over) -> int:
        assert over.span is not None
        domain = self.operands[0].node.schema.domain
        ticks = over.span.ticks(domain)
        if ticks is None:
            by = "a unit of time, such as 5 MINUTES" if domain is Domain.TIMESTAMP else "a number without a unit"
            raise self.error(
                "The length does not fit the time of the steps.", part, got=str(over.span), hint=f"give {by}"
            )
        return ticks - over.is_less


def _conditions(tree: exp.Expr, reading: Reading) -> Iterator[exp.Expr]:
    """The conditions that are joined by AND."""
    if isinstance(tree, exp.And):
        yield from _conditions(reading.need(tree, "this"), reading)
        yield from _conditions(reading.need(tree, "expression"), reading)
    elif isinstance(tree, exp.Paren):
        yield from _conditions(reading.need(tree, "this"), reading)
    else:
        yield tree
