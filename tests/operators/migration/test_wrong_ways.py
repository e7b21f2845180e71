"""What is wrong is shown to be wrong, by brute force on random cases; what is right is right on the same ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from penstock.model.elements import Punctuation
from penstock.model.time import END_OF_TIME, MIN_TICK
from penstock.operators.migration.box import taken
from penstock.operators.migration.split import BeforeSplit, FromSplit
from penstock.operators.migration.ways import CUT
from penstock.operators.operator import Operator, Output
from penstock.reference.migration import Arrival, Migration
from penstock.reference.snapshot_plans import Count, Input, Join, SnapshotPlan, Union, Window
from penstock.testing.boxes import Builder, batch_of, bound, events_of, numbers, starts_of
from penstock.testing.migrations import Play
from penstock.testing.snapshot_plans import Said

CASES = 300
SCHEMAS = [numbers(1), numbers(1)]
LEFT, RIGHT = Input(0), Input(1)
JOIN, TURNED = Join(LEFT, RIGHT, ((0, 0),)), Join(Union(LEFT, LEFT), RIGHT, ((0, 0),))
COUNT = Count(Union(LEFT, RIGHT), ())


@dataclass
class Case:
    """Arrivals, in any order, and after how many of them a new plan is put beside the old one."""

    arrivals: list[Arrival]
    activation: int

    @classmethod
    def at_random(cls, seed: int) -> Case:
        rng = random.Random(seed)
        coming = []
        for _ in range(rng.randint(2, 10)):
            start = rng.randint(0, 24)
            coming.append((start + rng.randint(0, 4), (rng.randint(0, 1), ((0,), start, start + rng.randint(1, 10)))))
        arrivals = [arrival for _, arrival in sorted(coming, key=lambda each: each[0])]
        return cls(arrivals, rng.randint(0, len(arrivals)))

    def latest_end(self, port: int | None = None) -> int:
        """Of what came before, to one input or to all: T is one later."""
        ends = [event[2] for own, event in self.arrivals[: self.activation] if port in (None, own)]
        return max(ends, default=MIN_TICK + 1)


Around = Callable[[int], Operator | None]


def played(
    case: Case,
    plan: SnapshotPlan,
    *,
    to_old: Around = lambda port: None,
    to_new: Around = lambda port: None,
    old_results: Callable[[list[Output]], list[Output]],
    new_results: Callable[[list[Output]], list[Output]],
) -> list[Output]:
    """What comes of a plan that is replaced by itself, with anything put before it; and results kept in any way."""
    boxes = [Builder(SCHEMAS).box(plan) for _ in range(2)]
    before = [[to_old(port) for port in range(2)], [to_new(port) for port in range(2)]]
    outputs: list[list[Output]] = [[], []]

    def give(which: int, port: int, element: Output, *, direct: bool = False) -> None:
        operator = None if direct else before[which][port]
        for each in [element] if operator is None else taken(operator, port, element):
            outputs[which] += taken(boxes[which], port, each)

    for number, (port, event) in enumerate(case.arrivals):
        batch = batch_of(SCHEMAS[port], [event])
        give(0, port, batch, direct=number < case.activation)
        if number >= case.activation:
            give(1, port, batch)
    for port in range(2):
        for which in range(2):
            give(which, port, bound(END_OF_TIME))
    return [*old_results(outputs[0]), *new_results(outputs[1])]


def through(operator: Operator) -> Callable[[list[Output]], list[Output]]:
    return lambda outputs: [each for output in outputs for each in taken(operator, 0, output)]


def everything(outputs: list[Output]) -> list[Output]:
    return outputs


def is_wrong(case: Case, plan: SnapshotPlan, split: int, outputs: Sequence[Output]) -> bool:
    oracle = Migration(plan, plan, split, case.activation, case.arrivals, 2)
    return bool(oracle.unlike(events_of([o for o in outputs if not isinstance(o, Punctuation)])))


def wrong_of(one: Callable[[Case], bool]) -> int:
    return sum(one(Case.at_random(seed)) for seed in range(CASES))


# One split time for all inputs


def split_at(case: Case, plan: SnapshotPlan, splits: Sequence[int]) -> bool:
    outputs = played(
        case, plan,
        to_old=lambda port: BeforeSplit(SCHEMAS[port], splits[port]),
        to_new=lambda port: FromSplit(SCHEMAS[port], splits[port]),
        old_results=everything, new_results=everything,
    )  # fmt: skip
    return is_wrong(case, plan, max(splits), outputs)


def test_a_split_time_for_each_input_is_wrong_on_a_join() -> None:
    assert wrong_of(lambda case: split_at(case, JOIN, [case.latest_end(port) + 1 for port in (0, 1)])) > CASES // 20


@pytest.mark.parametrize("plan", [JOIN, COUNT], ids=["join", "count"])
def test_one_split_time_for_all_is_right(plan: SnapshotPlan) -> None:
    assert wrong_of(lambda case: split_at(case, plan, [case.latest_end() + 1] * 2)) == 0


@pytest.mark.parametrize("plan", [JOIN, COUNT], ids=["join", "count"])
def test_a_split_before_the_last_end_is_wrong(plan: SnapshotPlan) -> None:
    assert wrong_of(lambda case: split_at(case, plan, [max(case.latest_end() - 2, 0)] * 2)) > 0


# The reference point


def reference_point(case: Case, plan: SnapshotPlan, *, clips: bool) -> bool:
    split = case.latest_end() + 1
    outputs = played(
        case, plan,
        to_old=lambda port: BeforeSplit(SCHEMAS[port], split, clips=False),
        to_new=lambda port: FromSplit(SCHEMAS[port], split) if clips else None,
        old_results=through(BeforeSplit(Builder(SCHEMAS).box(plan).schema, split, clips=False)),
        # clipped, everything that reaches over T starts there, so what starts there is dropped
        new_results=through(FromSplit(Builder(SCHEMAS).box(plan).schema, split + clips, clips=False)),
    )  # fmt: skip
    return is_wrong(case, plan, split, outputs)


def test_the_clipped_reference_point_is_wrong_where_the_split_is_a_tick() -> None:
    assert wrong_of(lambda case: reference_point(case, JOIN, clips=True)) > CASES // 50


def test_the_reference_point_with_whole_events_is_right_on_a_join() -> None:
    assert wrong_of(lambda case: reference_point(case, JOIN, clips=False)) == 0


def test_the_reference_point_is_wrong_on_a_count() -> None:
    assert wrong_of(lambda case: reference_point(case, COUNT, clips=False)) > CASES // 20


def test_what_the_clipped_reference_point_loses() -> None:
    #       5    10   15   20
    # a          1111111111
    # b     1111111111
    # ab         11111         starts at T = 10 by itself, and is dropped as if it had been cut there
    case = Case([(1, ((0,), 5, 15)), (0, ((0,), 10, 20))], 0)
    outputs = played(
        case, JOIN,
        to_old=lambda port: BeforeSplit(SCHEMAS[port], 10, clips=False),
        to_new=lambda port: FromSplit(SCHEMAS[port], 10),
        old_results=everything, new_results=through(FromSplit(numbers(2), 11, clips=False)),
    )  # fmt: skip
    assert starts_of(outputs) == []
    (first, *_) = Migration(JOIN, JOIN, 10, 0, case.arrivals, 2).unlike(events_of([]))
    assert first.instant == 10


def test_what_the_reference_point_says_twice_of_a_count() -> None:
    #       0    5    10
    # a     0000000000
    # b            00000       the old plan is not given b, and counts one on [0, 10)
    case = Case([(0, ((0,), 0, 10)), (0, ((0,), 7, 12))], 0)
    count = Count(LEFT, ())
    outputs = played(
        case, count,
        to_old=lambda port: BeforeSplit(SCHEMAS[port], 5, clips=False),
        old_results=through(BeforeSplit(numbers(1), 5, clips=False)),
        new_results=through(FromSplit(numbers(1), 5, clips=False)),
    )  # fmt: skip
    assert sorted(events_of([o for o in outputs if not isinstance(o, Punctuation)])) == [
        ((1,), 0, 10), ((1,), 10, 12), ((2,), 7, 10),
    ]  # fmt: skip
    told = Migration(count, count, 5, 0, case.arrivals, 2).unlike(
        events_of([o for o in outputs if not isinstance(o, Punctuation)])
    )
    assert [(u.instant, dict(u.extra)) for u in told] == [(at, {(1,): 1}) for at in (7, 8, 9)]


# Different windows


def different_windows(case: Case, *, of_new: bool, size: int = 3) -> bool:
    """A window is made longer while it runs; T follows from the plan that comes, or from the one that goes."""
    ticks = [(port, (payload, vs, vs + 1)) for port, (payload, vs, _) in case.arrivals]
    old, new = (Join(Window(LEFT, n), Window(RIGHT, n), ((0, 0),)) for n in (size, 3 * size))
    play = Play(SCHEMAS, old).feed(ticks[: case.activation])
    split = play.running.split_time([3 * size if of_new else size] * 2, way=CUT)
    play.replace(new, way=CUT, split=split)
    play.feed([*ticks[case.activation :], Said(0, END_OF_TIME), Said(1, END_OF_TIME)])
    oracle = play.oracle()
    assert oracle.is_possible() or not of_new
    return bool(oracle.unlike(events_of(play.outputs)))


def test_the_split_time_is_by_the_new_plans_reach() -> None:
    assert wrong_of(lambda case: different_windows(case, of_new=True)) == 0


def test_the_split_time_by_the_old_plans_reach_is_wrong() -> None:
    assert wrong_of(lambda case: different_windows(case, of_new=False)) > CASES // 10
