"""Scalar expressions: three frozen nodes, each with its SQL type.

`Call` covers operators, functions, casts and CASE alike: what it means is told by its name, which every evaluator knows
from `penstock.plan.functions`. An aggregate call is not a scalar expression: it names a function and the column it
reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from penstock.model.schema import BOOLEAN, DataType, Schema


@dataclass(frozen=True)
class Column:
    """A column of the input by name."""

    name: str
    type: DataType

    def __str__(self) -> str:
        """The name."""
        return self.name


@dataclass(frozen=True)
class Literal:
    """A constant; timestamps are ticks."""

    value: object
    type: DataType

    def __str__(self) -> str:
        """As in SQL."""
        if self.value is None:
            return "NULL"
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        return str(self.value)


@dataclass(frozen=True)
class Call:
    """A function applied to arguments."""

    name: str
    args: tuple[Expression, ...]
    type: DataType

    def __str__(self) -> str:
        """As in SQL, near enough to be read."""
        shown = [str(a) for a in self.args]
        if self.name in _INFIX and len(shown) == 2:
            return f"({shown[0]} {_INFIX[self.name]} {shown[1]})"
        if self.name in ("field", "fields") and isinstance(self.args[1], Literal):
            within = self.args[0].type.element if self.name == "fields" else self.args[0].type
            return f"{shown[0]}.{within.parts[int(str(self.args[1].value))][0]}"
        if self.name in ("item", "map_value"):
            return f"{shown[0]}[{shown[1]}]"
        if self.name == "cast":
            return f"CAST({shown[0]} AS {self.type})"
        if self.name == "is_null":
            return f"({shown[0]} IS NULL)"
        if self.name == "case":
            pairs = [f"WHEN {c} THEN {v}" for c, v in zip(shown[:-1:2], shown[1:-1:2], strict=True)]
            return f"CASE {' '.join(pairs)} ELSE {shown[-1]} END"
        return f"{self.name.removeprefix(USER)}({', '.join(shown)})"


Expression = Column | Literal | Call
USER = "user:"
"""Prefix of the names of user functions in `Call.name`."""

_INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulo": "%", "int_divide": "div",
    "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "AND", "or": "OR",
    "like": "LIKE", "null_safe_eq": "<=>",
}  # fmt: skip


_SAFE = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "null_safe_eq", "is_null", "in", "coalesce"})


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything in it."""
    yield expression
    if isinstance(expression, Call):
        for arg in expression.args:
            yield from walk(arg)


def columns_in(expression: Expression) -> set[str]:
    """The names of the columns that an expression reads."""
    return {e.name for e in walk(expression) if isinstance(e, Column)}


def substitute(expression: Expression, columns: Mapping[str, Expression]) -> Expression:
    """An expression with others in the place of columns."""
    match expression:
        case Column(name=name):
            return columns[name]
        case Call(name=name, args=args, type=type_):
            return Call(name, tuple(substitute(a, columns) for a in args), type_)
        case _:
            return expression


def calls_users_code(expression: Expression) -> bool:
    """Whether a function of a user's has a part in it."""
    return any(isinstance(part, Call) and part.name.startswith(USER) for part in walk(expression))


def always_has_value(expression: Expression) -> bool:
    """Whether evaluating it cannot fail, whatever is in the columns: comparisons and logic alone."""
    return all(not isinstance(part, Call) or part.name in _SAFE for part in walk(expression))


def worded(expression: Expression, schema: Schema) -> str:
    """An expression as text, in the query's words for columns that it does not name."""
    return str(renamed(expression, {f.name: f.words for f in schema.fields if f.words}))


def renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    """The expression over columns of other names; those that are not told stay as they are."""
    match expression:
        case Column() if expression.name in names:
            return Column(names[expression.name], expression.type)
        case Call() if names:
            return Call(expression.name, tuple(renamed(arg, names) for arg in expression.args), expression.type)
        case _:
            return expression


def conjunction(parts: list[Expression]) -> Expression:
    """All of the predicates."""
    return balanced("and", parts)


def balanced(name: str, parts: list[Expression]) -> Expression:
    """A chain of AND or OR; a long one as a tree as shallow as can be, which gives the same and evaluates in order."""
    if len(parts) <= 8:
        result = parts[0]
        for part in parts[1:]:
            result = Call(name, (result, part), BOOLEAN)
        return result
    middle = len(parts) // 2
    return Call(name, (balanced(name, parts[:middle]), balanced(name, parts[middle:])), BOOLEAN)


def is_deeper(expression: Expression, depth: int, size: int) -> bool:
    """Whether calls stand in one another more than `depth` times, or there are more than `size` parts."""
    pending, seen = [(expression, 0)], 0
    while pending:
        at, level = pending.pop()
        seen += 1
        if level > depth or seen > size:
            return True
        if isinstance(at, Call):
            pending += [(arg, level + 1) for arg in at.args]
    return False


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate of a column (`None` for `count(*)`) or of several, under the name that its result has."""

    function: str
    argument: str | None
    type: DataType
    name: str
    distinct: bool = False
    argument_type: DataType | None = None
    others: tuple[str, ...] = ()
    """The columns that it reads besides."""
    other_types: tuple[DataType, ...] = ()
    share: float | None = None
    """Between 0 and 1, where it is one of values in order."""

    def __str__(self) -> str:
        """As in SQL."""
        return f"{self._of(', '.join(self.columns) or '*')} AS {self.name}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return () if self.argument is None else (self.argument, *self.others)

    @property
    def column_types(self) -> tuple[DataType | None, ...]:
        """Their types, None where nothing is said of one."""
        return () if self.argument is None else (self.argument_type, *self.other_types)

    def reading(self, names: Mapping[str, str]) -> AggregateCall:
        """The same call over columns of other names."""
        argument = None if self.argument is None else names[self.argument]
        return replace(self, argument=argument, others=tuple(names[name] for name in self.others))

    def worded(self, schema: Schema) -> str:
        """The call without a name for its result, in the query's words for its arguments."""
        return self._of(", ".join(schema[name].words or name for name in self.columns) or "*")

    def _of(self, arguments: str) -> str:
        share = "" if self.share is None else f", {self.share:g}"
        return f"{self.function.removeprefix(USER)}({'DISTINCT ' if self.distinct else ''}{arguments}{share})"
