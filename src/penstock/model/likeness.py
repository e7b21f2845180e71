"""When two payloads are one: exact in integers, text and times, and in floats to nine significant digits.

The order in which floats were added is not part of the meaning of a sum, so replicas of one query may differ in its
last bits. Everything that compares events (`pk.equivalent`, the merges, the divergence alarm) takes floats as equal
that agree to nine significant digits, or lie within 1e-9 of each other, where both are near zero. NaN equals NaN.

`Likeness` remembers payloads by start, and knows again one that is like another: the first that came speaks for all.
Closeness is no equivalence (a may be close to b and b to c, a not to c): the nearest is taken. It costs a lookup by the
exact part, and only for payloads that have floats and are not known to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal

from penstock.model.elements import Payload

RELATIVE_TOLERANCE = 1e-9
ABSOLUTE_TOLERANCE = 1e-9
EXACT_TYPES = frozenset({str, int, bool, type(None), bytes, Decimal})
"""A payload of these alone is quickly known to have no float."""
_ANY_FLOAT = "\0float"


def has_float(payload: Payload) -> bool:
    """Whether there is a value that is compared within the tolerance."""
    return not EXACT_TYPES.issuperset(map(type, payload)) and any(isinstance(v, float) for v in payload)


def exact_part(payload: Payload) -> Payload:
    """The payload without the values of its floats; plain data, for use as a key."""
    return tuple([_ANY_FLOAT if isinstance(v, float) else v for v in payload])


def alike(left: Payload, right: Payload) -> bool:
    """Whether two payloads are one."""
    if left == right:
        return True
    return len(left) == len(right) and all(
        _close(a, b) if isinstance(a, float) and isinstance(b, float) else a == b
        for a, b in zip(left, right, strict=True)
    )


def tie(payload: Payload) -> tuple[str, str]:
    """By what events of one start are put in order: the exact part, then floats, fewer digits of them first.

    Replicas give the exact ones alike; floats may differ in their last bits, and with these the order.
    """
    floats = [f"{v:.8e}" for v in payload if isinstance(v, float)]
    return repr(exact_part(payload)) if floats else repr(payload), repr(floats)


def _close(a: float, b: float) -> bool:
    return (
        a == b
        or (math.isnan(a) and math.isnan(b))
        or math.isclose(a, b, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE)
    )


class Likeness:
    """Payloads that have come, by start; only those with floats are kept."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        """Start empty."""
        self.known: dict[tuple[int, Payload], list[Payload]] = {}

    def add(self, vs: int, payload: Payload) -> None:
        """Remember a payload, if it has floats."""
        if has_float(payload):
            self.known.setdefault((vs, exact_part(payload)), []).append(payload)

    def discard(self, vs: int, payload: Payload) -> None:
        """Forget a payload."""
        if not self.known or not has_float(payload):
            return
        key = (vs, exact_part(payload))
        among = self.known.get(key)
        if among is not None:
            if payload in among:
                among.remove(payload)
            if not among:
                del self.known[key]

    def find(self, vs: int, payload: Payload) -> Payload:
        """The payload that came first of those like this one; itself, if there is none."""
        if not self.known or not has_float(payload):
            return payload
        found = nearest(payload, self.known.get((vs, exact_part(payload)), ()))
        return payload if found is None else found


def nearest(payload: Payload, among: Iterable[Payload]) -> Payload | None:
    """Of some payloads the one that is like this one and nearest to it, the first of equals; None if none is."""
    like = [p for p in among if alike(p, payload)]
    return min(like, key=lambda p: _distance(p, payload)) if len(like) > 1 else like[0] if like else None


def _distance(left: Payload, right: Payload) -> float:
    floats = [(a, b) for a, b in zip(left, right, strict=True) if isinstance(a, float) and isinstance(b, float)]
    return sum(abs(a - b) for a, b in floats if a != b and math.isfinite(a) and math.isfinite(b))
