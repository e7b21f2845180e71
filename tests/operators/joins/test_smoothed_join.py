"""Slow flush: rows without a partner come out a few at a time, and promises wait for them; nothing else changes."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from penstock.model.batch import Batch, Row
from penstock.model.elements import Punctuation, linear
from penstock.model.frontier import Frontier
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.joins.nearness import Nearness, Within
from penstock.operators.joins.smoothed_join import SmoothedJoin
from penstock.operators.operator import Output
from penstock.operators.state import seal, unseal
from tests.operators.joins.test_group_promises import SIDE, Trial, join, promise_of

KINDS = ["left", "right", "full", "anti"]


def smoothed(kind: str, near: Nearness, burst: int | None, *, keyed: bool = True) -> SmoothedJoin:
    made = join(kind, near, keyed=keyed)
    found = SmoothedJoin(made.schema, made.sides, made.near, made.promised, kind)
    found.burst = burst
    return found


class Smoothed(Trial):
    """A join as any other, and beside it one that is smoothed, which is fed the same."""

    def __init__(self, kind: str, source: random.Random) -> None:
        super().__init__(kind, source)
        self.burst = source.choice([1, 2, 5])
        self.other = smoothed(kind, self.story.near, self.burst, keyed=self.story.keyed)
        self.given: Counter[Row] = Counter()
        self.told = Frontier()

    def _say(self, port: int, about: dict[str, object], bound: int) -> list[Output]:
        promise = promise_of(about, bound) if about else linear("ts", bound)
        is_new = not self.story.frontiers[port].implies(promise)
        given = super()._say(port, about, bound)
        if is_new:
            self.hear(list(self.other.punctuate(port, promise)), is_punctuation=True)
        return given

    def _rows(self, port: int, number: int) -> list[Output]:
        before = len(self.story.rows[port])
        given = super()._rows(port, number)
        self.hear(list(self.other.process(port, Batch(SIDE, self.story.rows[port][before:]))), is_punctuation=False)
        return given

    def hear(self, given: list[Output], *, is_punctuation: bool) -> None:
        batches = [each for each in given if isinstance(each, Batch)]
        ended = [self.story.bound(port, {}) for port in (0, 1)] == [END_OF_TIME] * 2
        if is_punctuation and not ended:
            assert sum(map(len, batches)) <= self.burst
        assert all(len(each) <= self.burst for each in batches) or not is_punctuation
        for each in given:
            if isinstance(each, Punctuation):
                assert self.told.add(each), f"says nothing new: {each}"
            else:
                assert isinstance(each, Batch)
                for row in each.rows:
                    values = dict(zip(self.other.schema.names, row, strict=True))
                    assert not [p for p in self.told if p.condemns(values)]
                    self.given[row] += 1

    def compare(self) -> None:
        """What is out is of the result; what is promised is what can be said beside the rows that wait."""
        waiting = [dict(zip(self.other.schema.names, row, strict=True)) for row in (self.out - self.given).elements()]
        assert not self.given - self.out
        assert bool(waiting) == (self.other.pages.get("flush") is not None)
        for promise in self.promised:
            name, bound = promise.bounds[0]
            over = [values[name] for values in waiting if promise.condemns(values)]
            if promise.is_joint:
                assert over or self.told.implies(promise)
            else:
                least = min([bound, *over])  # type: ignore[type-var]
                assert self.told.bound(name, dict(promise.constants)) == least or least == MIN_TICK
        if not waiting:
            assert self.told == self.promised
            assert not [key for key in self.other.pages.keys() if "held" in key or key.startswith("flush")]  # noqa: SIM118

    def taken_up(self, burst: int | None) -> None:
        """Another operator goes on with the pages."""
        made = smoothed(self.story.kind, self.story.near, burst, keyed=self.story.keyed)
        for key in self.other.pages.keys():  # noqa: SIM118
            made.pages.put(key, unseal(made, key, seal(self.other, key, self.other.pages.get(key), "join"), "join"))
        self.other = made


@pytest.mark.parametrize("kind", KINDS)
def test_what_comes_out_is_the_same_in_smaller_bursts(kind: str) -> None:
    source = random.Random(KINDS.index(kind))
    for _ in range(40):
        trial = Smoothed(kind, source)
        for number in range(source.randint(5, 30)):
            port = source.randint(0, 1)
            trial.reached[port] += source.randint(0, 5)
            drawn = source.random()
            if drawn < 0.3:
                bound = max(trial.reached[port] - source.randint(0, 3), trial.story.bound(port, {}))
                given = trial._say(port, {}, bound)
            elif drawn < 0.45:
                given = trial._say(port, trial._constants(), source.choice([END_OF_TIME, trial.reached[port] + 3]))
            else:
                given = trial._rows(port, number)
            trial.take(given)
            trial.compare()
            if source.random() < 0.1:
                trial.taken_up(trial.burst)
        for port in (0, 1):
            trial.take(trial._say(port, {}, END_OF_TIME))
        assert trial.given == trial.out == trial.story.out()
        assert all(trial.told.bound(name) == END_OF_TIME for name in [str(trial.other.schema.time)])
        assert not [key for key in trial.other.pages.keys() if key.startswith(("flush", "run", "loose"))]  # noqa: SIM118


def rows(*times: int) -> Batch:
    return Batch(SIDE, [(t, 1, "x", t) for t in times])


def test_promises_wait_for_the_oldest_row_that_waits() -> None:
    """Five rows are settled at once by the right's bound of 20; two come with each element."""
    operator = smoothed("left", Within(0, 0), 2)
    list(operator.process(0, rows(5, 3, 4, 1, 2)))
    list(operator.punctuate(0, linear("ts", 10)))
    told: list[tuple[list[int], list[int]]] = []
    steps = [lambda: operator.punctuate(1, linear("ts", 20)), lambda: operator.process(1, rows(25)),
             lambda: operator.punctuate(1, linear("ts", 21))]  # fmt: skip
    for step in steps:
        given = list(step())  # type: ignore[no-untyped-call]
        times = [row[0] for each in given if isinstance(each, Batch) for row in each.rows]
        bounds = [p.value for p in given if isinstance(p, Punctuation) and p.attribute == "t"]
        told.append((times, bounds))
    assert told == [([1, 2], [3]), ([3, 4], [5]), ([5], [10])]


def test_without_a_limit_what_waits_comes_at_once() -> None:
    limited = smoothed("anti", Within(0, 0), 1)
    list(limited.process(0, rows(1, 2, 3)))
    list(limited.punctuate(1, linear("ts", 9)))
    free = smoothed("anti", Within(0, 0), None)
    for key in limited.pages.keys():  # noqa: SIM118
        free.pages.put(key, limited.pages.get(key))
    given = list(free.punctuate(1, linear("ts", 10)))
    assert [row[0] for each in given if isinstance(each, Batch) for row in each.rows] == [2, 3]
    assert free.pages.get("flush") is None
