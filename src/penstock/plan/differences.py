"""How far apart the times of two rows may be, read out of the conditions of a join.

A comparison of `a.ts + c` with `b.ts + d`, or of `a.ts - b.ts` with `c`, both of attributes that progress, bounds the
difference of the two on one side, or by equality on both; `floor(ts / n)` and the like are left to whoever makes
windows of them. What bounds the difference on both sides is a band; what does so on one side alone, or not at all,
leaves rows that can never be given up, and is refused by whoever asks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from penstock.model.schema import BOOLEAN
from penstock.plan.expressions import Call, Column, Expression, Literal

_OPPOSITE = {"le": "gt", "gt": "le", "lt": "ge", "ge": "lt"}
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
class _Sum:
    """Attributes that are added or taken away, each so often, and ticks."""

    attributes: Mapping[str, int]
    ticks: int

    def plus(self, other: _Sum, sign: int) -> _Sum:
        """Both together, or the one without the other."""
        counts = dict(self.attributes)
        for name, count in other.attributes.items():
            counts[name] = counts.get(name, 0) + sign * count
        return _Sum({name: count for name, count in counts.items() if count}, self.ticks + sign * other.ticks)


def split(predicate: Expression) -> list[Expression]:
    """The conditions that a predicate joins by AND; that neither of two holds is that each of them does not."""
    match predicate:
        case Call(name="and", args=parts):
            return [each for part in parts for each in split(part)]
        case Call(name="not", args=(Call(name="or", args=parts),)):
            return [each for part in parts for each in split(Call("not", (part,), BOOLEAN))]
        case Call(name="not", args=(Call(name=name, args=parts),)) if name in _OPPOSITE:
            return [Call(_OPPOSITE[name], parts, BOOLEAN)]
        case Call(name="not", args=(Call(name="not", args=(part,)),)):
            return split(part)
    return [predicate]


def differences(
    conditions: Iterable[Expression],
    lefts: Collection[str],
    rights: Collection[str],
    known_as: Mapping[str, tuple[str, int]] | None = None,
) -> dict[tuple[str, str], tuple[Difference, list[Expression]]]:
    """By attributes of left and right, what conditions say of their difference, and which conditions say it.

    Other columns may be known as an attribute and the ticks that are added to it.
    """
    found: dict[tuple[str, str], tuple[Difference, list[Expression]]] = {}
    for condition, compared in [(c, each) for c in conditions for each in _comparisons(c)]:
        one, other = (_sum(arg, known_as or {}) for arg in compared.args)
        if one is None or other is None:
            continue
        apart, name = one.plus(other, -1), compared.name  # compared with nothing
        left = next((a for a in apart.attributes if a in lefts), None)
        right = next((a for a in apart.attributes if a in rights), None)
        if left is None or right is None or sorted(apart.attributes.values()) != [-1, 1]:
            continue
        by = apart.ticks
        if apart.attributes[left] < 0:
            by, name = -by, _TURNED[name]
        known, said = found.setdefault((left, right), (Difference(), []))
        known.narrow(*_bounds(name, by))
        if not any(condition is each for each in said):
            said.append(condition)
    return found


def _comparisons(condition: Expression) -> list[Call]:
    """The comparisons that a condition comes to: that of an absolute value is two."""
    match condition:
        case Call(name="le" | "lt", args=(Call(name="abs", args=(of,)), Literal(value=int() as most) as bound)):
            least = Literal(-most, bound.type)
            other = Call(_TURNED[condition.name], (of, least), BOOLEAN)
            return [Call(condition.name, (of, bound), BOOLEAN), other]
        case Call(name="ge" | "gt", args=(Literal() as bound, Call(name="abs") as of)):
            return _comparisons(Call(_TURNED[condition.name], (of, bound), BOOLEAN))
        case Call(name=name) if name in _TURNED:
            return [condition]
        case _:
            return []


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


def _sum(expression: Expression, known_as: Mapping[str, tuple[str, int]]) -> _Sum | None:
    """Attributes and constants that are added up; None if it is something else."""
    match expression:
        case Column(name=name):
            attribute, ticks = known_as.get(name, (name, 0))
            return _Sum({attribute: 1}, ticks)
        case Literal(value=int() as ticks) if not isinstance(ticks, bool):
            return _Sum({}, ticks)
        case Call(name="multiply", args=(first, second)):
            one, other = _sum(first, known_as), _sum(second, known_as)
            constant = one is not None and other is not None and not one.attributes and not other.attributes
            return _Sum({}, one.ticks * other.ticks) if one and other and constant else None
        case Call(name="add" | "time_add" | "subtract", args=(first, second)):
            one, other = _sum(first, known_as), _sum(second, known_as)
            sign = -1 if expression.name == "subtract" else 1
            return None if one is None or other is None else one.plus(other, sign)
        case _:
            return None
