"""The positive-negative form: the same snapshots, before, during and after a migration, also of aggregates."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.elements import Punctuation
from penstock.model.tdb import Event
from penstock.model.time import END_OF_TIME
from penstock.operators.intervals.signed import (
    FromSigned,
    SignedCount,
    SignedDistinct,
    SignedJoin,
    ToSigned,
    signed_schema,
)
from penstock.operators.migration.box import Box, Node, taken
from penstock.operators.migration.migrating import Migrating
from penstock.operators.migration.positive_negative import OpenRows, Signed
from penstock.operators.operator import Output
from penstock.operators.state import MemoryPages, seal, unseal
from penstock.reference.migration import Migration
from penstock.reference.snapshot_plans import Count, Distinct, Input, Join, SnapshotPlan
from penstock.testing.asserts import assert_sound
from penstock.testing.boxes import BIGINT, batch_of, bound, events_of, numbers
from penstock.testing.snapshot_plans import Said, Step, arrivals

INPUTS = (1, 1)
SCHEMA = signed_schema([BIGINT])
LEFT, RIGHT = Input(0), Input(1)
PAIRS = Join(LEFT, RIGHT, ((0, 0),))
LONGEST = 8
EQUIVALENT: list[tuple[SnapshotPlan, SnapshotPlan]] = [
    (PAIRS, PAIRS),
    (Distinct(PAIRS), Join(Distinct(LEFT), Distinct(RIGHT), ((0, 0),))),
    (Count(PAIRS, (0,)), Count(PAIRS, (1,))),
    (Count(Distinct(LEFT), ()), Count(Distinct(Distinct(LEFT)), ())),
]


def node(plan: SnapshotPlan) -> Node | int:
    if isinstance(plan, Input):
        return plan.port
    if isinstance(plan, Join):
        left, right = node(plan.left), node(plan.right)
        return Node(SignedJoin(schema_of(left), schema_of(right), plan.on), (left, right))
    assert isinstance(plan, Distinct | Count)
    below = node(plan.input)
    made = SignedDistinct(schema_of(below)) if isinstance(plan, Distinct) else SignedCount(schema_of(below), plan.by)
    return Node(made, (below,))


def schema_of(below: Node | int):  # type: ignore[no-untyped-def]
    return below.operator.schema if isinstance(below, Node) else SCHEMA


def box(plan: SnapshotPlan) -> Box:
    return Box(node(plan), len(INPUTS))


@dataclass
class SignedPlay:
    """Events as signed rows, through a plan that is migrated, and back."""

    plan: SnapshotPlan
    arrivals: list[tuple[int, Event]] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.entrances = [(ToSigned(numbers(1)), OpenRows(SCHEMA)) for _ in INPUTS]
        self.running = Migrating(box(self.plan), [SCHEMA] * len(INPUTS), ordered=True)
        self.back = FromSigned(self.running.schema)

    def feed(self, steps: list[Step]) -> SignedPlay:
        for step in steps:
            port = step.port if isinstance(step, Said) else step[0]
            if not isinstance(step, Said):
                self.arrivals.append(step)
            element = bound(step.bound) if isinstance(step, Said) else batch_of(numbers(1), [step[1]])
            signs, opened = self.entrances[port]
            for signed in taken(signs, 0, element):
                for counted in taken(opened, 0, signed):
                    self._out(taken(self.running, port, counted))
        return self

    def replace(self, plan: SnapshotPlan, split: int | None = None) -> None:
        way = Signed(opened=[opened.opened() for _, opened in self.entrances])
        self._out(self.running.replace(box(plan), [0, 0], way=way, lifetime=LONGEST, split=split))

    def _out(self, outputs) -> None:  # type: ignore[no-untyped-def]
        for each in outputs:
            self.outputs += taken(self.back, 0, each)

    def unlike(self) -> list[object]:
        return list(Migration(self.plan, self.plan, 0, 0, self.arrivals, 2).unlike(events_of(self.outputs)))


@pytest.mark.parametrize("number", range(len(EQUIVALENT)))
@given(data=st.data(), steps=arrivals(INPUTS, longest=LONGEST))
def test_snapshots_are_those_of_the_plan(number: int, data: st.DataObject, steps: list[Step]) -> None:
    old, new = EQUIVALENT[number]
    cut = data.draw(st.integers(0, len(steps)))
    play = SignedPlay(old).feed(steps[:cut])
    play.replace(new)
    play.feed(steps[cut:])
    assert play.unlike() == []
    assert_sound(play.outputs)  # type: ignore[arg-type]
    assert not play.running.is_migrating
    last = play.outputs[-1]
    assert isinstance(last, Punctuation)
    assert last.is_end


def test_a_negative_row_at_the_split_would_be_given_to_neither_plan() -> None:
    """T is one later than every end of what came before; at that end itself it is too early."""
    steps: list[Step] = [(0, ((1,), 0, 8)), (1, ((1,), 0, 8)), Said(0, 4), Said(1, 4)]
    for split, wrong in ((8, 1), (9, 0)):
        play = SignedPlay(PAIRS).feed(steps)
        play.replace(PAIRS, split)
        play.feed([Said(0, 20), Said(1, 20), Said(0, END_OF_TIME), Said(1, END_OF_TIME)])
        assert len(events_of(play.outputs)) == 1
        assert bool(play.unlike()) == bool(wrong)


def test_an_end_whose_beginning_the_new_plan_has_not_seen_does_not_reach_it() -> None:
    steps: list[Step] = [(0, ((1,), 0, 8)), Said(0, 4), Said(1, 4)]
    later: list[Step] = [(0, ((1,), 5, 12)), (1, ((1,), 5, 12)), Said(0, END_OF_TIME), Said(1, END_OF_TIME)]
    count = Count(LEFT, ())
    play = SignedPlay(count).feed(steps)
    play.replace(count)
    assert play.feed(later).unlike() == []


@given(steps=arrivals(INPUTS, longest=LONGEST), data=st.data())
def test_state_is_plain(steps: list[Step], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(steps)))
    for plan in (PAIRS, Count(Distinct(LEFT), ())):
        play = SignedPlay(plan).feed(steps[:cut])
        keepers = [play.back, *(each for pair in play.entrances for each in pair), play.running.box]
        for keeper in keepers:
            kept = {key: seal(keeper, key, keeper.pages.get(key), "it") for key in list(keeper.pages.keys())}
            keeper.attach(MemoryPages({key: unseal(keeper, key, page, "it") for key, page in kept.items()}))
        assert play.feed(steps[cut:]).unlike() == []
