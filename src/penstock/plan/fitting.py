"""Values in their types: integers that must not overflow, decimals of a scale, floats of single precision."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

from penstock.errors import EvaluationError
from penstock.model.convert import single
from penstock.model.schema import DataType

WIDE = Context(prec=80)
_BOUNDS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}


def overflow(type_: DataType, value: object) -> EvaluationError:
    """The error for a value that its type cannot hold."""
    return EvaluationError(
        "Arithmetic overflow.", got=f"{value} does not fit {type_}", hint="CAST an operand to a wider type"
    )


def fit(value: Any, type_: DataType) -> Any:
    """The value in its type: integers checked for overflow, decimals rounded half up to the scale."""
    if type_.name in _BOUNDS:
        limit = 1 << _BOUNDS[type_.name]
        if not -limit <= value < limit:
            raise overflow(type_, value)
        return value
    if type_.is_decimal:
        with localcontext(WIDE):
            scaled = Decimal(value).quantize(Decimal(1).scaleb(-type_.scale), rounding=ROUND_HALF_UP)
        if scaled and scaled.adjusted() + 1 > type_.precision - type_.scale:
            raise overflow(type_, value)
        return scaled or abs(scaled)  # there is no negative zero among decimals
    return single(value) if type_.name == "float" else value
