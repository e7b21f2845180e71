"""What R3 and R4 share: bounds that freeze events, who decides what is true, and the output's own bound.

When a bound would freeze an event in the output, the output is first made to agree with the *verdict*: what the input
that drives the bound says. By default the joined input that is furthest ahead drives. A user may name one that does;
while that one is away or has not joined, the one furthest ahead stands in. Or the majority decides: then the output
goes as far as more than half of the joined inputs have come, and says what more than half say of what is frozen: which
events there are, and which ends are final. Ends that can still move are nobody's to vote on. Where those that have come
so far are at odds, the output waits for the others; when all have spoken, the greatest number is believed, and the
first among equals.

With a lag the output is decided so many ticks later than its driver has come; an input joins by what is decided.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from penstock.model.elements import Element
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.merge.base import Input, LogicalMerge
from penstock.operators.merge.divergence import Divergence, Watch
from penstock.operators.merge.index import Days, Holds, Index
from penstock.operators.merge.policies import HalfFrozen, MostUnfrozen, Policy, policy_of
from penstock.operators.merge.tally import Tally

LEADING = "leading"
MAJORITY = "majority"


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
        watch: Watch | None = None,
        attribute: str = "vs",
        width: int | None = None,
    ) -> None:
        """`lag`: so many ticks the output's bound stays behind; `driver`: `leading`, `majority` or an input's name.

        A `watch` compares what every input says with what was put out.
        """
        self.policy = policy_of(policy)
        self.lag, self.driver, self.watch = lag, driver, watch
        self.counts_unfrozen = isinstance(self.policy, MostUnfrozen)
        self.waiting: Holds[Any] = Holds()
        """Events that are half frozen and not yet out (conservative policy)."""
        self.early: Days[Any] | None = Days() if lag and isinstance(self.policy, HalfFrozen) else None
        """By start: events that come out when the driver has passed them, before the output's lagging bound has."""
        self.leader: Input | None = None
        self.voters: list[Input] = []
        """Who decides up to the last bound."""
        self.undecided: list[int] = []
        """The starts of events on which those who decide are at odds."""
        self.tally = Tally()
        """What its bounds have frozen, for statistics."""
        self.frozen = MIN_TICK
        """Everything before this agrees with the verdict; an event that starts before it and is not known has none."""
        super().__init__(inputs, attribute=attribute, width=width)

    # Bounds

    def bound(self, each: Input, bound: int) -> None:
        """An input has come further; the output follows if that input, or enough of them, may drive it."""
        leader = self.leader
        if each.joined and (
            bound > self.max_stable or self.driver != LEADING or leader is None or bound > leader.stable
        ):
            self.evaluate()
        if self.watch is not None:
            self.watch.passed(self.inputs.values())

    def membership_changed(self) -> None:
        """Somebody else may drive now, and further; and those who are left may all have passed what was kept."""
        self.evaluate()
        if self.watch is not None:
            self.watch.passed(self.inputs.values())

    def follow(self, driver: str) -> list[Element]:
        """Another driver from now on; what the output says thereupon."""
        self.driver = driver
        return self._changed()

    def evaluate(self) -> None:
        """Go as far as those who drive have come, and let inputs join that the output has reached."""
        while True:
            self._lead()
            reached = self._reached()
            further = reached > self.max_stable
            self.max_stable = max(self.max_stable, reached)
            if further or self.undecided:
                self._advance()
            if not self._join():
                return

    def _lead(self) -> None:
        """Whoever is furthest ahead leads; among equals, whoever did."""
        heard = self.heard()
        joined = [i for i in heard if i.stable > MIN_TICK]
        ahead = max(joined, key=lambda i: i.stable, default=None)
        if self.leader is not None and self.leader not in heard:
            self.leader = None  # it has ended, and brought nothing
        if ahead is None or (self.leader is not None and self.leader in joined and ahead.stable <= self.leader.stable):
            return
        self.leader = ahead
        self.policy.led(self, ahead)

    def _driver(self) -> Input | None:
        """The input that decides alone: the named one if it has joined, otherwise the one that is furthest ahead."""
        named = self.inputs.get(self.driver)
        return named if named is not None and named.joined else self.leader

    def _reached(self) -> int:
        """How far the output may go."""
        if self.driver == MAJORITY:
            stables = sorted((i.stable for i in self.heard()), reverse=True)
            return stables[len(stables) // 2] if stables else MIN_TICK
        driver = self._driver()
        return MIN_TICK if driver is None else driver.stable

    def _advance(self) -> None:
        """Decide everything that the bound reached now freezes."""
        reached = self.max_stable
        frozen = reached if reached == END_OF_TIME else max(reached - self.lag, self.frozen)
        self.call_voters(frozen)
        alive = len(self.index.nodes)
        self.settle(frozen)
        self.tally.froze(alive - len(self.index.nodes))
        self.emit_bound(self.output_bound(frozen))

    def call_voters(self, frozen: int) -> None:
        """Those who decide up to a bound: whoever drives, or all that have come so far."""
        if self.driver == MAJORITY:
            self.voters = [i for i in self.heard() if i.stable >= frozen]
        else:
            driver = self._driver()
            self.voters = [] if driver is None else [driver]

    def settle(self, frozen: int) -> None:
        """Decide everything before a bound, by the voters; the output's own bound is not yet said."""
        if self.early is not None:
            self._show_early(self.early)
        self.undecided = []
        counts_unfrozen = self.counts_unfrozen
        for node in self.index.due.take(frozen):
            if counts_unfrozen and node.vs >= self.frozen:
                for each in self.inputs.values():
                    each.unfrozen -= self.reports(node, each)
            if not self.decide(node, frozen):
                self.undecided.append(node.vs)
                self.index.due.wait(self.again_after(node), node)  # to be looked at again
        self.frozen = frozen

    def again_after(self, node: Any) -> int:
        """A time that a bound has passed, for an event on which there is no verdict yet."""
        found: int = node.vs
        return found

    def _show_early(self, early: Days[Any]) -> None:
        """Half frozen on those who decide: it will not be taken back, so it need not wait for the lag."""
        reached = self.max_stable
        voters = [v for v in self.voters if v.stable >= reached]
        for node in early.take(reached):
            if not self.index.lives(node):
                continue
            elected = self.elect([self.has(node, v) for v in voters]) if voters else None
            if elected is None:
                if node.vs >= self.frozen:
                    early.add(node.vs, node)
            elif self.has(node, voters[elected]):
                self.introduce_all(node, voters[elected])

    def elect(self, said: list[Hashable]) -> int | None:
        """Which voter speaks for all, by what they say; None if it takes more of them."""
        if len(said) == 1 and self.driver != MAJORITY:
            return 0
        if not said:
            return None
        joined = len(self.heard())
        answer, votes = Counter(said).most_common(1)[0]
        return said.index(answer) if votes > joined // 2 or len(said) == joined else None

    @property
    def decided_to(self) -> int:
        """Up to the first event on which those who decide are at odds."""
        return min([self.frozen, *self.undecided])

    def output_bound(self, frozen: int) -> int:
        """How far the output has come when everything before `frozen` agrees with the verdict, where there is one."""
        oldest = self.oldest_waiting()
        return frozen if oldest is None else min(frozen, oldest)

    def oldest_waiting(self) -> int | None:
        """The least start among events that wait for their end, or for a verdict."""
        waiting = self.waiting.oldest()
        return min([*self.undecided, *([] if waiting is None else [waiting])], default=None)

    def next_time(self) -> int | None:
        """The least time such that a bound beyond it may freeze something."""
        early = None if self.early is None else self.early.first()
        times = [self.index.due.first(), None if early is None else max(early - self.lag, MIN_TICK)]
        return min([t for t in times if t is not None], default=None)

    def living(self) -> Iterator[Any]:
        """Every event in the index."""
        return iter(self.index.nodes.values())

    def forget(self, each: Input) -> None:
        """An input left or begins again; another one may lead."""
        for node in list(self.living()):
            self.drop(node, each)
        if self.leader is each:
            self.leader = None
        if self.watch is not None:
            self.watch.forget(each)

    def held_back(self) -> int:
        """Events that some input has and that are not out."""
        return sum(self.lacking(node) for node in self.living())

    def remove(self, node: Any) -> None:
        """An event is done with."""
        self.index.remove(node)
        if self.policy.final_only:
            self.waiting.discard(node)

    @property
    def divergences(self) -> list[Divergence]:
        """Where inputs were found to differ, in the order of discovery."""
        return self.watch.found if self.watch is not None else []

    @staticmethod
    def is_final(end: int, bound: int) -> bool:
        """Whether an event with this end is fully frozen by a bound; the end of time freezes all."""
        return end < bound or bound == END_OF_TIME

    # What an index does

    @abstractmethod
    def decide(self, node: Any, bound: int) -> bool:
        """Make the output agree with the verdict on an event that a bound freezes; False if there is none yet."""

    @abstractmethod
    def lacking(self, node: Any) -> int:
        """How many events of a node inputs have, and the output has not."""

    @abstractmethod
    def drop(self, node: Any, each: Input) -> None:
        """An input no longer says anything of a node."""

    @abstractmethod
    def reports(self, node: Any, each: Input) -> int:
        """How many events of a node an input has reported."""

    def has(self, node: Any, each: Input) -> bool:
        """Whether an input has reported the event of a node."""
        return self.reports(node, each) > 0

    @abstractmethod
    def holders(self, node: Any) -> int:
        """How many inputs have reported the event of a node."""

    @abstractmethod
    def introduce(self, node: Any, each: Input) -> None:
        """Put out what an input reports, if the output has less."""

    def introduce_all(self, node: Any, each: Input) -> None:
        """Put out all that an input reports."""
        self.introduce(node, each)

    @abstractmethod
    def close(self, node: Any, each: Input) -> None:
        """Give what is open in the output, and which an input has closed, that input's end."""

    @abstractmethod
    def reflect(self, node: Any, each: Input) -> None:
        """Make the output say what an input says of a node, as far as the output's bound still allows."""
