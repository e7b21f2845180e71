"""Expressions as Python functions of a row.

The common operators on values without NaN have short paths of their own; everything else goes through the table of
scalar functions, which is the definition.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from penstock.model.batch import Row
from penstock.model.schema import TIMESTAMP, DataType, Schema
from penstock.query.expressions import USER, Call, Column, Expression, Literal
from penstock.query.functions import LAZY, STRICT, evaluate_lazy, timestamp_string
from penstock.query.user_functions import timestamp_aware

RowFunction = Callable[[Row], Any]
Functions = Mapping[str, Callable[..., object]]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


def row_function(expression: Expression, schema: Schema, functions: Functions) -> RowFunction:
    """The value of an expression for a row of `schema`."""
    match expression:
        case Column(name=name):
            return operator.itemgetter(schema.index(name))
        case Literal(value=value):
            return lambda row: value
        case Call(name=name, args=args):
            parts = [row_function(a, schema, functions) for a in args]
            if name.startswith(USER):
                plain = name.removeprefix(USER).lower()
                user = timestamp_aware(functions[plain], [a.type == TIMESTAMP for a in args], expression.type, plain)
                return lambda row: user(*[p(row) for p in parts])
            if name in _COMPARE and not any(a.type.is_fractional for a in args):
                return _compare(_COMPARE[name], parts[0], parts[1])
            if name in LAZY:
                return _lazy(name, parts)
            return _strict(name, parts, expression)


def _compare(op: Callable[[Any, Any], bool], left: RowFunction, right: RowFunction) -> RowFunction:
    def apply(row: Row) -> bool | None:
        a, b = left(row), right(row)
        return None if a is None or b is None else op(a, b)

    return apply


def _lazy(name: str, parts: list[RowFunction]) -> RowFunction:
    return lambda row: evaluate_lazy(name, [lambda p=p: p(row) for p in parts])  # type: ignore[misc]


def _timestamp_to_string(args: list[Any], type_: DataType) -> str:
    """A tick looks like any other int: only the argument's type tells."""
    return timestamp_string(args[0])


def _strict(name: str, parts: list[RowFunction], call: Call) -> RowFunction:
    function, type_ = STRICT[name], call.type
    if name == "cast" and call.args[0].type.name == "timestamp" and type_.name == "string":
        function = _timestamp_to_string

    def apply(row: Row) -> Any:
        values = [p(row) for p in parts]
        return None if any(v is None for v in values) else function(values, type_)

    return apply
