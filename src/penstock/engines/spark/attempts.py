"""Expressions as Spark columns that do not stop a job: a value, and whether there is none because evaluation failed.

Spark's `try_` functions give null where the plain ones raise, so an expression becomes a pair of columns: its value,
and a flag that is true where an operand that SQL evaluates has no value. Operands are evaluated from the left and not
after a null; AND, OR, CASE and COALESCE evaluate what they need. The flag follows the same rules, so a branch that is
not taken cannot fail. Both stay native.

What only Python can compute (users' functions, patterns of LIKE that are not constant, and functions of which it is not
known that they never fail) is computed first, as a column of value and failure, by the same code as in-process; Spark
may compute it for rows that do not need it, and then its failure does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.engines.spark import utc
from penstock.engines.spark.columns import any_of, apply, leaf
from penstock.engines.spark.scalar_columns import FORMS
from penstock.engines.spark.types import spark_type
from penstock.errors import reason_of
from penstock.model.convert import convert
from penstock.model.nested import shown_as
from penstock.model.schema import DataType, Field, Schema
from penstock.plan import expressions as e
from penstock.plan.catalog import UserFunction
from penstock.runtime.row_functions import RowFunction, row_function

_TOTAL = frozenset(
    [
        *("eq", "ne", "lt", "le", "gt", "ge", "null_safe_eq", "not", "length", "lower", "upper"),
        *("concat", "sqrt", *utc.PARTS),
        *("greatest", "least", "is_null", "in", "and", "or", "case", "coalesce"),
    ]
)
"""Functions that have a value for all values of their arguments."""


@dataclass(frozen=True)
class Attempt:
    """A value, and whether there is none because evaluation failed: never null, and None if that cannot be."""

    value: Column
    failed: Column | None = None


class Attempts:
    """The expressions of one operator."""

    def __init__(self, functions: Mapping[str, UserFunction]) -> None:
        """User functions by name."""
        self.functions = functions
        self.prepared: list[tuple[str, Column]] = []
        """Columns to be added to the input, in this order, before the expressions are used."""

    def of(self, expression: e.Expression) -> Attempt:
        """An expression over columns of the same names."""
        if not isinstance(expression, e.Call):
            return Attempt(leaf(expression))
        args = [self.of(a) for a in expression.args]
        if expression.name in _RULES:
            return Attempt(apply(expression, [a.value for a in args]), _RULES[expression.name](args))
        if expression.name.startswith(e.USER):
            return self._python(expression, args)
        own = _own(expression, [a.value for a in args])
        if own is None:
            return self._python(expression, args)
        return Attempt(own.value, _from_the_left(args, own.failed))

    def _python(self, call: e.Call, args: list[Attempt]) -> Attempt:
        name = f"__made{len(self.prepared)}"
        is_time = call.type.name == "timestamp"
        type_ = "bigint" if is_time else spark_type(call.type)
        called = _Called(call, {n: f.function for n, f in self.functions.items()})

        def made(*values: Any) -> tuple[Any, str | None]:
            return called(values)

        parts = [
            F.unix_micros(a.value) if given.type.name == "timestamp" else a.value
            for a, given in zip(args, call.args, strict=True)
        ]
        # Not deterministic, so that Spark computes it once, here, and not wherever value or failure is asked for.
        udf = F.udf(made, f"struct<value: {type_}, failure: string>").asNondeterministic()
        self.prepared.append((name, udf(*parts)))
        value = F.col(f"{name}.value")
        failed = _any([a.failed for a in args], F.col(f"{name}.failure").isNotNull())
        return Attempt(F.timestamp_micros(value) if is_time else value, failed)


@dataclass
class _Called:
    """A call as a function of its arguments, compiled where it runs."""

    call: e.Call
    functions: Mapping[str, Callable[..., object]]
    compiled: RowFunction | None = None
    types: Sequence[DataType] = ()

    def __call__(self, values: tuple[Any, ...]) -> tuple[Any, str | None]:
        if self.compiled is None:
            fields = tuple(Field(f"a{i}", a.type) for i, a in enumerate(self.call.args))
            args = tuple(e.Column(f.name, f.type) for f in fields)
            self.types = [a.type for a in self.call.args]
            self.compiled = row_function(e.Call(self.call.name, args, self.call.type), Schema(fields), self.functions)
        try:
            given = tuple([_taken(v, t) if t.is_nested else v for v, t in zip(values, self.types, strict=True)])
            made = self.compiled(given)
            return shown_as(made, self.call.type) if self.call.type.is_nested else made, None
        except Exception as error:  # whatever the values or a user's code did
            return None, reason_of(error)


def _taken(value: Any, type_: DataType) -> Any:
    """A nested value of Spark's as rows have it."""
    return None if value is None else convert(value, type_)


# When arguments that fail make a call fail


def _any(flags: Sequence[Column | None], *more: Column) -> Column | None:
    known = [f for f in (*flags, *more) if f is not None]
    return any_of(known) if known else None


def _then(condition: Column, failed: Column | None) -> Column | None:
    return None if failed is None else F.coalesce(condition & failed, F.lit(False))


def _from_the_left(args: Sequence[Attempt], own: Column | None) -> Column | None:
    """An argument is evaluated if none before it is null, the function itself if none is."""
    failed = own
    for arg in reversed(args):
        failed = _any([arg.failed, _then(arg.value.isNotNull(), failed)])
    return failed


def _logical(decisive: bool) -> Callable[[Sequence[Attempt]], Column | None]:
    def failed(args: Sequence[Attempt]) -> Column | None:
        left, right = args
        undecided = ~left.value.eqNullSafe(F.lit(decisive))
        return _any([left.failed, _then(undecided, right.failed)])

    return failed


def _coalesce(args: Sequence[Attempt]) -> Column | None:
    failed: Column | None = None
    for arg in reversed(args):
        failed = _any([arg.failed, _then(arg.value.isNull(), failed)])
    return failed


def _case(args: Sequence[Attempt]) -> Column | None:
    failed = args[-1].failed
    for condition, value in reversed(list(zip(args[:-1:2], args[1:-1:2], strict=True))):
        holds = F.coalesce(condition.value, F.lit(False))
        failed = _any([condition.failed, _then(holds, value.failed), _then(~holds, failed)])
    return failed


def _in(args: Sequence[Attempt]) -> Column | None:
    return _any([args[0].failed, _then(args[0].value.isNotNull(), _any([a.failed for a in args[1:]]))])


def _every(args: Sequence[Attempt]) -> Column | None:
    return _any([a.failed for a in args])


_RULES: dict[str, Callable[[Sequence[Attempt]], Column | None]] = {
    "and": _logical(False),
    "or": _logical(True),
    "coalesce": _coalesce,
    "case": _case,
    "in": _in,
    "is_null": _every,
    "null_safe_eq": _every,
    "greatest": _every,
    "least": _every,
    "concat_ws": _every,
    "array": _every,
    "struct": _every,
}


# When a call fails by itself, its arguments not being null


def _own(call: e.Call, parts: list[Column]) -> Attempt | None:
    """The call over values; None where it is not known natively when it fails."""
    kinds = [a.type for a in call.args]
    if call.name in _TOTAL or (call.name in _ENDLESS and call.type.is_fractional):
        return Attempt(apply(call, parts))
    if call.name in _TRIED:
        value = _TRIED[call.name](parts[0], parts[1])
        return Attempt(value, value.isNull())
    match call.name:
        case "like":
            is_checked = isinstance(call.args[1], e.Literal)  # where the query was bound
            return Attempt(apply(call, parts)) if is_checked else None
        case "substring":
            fits = all(isinstance(a, e.Literal) or a.type.bits <= 32 for a in call.args[1:])
            return Attempt(apply(call, parts)) if fits else None  # Spark counts characters by 32 bits
        case "date_trunc":
            value = apply(call, parts)
            return Attempt(value, value.isNull())
        case "int_divide":
            least = F.lit(-(2**63)).cast("bigint")
            wrong = (parts[1] == 0) | ((parts[0] == least) & (parts[1] == -1))
            return Attempt(F.when(~wrong, apply(call, parts)), F.coalesce(wrong, F.lit(False)))
        case "negate" | "abs":
            if not kinds[0].is_integer:
                return Attempt(apply(call, parts))
            wrong = parts[0] == F.lit(-(1 << (kinds[0].bits - 1))).cast(str(kinds[0]))
            return Attempt(F.when(~wrong, apply(call, parts)), F.coalesce(wrong, F.lit(False)))
        case "floor" | "ceil" if len(parts) == 1:
            return _rounded(call, parts, kinds[0])
        case "time_add":
            ticks = F.try_add(F.unix_micros(parts[0]), parts[1])
            return Attempt(F.timestamp_micros(ticks), ticks.isNull())
        case "cast":
            return _cast(call, parts[0], kinds[0])
        case _:
            return _named(call, parts)


def _named(call: e.Call, parts: list[Column]) -> Attempt | None:
    """A function that has its Spark form in a module of its own."""
    if call.name not in FORMS:
        return None
    made = FORMS[call.name](call, parts)
    if made is None or isinstance(made, Column):
        return None if made is None else Attempt(made)
    value, wrong = made
    return Attempt(value, value.isNull() if wrong is None else F.coalesce(wrong, F.lit(False)))


_ENDLESS = frozenset({"add", "subtract", "multiply"})
"""Arithmetic that floating point always has an answer to."""
_TRIED: dict[str, Callable[[Column, Column], Column]] = {
    "add": F.try_add,
    "subtract": F.try_subtract,
    "multiply": F.try_multiply,
    "divide": F.try_divide,
    "modulo": F.try_mod,
}


def _rounded(call: e.Call, parts: list[Column], kind: DataType) -> Attempt:
    if kind.is_integer:
        return Attempt(apply(call, parts))
    if kind.is_fractional:
        beyond = (parts[0] >= F.lit(2.0**63)) | (parts[0] < F.lit(-(2.0**63)))
        wrong = F.coalesce(beyond & ~F.isnan(parts[0]), F.lit(False))
        return Attempt(F.when(~wrong, apply(call, parts)), wrong)
    value = F.call_function(call.name, *parts).try_cast(str(call.type))
    return Attempt(value, value.isNull())


def _cast(call: e.Call, part: Column, source: DataType) -> Attempt:
    target = call.type
    widens = source.is_integer and (target.is_fractional or (target.is_integer and target.bits >= source.bits))
    of_time = (source.name, target.name) in (("timestamp", "bigint"), ("date", "timestamp"))
    if widens or target.name == "string" or source == target or of_time:
        return Attempt(apply(call, [part]))
    if target.name == "date":
        value = F.unix_date(part.try_cast("date") if source.name == "string" else utc.date_of(part))
        fits = F.coalesce(value.between(*utc.CALENDAR_DAYS), F.lit(False))
        return Attempt(F.when(fits, F.date_from_unix_date(value)), ~fits)
    reads_time = (source.name, target.name) == ("string", "timestamp")
    value = utc.try_time_of_text(part) if reads_time else part.try_cast(spark_type(target))
    failed = value.isNull()
    if source.is_fractional and target.is_decimal:  # NaN and the infinities are null there, and that is no failure
        failed = failed & ~F.isnan(part) & (F.abs(part) != F.lit(float("inf")))
    return Attempt(value, F.coalesce(failed, F.lit(False)))
