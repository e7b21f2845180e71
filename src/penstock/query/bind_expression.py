"""From sqlglot's scalar expressions to ours, with types and checked names.

Implicit conversions are few: numbers among numbers, a text literal beside a timestamp, NULL to anything. Everything
else asks for a CAST, so that no engine guesses differently from another.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from penstock.errors import EvaluationError, QueryError, StreamError
from penstock.model.schema import BIGINT, BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP, VOID, DataType, decimal, parse_type
from penstock.model.text import read_timestamp
from penstock.model.time import Domain, parse_span
from penstock.query.catalog import Catalog
from penstock.query.expressions import USER, Call, Expression, Literal, conjunction
from penstock.query.like import wrong_escape
from penstock.query.typing import arithmetic_type, can_cast, common_type

Resolver = Callable[[exp.Expr], Expression | None]
"""Gives meaning to columns, group keys and aggregates; None for everything else."""

_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply", exp.Div: "divide", exp.Mod: "modulo",
    exp.IntDiv: "int_divide",
}  # fmt: skip
_COMPARISON: dict[type[exp.Expr], str] = {
    exp.EQ: "eq", exp.NEQ: "ne", exp.LT: "lt", exp.LTE: "le", exp.GT: "gt", exp.GTE: "ge",
    exp.NullSafeEQ: "null_safe_eq",
}  # fmt: skip
_TEXT: dict[type[exp.Expr], tuple[str, DataType]] = {
    exp.Lower: ("lower", STRING), exp.Upper: ("upper", STRING), exp.Length: ("length", INT), exp.Trim: ("trim", STRING),
}  # fmt: skip
_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "year", exp.Month: "month", exp.Day: "day", exp.DayOfMonth: "day", exp.Hour: "hour",
    exp.Minute: "minute", exp.Second: "second",
}  # fmt: skip


def position(node: exp.Expr) -> tuple[int, int]:
    """Line and column where a node starts, from the first of its parts that knows; zeros if none does."""
    places = [m for n in node.walk() if "line" in (m := n.meta)]
    if not places:
        return 0, 0
    first = min(places, key=lambda m: m["start"])
    return int(first["line"]), max(int(first["col"]) - (int(first["end"]) - int(first["start"])), 1)


class ExpressionBinder:
    """Binds the expressions of one SELECT."""

    def __init__(self, catalog: Catalog, sql: str, resolve: Resolver) -> None:
        """`resolve` is asked first about every node."""
        self.catalog, self.sql, self.resolve = catalog, sql, resolve

    def error(self, what: str, node: exp.Expr, hint: str = "", got: str = "") -> QueryError:
        """An error that points at `node`."""
        line, column = position(node)
        return QueryError(what, sql=self.sql, line=line, column=column, got=got or node.sql("spark"), hint=hint)

    def predicate(self, node: exp.Expr) -> Expression:
        """An expression that must be boolean."""
        bound = self.bind(node)
        if bound.type not in (BOOLEAN, VOID):
            raise self.error("A condition must be boolean.", node, got=f"{node.sql('spark')} of type {bound.type}")
        return bound

    def bind(self, node: exp.Expr) -> Expression:
        """The typed expression."""
        resolved = self.resolve(node)
        if resolved is not None:
            return resolved
        kind = type(node)
        if isinstance(node, exp.Paren):
            return self.bind(node.this)
        if isinstance(node, exp.Literal | exp.Boolean | exp.Null | exp.Neg):
            return self._constant_or_negation(node)
        if kind in _ARITHMETIC:
            return self._arithmetic(node, _ARITHMETIC[kind])
        if kind in _COMPARISON:
            left, right = self._alike(self.bind(node.this), self.bind(node.expression), node)
            return Call(_COMPARISON[kind], (left, right), BOOLEAN)
        if isinstance(node, exp.And | exp.Or):
            return Call(
                "and" if isinstance(node, exp.And) else "or",
                (self.predicate(node.this), self.predicate(node.expression)),
                BOOLEAN,
            )
        if isinstance(node, exp.Not):
            return Call("not", (self.predicate(node.this),), BOOLEAN)
        bound = self._condition(node) or self._conditional(node) or self._function(node)
        if bound is None:
            raise self.error(
                "This expression is not supported.", node, hint="register a Python function with flow.function(…)"
            )
        return bound

    def _constant_or_negation(self, node: exp.Expr) -> Expression:
        if isinstance(node, exp.Null):
            return Literal(None, VOID)
        if isinstance(node, exp.Boolean):
            return Literal(bool(node.this), BOOLEAN)
        if isinstance(node, exp.Neg):
            inner = self.bind(node.this)
            if isinstance(inner, Literal) and isinstance(inner.value, int | float | Decimal) and inner.type.is_numeric:
                negated = inner.value.copy_negate() if isinstance(inner.value, Decimal) else -inner.value
                return Literal(negated, inner.type)
            if not inner.type.is_numeric:
                raise self.error("Only numbers can be negated.", node)
            return Call("negate", (inner,), inner.type)
        assert isinstance(node, exp.Literal)
        if node.is_string:
            return Literal(node.this, STRING)
        text = str(node.this)
        if "e" in text.lower():
            return Literal(float(text), DOUBLE)
        if "." in text:
            value = Decimal(text)
            scale = max(-int(value.as_tuple().exponent), 0)
            return Literal(value, decimal(max(len(value.as_tuple().digits), scale), scale))
        number = int(text)
        if number >= 2**63:
            return Literal(Decimal(number), decimal(len(text.lstrip("0")), 0))
        return Literal(number, INT if number < 2**31 else BIGINT)

    def _arithmetic(self, node: exp.Expr, name: str) -> Expression:
        if isinstance(node.expression, exp.Interval) or isinstance(node.this, exp.Interval):
            return self._shift(node, name)
        left, right = self.bind(node.this), self.bind(node.expression)
        type_ = arithmetic_type(name, left, right)
        if type_ is None:
            raise self.error(
                "Arithmetic needs numbers.",
                node,
                got=f"{left.type} and {right.type}",
                hint="CAST the operands, or use INTERVAL with a timestamp",
            )
        return Call(name, (left, right), type_)

    def _shift(self, node: exp.Expr, name: str) -> Expression:
        left, right = node.this, node.expression
        if isinstance(left, exp.Interval) and name == "add":
            left, right = right, left
        base = self.bind(left)
        if name not in ("add", "subtract") or not isinstance(right, exp.Interval) or base.type != TIMESTAMP:
            raise self.error("An INTERVAL can be added to or taken from a timestamp.", node)
        unit = right.args.get("unit")
        text = f"{right.this.name} {unit.name if unit is not None else ''}"
        try:
            ticks = parse_span(text).ticks(Domain.TIMESTAMP)
        except StreamError:
            ticks = None
        if ticks is None:
            raise self.error(
                "The INTERVAL has no fixed length.", node, got=text.strip(), hint="use weeks or smaller units"
            )
        return Call("time_add", (base, Literal(ticks if name == "add" else -ticks, BIGINT)), TIMESTAMP)

    def _alike(self, left: Expression, right: Expression, node: exp.Expr) -> tuple[Expression, Expression]:
        if left.type == TIMESTAMP and isinstance(right, Literal) and right.type == STRING:
            return left, self._timestamp(right, node)
        if right.type == TIMESTAMP and isinstance(left, Literal) and left.type == STRING:
            return self._timestamp(left, node), right
        common = common_type(left.type, right.type)
        if common is None:
            raise self.error(
                "These types cannot be compared.", node, got=f"{left.type} and {right.type}", hint="CAST one of them"
            )
        # Where the types meet in a double or a timestamp, both sides are brought there first, as Spark does.
        if (common.is_fractional or common == TIMESTAMP) and VOID not in (left.type, right.type):
            return self._to(left, common), self._to(right, common)
        return left, right

    def _timestamp(self, literal: Literal, node: exp.Expr) -> Literal:
        try:
            return Literal(read_timestamp(str(literal.value)), TIMESTAMP)
        except ValueError:
            raise self.error("Not a timestamp.", node, got=str(literal), hint="write '2026-01-31 12:00:00'") from None

    def _condition(self, node: exp.Expr) -> Expression | None:
        if isinstance(node, exp.Is):
            if isinstance(node.expression, exp.Null):
                return Call("is_null", (self.bind(node.this),), BOOLEAN)
            if isinstance(node.expression, exp.Boolean):
                return Call("null_safe_eq", (self.predicate(node.this), self.bind(node.expression)), BOOLEAN)
        if isinstance(node, exp.Between):
            low, high = node.args["low"], node.args["high"]
            parts = [exp.GTE(this=node.this, expression=low), exp.LTE(this=node.this, expression=high)]
            return conjunction([self.bind(p) for p in parts])
        if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
            value = self.bind(node.this)
            pairs = [self._alike(value, self.bind(e), node) for e in node.expressions]
            value = next((left for left, _ in pairs if left.type != value.type), value)
            return Call("in", (value, *(self._alike(value, right, node)[1] for _, right in pairs)), BOOLEAN)
        if isinstance(node, exp.Like):
            return self._like(node)
        return None

    def _like(self, node: exp.Like) -> Expression:
        text, pattern = self._string(node.this), self._string(node.expression)
        wrong = wrong_escape(str(pattern.value)) if isinstance(pattern, Literal) and pattern.value is not None else ""
        if wrong:
            raise self.error(
                "The LIKE pattern is wrong.", node.expression, got=wrong, hint="write two backslashes for one"
            )
        like = Call("like", (text, pattern), BOOLEAN)
        return Call("not", (like,), BOOLEAN) if node.args.get("negate") else like

    def _string(self, node: exp.Expr) -> Expression:
        bound = self.bind(node)
        if bound.type not in (STRING, VOID):
            raise self.error(
                "Text is expected.", node, got=f"{node.sql('spark')} of type {bound.type}", hint="CAST(… AS STRING)"
            )
        return bound

    def _integer(self, node: exp.Expr) -> Expression:
        bound = self.bind(node)
        if not bound.type.is_integer and bound.type != VOID:
            raise self.error("A whole number is expected.", node, got=f"{node.sql('spark')} of type {bound.type}")
        return bound

    def _conditional(self, node: exp.Expr) -> Expression | None:
        if isinstance(node, exp.Case):
            tests = [(i.this, i.args["true"]) for i in node.args["ifs"]]
            if node.this is not None:
                tests = [(exp.EQ(this=node.this, expression=test), value) for test, value in tests]
            return self._case(tests, node.args.get("default"), node)
        if isinstance(node, exp.If):
            return self._case([(node.this, node.args["true"])], node.args.get("false"), node)
        if isinstance(node, exp.Nullif):
            test = exp.EQ(this=node.this, expression=node.expression)
            return self._case([(test, exp.Null())], node.this, node)
        if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least):
            args = [self.bind(a) for a in [node.this, *node.expressions]]
            name = {exp.Coalesce: "coalesce", exp.Greatest: "greatest", exp.Least: "least"}[type(node)]
            type_ = self._common([a.type for a in args], node)
            return Call(name, tuple(self._to(a, type_) for a in args), type_)
        return None

    def _case(self, tests: list[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None, node: exp.Expr) -> Expression:
        conditions = [self.predicate(test) for test, _ in tests]
        values = [self.bind(value) for _, value in tests]
        values.append(self.bind(default) if default is not None else Literal(None, VOID))
        type_ = self._common([v.type for v in values], node)
        args: list[Expression] = []
        for condition, value in zip(conditions, values[:-1], strict=True):
            args += [condition, self._to(value, type_)]
        return Call("case", (*args, self._to(values[-1], type_)), type_)

    def _common(self, types: list[DataType], node: exp.Expr) -> DataType:
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

    @staticmethod
    def _to(expression: Expression, type_: DataType) -> Expression:
        if expression.type == type_:
            return expression
        if isinstance(expression, Literal) and expression.value is None:
            return Literal(None, type_)
        return Call("cast", (expression,), type_)

    def _function(self, node: exp.Expr) -> Expression | None:
        kind = type(node)
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if kind in _TEXT:
            name, type_ = _TEXT[kind]
            return Call(name, (self._string(node.this),), type_)
        if isinstance(node, exp.Concat | exp.DPipe):
            parts = node.expressions if isinstance(node, exp.Concat) else [node.this, node.expression]
            return Call("concat", tuple(self._string(p) for p in parts), STRING)
        if isinstance(node, exp.Substring):
            args = [self._string(node.this), self._integer(node.args["start"])]
            if node.args.get("length") is not None:
                args.append(self._integer(node.args["length"]))
            return Call("substring", tuple(args), STRING)
        if kind in _PARTS:
            inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
            value = self.bind(inner)
            if value.type != TIMESTAMP:
                raise self.error("A timestamp is expected.", node, got=str(value.type))
            return Call(_PARTS[kind], (value,), INT)
        if isinstance(node, exp.TimestampTrunc):
            unit = node.args["unit"].name.lower()
            if unit in ("second", "minute", "hour", "day"):
                value = self.bind(node.this)
                if value.type != TIMESTAMP:
                    raise self.error("A timestamp is expected.", node, got=str(value.type))
                return Call("date_trunc", (Literal(unit, STRING), value), TIMESTAMP)
        if isinstance(node, exp.Abs | exp.Floor | exp.Ceil | exp.Sqrt):
            return self._number_function(node)
        if isinstance(node, exp.Anonymous):
            function = self.catalog.functions.get(node.name.lower())
            if function is not None:
                return Call(USER + function.name, tuple(self.bind(a) for a in node.expressions), function.returns)
            raise self.error(
                "Unknown function.", node, got=node.name, hint="register it with flow.function(…) or flow.aggregate(…)"
            )
        return None

    def _number_function(self, node: exp.Expr) -> Expression | None:
        value = self.bind(node.this)
        if not value.type.is_numeric:
            raise self.error("A number is expected.", node, got=str(value.type))
        if isinstance(node, exp.Abs):
            return Call("abs", (value,), value.type)
        if isinstance(node, exp.Sqrt):
            return Call("sqrt", (self._to(value, DOUBLE),), DOUBLE)
        if value.type.is_decimal:
            return None
        return Call("floor" if isinstance(node, exp.Floor) else "ceil", (value,), BIGINT)

    def _cast(self, node: exp.Cast) -> Expression:
        if node.args.get("safe"):
            raise self.error("TRY_CAST is not supported.", node, hint="use CAST, and CASE for values that do not fit")
        value = self.bind(node.this)
        try:
            target = parse_type(node.to.sql("spark"))
        except StreamError as error:
            raise self.error(error.what, node, got=error.got, hint=error.hint) from None
        if isinstance(value, Literal) and value.type == STRING and target == TIMESTAMP:
            return self._timestamp(value, node)
        if not can_cast(value.type, target):
            raise self.error("This cast is not supported.", node, got=f"{value.type} to {target}")
        try:
            return self._to(value, target)
        except EvaluationError as error:
            raise self.error(error.what, node, got=error.got) from None
