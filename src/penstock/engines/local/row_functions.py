"""Expressions as Python functions of a row, compiled from text.

The common operators on values that need no care (integers, text, times; doubles where NaN does not matter) are written
out as Python, so that a row is judged in one call. Everything else is a call of the table of scalar functions, which is
the definition. `RowCode` collects the texts of several expressions that are to run in one function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.model.batch import Row
from penstock.model.schema import TIMESTAMP, DataType, Schema
from penstock.model.text import write_timestamp
from penstock.query.expressions import USER, Call, Column, Expression, Literal
from penstock.query.functions import LAZY, STRICT, evaluate_lazy, fit
from penstock.query.user_functions import timestamp_aware

RowFunction = Callable[[Row], Any]
RowsFunction = Callable[[Sequence[Row]], Any]
Functions = Mapping[str, Callable[..., object]]

_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*"}
_PLAIN = (int, str, bool, type(None))


def row_function(expression: Expression, schema: Schema, functions: Functions) -> RowFunction:
    """The value of an expression for a row of `schema`."""
    code = RowCode(functions)
    text = code.text(expression, schema)
    compiled: RowFunction = eval(compile(f"lambda row: {text}", "<penstock expression>", "eval"), code.names)
    return compiled


def filter_function(predicate: Expression, schema: Schema, functions: Functions) -> RowsFunction:
    """The rows for which a predicate is true."""
    code = RowCode(functions)
    return code.over_rows(f"[row for row in rows if {code.text(predicate, schema)}]")


def project_function(columns: Sequence[Expression], schema: Schema, functions: Functions) -> RowsFunction:
    """Rows of the values of some expressions; rows as they are, where that is what the expressions say."""
    if [c.name if isinstance(c, Column) else None for c in columns] == list(schema.names):
        return lambda rows: rows
    code = RowCode(functions)
    return code.over_rows(f"[({', '.join([code.text(c, schema) for c in columns])},) for row in rows]")


class RowCode:
    """Python text of expressions over a variable `row`, and the names that the text refers to."""

    def __init__(self, functions: Functions) -> None:
        """`functions` are the user's, by name."""
        self.functions = functions
        self.names: dict[str, Any] = {"fit": fit}
        self._temporaries = 0

    def text(self, expression: Expression, schema: Schema) -> str:
        """The expression in parentheses, or an atom."""
        match expression:
            case Column(name=name):
                return f"row[{schema.index(name)}]"
            case Literal(value=value):
                return repr(value) if type(value) in _PLAIN else self.name(value)
            case Call(name=name, args=args):
                parts = [self.text(a, schema) for a in args]
                if name.startswith(USER):
                    return self._user(expression, parts)
                if name in LAZY:
                    return self._lazy(name, parts)
                return self._strict(expression, parts)

    def over_rows(self, text: str) -> RowsFunction:
        """A text over a variable `rows` as a function."""
        compiled: RowsFunction = eval(compile(f"lambda rows: {text}", "<penstock rows>", "eval"), self.names)
        return compiled

    def name(self, value: object) -> str:
        """A name for an object."""
        name = f"x{len(self.names)}"
        self.names[name] = value
        return name

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"t{self._temporaries}"

    def _user(self, call: Call, parts: list[str]) -> str:
        plain = call.name.removeprefix(USER).lower()
        user = timestamp_aware(self.functions[plain], [a.type == TIMESTAMP for a in call.args], call.type, plain)
        return f"{self.name(user)}({', '.join(parts)})"

    def _lazy(self, name: str, parts: list[str]) -> str:
        if name == "is_null":
            return f"({parts[0]} is None)"
        if name in ("and", "or"):
            decisive = name == "or"
            left, right = self._temporary(), self._temporary()
            unknown = f"None if {left} is None or {right} is None else {not decisive}"
            return (
                f"({decisive} if ({left} := {parts[0]}) is {decisive} else "
                f"({decisive} if ({right} := {parts[1]}) is {decisive} else ({unknown})))"
            )
        thunks = ", ".join(f"lambda: {p}" for p in parts)
        return f"{self.name(evaluate_lazy)}({name!r}, [{thunks}])"

    def _strict(self, call: Call, parts: list[str]) -> str:
        """Null if an argument is null, which a literal is not."""
        tests, values = [], []
        for part, argument in zip(parts, call.args, strict=True):
            if isinstance(argument, Literal) and argument.value is not None:
                values.append(part)
                continue
            temporary = self._temporary()
            tests.append(f"({temporary} := {part}) is None")
            values.append(temporary)
        value = self._value(call, values)
        return f"(None if {' or '.join(tests)} else {value})" if tests else value

    def _value(self, call: Call, values: list[str]) -> str:
        name, type_ = call.name, call.type
        kinds = [a.type for a in call.args]
        if name in _COMPARE and not any(k.is_fractional for k in kinds):
            return f"{values[0]} {_COMPARE[name]} {values[1]}"
        if name in _ARITHMETIC and type_.is_integer:
            limit, result = 1 << (type_.bits - 1), self._temporary()
            fits = f"{-limit} <= ({result} := {values[0]} {_ARITHMETIC[name]} {values[1]}) < {limit}"
            return f"({result} if {fits} else fit({result}, {self.name(type_)}))"
        if name in _ARITHMETIC and all(k.name == "double" for k in (type_, *kinds)):
            return f"{values[0]} {_ARITHMETIC[name]} {values[1]}"
        function = STRICT[name]
        if name == "cast" and kinds[0].name == "timestamp" and type_.name == "string":
            function = _timestamp_to_string
        general = f"{self.name(function)}([{', '.join(values)}], {self.name(type_)})"
        if name == "modulo" and type_.is_integer:
            return f"({values[0]} % {values[1]} if {values[0]} >= 0 and {values[1]} > 0 else {general})"
        return general


def _timestamp_to_string(args: list[Any], type_: DataType) -> str:
    """A tick looks like any other int: only the argument's type tells."""
    return write_timestamp(args[0])
