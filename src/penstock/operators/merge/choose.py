"""Which algorithm merges a stream, from what is known of it (section IV-D).

The weakest that is right: R0 where starts strictly increase, R1 where ties come in the same order everywhere, R2 where
payload and start are a key of an ordered stream, R3 where they are a key at all, R4 otherwise. R0 to R2 need a stream
without adjusts. A user may ask for a stronger one, which is also right; a weaker one than the properties prove is
refused, with the property that is missing. Policies, a lag and drivers need an index, so who asks for them gets R3, or
R4 where events may be there twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import MergeError
from penstock.model.properties import StreamProperties
from penstock.operators.merge.base import LogicalMerge
from penstock.operators.merge.baselines import CleanseThenR1, R3Minus
from penstock.operators.merge.ordered import R0, R1, R2
from penstock.operators.merge.r3 import R3
from penstock.operators.merge.r4 import R4

ALGORITHMS: dict[str, type[LogicalMerge]] = {
    "R0": R0,
    "R1": R1,
    "R2": R2,
    "R3": R3,
    "R4": R4,
    "R3-": R3Minus,
    "Cleanse + R1": CleanseThenR1,
}
_STRENGTH = {"R0": 0, "R1": 1, "R2": 2, "R3": 3, "R3-": 3, "Cleanse + R1": 3, "R4": 4}
_KEYED = ("R2", "R3", "R3-", "Cleanse + R1")
"""Those to which an event that is there twice is a mistake."""


@dataclass(frozen=True)
class MergeChoice:
    """An algorithm, why it is right, and why no weaker one is known to be."""

    name: str
    why: str
    weaker: str

    def __str__(self) -> str:
        """For `explain`."""
        return f"{self.name}: {self.why}" + (f"; not {self.weaker}" if self.weaker else "")

    @property
    def algorithm(self) -> type[LogicalMerge]:
        """The class."""
        return ALGORITHMS[self.name]


def choose(properties: StreamProperties, asked: str | None = None, needs_index: str | None = None) -> MergeChoice:
    """The algorithm for inputs that all have these properties, or the one that is asked for.

    `needs_index` says what was asked for that R0 to R2 do not have.
    """
    proven = _proven(properties)
    if needs_index is not None and _STRENGTH[proven.name] < _STRENGTH["R3"] and asked is None:
        keyed = properties.key is not None or properties.strictly_ordered
        why = "payload and start are a key" if keyed else "events may be there twice"
        proven = MergeChoice("R3" if keyed else "R4", why, f"{proven.name}, which has no place for {needs_index}")
    if asked is None or asked == proven.name:
        return proven
    if not isinstance(asked, str) or asked not in ALGORITHMS:
        raise MergeError("There is no such merge.", got=repr(asked), hint=f"one of {', '.join(ALGORITHMS)}")
    if needs_index is not None and asked not in ("R3", "R4"):
        raise MergeError(
            f"{asked} has no policies.", got=needs_index, hint="leave algorithm out, or ask for 'R3' or 'R4'"
        )
    if _STRENGTH[asked] < _STRENGTH[proven.name]:
        raise MergeError(
            f"{asked} would not be right for these streams.",
            got=f"{', '.join(properties.describe())}; {proven.weaker}",
            hint=f"use {proven.name}, or declare what you know of the streams with properties=…",
        )
    if asked in _KEYED and properties.key is None and not properties.strictly_ordered:
        raise MergeError(
            f"{asked} would not be right for these streams.",
            got=f"{', '.join(properties.describe())}; events may be there twice, since no key is known",
            hint=f"use {proven.name} or R4, or declare a key with properties=…",
        )
    return MergeChoice(asked, f"asked for; {proven.name} would do", "")


def _proven(known: StreamProperties) -> MergeChoice:
    if not known.insert_only:
        if known.key is not None:
            return MergeChoice("R3", "payload and start are a key", "R2, since there are adjusts")
        return MergeChoice("R4", "nothing restricts the streams", "R3, since no key is known")
    if known.strictly_ordered:
        return MergeChoice("R0", "insert-only and strictly ordered", "")
    if known.ordered and known.deterministic_ties:
        return MergeChoice("R1", "insert-only, ordered, ties in the same order", "R0, since starts may be equal")
    if known.ordered and known.key is not None:
        return MergeChoice("R2", "insert-only, ordered, with a key", "R1, since ties may come in any order")
    if known.key is not None:
        return MergeChoice("R3", "payload and start are a key", "R2, since the streams are not ordered")
    return MergeChoice("R4", "nothing restricts the streams", "R3, since no key is known")
