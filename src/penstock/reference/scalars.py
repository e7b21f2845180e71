"""Scalar expressions on one row, and when two values are one value.

Functions mean what `penstock.plan.functions` says; user functions are called with None for null. An expression that
has no value (overflow, division by zero, a cast that fails, a user function that raises) raises `EvaluationError`.
Values are the same when SQL groups them together: null with null, NaN with NaN, the two zeros of floating point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from penstock.errors import UnsupportedError
from penstock.model.batch import Row
from penstock.model.schema import STRING, TIMESTAMP, Schema
from penstock.model.text import write_timestamp
from penstock.plan.expressions import USER, Call, Column, Expression, Literal
from penstock.plan.functions import LAZY, STRICT, evaluate_lazy
from penstock.plan.user_functions import timestamp_aware

Functions = Mapping[str, Callable[..., object]]
"""User functions by lower-case name."""


def value_of(expression: Expression, row: Row, schema: Schema, functions: Functions) -> object:
    """The value of an expression on a row of `schema`."""
    if isinstance(expression, Column):
        return row[schema.index(expression.name)]
    if isinstance(expression, Literal):
        return expression.value
    return _call(expression, row, schema, functions)


def _call(call: Call, row: Row, schema: Schema, functions: Functions) -> object:
    if call.name in LAZY:
        return evaluate_lazy(call.name, [_later(a, row, schema, functions) for a in call.args])
    if call.name.startswith(USER):
        args = [value_of(a, row, schema, functions) for a in call.args]
        name = call.name.removeprefix(USER).lower()
        if name not in functions:
            raise UnsupportedError("The user function is not known.", got=name, hint="pass it in functions=…")
        times = [a.type == TIMESTAMP for a in call.args]
        return timestamp_aware(functions[name], times, call.type, name)(*args)
    args = []
    for argument in call.args:  # from the left; after a null nothing is evaluated, so nothing can fail
        args.append(value_of(argument, row, schema, functions))
        if args[-1] is None:
            return None
    if call.name == "cast" and call.type == STRING and call.args[0].type == TIMESTAMP:
        assert isinstance(args[0], int)
        return write_timestamp(args[0])  # a tick looks like any other int: only the argument's type tells
    return STRICT[call.name](args, call.type)


def _later(expression: Expression, row: Row, schema: Schema, functions: Functions) -> Callable[[], object]:
    return lambda: value_of(expression, row, schema, functions)


def same(value: object) -> object:
    """A stand-in that is equal for exactly the values that SQL takes as one in GROUP BY, DISTINCT and partitions."""
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN", None
        return value + 0.0  # -0.0 becomes 0.0
    if isinstance(value, tuple):  # of a nested type: part by part
        return "nested", *(same(part) for part in value)
    return value


def same_row(values: tuple[object, ...]) -> tuple[object, ...]:
    """The stand-in of several values together."""
    return tuple(same(v) for v in values)
