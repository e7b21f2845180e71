"""Every operator over lives against relational algebra at every instant, in any order of arrival."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PlanError
from penstock.model.batch import Batch
from penstock.model.elements import Adjust, Insert, Punctuation
from penstock.model.lives import Lives
from penstock.model.tdb import TDB
from penstock.model.time import END_OF_TIME
from penstock.operators.intervals.join import IntervalJoin
from penstock.operators.migration.box import Box
from penstock.operators.operator import Output
from penstock.operators.state import MemoryPages, seal, unseal
from penstock.reference.migration import instants, unlike
from penstock.reference.snapshot_plans import Count, Difference, Distinct, Input, Join, SnapshotPlan, Union, Window
from penstock.testing.asserts import assert_sound
from penstock.testing.boxes import Builder, batch_of, bound, events_of, numbers, starts_of
from penstock.testing.snapshot_plans import Said, Step, arrivals, plans

INPUTS = (1, 1)
SCHEMAS = [numbers(width) for width in INPUTS]
LEFT, RIGHT = Input(0), Input(1)
JOIN = Join(LEFT, RIGHT, ((0, 0),))


def fed(box: Box, steps: list[Step]) -> list[Output]:
    outputs: list[Output] = []
    for step in steps:
        if isinstance(step, Said):
            outputs += box.punctuate(step.port, bound(step.bound))
        else:
            port, event = step
            outputs += box.process(port, batch_of(SCHEMAS[port], [event]))
    return outputs


def assert_reduces(plan: SnapshotPlan, steps: list[Step], outputs: list[Output]) -> None:
    streams = [[step[1] for step in steps if not isinstance(step, Said) and step[0] == port] for port in (0, 1)]
    reach = max(plan.reach(port) or 0 for port in (0, 1))
    assert unlike(lambda t: plan.at(streams, t), events_of(outputs), instants(*streams, reach=reach)) == []


@given(plan=plans(INPUTS), steps=arrivals(INPUTS), nested_loops=st.booleans())
def test_snapshots_are_those_of_relational_algebra(plan: SnapshotPlan, steps: list[Step], nested_loops: bool) -> None:
    outputs = fed(Builder(SCHEMAS, nested_loops).box(plan), steps)
    assert_sound(outputs)  # type: ignore[arg-type]
    assert_reduces(plan, steps, outputs)
    last = outputs[-1]
    assert isinstance(last, Punctuation)
    assert last.is_end


@given(plan=plans(INPUTS, windows=True, depth=2), steps=arrivals(INPUTS, longest=3, most=8))
def test_windows_inside_of_plans(plan: SnapshotPlan, steps: list[Step]) -> None:
    assert_reduces(plan, steps, fed(Builder(SCHEMAS).box(plan), steps))


@given(plan=plans(INPUTS), steps=arrivals(INPUTS), data=st.data())
def test_a_box_goes_on_from_its_pages(plan: SnapshotPlan, steps: list[Step], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(steps)))
    before = Builder(SCHEMAS).box(plan)
    outputs = fed(before, steps[:cut])
    kept = {key: seal(before, key, before.pages.get(key), "box") for key in list(before.pages.keys())}
    after = Builder(SCHEMAS).box(plan)
    after.attach(MemoryPages({key: unseal(after, key, page, "box") for key, page in kept.items()}))
    copied = pickle.loads(pickle.dumps(before))
    rest = fed(after, steps[cut:])
    assert [str(e) for e in rest if isinstance(e, Punctuation)] == [
        str(e) for e in fed(copied, steps[cut:]) if isinstance(e, Punctuation)
    ]
    assert_sound([*outputs, *rest])  # type: ignore[list-item]
    assert_reduces(plan, steps, [*outputs, *rest])


@pytest.mark.parametrize("plan", [JOIN, Distinct(LEFT), Count(LEFT, ()), Difference(LEFT, RIGHT), Union(LEFT, RIGHT)])
@given(steps=arrivals(INPUTS))
def test_nothing_is_held_when_all_has_ended(plan: SnapshotPlan, steps: list[Step]) -> None:
    box = Builder(SCHEMAS).box(plan)
    fed(box, steps)
    for key in list(box.pages.keys()):
        page = box.pages.get(key)
        if "side" in key or "covered" in key or "edges" in key:
            assert not page if isinstance(page, dict) else len(page) == 0


@given(steps=arrivals(INPUTS, disorder=0, skew=0))
def test_what_comes_in_order_is_joined_in_order(steps: list[Step]) -> None:
    ordered = sorted((s for s in steps if not isinstance(s, Said)), key=lambda each: each[1][1])
    for plan in (JOIN, Join(JOIN, RIGHT, ((0, 0),)), Union(LEFT, RIGHT)):
        starts = starts_of(fed(Builder(SCHEMAS).box(plan), list(ordered)))
        assert starts == sorted(starts)


# By hand


def test_a_join_says_where_both_live() -> None:
    #        0         10        20
    # left   1111111111
    # right       1111111111
    # both        11111
    box = Builder(SCHEMAS).box(JOIN)
    assert events_of(fed(box, [(1, ((1,), 5, 15)), (0, ((1,), 0, 10))])) == TDB([((1, 1), 5, 10)])
    assert events_of(fed(box, [(0, ((1,), 15, 20))])) == TDB(), "they only touch"
    assert fed(box, [(0, ((None,), 5, 9)), (1, ((None,), 5, 9))]) == [], "null equals nothing"


def test_a_join_keeps_what_can_still_be_met_and_says_when_all_is_over() -> None:
    box = Builder(SCHEMAS).box(JOIN)
    join = box.operators()[0]
    assert isinstance(join, IntervalJoin)
    fed(box, [(0, ((1,), 0, 10)), (0, ((1,), 0, 11)), Said(1, 10)])
    assert join.values_held() == 1
    assert [p.value for p in fed(box, [Said(0, END_OF_TIME)]) if isinstance(p, Punctuation)] == [10]
    assert [p.is_end for p in fed(box, [Said(1, 11)]) if isinstance(p, Punctuation)] == [True]


def test_rows_are_held_by_their_starts_where_that_is_asked() -> None:
    box = Builder(SCHEMAS, kept_for=100).box(JOIN)
    fed(box, [(0, ((1,), 50, 60)), Said(1, 149)])
    join = box.operators()[0]
    assert isinstance(join, IntervalJoin)
    assert join.values_held() == 1
    fed(box, [Said(1, 150)])
    assert join.values_held() == 0


def test_distinct_fills_gaps_at_once() -> None:
    box = Builder(SCHEMAS).box(Distinct(LEFT))
    assert events_of(fed(box, [(0, ((1,), 5, 10))])) == TDB([((1,), 5, 10)])
    assert events_of(fed(box, [(0, ((1,), 0, 20))])) == TDB([((1,), 0, 5), ((1,), 10, 20)])
    assert fed(box, [(0, ((1,), 0, 20))]) == []


def test_a_count_waits_until_it_is_final() -> None:
    box = Builder(SCHEMAS).box(Count(LEFT, ()))
    assert fed(box, [(0, ((1,), 0, 10)), (0, ((1,), 4, 12))]) == []
    first = fed(box, [Said(0, 9)])
    assert events_of(first) == TDB([((1,), 0, 4)])
    assert str(first[-1]) == "punctuation(vs >= 4)"
    assert events_of(fed(box, [Said(0, 12)])) == TDB([((2,), 4, 10), ((1,), 10, 12)])


def test_a_count_of_equal_neighbours_is_one() -> None:
    box = Builder(SCHEMAS).box(Count(LEFT, ()))
    assert events_of(fed(box, [(0, ((1,), 0, 5)), (0, ((0,), 5, 9)), Said(0, 9)])) == TDB([((1,), 0, 9)])


def test_a_count_goes_on_from_where_it_was_told() -> None:
    """What ends at the bound and what begins there cancel out, but what came before is out already."""
    #       0    1    2    3
    # a     111111111111111
    # b     1111111111
    # c               11111      comes when all until 2 is out
    box = Builder(SCHEMAS).box(Count(LEFT, ()))
    first = fed(box, [(0, ((0,), 0, 3)), (0, ((0,), 0, 2)), Said(0, 2)])
    assert events_of(first) == TDB([((2,), 0, 2)])
    assert events_of(fed(box, [(0, ((1,), 2, 3)), Said(0, END_OF_TIME)])) == TDB([((2,), 2, 3)])


def test_a_window_lets_every_instant_last() -> None:
    box = Builder(SCHEMAS).box(Window(LEFT, 10))
    assert events_of(fed(box, [(0, ((1,), 3, 4))])) == TDB([((1,), 3, 14)])
    assert events_of(fed(box, [(0, ((1,), 3, 5))])) == TDB([((1,), 3, 14), ((1,), 4, 15)])


@pytest.mark.parametrize("plan", [JOIN, Distinct(LEFT), Count(LEFT, ()), Window(LEFT, 3)])
def test_revisions_are_refused(plan: SnapshotPlan) -> None:
    box = Builder(SCHEMAS).box(plan)
    batch = Batch(SCHEMAS[0], [(1, 3)], lives=Lives.of([Adjust((1,), 3, 9, 5)]))
    with pytest.raises(PlanError, match=r"(?s)takes inserts only was given a revision.*Settle"):
        list(box.process(0, batch))
    assert isinstance(Batch(SCHEMAS[0], [(1, 3)]).elements()[0], Insert)
