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
from penstock.plan.expressions import USER, Call, Column, Expression, Literal
from penstock.plan.fitting import fit
from penstock.plan.functions import LAZY, STRICT, evaluate_lazy
from penstock.plan.like import matcher
from penstock.plan.matching import finder
from penstock.plan.user_functions import timestamp_aware

RowFunction = Callable[[Row], Any]
RowsFunction = Callable[[Sequence[Row]], Any]
Functions = Mapping[str, Callable[..., object]]

_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*"}
_SEARCHES = {"like": matcher, "rlike": finder}
DEEPEST = 12
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
        return self._text(expression, schema)[0]

    def _text(self, expression: Expression, schema: Schema) -> tuple[str, int]:
        """The text, and how many calls stand in one another in it: Python reads no more than so many parentheses.

        What is deeper than `DEEPEST` becomes a function of its own.
        """
        match expression:
            case Column(name=name):
                return f"row[{schema.index(name)}]", 0
            case Literal(value=value):
                return repr(value) if type(value) in _PLAIN else self.name(value), 0
            case Call(args=args):
                inner = [self._text(a, schema) for a in args]
                text = self._call(expression, [part for part, _ in inner])
                height = 1 + max((height for _, height in inner), default=0)
                if height < DEEPEST:
                    return text, height
                function = eval(compile(f"lambda row: {text}", "<penstock expression>", "eval"), self.names)
                return f"{self.name(function)}(row)", 0

    def _call(self, call: Call, parts: list[str]) -> str:
        if call.name.startswith(USER):
            return self._user(call, parts)
        if call.name == "in" and _is_plain_list(call.args):
            return self._in(call, parts[0])
        return self._lazy(call.name, parts) if call.name in LAZY else self._strict(call, parts)

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

    def _in(self, call: Call, part: str) -> str:
        """A list of constants is looked up in a set."""
        values = {o.value for o in call.args[1:] if isinstance(o, Literal)}
        missing = "None" if None in values else "False"
        temporary = self._temporary()
        found = f"True if {temporary} in {self.name(frozenset(values - {None}))} else {missing}"
        return f"(None if ({temporary} := {part}) is None else {found})"

    def _lazy(self, name: str, parts: list[str]) -> str:
        if name == "is_null":
            return f"(({self._temporary()} := {parts[0]}) is None)"
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
        if name in _COMPARE and not any(k.is_fractional or k.is_nested for k in kinds):
            return f"{values[0]} {_COMPARE[name]} {values[1]}"
        if name in _ARITHMETIC and type_.is_integer:
            limit, result = 1 << (type_.bits - 1), self._temporary()
            fits = f"{-limit} <= ({result} := {values[0]} {_ARITHMETIC[name]} {values[1]}) < {limit}"
            return f"({result} if {fits} else fit({result}, {self.name(type_)}))"
        if name in _ARITHMETIC and all(k.name == "double" for k in (type_, *kinds)):
            return f"{values[0]} {_ARITHMETIC[name]} {values[1]}"
        if name in _SEARCHES and isinstance(pattern := call.args[1], Literal) and isinstance(pattern.value, str):
            return f"{self.name(_SEARCHES[name](pattern.value))}({values[0]})"
        if name == "field":
            return f"{values[0]}[{values[1]}]"
        function = STRICT[name]
        if name == "cast" and kinds[0].name == "timestamp" and type_.name == "string":
            function = _timestamp_to_string
        general = f"{self.name(function)}([{', '.join(values)}], {self.name(type_)})"
        if name == "modulo" and type_.is_integer:
            return f"({values[0]} % {values[1]} if {values[0]} >= 0 and {values[1]} > 0 else {general})"
        return general


def _is_plain_list(args: Sequence[Expression]) -> bool:
    """Whether the options of IN are constants that are equal when Python says so; NaN is not."""
    special = any(a.type.is_fractional or a.type.is_nested for a in args)
    return all(isinstance(o, Literal) for o in args[1:]) and not special


def _timestamp_to_string(args: list[Any], type_: DataType) -> str:
    """A tick looks like any other int: only the argument's type tells."""
    return write_timestamp(args[0])
