"""What R3 and R4 share: bounds that freeze events, who decides what is true, and the output's own bound.

When a bound would freeze an event in the output, the output is first made to agree with the *verdict*: what the input
that drives the bound says. By default the input that is furthest ahead drives. A user may name one that does, or let
the majority decide: then the output goes as far as more than half of the joined inputs have come, and says what more
than half say; where those that have come so far are at odds, it waits for the others.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from penstock.algorithms.merge.base import Input, LogicalMerge
from penstock.algorithms.merge.index import Calendar, Index
from penstock.algorithms.merge.policies import Policy, policy_of
from penstock.model.time import END_OF_TIME, MIN_TICK

LEADING = "leading"
MAJORITY = "majority"
UNDECIDED = object()


class RevisableMerge(LogicalMerge):
    """A merge of streams with adjusts."""

    index: Index[Any]
    """The living events; what a node is, is the algorithm's matter."""

    def __init__(
        self,
        inputs: Iterable[str] = (),
        *,
        policy: str | Policy = "first seen",
        lag: int = 0,
        driver: str = LEADING,
        attribute: str = "vs",
        width: int | None = None,
    ) -> None:
        """`lag`: so many ticks the output's bound stays behind; `driver`: `leading`, `majority` or an input's name."""
        self.policy = policy_of(policy)
        self.lag, self.driver = lag, driver
        self.waiting: Calendar[Any] = Calendar()
        """By start: events that are half frozen and not yet out (conservative policy)."""
        self.leader: Input | None = None
        self.voters: list[Input] = []
        """Who decided up to the last bound."""
        self.undecided: list[int] = []
        """The starts of events on which those who decide are at odds."""
        self.frozen = MIN_TICK
        """Everything before this agrees with the verdict; an event that starts before it and is not known has none."""
        super().__init__(inputs, attribute=attribute, width=width)

    # Bounds

    def bound(self, each: Input, bound: int) -> None:
        """An input has come further; the output follows if that input, or enough of them, may drive it."""
        if not each.joined:
            return
        if self.leader is None or (each is not self.leader and bound > self.leader.stable):
            self.leader = each
            self.policy.led(self, each)
        reached, voters = self._reached(each)
        if reached < self.max_stable or (reached == self.max_stable and self.driver != MAJORITY):
            return
        self.max_stable, self.voters = reached, voters
        frozen = reached if reached == END_OF_TIME else max(reached - self.lag, self.frozen)
        self.freeze(frozen, voters)
        self.frozen = frozen
        self.emit_bound(self.output_bound(frozen))
        for joining in self._join():
            self.bound(joining, joining.stable)

    def _reached(self, each: Input) -> tuple[int, list[Input]]:
        """How far the output may go, and who decides what is true up to there."""
        joined = [i for i in self.inputs.values() if i.joined]
        if self.driver == MAJORITY:
            needed = len(joined) // 2 + 1
            reached = sorted((i.stable for i in joined), reverse=True)[needed - 1]
            return reached, [i for i in joined if i.stable >= reached]
        if self.driver != LEADING and self.driver in self.inputs:
            named = self.inputs[self.driver]
            return (named.stable, [named]) if named.joined else (MIN_TICK, [])
        return each.stable, [each]

    def output_bound(self, frozen: int) -> int:
        """How far the output has come when everything before `frozen` agrees with the verdict, where there is one."""
        oldest = self.oldest_waiting()
        return frozen if oldest is None else min(frozen, oldest)

    def oldest_waiting(self) -> int | None:
        """The least start among events that wait for their end, or for a verdict."""
        waiting = self.waiting.first_living(self.index)
        return min([*self.undecided, *([] if waiting is None else [waiting])], default=None)

    def next_time(self) -> int | None:
        """The least time such that a bound beyond it may freeze something."""
        return self.index.due.first()

    def living(self) -> Iterator[Any]:
        """Every event in the index."""
        return iter(self.index.nodes.values())

    def verdict(self, said: list[Hashable]) -> Hashable:
        """What voters say of an event, or `UNDECIDED`: it takes more than half of the joined inputs, or all of them.

        Among equals, the first is believed.
        """
        if len(said) == 1:
            return said[0]
        joined = sum(i.joined for i in self.inputs.values())
        answer, votes = Counter(said).most_common(1)[0]
        return answer if votes > joined // 2 or len(said) == joined else UNDECIDED

    def forget(self, each: Input) -> None:
        """An input left or begins again; another one may lead."""
        for node in list(self.living()):
            self.drop(node, each)
        if self.leader is each:
            rest = [i for i in self.inputs.values() if i.joined and i is not each]
            self.leader = max(rest, key=lambda i: i.stable, default=None)
            if self.leader is not None:
                self.policy.led(self, self.leader)

    @staticmethod
    def is_final(end: int, bound: int) -> bool:
        """Whether an event with this end is fully frozen by a bound; the end of time freezes all."""
        return end < bound or bound == END_OF_TIME

    # What an index does

    @abstractmethod
    def freeze(self, bound: int, voters: list[Input]) -> None:
        """Make the output agree with the verdict of the voters on everything that a bound freezes."""

    @abstractmethod
    def drop(self, node: Any, each: Input) -> None:
        """An input no longer says anything of a node."""

    @abstractmethod
    def has(self, node: Any, each: Input) -> bool:
        """Whether an input has reported the event of a node."""

    @abstractmethod
    def holders(self, node: Any) -> int:
        """How many inputs have reported the event of a node."""

    @abstractmethod
    def introduce(self, node: Any, each: Input) -> None:
        """Put out what an input reports, if the output has less."""

    @abstractmethod
    def reflect(self, node: Any, each: Input) -> None:
        """Make the output say what an input says of a node, as far as the output's bound still allows."""
