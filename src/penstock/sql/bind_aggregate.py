"""The aggregate calls of one SELECT, brought to those of the catalogue over columns of the rows that are aggregated.

What can be said with another aggregate is: every engine then has it, in each of its ways.

- `agg(x) FILTER (WHERE c)` is of `CASE WHEN c THEN x END`, since null does not count; of `count(*)`, x is 1. Where
  rows count by another argument, that is what the condition is put on.
- `count_if(c)` counts `CASE WHEN c THEN 1 END`; `count(a, b)` counts the rows in which neither is null.
- `bool_and` (`every`) and `bool_or` (`any`, `some`) are the least and the greatest of booleans.
- `any_value(x)` is the least, which is one of them and always the same.
- `first(x)` and `last(x)` are `min_by` and `max_by` by the time that the window is on; Spark's own are by arrival,
  which means nothing on a stream that comes out of order. Rows of the same time are decided by the value.
- `median(x)` and `percentile_cont(p) WITHIN GROUP (ORDER BY x)` are percentiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlglot import exp

from penstock.model.schema import BOOLEAN, DOUBLE, INT, DataType
from penstock.operators.aggregates.catalogue import Aggregate, find
from penstock.plan.catalog import Catalog
from penstock.plan.expressions import USER, AggregateCall, Call, Column, Expression, Literal, conjunction
from penstock.plan.typing import converted
from penstock.sql.aggregate_names import REFUSED, WRAPPERS, aggregate_name, inner_call
from penstock.sql.bind_expression import ExpressionBinder
from penstock.sql.bind_nested import comparable
from penstock.sql.naming import fresh

_FIRST = frozenset({"first", "first_value"})
_OF_NULLS = _FIRST | {"last", "last_value", "any_value"}
"""The aggregates for which it may be said whether nulls count."""
_ONE = Literal(1, INT)


@dataclass
class _Said:
    """A call as it is written."""

    function: str
    node: exp.Expr
    arguments: list[exp.Expr]
    distinct: bool = False
    condition: exp.Expr | None = None
    order: exp.Expr | None = None
    ignores_nulls: bool | None = None


@dataclass(frozen=True)
class _Meant:
    """The aggregate of the catalogue, or the user's, that a call stands for."""

    function: str
    arguments: tuple[Expression, ...]
    distinct: bool = False
    share: float | None = None


class AggregateBinder:
    """Binds calls, and gathers them with their arguments."""

    def __init__(
        self,
        catalog: Catalog,
        below: ExpressionBinder,
        taken: Callable[[], tuple[str, ...]],
        time: Callable[[], Expression],
    ) -> None:
        """`below` binds arguments, `taken` are names that columns have there, `time` is what windows are on."""
        self.catalog, self.below, self.reading = catalog, below, below.reading
        self.taken, self.time = taken, time
        self.arguments: dict[Expression, str] = {}
        """What calls read, under the names that it has below."""
        self.calls: dict[_Meant, AggregateCall] = {}

    def bind(self, node: exp.Expr) -> Column | None:
        """The column of the result that a call gives; None if the node is no call of an aggregate."""
        function = aggregate_name(inner_call(node), self.catalog)
        if function is None:
            if isinstance(node, WRAPPERS):
                raise self._no_aggregate(node)
            return None
        said = self._said(function, node)
        meant = self._meant(said)
        if said.condition is not None:
            meant = self._filtered(meant, self._condition(said.condition), node)
        record = find(meant.function)
        if meant.distinct and record is not None and record.ignores_distinct:
            meant = replace(meant, distinct=False)
        return self._gathered(meant, self._type(said, meant, record))

    def _no_aggregate(self, node: exp.Expr) -> Exception:
        called = inner_call(node)
        if isinstance(called, exp.Anonymous) and called.name.lower() in REFUSED:
            hint = REFUSED[called.name.lower()]
            return self.below.error(f"{called.name.lower()} is not supported.", called, got=called.name, hint=hint)
        return self.below.error("An aggregate is expected before this.", node)

    # As it is written

    def _said(self, function: str, node: exp.Expr) -> _Said:
        said = _Said(function, node, [])
        while isinstance(node, WRAPPERS):
            match node:
                case exp.Filter():
                    said.condition = self.reading.need(self.reading.need(node, "expression"), "this")
                case exp.WithinGroup():
                    said.order = self._order(self.reading.need(node, "expression"), function)
                case _:
                    said.ignores_nulls = isinstance(node, exp.IgnoreNulls)
            node = self.reading.need(node, "this")
        said.arguments = self._arguments(node)
        if len(said.arguments) == 1 and isinstance(said.arguments[0], exp.Distinct):
            said.distinct = True
            said.arguments = self.reading.parts(said.arguments[0], "expressions")
            if any(isinstance(a, exp.Star) for a in said.arguments):
                raise self.below.error("DISTINCT takes an expression, not *.", node, hint="name a column")
        if said.arguments and isinstance(said.arguments[0], exp.IgnoreNulls | exp.RespectNulls):
            said.ignores_nulls = isinstance(said.arguments[0], exp.IgnoreNulls)
            said.arguments[0] = self.reading.need(said.arguments[0], "this")
        for inner in said.arguments:
            if any(aggregate_name(n, self.catalog) for n in inner.walk()):
                raise self.below.error("An aggregate cannot stand inside another.", node, hint="use a sub-query")
        return said

    def _arguments(self, node: exp.Expr) -> list[exp.Expr]:
        reading = self.reading
        if isinstance(node, exp.Anonymous):
            reading.name(node)
            return reading.parts(node, "expressions")
        inner = reading.part(node, "this")
        if isinstance(node, exp.Any) and inner is not None:
            return [reading.need(inner, "this")]
        reading.value(node, "big_int")  # in which type other dialects count
        return [*([inner] if inner is not None else []), *reading.parts(node, "expressions")]

    def _order(self, order: exp.Expr, function: str) -> exp.Expr:
        """What WITHIN GROUP orders by, upwards."""
        by = self.reading.parts(order, "expressions")
        if len(by) != 1 or function not in ("mode", "percentile_cont"):
            raise self.below.error(
                "WITHIN GROUP stands after mode() and percentile_cont(share).", order, hint="leave it out"
            )
        (ordered,) = by
        if not isinstance(ordered, exp.Ordered):
            return ordered
        self.reading.value(ordered, "nulls_first")  # nulls do not count
        if self.reading.flag(ordered, "desc"):
            raise self.below.error(
                "WITHIN GROUP orders upwards.", order, hint="leave DESC out; 1 - share is the other end"
            )
        return self.reading.need(ordered, "this")

    def _condition(self, node: exp.Expr) -> Expression:
        if any(aggregate_name(n, self.catalog) for n in node.walk()):
            raise self.below.error(
                "An aggregate cannot stand in FILTER.", node, hint="use HAVING for conditions on aggregates"
            )
        return self.below.predicate(node)

    # What it means

    def _meant(self, said: _Said) -> _Meant:
        function = said.function
        if said.ignores_nulls is not None and function not in _OF_NULLS:
            raise self.below.error(
                "IGNORE NULLS stands after first, last and any_value.", said.node, hint="leave it out"
            )
        match function:
            case "count":
                return self._count(said)
            case "count_if":
                (condition,) = self._taken(said, 1)
                return _Meant("count", (self._chosen(self.below.predicate(condition), _ONE, said),), said.distinct)
            case "bool_and" | "every" | "bool_or" | "any" | "some":
                (condition,) = self._taken(said, 1)
                function = "min" if function in ("bool_and", "every") else "max"
                return _Meant(function, (converted(self.below.predicate(condition), BOOLEAN),), said.distinct)
            case _ if function in _OF_NULLS:
                return self._of_order(said)
            case "median":
                return _Meant("percentile", self._bound(said, 1), said.distinct, 0.5)
            case "percentile":
                value, share = self._taken(said, 2)
                return _Meant("percentile", (self.below.bind(value),), said.distinct, self._share(share))
            case "percentile_cont":
                (share,) = self._taken(said, 1)
                if said.order is None:
                    raise self.below.error(
                        "percentile_cont has no values.", said.node, hint="write percentile(x, share)"
                    )
                return _Meant("percentile", (self.below.bind(said.order),), said.distinct, self._share(share))
            case "collect_list":
                (collected,) = self._bound(said, 1)
                if said.distinct:
                    return _Meant("collect_set", (collected,))
                return _Meant(function, (collected, self.time()))
            case "mode" if said.order is not None:
                self._taken(said, 0)
                return _Meant("mode", (self.below.bind(said.order),), said.distinct)
            case "covar_pop" | "covar_samp" | "corr":
                return _Meant(function, tuple(self._number(a, said) for a in self._taken(said, 2)), said.distinct)
            case _:
                record = find(function)
                wanted = 1 if record is None else record.arguments
                return _Meant(function, self._bound(said, wanted), said.distinct)

    def _count(self, said: _Said) -> _Meant:
        if not said.arguments:
            self._taken(said, 1)
        if any(isinstance(a, exp.Star) for a in said.arguments):
            self._taken(said, 1)
            return _Meant("count", ())
        bound = tuple(self.below.bind(a) for a in said.arguments)
        if said.distinct or len(bound) == 1:
            return _Meant("count", bound, said.distinct)
        return _Meant("count", (self._chosen(conjunction([_is_there(b) for b in bound]), _ONE, said),))

    def _of_order(self, said: _Said) -> _Meant:
        """`first`, `last` and `any_value`: a second argument says, too, whether nulls count."""
        ignores = bool(said.ignores_nulls)
        if len(said.arguments) == 2 and isinstance(said.arguments[1], exp.Boolean):
            ignores = bool(self.reading.value(said.arguments[1], "this"))
            said.arguments = said.arguments[:1]
        (value,) = self._bound(said, 1)
        if said.function == "any_value":
            return _Meant("min", (value,))
        time: Expression = self.time()
        if ignores:
            time = self._chosen(_is_there(value), time, said)
        return _Meant("min_by" if said.function in _FIRST else "max_by", (value, time))

    def _taken(self, said: _Said, wanted: int) -> list[exp.Expr]:
        if len(said.arguments) != wanted:
            numbers = {0: "no argument", 1: "one argument", 2: "two arguments"}
            raise self.below.error(f"{said.function.removeprefix(USER)} takes {numbers[wanted]}.", said.node)
        if any(isinstance(a, exp.Star) for a in said.arguments) and said.function != "count":
            raise self.below.error("Only count takes *.", said.node)
        return said.arguments

    def _bound(self, said: _Said, wanted: int) -> tuple[Expression, ...]:
        return tuple(self.below.bind(a) for a in self._taken(said, wanted))

    def _number(self, node: exp.Expr, said: _Said) -> Expression:
        bound = self.below.bind(node)
        if not bound.type.is_numeric:
            raise self._not_for(said, bound.type)
        return converted(bound, DOUBLE)

    def _share(self, node: exp.Expr) -> float:
        bound = self.below.bind(node)
        value = bound.value if isinstance(bound, Literal) else None
        if not isinstance(value, int | float | Decimal) or isinstance(value, bool) or not 0 <= value <= 1:
            raise self.below.error(
                "A share is a number from 0 to 1, the same for all rows.",
                node,
                hint="one percentile at a time: percentile(x, 0.5), percentile(x, 0.9)",
            )
        return float(value)

    def _chosen(self, condition: Expression, value: Expression, said: _Said) -> Expression:
        return self.below.chosen([condition], [value], None, said.node)

    def _filtered(self, meant: _Meant, condition: Expression, node: exp.Expr) -> _Meant:
        """The same of the rows for which a condition is true."""
        arguments = list(meant.arguments or (_ONE,))
        decides = 1 if meant.function in ("min_by", "max_by") else 0
        arguments[decides] = self.below.chosen([condition], [arguments[decides]], None, node)
        return replace(meant, arguments=tuple(arguments))

    def _type(self, said: _Said, meant: _Meant, record: Aggregate | None) -> DataType:
        if record is None:
            return self.catalog.aggregates[meant.function.removeprefix(USER)][1]
        argument = meant.arguments[0].type if meant.arguments else None
        by = meant.arguments[1:] if meant.function in ("min_by", "max_by") else meant.arguments
        if meant.distinct or meant.function not in _UNCOMPARED:
            for compared in meant.arguments if meant.distinct else by:
                comparable(self.below, compared.type, said.node)
        found = record.type_of(argument)
        if found is None:
            raise self._not_for(said, argument)
        return found

    def _not_for(self, said: _Said, type_: DataType | None) -> Exception:
        what = f"{said.function} does not apply to this type."
        return self.below.error(what, said.node, got="*" if type_ is None else str(type_))

    def _gathered(self, meant: _Meant, type_: DataType) -> Column:
        if meant not in self.calls:
            taken = self.taken()
            names = [self.arguments.setdefault(a, fresh(f"__arg{len(self.arguments)}", taken)) for a in meant.arguments]
            types = [a.type for a in meant.arguments]
            called = fresh(f"__agg{len(self.calls)}", taken)
            first, first_type = (names[0], types[0]) if names else (None, None)
            self.calls[meant] = AggregateCall(
                meant.function, first, type_, called, meant.distinct, first_type, tuple(names[1:]), tuple(types[1:]),
                meant.share,
            )  # fmt: skip
        return Column(self.calls[meant].name, type_)


_UNCOMPARED = frozenset({"count", "collect_list"})
"""Aggregates that do not compare their values."""


def _is_there(value: Expression) -> Expression:
    return Call("not", (Call("is_null", (value,), BOOLEAN),), BOOLEAN)
