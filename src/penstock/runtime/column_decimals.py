"""Sums, differences, products and comparisons of decimals as Arrow computations.

Only where the result has room for every digit: then nothing is rounded, nothing overflows, and Arrow's answer is the
one by rows. Beyond 38 digits SQL gives up digits behind the point, and Arrow does not notice when it loses some.
"""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from penstock.model.schema import MAX_PRECISION, DataType
from penstock.plan.expressions import Call, Expression, Literal
from penstock.plan.typing import as_decimal, common_type, literal_decimal
from penstock.runtime.column_scalars import ColumnFunction

_ARITHMETIC = {"add": pc.add, "subtract": pc.subtract, "multiply": pc.multiply}
_COMPARISONS = {
    "eq": pc.equal, "ne": pc.not_equal, "lt": pc.less, "le": pc.less_equal, "gt": pc.greater, "ge": pc.greater_equal,
}  # fmt: skip


def keeps_digits(call: Expression) -> bool:
    """Whether it is of decimals, maybe beside whole numbers, and its result has room for all digits."""
    if not isinstance(call, Call) or call.name not in _ARITHMETIC | _COMPARISONS:
        return False
    types = [a.type for a in call.args]
    if not any(t.is_decimal for t in types) or not all(t.is_decimal or t.is_integer for t in types):
        return False
    a, b = _operands(call)
    if call.name == "multiply":
        return a.precision + b.precision + 1 <= MAX_PRECISION
    whole = max(a.precision - a.scale, b.precision - b.scale)
    return whole + max(a.scale, b.scale) + 1 <= MAX_PRECISION


def decimal_column(call: Call, parts: list[ColumnFunction]) -> ColumnFunction:
    """The column of a call that keeps its digits."""
    if call.name in _COMPARISONS:
        common = common_type(*(as_decimal(a.type) for a in call.args))
        assert common is not None
        left, right = (_as(common, a, part) for a, part in zip(call.args, parts, strict=True))
        return lambda table: _COMPARISONS[call.name](left(table), right(table))
    left, right = (_as(t, a, part) for t, a, part in zip(_operands(call), call.args, parts, strict=True))
    return lambda table: pc.cast(_ARITHMETIC[call.name](left(table), right(table)), call.type.arrow)


def _operands(call: Call) -> tuple[DataType, DataType]:
    """The operands as decimals; in arithmetic a whole number that is a constant is as narrow as its digits."""
    as_operand = literal_decimal if call.name in _ARITHMETIC else lambda a: as_decimal(a.type)
    return as_operand(call.args[0]), as_operand(call.args[1])


def _as(type_: DataType, operand: Expression, part: ColumnFunction) -> ColumnFunction:
    """An operand in a decimal type; Arrow has no cast of a whole number to so few digits that some do not fit."""
    if isinstance(operand, Literal):
        scalar = pa.scalar(None if operand.value is None else Decimal(str(operand.value)), type_.arrow)
        return lambda table: scalar
    return lambda table: pc.cast(part(table), type_.arrow)
