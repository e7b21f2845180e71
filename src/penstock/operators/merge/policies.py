"""When the output says what (sections III-B and V-A).

Any policy keeps the output compatible with the inputs: whatever has not been said is said when a bound would make it
impossible to say. What differs is how soon an event is seen, and how many adjusts it costs.

A policy is asked when an input reports an event, when it moves one, and when another input takes the lead. It may
`introduce` an event that is not out yet, or make the output `reflect` an input.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from math import ceil
from typing import TYPE_CHECKING, Any

from penstock.errors import MergeError

if TYPE_CHECKING:
    from penstock.operators.merge.base import Input
    from penstock.operators.merge.revisable import RevisableMerge


@dataclass(frozen=True)
class Policy:
    """First seen: an event comes out when the first input reports it, and changes only when it must."""

    @property
    def name(self) -> str:
        """As it is given by a user."""
        return NAMES[type(self)]

    final_only = False
    """Whether only fully frozen events come out, and the output's bound waits for them."""

    def reported(self, merge: RevisableMerge, node: Any, each: Input) -> None:
        """An input has reported an event."""
        merge.introduce(node, each)

    def moved(self, merge: RevisableMerge, node: Any, each: Input) -> None:
        """An input has moved the end of an event, or removed it."""

    def led(self, merge: RevisableMerge, leader: Input) -> None:
        """Another input is furthest ahead."""


class FirstSeen(Policy):
    """The paper's own: responsive, and no more adjusts than needed."""


class FirstClose(Policy):
    """An event that is out and open ends when the first input closes it; otherwise as the paper's own.

    Where an event is closed once (Example 5), that end is the one it will have.
    """

    def reported(self, merge: RevisableMerge, node: Any, each: Input) -> None:
        """At once, and with its end where another input has left it open."""
        merge.introduce(node, each)
        merge.close(node, each)

    def moved(self, merge: RevisableMerge, node: Any, each: Input) -> None:
        """At once, if it was open."""
        merge.close(node, each)


class ReflectAll(Policy):
    """Every change of every input comes out at once."""

    def reported(self, merge: RevisableMerge, node: Any, each: Input) -> None:
        """Also if it contradicts what is out."""
        merge.reflect(node, each)

    def moved(self, merge: RevisableMerge, node: Any, each: Input) -> None:
        """At once."""
        merge.reflect(node, each)


class FollowLeader(Policy):
    """The output says what the input that is furthest ahead says."""

    def reported(self, merge: RevisableMerge, node: Any, each: Input) -> None:
        """Only the leader counts."""
        if each is merge.leader:
            merge.reflect(node, each)

    def moved(self, merge: RevisableMerge, node: Any, each: Input) -> None:
        """Only the leader counts."""
        if each is merge.leader:
            merge.reflect(node, each)

    def led(self, merge: RevisableMerge, leader: Input) -> None:
        """All that differs is adjusted; this is what the policy costs when the lead changes often."""
        for node in list(merge.living()):
            if merge.has(node, leader):
                merge.reflect(node, leader)


class HighestInsert(Policy):
    """Events come from the input whose inserts have come furthest."""

    def reported(self, merge: RevisableMerge, node: Any, each: Input) -> None:
        """If no input has a later insert."""
        if all(each.greatest >= other.greatest for other in merge.inputs.values()):
            merge.introduce(node, each)


class MostUnfrozen(Policy):
    """Events come from the input that has the most of them that are not frozen."""

    def reported(self, merge: RevisableMerge, node: Any, each: Input) -> None:
        """If no input has more."""
        if all(each.unfrozen >= other.unfrozen for other in merge.inputs.values()):
            merge.introduce(node, each)


class HalfFrozen(Policy):
    """An event comes out when those who decide have passed its start, whatever the lag; so none is ever taken back."""

    def reported(self, merge: RevisableMerge, node: Any, each: Input) -> None:
        """Wait for the bound."""


@dataclass(frozen=True)
class Quorum(Policy):
    """An event comes out when a share of the inputs has reported it."""

    share: float = 0.5

    def __post_init__(self) -> None:
        """The share of inputs that are attached."""
        if not 0 < self.share <= 1:
            raise MergeError("A quorum is a share of the inputs.", got=str(self.share), hint="more than 0, at most 1")

    def reported(self, merge: RevisableMerge, node: Any, each: Input) -> None:
        """Count the inputs that have it."""
        if merge.holders(node) >= ceil(self.share * len(merge.inputs)):
            merge.introduce(node, each)


class Conservative(Policy):
    """An event comes out when it can no longer change; the output's bound waits for the oldest that can."""

    final_only = True

    def reported(self, merge: RevisableMerge, node: Any, each: Input) -> None:
        """Wait."""


NAMES: dict[type[Policy], str] = {
    FirstSeen: "first seen",
    FirstClose: "first close",
    ReflectAll: "reflect all",
    FollowLeader: "follow leader",
    HighestInsert: "highest insert",
    MostUnfrozen: "most unfrozen",
    HalfFrozen: "half frozen",
    Quorum: "quorum",
    Conservative: "conservative",
}


def policy_of(given: str | Policy) -> Policy:
    """By name, or as it is; `quorum` may carry its share: `quorum 0.7`."""
    if isinstance(given, Policy):
        return given
    words = given.split() if isinstance(given, str) else []
    if len(words) == 2 and words[0] == "quorum":
        try:
            return Quorum(float(words[1]))
        except ValueError:
            raise MergeError(
                "A quorum is a share of the inputs.", got=given, hint="a number, such as quorum 0.7"
            ) from None
    for kind, name in NAMES.items():
        if name == given:
            return kind()
    near = get_close_matches(str(given), NAMES.values(), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"one of {', '.join(NAMES.values())}"
    raise MergeError("There is no such policy.", got=repr(given), hint=hint)
