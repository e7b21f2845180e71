"""How far apart the times of two rows may be, read out of the conditions of a join.

A comparison of `a.ts + c` with `b.ts + d`, both of attributes that progress, bounds the difference of the two on one
side, or by equality on both; `floor(ts / n)` and the like are left to whoever makes windows of them. What bounds the
difference on both sides is a band; what does so on one side alone, or not at all, leaves rows that can never be given
up, and is refused by whoever asks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from penstock.plan.expressions import Call, Column, Expression, Literal

_TURNED = {"le": "ge", "ge": "le", "lt": "gt", "gt": "lt", "eq": "eq"}


@dataclass
class Difference:
    """What is known of `right - left` for two attributes: no less than `low`, no more than `high`."""

    low: int | None = None
    high: int | None = None

    def narrow(self, low: int | None, high: int | None) -> None:
        """It is also within these."""
        if low is not None:
            self.low = low if self.low is None else max(self.low, low)
        if high is not None:
            self.high = high if self.high is None else min(self.high, high)


@dataclass(frozen=True)
class _Moved:
    """An attribute and how many ticks are added to it."""

    attribute: str
    by: int


def split(predicate: Expression) -> list[Expression]:
    """The conditions that a predicate joins by AND."""
    if isinstance(predicate, Call) and predicate.name == "and":
        return [each for arg in predicate.args for each in split(arg)]
    return [predicate]


def differences(
    conditions: Iterable[Expression], lefts: Collection[str], rights: Collection[str]
) -> dict[tuple[str, str], tuple[Difference, list[Expression]]]:
    """By attributes of left and right, what conditions say of their difference, and which conditions say it."""
    found: dict[tuple[str, str], tuple[Difference, list[Expression]]] = {}
    for condition in conditions:
        if not isinstance(condition, Call) or condition.name not in _TURNED:
            continue
        one, other = (_moved(arg) for arg in condition.args)
        if one is None or other is None:
            continue
        name = condition.name
        if one.attribute in rights and other.attribute in lefts:
            one, other, name = other, one, _TURNED[name]
        if one.attribute not in lefts or other.attribute not in rights:
            continue
        known, said = found.setdefault((one.attribute, other.attribute), (Difference(), []))
        known.narrow(*_bounds(name, one.by - other.by))
        said.append(condition)
    return found


def _bounds(name: str, by: int) -> tuple[int | None, int | None]:
    """What `left + by <name> right` says of `right - left`."""
    match name:
        case "le":
            return by, None
        case "lt":
            return by + 1, None
        case "ge":
            return None, by
        case "gt":
            return None, by - 1
        case _:
            return by, by


def _moved(expression: Expression) -> _Moved | None:
    """An attribute with a constant added or taken away; None if it is something else."""
    match expression:
        case Column(name=name):
            return _Moved(name, 0)
        case Call(name="time_add", args=(below, Literal(value=int() as by))):
            return _further(below, by)
        case Call(name="add", args=(below, Literal(value=int() as by))):
            return _further(below, by)
        case Call(name="add", args=(Literal(value=int() as by), below)):
            return _further(below, by)
        case Call(name="subtract", args=(below, Literal(value=int() as by))):
            return _further(below, -by)
        case _:
            return None


def _further(below: Expression, by: int) -> _Moved | None:
    inner = _moved(below)
    return None if inner is None else _Moved(inner.attribute, inner.by + by)
