"""Expressions that never fall while an attribute rises: sums with constants, quotients by them, truncations.

Of such an expression bounds are known: no later row is below `f(b)` if none is below `b` (Gigascope's ordered
attributes, which `time/60` is one of). So rows may be windowed and grouped by it like by the attribute. The least of
several attributes rises with all of them together: of it a bound is known once there is one on each (thesis 7.1).

Of sums with constants and truncations of timestamps more is known: they are constant on stretches of one length, and
rise from each to the next. To group by one is then the same as windows of that length over the attribute itself. This
is not so of quotients: `div` cuts towards zero, and `/` rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.model.schema import BIGINT
from penstock.model.time import DAY, HOUR, MINUTE, SECOND
from penstock.plan.expressions import Call, Column, Expression, Literal

_UNITS = {"second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}
"""Units of `date_trunc` that have one length, counted from the epoch."""


@dataclass(frozen=True)
class Stretches:
    """Where an expression of an attribute is constant: from `origin + n * length` on for `length` ticks."""

    attribute: str
    length: int
    origin: int
    shift: int
    """Its value on a stretch, counted from where the stretch begins."""


def rises_with(expression: Expression) -> str | None:
    """The one column with which an expression rises or stays as it is; None if that is not known of it."""
    found = rises_with_all(expression)
    return found[0] if len(found) == 1 else None


def rises_with_all(expression: Expression) -> tuple[str, ...]:
    """The columns with which an expression rises or stays as it is; none if that is not known of it."""
    match expression:
        case Column(name=name, type=type_):
            return (name,) if type_.domain is not None else ()
        case Call(name="least", args=args) if all(isinstance(arg, Column) for arg in args):
            each = [rises_with_all(arg) for arg in args]
            return tuple(sorted({name for own in each for name in own})) if all(each) else ()
        case Call(name="add", args=(Literal(value=int()), inner)):
            return rises_with_all(inner)
        case Call(name="add" | "subtract" | "time_add", args=(inner, Literal(value=int()))):
            return rises_with_all(inner)
        case Call(name="subtract", args=(inner, Call(name="modulo", args=(same, Literal(value=int() as by))))):
            return rises_with_all(inner) if inner == same and by > 0 else ()
        case Call(name="multiply", args=(Literal(value=int() as by), inner)) if by > 0:
            return rises_with_all(inner)
        case Call(name="multiply" | "divide" | "int_divide", args=(inner, Literal(value=int() as by))) if by > 0:
            return rises_with_all(inner)
        case Call(name="floor" | "ceil", args=(inner,)):
            return rises_with_all(inner)
        case Call(name="date_trunc", args=(Literal(), inner)):
            return rises_with_all(inner)
        case Call(name="cast", args=(inner,)) if inner.type.is_numeric and expression.type.is_numeric:
            return rises_with_all(inner)
        case _:
            return ()


def stretches(expression: Expression) -> Stretches | None:
    """The stretches on each of which an expression has a value of its own; None if that is not known of it."""
    match expression:
        case Column(name=name, type=type_):
            return None if type_.domain is None else Stretches(name, 1, 0, 0)
        case Call(name="add", args=(inner, Literal(value=int() as by))):
            return _moved(inner, by)
        case Call(name="add", args=(Literal(value=int() as by), inner)):
            return _moved(inner, by)
        case Call(name="subtract", args=(inner, Literal(value=int() as by))):
            return _moved(inner, -by)
        case Call(name="time_add", args=(inner, Literal(value=int() as by))):
            return _moved(inner, by)
        case Call(name="date_trunc", args=(Literal(value=str() as unit), inner)) if unit in _UNITS:
            length, found = _UNITS[unit], stretches(inner)
            if found is None or length % found.length or (found.origin + found.shift) % found.length:
                return None
            return Stretches(found.attribute, length, -found.shift % length, found.shift)
        case _:
            return None


def _moved(inner: Expression, by: int) -> Stretches | None:
    found = stretches(inner)
    return None if found is None else replace(found, shift=found.shift + by)


def moved(expression: Expression, by: int) -> Expression:
    """A timestamp or a bigint so many ticks later."""
    name = "time_add" if expression.type.name == "timestamp" else "add"
    return Call(name, (expression, Literal(by, BIGINT)), expression.type) if by else expression


def turns(expression: Expression) -> tuple[int, int]:
    """Step and origin of the values of the attribute at which an expression rises, and perhaps of some more.

    Below zero what cuts towards zero rises a tick after these.
    """
    known = stretches(expression)
    if known is not None:
        return known.length, known.origin
    match expression:
        case Call(name="int_divide", args=(inner, Literal(value=int() as by))):
            return _quotients(inner, by)
        case Call(name="floor", args=(Call(name="divide", args=(inner, Literal(value=int() as by))),)):
            return _quotients(inner, by)
        case Call(name="subtract", args=(inner, Call(name="modulo", args=(_, Literal(value=int() as by))))):
            return _quotients(inner, by)
        case Call(name="least"):
            return 1, 0
        case Call(args=args):
            (inner,) = [a for a in args if not isinstance(a, Literal)]
            return turns(inner)
        case _:
            return 1, 0


def _quotients(inner: Expression, by: int) -> tuple[int, int]:
    found = stretches(inner)
    return (by, -found.shift % by) if found is not None and found.length == 1 else turns(inner)
