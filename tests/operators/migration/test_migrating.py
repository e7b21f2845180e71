"""Plans are replaced at random moments, over streams in any order: a snapshot is that of the plan whose turn it is."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PlanError
from penstock.model.batch import Batch
from penstock.model.elements import Adjust, Insert, Punctuation
from penstock.model.tdb import TDB
from penstock.model.time import END_OF_TIME
from penstock.operators.intervals.least import Progressing
from penstock.operators.migration.migrating import Migrating
from penstock.operators.migration.ways import CUT, REFERENCE_POINT, SPLIT, WAYS, Way
from penstock.operators.state import MemoryPages, seal, unseal
from penstock.reference.snapshot_plans import Count, Distinct, Input, Join, SnapshotPlan, Union, Window
from penstock.testing.asserts import assert_sound
from penstock.testing.boxes import Builder, events_of, numbers, starts_of
from penstock.testing.migrations import Play
from penstock.testing.snapshot_plans import Said, Step, arrivals, columns, plans, rewritten

INPUTS = (1, 1, 1)
SCHEMAS = [numbers(width) for width in INPUTS]
JOINS = "spuj"
"""Of these a result starts when the last of its parts does."""


def of_as_many_columns(plan: SnapshotPlan) -> st.SearchStrategy[SnapshotPlan]:
    """Any other plan that could stand in its place."""
    return plans(INPUTS, depth=2).filter(lambda other: columns(other, INPUTS) == columns(plan, INPUTS))


def assert_right(play: Play, number: int = 0) -> None:
    oracle = play.oracle(number)
    assert oracle.is_possible(), f"T = {oracle.split}, at least {oracle.first_split()} is needed"
    assert oracle.unlike(events_of(play.outputs)) == []
    assert_sound(play.outputs)  # type: ignore[arg-type]
    assert play.has_ended
    assert not play.running.is_migrating


@given(data=st.data(), steps=arrivals(INPUTS), revises=st.booleans())
def test_equivalent_plans_by_split_and_coalesce(data: st.DataObject, steps: list[Step], revises: bool) -> None:
    old = data.draw(plans(INPUTS))
    new = data.draw(rewritten(old, INPUTS))
    cut = data.draw(st.integers(0, len(steps)))
    play = Play(SCHEMAS, old, revises=revises).feed(steps[:cut])
    play.replace(new)
    assert_right(play.feed(steps[cut:]))


@given(data=st.data(), steps=arrivals(INPUTS), revises=st.booleans(), way=st.sampled_from([SPLIT, CUT]))
def test_different_plans(data: st.DataObject, steps: list[Step], revises: bool, way: Way) -> None:
    old = data.draw(plans(INPUTS, depth=2))
    new = data.draw(of_as_many_columns(old))
    cut = data.draw(st.integers(0, len(steps)))
    play = Play(SCHEMAS, old, revises=revises).feed(steps[:cut])
    play.replace(new, way=way)
    assert_right(play.feed(steps[cut:]))


@given(data=st.data(), steps=arrivals(INPUTS, longest=3, most=8), revises=st.booleans())
def test_different_windows_inside_of_the_plans(data: st.DataObject, steps: list[Step], revises: bool) -> None:
    old = data.draw(plans(INPUTS, depth=2, windows=True))
    others = plans(INPUTS, depth=2, windows=True).filter(lambda p: columns(p, INPUTS) == columns(old, INPUTS))
    cut = data.draw(st.integers(0, len(steps)))
    play = Play(SCHEMAS, old, revises=revises).feed(steps[:cut])
    play.replace(data.draw(others), way=CUT)
    assert_right(play.feed(steps[cut:]))


@given(data=st.data(), steps=arrivals(INPUTS), ordered=st.booleans())
def test_equivalent_joins_by_the_reference_point(data: st.DataObject, steps: list[Step], ordered: bool) -> None:
    old = data.draw(plans(INPUTS, kinds=JOINS))
    new = data.draw(rewritten(old, INPUTS))
    cut = data.draw(st.integers(0, len(steps)))
    play = Play(SCHEMAS, old, ordered=ordered).feed(steps[:cut])
    play.replace(new, way=REFERENCE_POINT)
    assert_right(play.feed(steps[cut:]))


@given(data=st.data(), steps=arrivals(INPUTS, most=20, latest=60), revises=st.booleans())
def test_several_in_a_row(data: st.DataObject, steps: list[Step], revises: bool) -> None:
    """Equivalent plans, so that all of the output is that of the first."""
    old = data.draw(plans(INPUTS, kinds=JOINS, depth=2))
    play = Play(SCHEMAS, old, revises=revises)
    for step in steps:
        if not play.running.is_migrating and data.draw(st.booleans()):
            ways = [way for way in WAYS if not (revises and way is REFERENCE_POINT)]
            play.replace(data.draw(rewritten(old, INPUTS)), way=data.draw(st.sampled_from(ways)))
        play.feed([step])
    if not play.migrations:
        play.replace(old)
    assert play.oracle().unlike(events_of(play.outputs)) == []
    assert_sound(play.outputs)  # type: ignore[arg-type]
    assert play.has_ended


@given(data=st.data(), steps=arrivals(INPUTS, disorder=0, skew=0), way=st.sampled_from(WAYS))
def test_order_is_kept_where_it_is_promised(data: st.DataObject, steps: list[Step], way: Way) -> None:
    """The inputs come in one global order, as the paper's; so do results of joins, and those of a migration."""
    old = data.draw(plans(INPUTS, kinds=JOINS, depth=2))
    new = data.draw(rewritten(old, INPUTS))
    events: list[Step] = sorted((s for s in steps if not isinstance(s, Said)), key=lambda each: each[1][1])
    told: list[Step] = []
    for step in events:
        assert not isinstance(step, Said)
        told += [*(Said(port, step[1][1]) for port in range(len(INPUTS))), step]
    told += [Said(port, END_OF_TIME) for port in range(len(INPUTS))]
    cut = data.draw(st.integers(0, len(told)))
    play = Play(SCHEMAS, old, ordered=True).feed(told[:cut])
    play.replace(new, way=way)
    play.feed(told[cut:])
    starts = starts_of(play.outputs)
    assert starts == sorted(starts)
    assert_right(play)


@given(data=st.data(), steps=arrivals(INPUTS))
def test_the_old_plans_memory_is_freed_when_it_is_over(data: st.DataObject, steps: list[Step]) -> None:
    old = data.draw(plans(INPUTS))
    new = data.draw(rewritten(old, INPUTS))
    cut = data.draw(st.integers(0, len(steps)))
    play = Play(SCHEMAS, old).feed(steps[:cut])
    gone = play.running.box
    split = play.replace(new)
    play.feed([Said(port, max(split, 0)) for port in range(len(INPUTS))])
    play.feed([Said(port, min(split + 1, END_OF_TIME)) for port in range(len(INPUTS))])
    assert [key for key in play.running.pages.keys() if key.startswith("box1/")] == []  # noqa: SIM118 - no mapping
    assert sum(each.values_held() for each in gone.operators() if isinstance(each, Progressing)) == 0
    assert {key.split("/")[0] for key in play.running.pages.keys() if "/" in key} <= {"box2"}  # noqa: SIM118
    assert not play.running.is_migrating


@given(data=st.data(), steps=arrivals(INPUTS), revises=st.booleans())
def test_a_migration_can_be_kept_at_any_moment(data: st.DataObject, steps: list[Step], revises: bool) -> None:
    old = data.draw(plans(INPUTS))
    new = data.draw(rewritten(old, INPUTS))
    cut = data.draw(st.integers(0, len(steps)))
    again = data.draw(st.integers(cut, len(steps)))
    play = Play(SCHEMAS, old, revises=revises).feed(steps[:cut])
    play.replace(new)
    play.feed(steps[cut:again])
    if data.draw(st.booleans()):
        play.running = pickle.loads(pickle.dumps(play.running))
    else:
        play.running = from_bytes(play, new)
    assert_right(play.feed(steps[again:]))


def from_bytes(play: Play, new: SnapshotPlan) -> Migrating:
    """The same, from what is kept of it, with boxes made anew."""
    before, builder = play.running, Builder(SCHEMAS)
    pages = {key: before.pages.get(key) for key in list(before.pages.keys())}
    kept = {key: seal(before, key, page, "it") for key, page in pages.items()}
    generation = before.generation
    box = builder.box(play.plan if generation == 1 else new)
    after = Migrating(box, SCHEMAS, revises=play.revises, generation=generation)
    if "split" in kept:
        after.go_on(builder.box(new), pages["split"])
    after.attach(MemoryPages({key: unseal(after, key, page, "it") for key, page in kept.items()}))
    return after


# By hand

LEFT, RIGHT = Input(0), Input(1)
PAIRS, TURNED = Join(LEFT, RIGHT, ((0, 0),)), Join(Distinct(LEFT), RIGHT, ((0, 0),))


def two(plan: SnapshotPlan, **options: bool) -> Play:
    return Play(SCHEMAS[:2], plan, **options)


def test_an_event_across_the_split_comes_out_whole() -> None:
    #          0         10   T=13    20
    # before   1111111111111
    # after         11111111 1111111111
    play = two(LEFT).feed([(0, ((1,), 0, 12))])
    assert play.replace(Union(LEFT, LEFT)) == 13
    play = two(LEFT).feed([(0, ((1,), 0, 12))])
    assert play.replace(Distinct(Distinct(LEFT))) == 13
    play.feed([(0, ((2,), 5, 20)), Said(0, 30), Said(1, 30)])
    assert events_of(play.outputs) == TDB([((1,), 0, 12), ((2,), 5, 20)])


def test_a_consumer_that_takes_revisions_is_told_at_once_and_the_end_later() -> None:
    slow = Count(LEFT, (0,))  # a plan whose results wait
    play = two(slow, revises=True).feed([(0, ((1,), 0, 4))])
    assert play.replace(slow) == 5
    play.feed([(0, ((2,), 3, 9)), Said(0, 5)])
    assert [type(e).__name__ for e in elements_of(play)] == ["Insert"] * 2
    play.feed([Said(0, 9)])
    assert str(elements_of(play)[-1]) == "Adjust(payload=(2, 1), vs=3, v_old=5, ve=9)"


def test_where_nothing_was_seen_a_plan_is_replaced_at_once() -> None:
    play = two(PAIRS)
    play.replace(TURNED)
    assert not play.running.is_migrating
    play.feed([Said(0, 5), Said(1, 5)])
    play.replace(PAIRS)
    assert not play.running.is_migrating


def test_when_the_inputs_have_passed_the_split_a_plan_is_replaced_at_once() -> None:
    play = two(PAIRS).feed([(0, ((1,), 0, 4)), Said(0, 50), Said(1, 50)])
    assert play.replace(TURNED) == 50, "nothing is said of what was promised already"
    assert not play.running.is_migrating


def test_what_was_promised_holds_for_a_plan_that_reads_an_input_that_is_behind() -> None:
    play = two(LEFT).feed([(0, ((1,), 0, 1)), Said(0, 20)])
    assert play.replace(RIGHT, way=CUT) == 20
    play.feed([(1, ((2,), 0, 30)), Said(0, END_OF_TIME), Said(1, END_OF_TIME)])
    assert_right(play)
    assert events_of(play.outputs) == TDB([((1,), 0, 1), ((2,), 20, 30)])


def test_an_input_that_says_nothing_of_rows_delays_nothing() -> None:
    play = two(PAIRS).feed([(0, ((1,), 0, 4))])
    assert play.replace(TURNED) == 5
    play.feed([Said(0, 5)])
    assert play.running.is_migrating
    play.feed([Said(1, 5)])
    assert not play.running.is_migrating


def test_outputs_of_one_plan_have_one_split() -> None:
    """A plan with two outputs, its pairs and their number: a coalesce behind each, and the T of both."""
    pairs, counted = two(PAIRS), two(Count(PAIRS, ()))
    before: list[Step] = [(0, ((1,), 0, 6)), (1, ((1,), 2, 9)), Said(0, 4), Said(1, 4)]
    after: list[Step] = [(1, ((1,), 5, 20)), (0, ((1,), 8, 14)), Said(0, END_OF_TIME), Said(1, END_OF_TIME)]
    for play, new in ((pairs, PAIRS), (counted, Count(PAIRS, ()))):
        play.feed(before)
        play.replace(new, split=10)
        assert_right(play.feed(after))


def test_one_at_a_time() -> None:
    play = two(PAIRS).feed([(0, ((1,), 0, 4))])
    play.replace(TURNED)
    with pytest.raises(PlanError, match=r"(?s)being replaced already.*T = 5.*is_migrating"):
        play.replace(PAIRS)


def test_the_reference_point_is_refused_where_it_is_wrong() -> None:
    play = two(Count(LEFT, ())).feed([(0, ((1,), 0, 4))])
    with pytest.raises(PlanError, match=r"(?s)start with the last.*interval count.*split and coalesce"):
        play.replace(Count(LEFT, ()), way=REFERENCE_POINT)


def test_an_open_event_never_allows_a_split() -> None:
    play = two(PAIRS).feed([(0, ((1,), 0, END_OF_TIME))])
    with pytest.raises(PlanError, match=r"(?s)while an event is open.*input 0.*from the sources"):
        play.replace(TURNED)


def test_results_that_are_out_stay_for_a_consumer_that_takes_no_revisions() -> None:
    long, short = Window(LEFT, 100), Window(LEFT, 10)
    play = two(long).feed([(0, ((1,), 0, 1))])
    assert elements_of(play) == [Insert((1,), 0, 101)]
    assert play.replace(short, way=CUT) == 101
    assert two(short).feed([(0, ((1,), 0, 1))]).replace(long, way=CUT) == 102


def test_results_that_are_out_are_taken_back_where_a_consumer_takes_revisions() -> None:
    #            0         T=12                100
    # long       111111111111111111111111111111
    # from T on              nothing: a window of 10 is over at 11
    long, short = Window(LEFT, 100), Window(LEFT, 10)
    play = two(long, revises=True).feed([(0, ((1,), 0, 1))])
    assert play.replace(short, way=CUT) == 12
    assert str(elements_of(play)[-1]) == "Adjust(payload=(1,), vs=0, v_old=101, ve=12)"
    assert_right(play.feed([Said(0, END_OF_TIME), Said(1, END_OF_TIME)]))


def test_what_was_taken_back_is_whole_again_if_the_new_plan_says_so() -> None:
    long = Window(LEFT, 100)
    play = two(long, revises=True).feed([(0, ((1,), 0, 1))])
    assert play.replace(long, way=CUT, split=50) == 50
    play.feed([(0, ((1,), 40, 41)), Said(0, END_OF_TIME), Said(1, END_OF_TIME)])
    assert [str(e) for e in elements_of(play)[-2:]] == [
        "Insert(payload=(1,), vs=40, ve=50)",
        "Adjust(payload=(1,), vs=0, v_old=50, ve=141)",
    ], "equal rows that end at T are told apart by nothing but their starts"


@given(data=st.data(), steps=arrivals(INPUTS))
def test_promises_are_prompt(data: st.DataObject, steps: list[Step]) -> None:
    """What all inputs have promised is promised, but that ends may be moved at T until the new plan has passed it."""
    old = Join(Join(LEFT, RIGHT, ((0, 0),)), Input(2), ((0, 0),))
    new = data.draw(rewritten(old, INPUTS))
    cut = data.draw(st.integers(0, len(steps)))
    play = Play(SCHEMAS, old, revises=True).feed(steps[:cut])
    split = play.replace(new)
    bounds = [
        max((s.bound for s in steps[:cut] if isinstance(s, Said) and s.port == port), default=-1) for port in range(3)
    ]
    for step in steps[cut:]:
        play.feed([step])
        if isinstance(step, Said):
            bounds[step.port] = max(bounds[step.port], step.bound)
        told = max((p.value for p in play.outputs if isinstance(p, Punctuation)), default=-1)
        assert told >= (min(bounds) if min(bounds) > split else min(*bounds, split))


def elements_of(play: Play) -> list[Insert | Adjust]:
    return [e for each in play.outputs if isinstance(each, Batch) for e in each.elements()]


def test_order_and_revisions_exclude_each_other() -> None:
    with pytest.raises(PlanError, match=r"(?s)no order to keep.*one of the two"):
        two(PAIRS, revises=True, ordered=True)
