"""From sqlglot's scalar expressions to ours, with types and checked names: operators, conditions and CASE.

Implicit conversions are few: numbers among numbers, a text literal beside a timestamp, NULL to anything. Everything
else asks for a CAST, so that no engine guesses differently from another. A kind of node is bound by what
`BINDERS` names for it; one that it does not name is not supported.

Chains of AND and OR become trees as shallow as they can be, which changes neither their value nor what is evaluated
first. Other nesting is limited, since every later step walks the expression; so is the number of its parts, since some
operators write an operand twice.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from penstock.errors import QueryError
from penstock.model.schema import BIGINT, BOOLEAN, DATE, STRING, TIMESTAMP, VOID, DataType
from penstock.plan.catalog import Catalog
from penstock.plan.expressions import Call, Expression, Literal, balanced, conjunction, is_deeper
from penstock.plan.like import wrong_escape
from penstock.plan.typing import arithmetic_type, common_type, converted
from penstock.sql.advice import advice_on
from penstock.sql.bind_constant import CONSTANTS, date, timestamp
from penstock.sql.bind_function import FUNCTIONS
from penstock.sql.bind_nested import comparable
from penstock.sql.bind_times import interval_ticks
from penstock.sql.dialect import NESTING
from penstock.sql.reading import Reading, shown
from penstock.sql.refusals import instead_of_over

Resolver = Callable[[exp.Expr], Expression | None]
"""Gives meaning to columns, group keys and aggregates; None for everything else."""
SUB_QUERIES = (
    "sub-queries can stand after FROM, and in WHERE in EXISTS and IN that stand by themselves or by AND; "
    "for a value of one, JOIN (SELECT …) AS x ON …"
)
MOST_PARTS = 10_000
"""An expression with more parts than this is refused."""

_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply", exp.Div: "divide", exp.Mod: "modulo",
    exp.IntDiv: "int_divide",
}  # fmt: skip
_COMPARISON: dict[type[exp.Expr], str] = {
    exp.EQ: "eq", exp.NEQ: "ne", exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge",
    exp.NullSafeEQ: "null_safe_eq", exp.NullSafeNEQ: "null_safe_eq",
}  # fmt: skip
_TURNED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


class ExpressionBinder:
    """Binds the expressions of one SELECT."""

    def __init__(self, catalog: Catalog, reading: Reading, resolve: Resolver) -> None:
        """`resolve` is asked first about every node."""
        self.catalog, self.reading, self.resolve = catalog, reading, resolve
        self._depth = self._count = 0

    def error(self, what: str, node: exp.Expr, hint: str = "", got: str = "") -> QueryError:
        """An error that points at `node`."""
        return self.reading.error(what, node, got=got or shown(node), hint=hint)

    def predicate(self, node: exp.Expr) -> Expression:
        """An expression that must be boolean."""
        bound = self.bind(node)
        if bound.type not in (BOOLEAN, VOID):
            raise self.error("A condition must be boolean.", node, got=f"{shown(node)} of type {bound.type}")
        return bound

    def bind(self, node: exp.Expr) -> Expression:
        """The typed expression."""
        self._count = self._count + 1 if self._depth else 1
        if self._count > MOST_PARTS:
            raise self._too_much(node)
        self._depth += 1
        try:
            bound = self.resolve(node) or self._bind(node)
        finally:
            self._depth -= 1
        if self._depth == 0:
            self._check_size(bound, node)
        return bound

    def _bind(self, node: exp.Expr) -> Expression:
        handler = BINDERS.get(type(node))
        bound = handler(self, node) if handler is not None else None
        if bound is None:
            raise self._unsupported(node)
        return bound

    def _unsupported(self, node: exp.Expr) -> QueryError:
        if isinstance(node, exp.Window):
            return self.error("OVER is not supported here.", node, hint=instead_of_over(node))
        if isinstance(node, exp.Subquery | exp.Query | exp.Exists) or node.args.get("query") is not None:
            return self.error("A sub-query cannot stand here.", node, hint=SUB_QUERIES)
        if isinstance(node, exp.AggFunc):
            return self.error("This aggregate is not supported.", node, hint="register one with flow.aggregate(…)")
        return self.error("This expression is not supported.", node, hint=advice_on(node))

    def _too_much(self, node: exp.Expr) -> QueryError:
        return self.reading.error(
            "The expression is too large.",
            node,
            got=f"more than {NESTING} operators in one another, or {MOST_PARTS} parts",
            hint="compute a part of it in a sub-query, or by a Python function",
        )

    def _check_size(self, bound: Expression, node: exp.Expr) -> None:
        if is_deeper(bound, NESTING, MOST_PARTS):
            raise self._too_much(node)

    def paren(self, node: exp.Expr) -> Expression:
        """What stands in parentheses."""
        return self.bind(self.reading.need(node, "this"))

    # Arithmetic

    def negation(self, node: exp.Expr) -> Expression:
        """A minus sign; before a number it is a part of it."""
        inner = self.bind(self.reading.need(node, "this"))
        if isinstance(inner, Literal) and isinstance(inner.value, int | float | Decimal) and inner.type.is_numeric:
            negated = inner.value.copy_negate() if isinstance(inner.value, Decimal) else -inner.value
            return Literal(negated, inner.type)
        if not inner.type.is_numeric:
            raise self.error("Only numbers can be negated.", node)
        return Call("negate", (inner,), inner.type)

    def arithmetic(self, node: exp.Expr) -> Expression:
        """The operators on two numbers, and a timestamp with an interval."""
        name = _ARITHMETIC[type(node)]
        first, second = self.reading.need(node, "this"), self.reading.need(node, "expression")
        self.reading.value(node, "typed")  # how other dialects divide integers,
        self.reading.value(node, "safe")  # and by zero
        if isinstance(first, exp.Interval) or isinstance(second, exp.Interval):
            return self.shifted(node, name, first, second)
        left, right = self.bind(first), self.bind(second)
        type_ = arithmetic_type(name, left, right)
        if type_ is None:
            raise self.error(
                "Arithmetic needs numbers.",
                node,
                got=f"{left.type} and {right.type}",
                hint="CAST the operands, or use INTERVAL with a timestamp",
            )
        return Call(name, (left, right), type_)

    def shifted(self, node: exp.Expr, name: str, first: exp.Expr, second: exp.Expr) -> Expression:
        """A timestamp plus or minus an interval."""
        if isinstance(first, exp.Interval) and name == "add":
            first, second = second, first
        if name not in ("add", "subtract") or not isinstance(second, exp.Interval) or isinstance(first, exp.Interval):
            raise self.error("An INTERVAL can be added to or taken from a timestamp.", node)
        base = self.bind(first)
        if base.type != TIMESTAMP:
            raise self.error("An INTERVAL can be added to or taken from a timestamp.", node)
        ticks = interval_ticks(self, second, node)
        return Call("time_add", (base, Literal(ticks if name == "add" else -ticks, BIGINT)), TIMESTAMP)

    # Comparisons

    def comparison(self, node: exp.Expr) -> Expression:
        """Two values of types that go together; or how far apart two times are, with an interval."""
        name, first, second = _COMPARISON[type(node)], *(self.reading.need(node, arg) for arg in ("this", "expression"))
        if isinstance(node, exp.NullSafeNEQ):  # IS DISTINCT FROM
            return Call("not", (self._compared(name, self.bind(first), self.bind(second), node),), BOOLEAN)
        for one, other, said in ((first, second, name), (second, first, _TURNED.get(name, name))):
            if (apart := self._difference(one)) is not None and _is_interval(other):
                return self._compared(said, self.bind(apart[0]), self._moved(apart[1], other, node), node)
        return self._compared(name, self.bind(first), self.bind(second), node)

    def _difference(self, node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
        """What is taken from what, if neither is an interval."""
        if isinstance(node, exp.Paren):
            return self._difference(self.reading.need(node, "this"))
        if not isinstance(node, exp.Sub) or isinstance(node.this, exp.Interval) or _is_interval(node.expression):
            return None
        return self.reading.need(node, "this"), self.reading.need(node, "expression")

    def _moved(self, time: exp.Expr, interval: exp.Expr, node: exp.Expr) -> Expression:
        """A time moved by an interval."""
        name = "add"
        while not isinstance(interval, exp.Interval):
            name = name if isinstance(interval, exp.Paren) else "subtract"
            interval = self.reading.need(interval, "this")
        return self.shifted(node, name, time, interval)

    def _compared(self, name: str, left: Expression, right: Expression, node: exp.Expr) -> Expression:
        return Call(name, self._alike(left, right, node), BOOLEAN)

    def _alike(self, left: Expression, right: Expression, node: exp.Expr) -> tuple[Expression, Expression]:
        if left.type == TIMESTAMP and isinstance(right, Literal) and right.type == STRING:
            return left, timestamp(self, right, node)
        if right.type == TIMESTAMP and isinstance(left, Literal) and left.type == STRING:
            return timestamp(self, left, node), right
        if left.type == DATE and isinstance(right, Literal) and right.type == STRING:
            return left, date(self, right, node)
        if right.type == DATE and isinstance(left, Literal) and left.type == STRING:
            return date(self, left, node), right
        common = common_type(left.type, right.type)
        if common is not None and common.is_nested:
            comparable(self, common, node)
            return converted(left, common), converted(right, common)
        if common is None:
            raise self.error(
                "These types cannot be compared.", node, got=f"{left.type} and {right.type}", hint="CAST one of them"
            )
        # Where the types meet in a double or a timestamp, both sides are brought there first, as Spark does.
        if (common.is_fractional or common == TIMESTAMP) and VOID not in (left.type, right.type):
            return converted(left, common), converted(right, common)
        return left, right

    def between(self, node: exp.Expr) -> Expression:
        """At least the one and at most the other."""
        ends = [self.reading.need(node, arg) for arg in ("low", "high")]
        apart = self._difference(self.reading.need(node, "this"))
        if apart is not None and all(map(_is_interval, ends)):
            moved = [self._moved(apart[1], end, node) for end in ends]
            compared = zip(("ge", "le"), moved, strict=True)
            return conjunction([self._compared(n, self.bind(apart[0]), each, node) for n, each in compared])
        value, low, high = (self.bind(self.reading.need(node, arg)) for arg in ("this", "low", "high"))
        return conjunction([self._compared("ge", value, low, node), self._compared("le", value, high, node)])

    def membership(self, node: exp.Expr) -> Expression | None:
        """IN with a list of values."""
        options = self.reading.parts(node, "expressions")
        if not options or node.args.get("query") is not None:
            return None
        value = self.bind(self.reading.need(node, "this"))
        pairs = [self._alike(value, self.bind(e), node) for e in options]
        value = next((left for left, _ in pairs if left.type != value.type), value)
        return Call("in", (value, *(self._alike(value, right, node)[1] for _, right in pairs)), BOOLEAN)

    def like(self, node: exp.Expr) -> Expression:
        """LIKE with a pattern whose escapes are right."""
        pattern_node = self.reading.need(node, "expression")
        text, pattern = self.string(self.reading.need(node, "this")), self.string(pattern_node)
        if isinstance(node, exp.ILike):  # case does not count, as Spark has it
            text = Call("lower", (text,), STRING)
            pattern = _lower(pattern)
        wrong = wrong_escape(str(pattern.value)) if isinstance(pattern, Literal) and pattern.value is not None else ""
        if wrong:
            raise self.error(
                "The LIKE pattern is wrong.", pattern_node, got=wrong, hint="write two backslashes for one"
            )
        like = Call("like", (text, pattern), BOOLEAN)
        return Call("not", (like,), BOOLEAN) if self.reading.flag(node, "negate") else like

    def test(self, node: exp.Expr) -> Expression | None:
        """IS NULL, IS TRUE and IS FALSE."""
        value, other = self.reading.need(node, "this"), self.reading.need(node, "expression")
        if isinstance(other, exp.Null):
            return Call("is_null", (self.bind(value),), BOOLEAN)
        if isinstance(other, exp.Boolean):
            return Call("null_safe_eq", (self.predicate(value), self.bind(other)), BOOLEAN)
        return None

    # Logic

    def connection(self, node: exp.Expr) -> Expression:
        """AND and OR, however long the chain."""
        operands: list[exp.Expr] = []
        pending = [node]
        while pending:
            at = pending.pop()
            if type(at) is type(node):
                pending += [self.reading.need(at, "expression"), self.reading.need(at, "this")]
            else:
                operands.append(at)
        return balanced("and" if isinstance(node, exp.And) else "or", [self.predicate(o) for o in operands])

    def inversion(self, node: exp.Expr) -> Expression:
        """NOT."""
        return Call("not", (self.predicate(self.reading.need(node, "this")),), BOOLEAN)

    def case(self, node: exp.Expr) -> Expression:
        """CASE with conditions, or with values to compare with."""
        subject = self.reading.part(node, "this")
        value = self.bind(subject) if subject is not None else None
        conditions: list[Expression] = []
        results: list[Expression] = []
        for branch in self.reading.parts(node, "ifs"):
            test = self.reading.need(branch, "this")
            if value is None:
                conditions.append(self.predicate(test))
            else:
                conditions.append(self._compared("eq", value, self.bind(test), node))
            results.append(self.bind(self.reading.need(branch, "true")))
        default = self.reading.part(node, "default")
        return self.chosen(conditions, results, self.bind(default) if default is not None else None, node)

    def condition(self, node: exp.Expr) -> Expression:
        """The function IF."""
        test, then, other = (self.reading.part(node, arg) for arg in ("this", "true", "false"))
        if test is None or then is None or other is None:
            raise self.error("IF takes a condition and two values.", node, hint="use CASE for one value")
        return self.chosen([self.predicate(test)], [self.bind(then)], self.bind(other), node)

    def null_if(self, node: exp.Expr) -> Expression:
        """The first value, or null if it equals the second."""
        value = self.bind(self.reading.need(node, "this"))
        same = self._compared("eq", value, self.bind(self.reading.need(node, "expression")), node)
        return self.chosen([same], [Literal(None, VOID)], value, node)

    def chosen(
        self, conditions: list[Expression], results: list[Expression], default: Expression | None, node: exp.Expr
    ) -> Expression:
        """The result of the first condition that is true, in one type for all."""
        values = [*results, default if default is not None else Literal(None, VOID)]
        type_ = self.common([v.type for v in values], node)
        args: list[Expression] = []
        for condition, value in zip(conditions, values[:-1], strict=True):
            args += [condition, converted(value, type_)]
        return Call("case", (*args, converted(values[-1], type_)), type_)

    def common(self, types: list[DataType], node: exp.Expr) -> DataType:
        """The type in which values of all these types meet."""
        result: DataType | None = VOID
        for type_ in types:
            result = common_type(result, type_) if result is not None else None
        if result is None:
            raise self.error(
                "The branches have types that do not go together.",
                node,
                got=", ".join(map(str, types)),
                hint="CAST them to one type",
            )
        return result

    # Operands of functions

    def string(self, node: exp.Expr) -> Expression:
        """An expression that must be text."""
        return self.text(self.bind(node), node)

    def text(self, bound: Expression, node: exp.Expr) -> Expression:
        """What a node was bound to, if it is text."""
        if bound.type not in (STRING, VOID):
            raise self.error(
                "Text is expected.", node, got=f"{shown(node)} of type {bound.type}", hint="CAST(… AS STRING)"
            )
        return bound

    def integer(self, node: exp.Expr) -> Expression:
        """An expression that must be a whole number."""
        bound = self.bind(node)
        if not bound.type.is_integer and bound.type != VOID:
            raise self.error("A whole number is expected.", node, got=f"{shown(node)} of type {bound.type}")
        return bound


def _is_interval(node: exp.Expr) -> bool:
    """An interval, or one taken away."""
    if isinstance(node, exp.Paren) or (isinstance(node, exp.Neg) and not isinstance(node.this, exp.Neg)):
        return _is_interval(node.this)
    return isinstance(node, exp.Interval)


def _lower(pattern: Expression) -> Expression:
    if isinstance(pattern, Literal):
        return Literal(None if pattern.value is None else str(pattern.value).lower(), STRING)
    return Call("lower", (pattern,), STRING)


Handler = Callable[[ExpressionBinder, exp.Expr], Expression | None]

BINDERS: dict[type[exp.Expr], Handler] = {
    **CONSTANTS,
    exp.Paren: ExpressionBinder.paren,
    exp.Neg: ExpressionBinder.negation,
    **dict.fromkeys(_ARITHMETIC, ExpressionBinder.arithmetic),
    **dict.fromkeys(_COMPARISON, ExpressionBinder.comparison),
    exp.Between: ExpressionBinder.between,
    exp.In: ExpressionBinder.membership,
    exp.Like: ExpressionBinder.like,
    exp.ILike: ExpressionBinder.like,
    exp.Is: ExpressionBinder.test,
    exp.And: ExpressionBinder.connection,
    exp.Or: ExpressionBinder.connection,
    exp.Not: ExpressionBinder.inversion,
    exp.Case: ExpressionBinder.case,
    exp.If: ExpressionBinder.condition,
    exp.Nullif: ExpressionBinder.null_if,
    **FUNCTIONS,
}
"""What binds a kind of node."""
